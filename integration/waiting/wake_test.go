//go:build integration

package waiting

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// TestWakeUp checks that all events that free a lock of one proxy's client wake another
// proxy's waiter.
func TestWakeUp(t *testing.T) {
	const leaseExpiry = "the end of the lease"
	f := start(t, 2, "--guard=false") // with the guard, FLUSHALL would take the masters' votes
	onAllMasters := func(command ...string) func(*testing.T, *redistest.Client) {
		return func(t *testing.T, _ *redistest.Client) {
			for _, master := range f.Masters {
				kit.Must(t, kit.SendToMaster(master, command...))
			}
		}
	}
	for name, releaseLock := range map[string]func(t *testing.T, holder *redistest.Client){
		"UNLOCK": func(t *testing.T, holder *redistest.Client) {
			kit.Want(t, holder,
				int64(1), "UNLOCK", "k", "holder")
		},
		"FORCEUNLOCK": func(t *testing.T, holder *redistest.Client) {
			kit.Want(t, holder,
				int64(1), "FORCEUNLOCK", "k")
		},
		"DEL on masters":                       onAllMasters("DEL", "k"),
		"a lease that is cut short on masters": onAllMasters("PEXPIRE", "k", "50"),
		"FLUSHALL":                             onAllMasters("FLUSHALL"),
		leaseExpiry:                            func(*testing.T, *redistest.Client) {},
	} {
		t.Run(name, func(t *testing.T) {
			holder := kit.Connect(t, f.Proxies[0])
			ttl := longLease
			if name == leaseExpiry {
				ttl = "9000"
			}
			kit.WantGrant(t, holder, "LOCK", "k", "holder", "PX", ttl)
			waiter := startWait(t, f.Proxies[1], "waiter")
			wantWatched(t, f.Proxies[1], 5)
			awaitNoCommands(t, f.Masters...)
			releaseLock(t, holder)
			wantGranted(t, waiter)
			kit.Want(t, waiter, int64(1), "UNLOCK", "k", "waiter")
		})
	}
}

// TestForeignHolder checks that clients can also wait for a lock that a client holds directly on
// the masters.
func TestForeignHolder(t *testing.T) {
	f := start(t, 1)
	for _, master := range f.Masters {
		kit.Must(t, kit.SendToMaster(master, "SET", "k", "of another", "NX", "PX", longLease))
	}
	waiter := startWait(t, f.Proxies[0], "waiter")
	wantWatched(t, f.Proxies[0], 5)
	awaitNoCommands(t, f.Masters...)
	for _, master := range f.Masters[:3] {
		kit.Must(t, kit.SendToMaster(master, "DEL", "k"))
	}
	wantGranted(t, waiter)
}

// TestWakeUpByMajority checks that a proxy wakes a waiter even if two of five masters are
// down, and report nothing.
func TestWakeUpByMajority(t *testing.T) {
	f := start(t, 2)
	f.WantVoting(t, 5)
	holder := kit.Connect(t, f.Proxies[0])
	kit.WantGrant(t, holder, "LOCK", "k", "holder", "PX", longLease)
	waiter := startWait(t, f.Proxies[1], "waiter")
	wantWatched(t, f.Proxies[1], 5)
	for _, master := range f.Masters[:2] {
		kit.Must(t, master.Kill())
	}
	wantWatched(t, f.Proxies[1], 3)
	awaitNoCommands(t, f.Masters[2:]...)
	kit.Want(t, holder, int64(1), "UNLOCK", "k", "holder")
	wantGranted(t, waiter)
}

// TestWatchedMasterStops checks that a proxy notices when a watched master hangs, and when it
// continues.
func TestWatchedMasterStops(t *testing.T) {
	f := start(t, 2)
	f.WantVoting(t, 5)
	holder := kit.Connect(t, f.Proxies[0])
	kit.WantGrant(t, holder, "LOCK", "k", "holder", "PX", longLease)
	waiter := startWait(t, f.Proxies[1], "waiter")
	wantWatched(t, f.Proxies[1], 5)
	kit.Must(t, f.Masters[0].Pause())
	wantWatched(t, f.Proxies[1], 4)
	kit.Must(t, f.Masters[0].Continue())
	wantWatched(t, f.Proxies[1], 5)
	awaitNoCommands(t, f.Masters...)
	kit.Want(t, holder, int64(1), "UNLOCK", "k", "holder")
	wantGranted(t, waiter)
}

// TestKilledWatch breaks the connections of the watch when it deletes the lock on the masters, so
// that no master reports the change. It checks that the proxy still wakes the waiter.
func TestKilledWatch(t *testing.T) {
	f := start(t, 2)
	f.WantVoting(t, 5)
	holder := kit.Connect(t, f.Proxies[0])
	kit.WantGrant(t, holder, "LOCK", "k", "holder", "PX", longLease)
	waiter := startWait(t, f.Proxies[1], "waiter")
	wantWatched(t, f.Proxies[1], 5)
	awaitNoCommands(t, f.Masters...)
	for _, master := range f.Masters {
		ids := watchers(t, master)
		if len(ids) != 1 {
			t.Fatalf("%d connections watch a master, want 1", len(ids))
		}
		client := kit.Dial(t, master.Addr())
		kit.Want(t, client, "OK", "MULTI")
		kit.Want(t, client, "QUEUED", "CLIENT", "KILL", "ID", ids[0])
		kit.Want(t, client, "QUEUED", "DEL", "k")
		if got := fmt.Sprint(kit.Do(t, client, "EXEC")); got != "[1 1]" {
			t.Fatalf("EXEC: %s", got)
		}
	}
	wantGranted(t, waiter)
}

// TestWaitersProxyStops stops a waiter's proxy while the lock is released. The waiter gets the lock
// when the proxy continues.
func TestWaitersProxyStops(t *testing.T) {
	f := start(t, 2)
	f.WantVoting(t, 5)
	holder := kit.Connect(t, f.Proxies[0])
	kit.WantGrant(t, holder, "LOCK", "k", "holder", "PX", longLease)
	waiter := startWait(t, f.Proxies[1], "waiter")
	wantWatched(t, f.Proxies[1], 5)
	// Commands that were already sent would be executed while the proxy is stopped.
	awaitNoCommands(t, f.Masters...)
	kit.Must(t, f.Proxies[1].Pause())
	kit.Want(t, holder, int64(1), "UNLOCK", "k", "holder")
	kit.WantGrant(t, holder, "LOCK", "k", "again", "PX", longLease)
	kit.Want(t, holder, int64(1), "UNLOCK", "k", "again")
	kit.Must(t, f.Proxies[1].Signal(syscall.SIGCONT))
	wantGranted(t, waiter)
}

// TestWatchNotPermitted checks that a proxy whose user may not watch keys polls, and logs the
// refusal.
func TestWatchNotPermitted(t *testing.T) {
	masters := kit.StartMasters(t)
	var urls []string
	for _, master := range masters {
		kit.Must(t, kit.SendToMaster(master, "ACL", "SETUSER", "proxy", "on", ">secret", "~*", "&*", "+@all", "-client|tracking"))
		urls = append(urls, strings.Replace(master.URL(), "redis://", "redis://proxy:secret@", 1))
	}
	proxy := kit.StartProxy(t, urls)
	holder := kit.Connect(t, proxy)
	kit.WantGrant(t, holder, "LOCK", "other", "holder", "PX", longLease)
	for _, master := range masters {
		kit.Must(t, kit.SendToMaster(master, "SET", "k", "of another", "NX", "PX", longLease))
	}
	waiter := startWait(t, proxy, "waiter")
	kit.Eventually(t, func() error {
		if info := fmt.Sprint(kit.Do(t, holder, "PROXY", "INFO")); strings.Count(info, ",unwatched=NOPERM") != 5 {
			return fmt.Errorf("not all say that they cannot be watched:\n%s", info)
		}
		return nil
	})
	if _, err := proxy.WaitLog("a master refuses client tracking", kit.WaitLimit); err != nil {
		t.Error(err)
	}
	for _, master := range masters {
		kit.Must(t, kit.SendToMaster(master, "DEL", "k"))
	}
	wantGranted(t, waiter)
}
