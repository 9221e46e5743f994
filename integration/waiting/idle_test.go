//go:build integration

package waiting

import (
	"strconv"
	"testing"
	"time"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// TestIdle: 200 clients of two proxies wait for four locks, and the masters are asked nothing that
// they are not asked without them, but signs of life of the watches.
func TestIdle(t *testing.T) {
	t.Parallel()
	f := start(t, 2)
	f.WantVoting(t, 5)
	usual := usualOf(t, f)
	holder := kit.Connect(t, f.Proxies[0])
	for key := range 4 {
		kit.WantGrant(t, holder, "LOCK", "k"+strconv.Itoa(key), "holder", "PX", forLong)
	}
	for i := range 200 {
		client := kit.Connect(t, f.Proxies[i%2])
		kit.Must(t, client.Send(redistest.AppendCommand(nil, "LOCK", "k"+strconv.Itoa(i/2%4), "token", "PX", forLong, "BLOCK", "600000")))
	}
	for _, proxy := range f.Proxies {
		kit.WantBlocked(t, proxy, 100)
	}
	wantIdle(t, f, usual)
}

// TestIdleWithTags: the same where the keys share their cells with others, by themselves or for
// good, and with some that stand alone.
func TestIdleWithTags(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	f := start(t, 2, "--lock-keys", "k*", "--lock-keys", "*{k*", "--lock-tags", "*")
	f.WantVoting(t, 5)
	usual := usualOf(t, f)
	holder := kit.Connect(t, f.Proxies[0])
	kit.Want(t, holder, "OK", "SET", "a:{k0}", "neighbour")
	kit.Want(t, holder, "OK", "SET", "a:{k1}", "neighbour", "PX", forLong)
	keys := []string{"k0", "b:{k1}", "b:{k2}", "k3"}
	for _, key := range keys {
		kit.WantGrant(t, holder, "LOCK", key, "holder", "PX", forLong)
	}
	for i := range 40 {
		client := kit.Connect(t, f.Proxies[i%2])
		kit.Must(t, client.Send(redistest.AppendCommand(nil, "LOCK", keys[i/2%4], "token", "PX", forLong, "BLOCK", "600000")))
	}
	for _, proxy := range f.Proxies {
		kit.WantBlocked(t, proxy, 20)
	}
	wantIdle(t, f, usual)
}

// TestWakingWithTags: who waits at one proxy for a key that shares its cell has it when it is given
// back through another one, and when its time is over, of which no master tells.
func TestWakingWithTags(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	f := start(t, 2, "--lock-keys", "k*", "--lock-keys", "*{k*", "--lock-tags", "*")
	f.WantVoting(t, 5)
	holder := kit.Connect(t, f.Proxies[0])
	kit.Want(t, holder, "OK", "SET", "a:{k}", "neighbour", "PX", forLong)
	for _, key := range []string{"k", "b:{k}"} {
		for _, ms := range []string{forLong, "1500"} {
			kit.WantGrant(t, holder, "LOCK", key, "holder", "PX", ms)
			waiter := kit.Connect(t, f.Proxies[1])
			kit.Must(t, waiter.Send(redistest.AppendCommand(nil, "LOCK", key, "waiter", "PX", forLong, "BLOCK", "20000")))
			kit.WantBlocked(t, f.Proxies[1], 1)
			if ms == forLong {
				rest(t, f.Masters...)
				kit.Want(t, holder, "OK", "SET", "c:{k}", "another", "PX", forLong)
				rest(t, f.Masters...)
				kit.Want(t, holder, int64(1), "UNLOCK", key, "holder")
			}
			reply, err := waiter.Receive()
			kit.Must(t, err)
			if _, granted := reply.(int64); !granted {
				t.Fatalf("%s for %s ms: %v", key, ms, reply)
			}
			kit.Want(t, holder, int64(1), "UNLOCK", key, "waiter")
		}
	}
}

// idle is for how long the masters are watched.
const idle = 4 * time.Second

// usualOf are the commands that masters do while nobody waits, and the signs of life of the
// watches.
func usualOf(t *testing.T, f *kit.Fleet) map[string]bool {
	t.Helper()
	usual := map[string]bool{"ping": true}
	for name := range during(t, f, idle) {
		usual[name] = true
	}
	return usual
}

// wantIdle wants masters to do nothing else, and nothing about the keys that are waited for.
func wantIdle(t *testing.T, f *kit.Fleet, usual map[string]bool) {
	t.Helper()
	rest(t, f.Masters...)
	for name, times := range during(t, f, idle) {
		if !usual[name] {
			t.Errorf("%s, %d times", name, times)
		}
	}
	if asked := about(t, f.Masters, idle); len(asked) > 0 {
		t.Errorf("%d commands, such as %s", len(asked), asked[0])
	}
}

// during are the commands that all masters do within a window.
func during(t *testing.T, f *kit.Fleet, window time.Duration) map[string]int {
	t.Helper()
	for _, master := range f.Masters {
		kit.Must(t, kit.Tell(master, "CONFIG", "RESETSTAT"))
	}
	time.Sleep(window) // what is idle does nothing for some time
	all := map[string]int{}
	for _, master := range f.Masters {
		for name, n := range commands(t, master) {
			all[name] += n
		}
	}
	return all
}
