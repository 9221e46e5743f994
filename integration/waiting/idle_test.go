//go:build integration

package waiting

import (
	"strconv"
	"testing"
	"time"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// TestIdleWaiters lets 200 clients of two proxies wait for four locks. Meanwhile the masters get
// only the commands that they get without these clients, and the keep-alives of the watches.
func TestIdleWaiters(t *testing.T) {
	t.Parallel()
	f := start(t, 2)
	f.WantVoting(t, 5)
	usualCommands := idleCommands(t, f)
	holder := kit.Connect(t, f.Proxies[0])
	for key := range 4 {
		kit.WantGrant(t, holder, "LOCK", "k"+strconv.Itoa(key), "holder", "PX", longLease)
	}
	for i := range 200 {
		client := kit.Connect(t, f.Proxies[i%2])
		kit.Must(t, client.Send(redistest.AppendCommand(nil, "LOCK", "k"+strconv.Itoa(i/2%4), "token", "PX", longLease,
			"BLOCK", "600000")))
	}
	for _, proxy := range f.Proxies {
		kit.WantBlocked(t, proxy, 100)
	}
	wantIdle(t, f, usualCommands)
}

// TestIdleWaitersWithTags repeats TestIdleWaiters with keys that share their cells with other keys,
// temporarily or permanently, and with keys that have their own cells.
func TestIdleWaitersWithTags(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	f := start(t, 2, "--lock-keys", "k*", "--lock-keys", "*{k*", "--lock-tags", "*")
	f.WantVoting(t, 5)
	usualCommands := idleCommands(t, f)
	holder := kit.Connect(t, f.Proxies[0])
	kit.Want(t, holder, "OK", "SET", "a:{k0}", "neighbour")
	kit.Want(t, holder, "OK", "SET", "a:{k1}", "neighbour", "PX", longLease)
	keys := []string{"k0", "b:{k1}", "b:{k2}", "k3"}
	for _, key := range keys {
		kit.WantGrant(t, holder, "LOCK", key, "holder", "PX", longLease)
	}
	for i := range 40 {
		client := kit.Connect(t, f.Proxies[i%2])
		kit.Must(t, client.Send(redistest.AppendCommand(nil, "LOCK", keys[i/2%4], "token", "PX", longLease, "BLOCK",
			"600000")))
	}
	for _, proxy := range f.Proxies {
		kit.WantBlocked(t, proxy, 20)
	}
	wantIdle(t, f, usualCommands)
}

// TestWakeUpWithTags lets a client wait at one proxy for a key in a shared cell. The client gets
// the lock when the lock is released through another proxy. It also gets the lock when the lease
// expires, which no master reports.
func TestWakeUpWithTags(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	f := start(t, 2, "--lock-keys", "k*", "--lock-keys", "*{k*", "--lock-tags", "*")
	f.WantVoting(t, 5)
	holder := kit.Connect(t, f.Proxies[0])
	kit.Want(t, holder, "OK", "SET", "a:{k}", "neighbour", "PX", longLease)
	for _, key := range []string{"k", "b:{k}"} {
		for _, ms := range []string{longLease, "4000"} {
			kit.WantGrant(t, holder, "LOCK", key, "holder", "PX", ms)
			waiter := kit.Connect(t, f.Proxies[1])
			kit.Must(t, waiter.Send(redistest.AppendCommand(nil, "LOCK", key, "waiter", "PX", longLease, "BLOCK", "60000")))
			kit.WantBlocked(t, f.Proxies[1], 1)
			if ms == longLease {
				awaitNoCommands(t, f.Masters...)
				kit.Want(t, holder, "OK", "SET", "c:{k}", "another", "PX", longLease)
				awaitNoCommands(t, f.Masters...)
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

// observationTime is the time for which the test observes the masters.
const observationTime = 4 * time.Second

// idleCommands returns the commands that masters run while no client waits, and ping, which keeps
// the watches alive.
func idleCommands(t *testing.T, f *kit.Fleet) map[string]bool {
	t.Helper()
	usualCommands := map[string]bool{"ping": true}
	for name := range commandsDuring(t, f, observationTime) {
		usualCommands[name] = true
	}
	return usualCommands
}

// wantIdle fails the test if masters run commands other than usualCommands, or commands on the keys
// of the waiters.
func wantIdle(t *testing.T, f *kit.Fleet, usualCommands map[string]bool) {
	t.Helper()
	awaitNoCommands(t, f.Masters...)
	for name, times := range commandsDuring(t, f, observationTime) {
		if !usualCommands[name] {
			t.Errorf("%s, %d times", name, times)
		}
	}
	if keyCommands := commandsOnKeys(t, f.Masters, observationTime); len(keyCommands) > 0 {
		t.Errorf("%d commands, such as %s", len(keyCommands), keyCommands[0])
	}
}

// commandsDuring returns the number of commands that all masters run within a time window, by name.
func commandsDuring(t *testing.T, f *kit.Fleet, window time.Duration) map[string]int {
	t.Helper()
	for _, master := range f.Masters {
		kit.Must(t, kit.SendToMaster(master, "CONFIG", "RESETSTAT"))
	}
	time.Sleep(window) // idle servers run no commands for some time
	counts := map[string]int{}
	for _, master := range f.Masters {
		for name, n := range commandCounts(t, master) {
			counts[name] += n
		}
	}
	return counts
}
