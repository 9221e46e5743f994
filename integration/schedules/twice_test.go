//go:build integration

package schedules

import (
	"fmt"
	"testing"
	"time"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
	"redlock-proxy/internal/redistest/faultlink"
)

// TestSwapRunsOnce covers a GETSET that has reached one master when another client
// compare-and-deletes the old value. So the GETSET tries again. Then the other client reads the new
// value, and compare-and-deletes it. A deleted value does not reappear: each command is executed
// once.
//
// The test does not know which message of the GETSET is the write. So it varies the number of
// messages that pass, with several keys.
func TestSwapRunsOnce(t *testing.T) {
	t.Parallel()
	f := startFleet(t, 3)
	slowProxy, otherProxy := f.startProxy(t, "--master-timeout", "2s"), f.startProxy(t)
	removals := 0
	for passCount := range 3 {
		for i := range 6 {
			s := &swapRun{fleet: f, slowProxy: slowProxy, otherProxy: otherProxy, key: fmt.Sprintf("lock:%d:%d", passCount, i)}
			s.run(t, passCount)
			if s.removed {
				removals++
			}
		}
	}
	t.Logf("the value of %d GETSETs was removed before they ended", removals)
}

// swapRun is a GETSET of "new" during compare-and-deletes.
type swapRun struct {
	fleet                 *fleet
	slowProxy, otherProxy *proxy
	key                   string
	removed               bool // set if a client read and removed the new value
}

func (s *swapRun) run(t *testing.T, passCount int) {
	t.Helper()
	client := connect(t, s.otherProxy)
	kit.Want(t, client, "OK", "SET", s.key, "old", "PX", longTTL)
	s.fleet.wantHolders(t, s.key, "old", A, B, C)
	links := s.slowProxy.links

	heldB, heldC := links[B].HoldCommands(faultlink.SkipFirst(passCount, faultlink.Containing(s.key))),
		links[C].HoldCommands(faultlink.SkipFirst(passCount, faultlink.Containing(s.key)))
	reply := sendAsync(connect(t, s.slowProxy), "GETSET", s.key, "new")
	s.awaitHolders(t, "new", A)
	s.remove(t, client, "old")

	heldA, laterHeldC := links[A].HoldCommands(faultlink.Containing(s.key)), links[C].HoldCommands(faultlink.Containing(s.key))
	heldB.Release()
	heldC.Release()
	s.awaitHolders(t, "new", A, B)
	if kit.Do(t, client, "GET", s.key) == "new" {
		s.removed = s.remove(t, client, "new")
	}
	heldA.Release()
	laterHeldC.Release()

	got := <-reply
	time.Sleep(50 * time.Millisecond) // the proxies remove leftovers
	value := kit.Do(t, client, "GET", s.key)
	if s.removed && value == "new" {
		t.Errorf("%s, %d messages pass: its value was seen and removed, the GETSET was answered %v, and the value returned", s.key, passCount, got)
	}
}

// remove sends a compare-and-delete, and reports whether it deleted the key.
func (s *swapRun) remove(t *testing.T, client *redistest.Client, value string) bool {
	t.Helper()
	return kit.Do(t, client, "EVAL", releaseIfOwn, "1", s.key, value) == any(int64(1))
}

// awaitHolders waits at most 100 ms until the masters have a value.
func (s *swapRun) awaitHolders(t *testing.T, value string, masters ...int) {
	t.Helper()
	for deadline := time.Now().Add(100 * time.Millisecond); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		holders := s.fleet.holders(t, s.key, value)
		missing := false
		for _, i := range masters {
			missing = missing || !contains(holders, i)
		}
		if !missing {
			return
		}
	}
}

// TestPersistOnce lets clients of two proxies remove the expiry of a key at the same moment.
// Exactly one of them gets the reply 1.
func TestPersistOnce(t *testing.T) {
	t.Parallel()
	f := startFleet(t, 3)
	clients := []*redistest.Client{connect(t, f.startProxy(t)), connect(t, f.startProxy(t))}
	for i := range 200 {
		key := fmt.Sprint("lock:persist:", i)
		kit.Want(t, clients[i%2], "OK", "SET", key, "me", "PX", longTTL)
		first, second := sendAsync(clients[0], "PERSIST", key), sendAsync(clients[1], "PERSIST", key)
		if firstReply, secondReply := <-first, <-second; firstReply == secondReply {
			t.Fatalf("%s: both get %v", key, firstReply)
		}
		kit.Want(t, clients[0], int64(-1), "PTTL", key)
	}
}
