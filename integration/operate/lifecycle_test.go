//go:build integration

package operate

import (
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"redlock-proxy/integration/harness"
	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// wantExit fails the test unless the proxy exits with the given code in time.
func wantExit(t *testing.T, proxy *harness.Proxy, code int, timeout time.Duration) {
	t.Helper()
	if got, err := proxy.Wait(timeout); err != nil || got != code {
		t.Fatalf("got exit code %d, %v, want %d", got, err, code)
	}
}

// stop sends a signal and waits until the proxy refuses new clients.
func stop(t *testing.T, proxy *harness.Proxy, signal os.Signal) {
	t.Helper()
	kit.Must(t, proxy.Signal(signal))
	for deadline := time.Now().Add(kit.WaitLimit); !refusesClients(proxy); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("new clients are still taken %v after the signal", kit.WaitLimit)
		}
	}
}

// TestStopRefusesWaiters checks that, at the first signal, idle clients are disconnected and new
// clients are refused. Clients that wait for a lock or an element, or in a WAIT, get an error
// immediately. Locks stay held.
func TestStopRefusesWaiters(t *testing.T) {
	masters := kit.StartMasters(t)
	proxy := kit.StartProxy(t, redistest.URLs(masters), "--drain-timeout", "10m", "--lock-keys", "lock:*")
	idleClient := kit.Connect(t, proxy)
	kit.WantGrant(t, idleClient, "LOCK", "k", "holder", "PX", "60000")
	waiters := []*redistest.Client{kit.StartWaiter(t, proxy, "waiter"), kit.Connect(t, proxy), kit.Connect(t, proxy)}
	kit.Must(t, waiters[1].Send(redistest.AppendCommand(nil, "BLPOP", "lock:list", "0")))
	kit.WantBlocked(t, proxy, 2)
	kit.WantPrefix(t, waiters[2], "SET lock:w t PX 60000", "OK")
	kit.Must(t, waiters[2].Send(redistest.AppendCommand(redistest.AppendCommand(nil, "PING"), "WAIT", "5", "0")))
	// After this reply, the proxy has also read the WAIT.
	if pong, err := waiters[2].Receive(); err != nil || pong != any("PONG") {
		t.Errorf("PING: got %#v, %v", pong, err)
	}
	stop(t, proxy, syscall.SIGTERM)
	if rest, err := idleClient.ReceiveAll(); err != nil || len(rest) > 0 {
		t.Errorf("an idle client: got %q, %v, want the end of the connection", rest, err)
	}
	for i, waiter := range waiters {
		if reply, err := waiter.Receive(); reply != any(redistest.RespError("ERR the proxy is shutting down; try again")) {
			t.Errorf("waiter %d: got %#v, %v, want an error that the proxy is shutting down", i, reply, err)
		}
	}
	wantExit(t, proxy, 0, kit.WaitLimit)
	kit.WantLogged(t, proxy, `msg="draining: closing idle clients, waiting for running commands" clients=`,
		`msg="drained: all commands finished"`)
	kit.EachMaster(t, masters, func(master *redistest.Server) error { return kit.CheckToken(master, "0", "k", "holder") })
}

// TestDrainTimeoutClosesConnections checks that connections that are still open after the drain
// timeout are closed.
func TestDrainTimeoutClosesConnections(t *testing.T) {
	redistest.SkipShort(t)
	proxy := kit.StartProxy(t, redistest.URLs(kit.StartMasters(t)), "--drain-timeout", "300ms")
	kit.ConnectWithoutReading(t, proxy)
	startedAt := time.Now()
	kit.Must(t, proxy.Signal(syscall.SIGINT))
	wantExit(t, proxy, 0, kit.WaitLimit)
	if elapsed := time.Since(startedAt); elapsed < 300*time.Millisecond {
		t.Errorf("it was cut off after %v already", elapsed)
	}
	kit.WantLogged(t, proxy, `msg="drain-timeout exceeded: cutting off running commands" clients=1`)
}

// TestSecondSignal checks that a second signal ends the drain immediately.
func TestSecondSignal(t *testing.T) {
	masters := kit.StartMasters(t)
	for _, second := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		proxy := kit.StartProxy(t, redistest.URLs(masters), "--drain-timeout", "10m")
		kit.ConnectWithoutReading(t, proxy)
		stop(t, proxy, syscall.SIGTERM)
		kit.Must(t, proxy.Signal(second))
		wantExit(t, proxy, 1, kit.WaitLimit)
	}
}

// TestStopUnderLoad checks that no client that is disconnected under load holds a lock without
// knowing it: another client gets it at once. A release that a majority has answered may not have
// reached the other masters when the proxy stops.
func TestStopUnderLoad(t *testing.T) {
	masters := kit.StartMasters(t)
	proxy := kit.StartProxy(t, redistest.URLs(masters))
	names := []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p"}
	endedAfterGrant := make([]bool, len(names))
	var workers sync.WaitGroup
	for i, name := range names {
		client := kit.Connect(t, proxy)
		workers.Go(func() { endedAfterGrant[i] = lockUntilDisconnect(client, name) })
	}
	time.Sleep(300 * time.Millisecond) // under load; the exact time does not matter
	kit.Must(t, proxy.Signal(syscall.SIGTERM))
	workers.Wait()
	wantExit(t, proxy, 0, kit.WaitLimit)
	other := kit.Connect(t, kit.StartProxy(t, redistest.URLs(masters)))
	for i, name := range names {
		if !endedAfterGrant[i] {
			kit.WantGrant(t, other, "LOCK", name, "newcomer", "PX", "60000")
		}
	}
}

// lockUntilDisconnect locks and unlocks until the connection ends. It reports whether the
// connection ended after a grant.
func lockUntilDisconnect(client *redistest.Client, key string) (granted bool) {
	for {
		if reply, err := client.Do("LOCK", key, "t", "PX", "60000"); err != nil || reply == nil {
			return false
		}
		if _, err := client.Do("UNLOCK", key, "t"); err != nil {
			return true
		}
	}
}

// TestCrashLeavesLocks checks that locks outlive the proxy that granted them, and that another
// proxy knows them.
func TestCrashLeavesLocks(t *testing.T) {
	f := kit.StartLinkedFleet(t, 2)
	kit.WantGrant(t, kit.Connect(t, f.Proxies[0]), "LOCK", "k", "t", "PX", "60000")
	kit.Must(t, f.Proxies[0].Kill())
	other := kit.Connect(t, f.Proxies[1])
	kit.Want(t, other, nil, "LOCK", "k", "u", "PX", "60000")
	kit.Want(t, other, int64(1), "UNLOCK", "k", "t")
	kit.WantGrant(t, other, "LOCK", "k", "u", "PX", "60000")
}
