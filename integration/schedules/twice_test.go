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

// TestTwice: a GETSET has reached one master when another client compare-and-deletes the value that
// it replaces, so it tries again. Then the client reads the new value, and compare-and-deletes it.
// A deleted value does not return: each command is executed once.
//
// The test does not know which message of the GETSET is the write, so it varies the number of
// messages that pass, with several keys.
func TestTwice(t *testing.T) {
	t.Parallel()
	f := startFleet(t, 3)
	slow, other := f.proxy(t, "--master-timeout", "2s"), f.proxy(t)
	seen := 0
	for passed := range 3 {
		for i := range 6 {
			s := &swap{fleet: f, slow: slow, other: other, key: fmt.Sprintf("lock:%d:%d", passed, i)}
			s.run(t, passed)
			if s.removed {
				seen++
			}
		}
	}
	t.Logf("the value of %d GETSETs was taken away in the middle", seen)
}

// swap is a GETSET of "new" during compare-and-deletes.
type swap struct {
	fleet       *fleet
	slow, other *proxy
	key         string
	removed     bool // its value was read, and removed with the reply 1
}

func (s *swap) run(t *testing.T, passed int) {
	t.Helper()
	client := connect(t, s.other)
	kit.Want(t, client, "OK", "SET", s.key, "old", "PX", longTime)
	s.fleet.wantHolders(t, s.key, "old", A, B, C)
	links := s.slow.links

	onB, onC := links[B].HoldCommands(faultlink.After(passed, faultlink.Naming(s.key))),
		links[C].HoldCommands(faultlink.After(passed, faultlink.Naming(s.key)))
	reply := sendAsync(connect(t, s.slow), "GETSET", s.key, "new")
	s.await(t, "new", A)
	s.remove(t, client, "old")

	onA, laterOnC := links[A].HoldCommands(faultlink.Naming(s.key)), links[C].HoldCommands(faultlink.Naming(s.key))
	onB.Release()
	onC.Release()
	s.await(t, "new", A, B)
	if kit.Do(t, client, "GET", s.key) == "new" {
		s.removed = s.remove(t, client, "new")
	}
	onA.Release()
	laterOnC.Release()

	got := <-reply
	time.Sleep(50 * time.Millisecond) // leftovers are removed
	after := kit.Do(t, client, "GET", s.key)
	if s.removed && after == "new" {
		t.Errorf("%s, %d messages pass: its value was seen and removed, the GETSET was answered %v, and the value returned", s.key, passed, got)
	}
}

// remove sends a compare-and-delete, and reports whether it deleted the key.
func (s *swap) remove(t *testing.T, client *redistest.Client, value string) bool {
	t.Helper()
	return kit.Do(t, client, "EVAL", releaseIfOwn, "1", s.key, value) == any(int64(1))
}

// await waits up to 100 ms until the masters hold a value; they may never do.
func (s *swap) await(t *testing.T, value string, masters ...int) {
	t.Helper()
	for end := time.Now().Add(100 * time.Millisecond); time.Now().Before(end); time.Sleep(time.Millisecond) {
		held := s.fleet.holders(t, s.key, value)
		missing := false
		for _, i := range masters {
			missing = missing || !has(held, i)
		}
		if !missing {
			return
		}
	}
}

// TestPersistOnce: if clients of two proxies remove the expiry of a key at the same moment, exactly
// one of them gets the reply 1.
func TestPersistOnce(t *testing.T) {
	t.Parallel()
	f := startFleet(t, 3)
	clients := []*redistest.Client{connect(t, f.proxy(t)), connect(t, f.proxy(t))}
	for i := range 200 {
		key := fmt.Sprint("lock:persist:", i)
		kit.Want(t, clients[i%2], "OK", "SET", key, "me", "PX", longTime)
		first, second := sendAsync(clients[0], "PERSIST", key), sendAsync(clients[1], "PERSIST", key)
		if one, other := <-first, <-second; one == other {
			t.Fatalf("%s: both are told %v", key, one)
		}
		kit.Want(t, clients[0], int64(-1), "PTTL", key)
	}
}
