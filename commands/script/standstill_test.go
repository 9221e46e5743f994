//go:build unix

package script

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// standstillChild has the test below be the process that is stopped.
const standstillChild = "REDLOCK_TEST_STANDSTILL"

// A run that waits for its place has not waited while the whole process stood still: it is not BUSY for that, however long it took.
func TestWaitWhileTheProcessStandsStill(t *testing.T) {
	if os.Getenv(standstillChild) != "" {
		waitForAPlace(t)
		return
	}
	child := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$")
	child.Env = append(os.Environ(), standstillChild+"=yes")
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer child.Wait()
	lines := bufio.NewScanner(out)
	lines.Scan()
	if lines.Text() != "waiting" {
		t.Fatalf("the child says %q", lines.Text())
	}
	for _, signal := range []os.Signal{syscall.SIGSTOP, syscall.SIGCONT} {
		if err := child.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		if signal == syscall.SIGSTOP {
			time.Sleep(placeLimit + time.Second)
		}
	}
	var rest []string
	for lines.Scan() {
		rest = append(rest, lines.Text())
	}
	if err := child.Wait(); err != nil || len(rest) == 0 || rest[0] != "ran" {
		t.Errorf("%v: %s", err, strings.Join(rest, "\n"))
	}
}

// placeLimit is much more than the place is held for.
const placeLimit = 3 * time.Second

// waitForAPlace runs a script while another has the only place, for ten short sleeps.
func waitForAPlace(t *testing.T) {
	pace := NewPace()
	pace.small = newPlaces(1, -1)
	if !pace.small.tryTake() {
		t.Fatal("the place is not free")
	}
	go func() {
		for range 10 {
			time.Sleep(50 * time.Millisecond)
		}
		pace.small.giveUp()
	}()
	s, err := Compile("return 1")
	if err != nil {
		t.Fatal(err)
	}
	os.Stdout.WriteString("waiting\n")
	if _, err := s.Run(context.Background(), Input{Pace: pace, Limits: Limits{Time: placeLimit}}); err != nil {
		t.Fatal(err)
	}
	os.Stdout.WriteString("ran\n")
}
