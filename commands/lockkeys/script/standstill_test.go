//go:build unix

package script

import (
	"os"
	"testing"
	"time"

	"redlock-proxy/internal/process"
)

// standstillChild is the environment variable of the process that the test stops.
const standstillChild = "REDLOCK_TEST_STANDSTILL"

// TestWaitDuringStandstill checks that a standstill of the whole process does not count
// as waiting for a slot, and so never causes BUSY.
func TestWaitDuringStandstill(t *testing.T) {
	if os.Getenv(standstillChild) != "" {
		waitForSlot(t)
		return
	}
	child, err := process.Start(os.Args[0], []string{"-test.run", "^" + t.Name() + "$"},
		append(os.Environ(), standstillChild+"=yes"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = child.Kill() })
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%v: %s", err, child.Log())
		}
	}
	_, err = child.WaitLine(func(line string) bool { return line == "waiting" }, time.Minute)
	must(err)
	must(child.Pause())
	time.Sleep(slotLimit + time.Second) // the process stands still for longer than a run may take
	must(child.Continue())
	_, err = child.WaitLine(func(line string) bool { return line == "ran" }, time.Minute)
	must(err)
}

// slotLimit is the time limit of the run that waits. The holder of the slot releases it after a
// much shorter time.
const slotLimit = 3 * time.Second

// waitForSlot runs a script while a goroutine holds the only slot, for ten short sleeps.
func waitForSlot(t *testing.T) {
	scheduler := NewScheduler()
	scheduler.smallSlots = newSlots(1, -1)
	if !scheduler.smallSlots.tryTake() {
		t.Fatal("the slot is not free")
	}
	go func() {
		for range 10 {
			// Ten sleeps take half a second of the process's own time, however long the process
			// stands still.
			time.Sleep(50 * time.Millisecond)
		}
		scheduler.smallSlots.release()
	}()
	s, err := compile("return 1")
	if err != nil {
		t.Fatal(err)
	}
	os.Stdout.WriteString("waiting\n")
	if _, err := s.Run(t.Context(), Input{Share: Share{Scheduler: scheduler, Time: slotLimit}}); err != nil {
		t.Fatal(err)
	}
	os.Stdout.WriteString("ran\n")
}
