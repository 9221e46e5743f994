//go:build integration

package locks

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"redlock-proxy/integration/faults"
	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// recoveryTimeout limits the time until the proxy uses restarted masters again. The tests log the
// measured time.
const recoveryTimeout = kit.WaitLimit

// hangingMasterArgs returns the arguments for a master-timeout that is short enough to wait for it,
// and that a master meets even on a busy machine.
func hangingMasterArgs() []string { return []string{"--master-timeout", "1s"} }

// TestTwoFailuresOfFive checks that locks work without a single error while a minority of the
// masters fails, is down, and recovers.
func TestTwoFailuresOfFive(t *testing.T) {
	for _, fault := range faults.All() {
		t.Run(fault.Name, func(t *testing.T) {
			f := fault.Start(t)
			load := startLoad(t, f.Proxies[0], 16, false)
			time.Sleep(300 * time.Millisecond) // some load before the fault, and some during it
			for i := range 2 {
				kit.Must(t, fault.Cause(f, i))
			}
			time.Sleep(1200 * time.Millisecond) // the fault lasts; a hanging master stays up
			for i := range 2 {
				kit.Must(t, fault.Repair(f, i))
			}
			wantAllMastersUsed(t, f)
			load.stop().wantFlawless(t)
		})
	}
}

// TestThreeFailuresOfFive checks that, without a majority, the client gets an error that names
// every cause, and gets it in time. No lock remains: neither on the running masters, nor on the
// failed masters after their repair.
func TestThreeFailuresOfFive(t *testing.T) {
	for _, fault := range faults.All() {
		t.Run(fault.Name, func(t *testing.T) {
			// With the guard, three killed masters would have to wait until their locks have
			// expired; see TestFullDataLoss in package guard.
			f := fault.Start(t, append(hangingMasterArgs(), "--guard=false")...)
			client := kit.Connect(t, f.Proxies[0])
			kit.WantGrant(t, client, "LOCK", "before", "b", "PX", "60000")
			kit.EachMaster(t, f.Masters, func(master *redistest.Server) error { return kit.CheckToken(master, "0", "before", "b") })
			for i := range 3 {
				kit.Must(t, fault.Cause(f, i))
			}
			wantNoQuorum(t, f, client, "LOCK", "k", "t", "PX", "60000")
			wantNoQuorum(t, f, client, "UNLOCK", "before", "b")
			wantNoQuorum(t, f, client, "LOCK", "k", "u", "PX", "60000", "BLOCK", "500")
			wantNoQuorum(t, f, client, "EXTEND", "before", "b", "PX", "60000")
			kit.EachMaster(t, f.Masters[3:], checkFree)
			for i := range 3 {
				kit.Must(t, fault.Repair(f, i))
			}
			wantAllMastersUsed(t, f)
			kit.EachMaster(t, f.Masters, checkFree)
			time.Sleep(300 * time.Millisecond) // late messages arrive now
			kit.EachMaster(t, f.Masters, checkFree)
		})
	}
}

// TestMachineStall checks that no client gets an error if everything stops for longer than
// the master-timeout. This happens on a machine whose processors other guests use. Later, the
// replies arrive.
func TestMachineStall(t *testing.T) {
	redistest.SkipShort(t)
	// Both are shorter than a round may take, so that the replies count.
	const masterTimeout, stallTime = 450 * time.Millisecond, 550 * time.Millisecond
	f := kit.StartFleet(t, "--master-timeout", masterTimeout.String())
	load := startLoad(t, f.Proxies[0], 16, false)
	for range 8 {
		time.Sleep(100 * time.Millisecond) // the load runs before it is stopped
		kit.Must(t, f.Proxies[0].Signal(syscall.SIGSTOP))
		for _, master := range f.Masters {
			kit.Must(t, master.Pause())
		}
		time.Sleep(stallTime) // longer than the proxy waits for a master
		kit.Must(t, f.Proxies[0].Signal(syscall.SIGCONT))
		for _, master := range f.Masters {
			kit.Must(t, master.Continue())
		}
	}
	load.stop().wantFlawless(t)
}

// checkFree returns an error if a master has the key k or the key before.
func checkFree(master *redistest.Server) error {
	for _, key := range []string{"k", "before"} {
		if err := kit.CheckAbsent(master, key); err != nil {
			return err
		}
	}
	return nil
}

// wantNoQuorum fails the test unless a command gets NOQUORUM in time, with the causes of three
// masters.
func wantNoQuorum(t *testing.T, f *kit.Fleet, client *redistest.Client, command ...string) {
	t.Helper()
	sent := time.Now()
	reply := kit.Do(t, client, command...)
	elapsed := time.Since(sent)
	text, _ := reply.(redistest.RespError)
	causes, ok := strings.CutPrefix(string(text), "NOQUORUM 2 of 5 masters answered, 3 needed: ")
	if !ok {
		t.Fatalf("%v: got %#v, want NOQUORUM 2 of 5 masters answered, 3 needed: …", command, reply)
	}
	causeList := strings.Split(causes, "; ")
	for i, name := range f.Names()[:3] {
		if len(causeList) != 3 || !strings.HasPrefix(causeList[i], name+": ") || len(causeList[i]) < len(name)+len(": why") {
			t.Fatalf("%v: got the causes %q, want one for each of three masters, the next of %s", command, causeList, name)
		}
	}
	t.Logf("%s after %v: %s", command[0], elapsed.Round(10*time.Microsecond), text)
	// BLOCK's time is 500 ms, and the master timeout is a second. The remaining time is a reserve
	// for a busy machine.
	if elapsed > 30*time.Second {
		t.Errorf("%v: it took %v", command, elapsed)
	}
}

// wantAllMastersUsed waits until all masters hold a new lock.
func wantAllMastersUsed(t *testing.T, f *kit.Fleet) {
	t.Helper()
	client, startedAt := kit.Connect(t, f.Proxies[0]), time.Now()
	var err error
	for turn := 0; time.Since(startedAt) < recoveryTimeout; turn++ {
		key := "again:" + strconv.Itoa(turn)
		// The proxy may refuse a LOCK soon after the fault.
		kit.Do(t, client, "LOCK", key, "t", "PX", "10000")
		if err = checkOnAllMasters(f, key, "t"); err == nil {
			t.Logf("all five are used again after %v", time.Since(startedAt).Round(time.Millisecond))
			return
		}
	}
	t.Fatalf("not all five masters are used %v after they came back: %v", recoveryTimeout, err)
}

// checkOnAllMasters checks several times whether all masters have a key, because slow masters may
// follow later.
func checkOnAllMasters(f *kit.Fleet, key, value string) (err error) {
	for range 5 {
		err = nil
		for _, master := range f.Masters {
			if err == nil {
				err = kit.CheckToken(master, "0", key, value)
			}
		}
		if err == nil {
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return err
}

// TestLateSet checks that a late SET is undone. While a master is stopped, the SET of a LOCK waits
// in the master's socket buffer, and the LOCK fails. When the master continues, it reads the SET
// and then the undo. If the proxy was already waiting for another reply of the master, the proxy
// does not send the SET. Then the test tries again.
func TestLateSet(t *testing.T) {
	f := kit.StartFleet(t, hangingMasterArgs()...)
	client := kit.Connect(t, f.Proxies[0])
	// The proxy then knows that this TTL is in use, so the next LOCK begins with its SET.
	kit.WantGrant(t, client, "LOCK", "warm", "t", "PX", "60000")
	isLate := false
	for try := 0; !isLate && try < 10; try++ {
		isLate = causeLateSet(t, f, client)
		kit.EachMaster(t, f.Masters, checkFree)
	}
	if !isLate {
		t.Error("never did all three masters execute the late SET, so this test shows nothing")
	}
}

// causeLateSet reports whether all three masters that are stopped during a LOCK execute its SET
// when they continue.
func causeLateSet(t *testing.T, f *kit.Fleet, client *redistest.Client) (isLate bool) {
	t.Helper()
	stoppedMasters := f.Masters[:3]
	for _, master := range stoppedMasters {
		recordCommands(t, master)
		kit.Must(t, master.Pause())
	}
	wantNoQuorum(t, f, client, "LOCK", "k", "t", "PX", "60000")
	for _, master := range stoppedMasters {
		kit.Must(t, master.Continue())
	}
	wantAllMastersUsed(t, f)
	return !slices.ContainsFunc(stoppedMasters, func(master *redistest.Server) bool { return !hasExecuted(t, master, "set", "k") })
}

// recordCommands lets a master record the commands that it executes from now on.
func recordCommands(t *testing.T, master *redistest.Server) {
	t.Helper()
	client, err := redistest.Dial(master.Addr(), kit.WaitLimit)
	kit.Must(t, err)
	defer client.Close()
	kit.Want(t, client, "OK", "CONFIG", "SET", "slowlog-log-slower-than", "0")
	kit.Want(t, client, "OK", "CONFIG", "SET", "slowlog-max-len", "10000")
	kit.Want(t, client, "OK", "SLOWLOG", "RESET")
}

// hasExecuted reports whether a master has executed a command with these words since
// recordCommands.
func hasExecuted(t *testing.T, master *redistest.Server, words ...string) bool {
	t.Helper()
	client, err := redistest.Dial(master.Addr(), kit.WaitLimit)
	kit.Must(t, err)
	defer client.Close()
	entries, _ := kit.Do(t, client, "SLOWLOG", "GET", "10000").([]any)
	for _, entry := range entries {
		command := fmt.Sprint(entry.([]any)[3]) // number, time, microseconds, words …
		if strings.HasPrefix(strings.ToLower(command), "["+strings.Join(words, " ")+" ") {
			return true
		}
	}
	return false
}

// TestMasterRestart checks that no client gets an error, and every free lock can be granted, if a
// master crashes and restarts without data, repeatedly.
func TestMasterRestart(t *testing.T) {
	f := kit.StartFleet(t)
	load := startLoad(t, f.Proxies[0], 16, true)
	for range 6 {
		time.Sleep(rand.N(300 * time.Millisecond)) // the crash comes at any moment
		kit.Must(t, f.Masters[0].Kill())
		time.Sleep(rand.N(300 * time.Millisecond)) // the restart comes at any moment
		kit.Must(t, f.Masters[0].Restart())
	}
	wantAllMastersUsed(t, f)
	load.stop().wantFlawless(t)
}
