//go:build integration

package integration

import (
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"redlock-proxy/integration/harness"
)

// wantExit wants the proxy to end with a code.
func wantExit(t *testing.T, proxy *harness.Proxy, code int, within time.Duration) {
	t.Helper()
	if got, err := proxy.Wait(within); err != nil || got != code {
		t.Fatalf("got exit code %d, %v, want %d", got, err, code)
	}
}

// stop sends the first signal and returns when the proxy has begun to stop.
func stop(t *testing.T, proxy *harness.Proxy, signal os.Signal) {
	t.Helper()
	must(t, proxy.Signal(signal))
	for deadline := time.Now().Add(patience); !refused(proxy); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("new clients are still taken %v after the signal", patience)
		}
	}
}

// TestStopServesWhoWaits: at the first signal idle clients are sent away and new ones not taken, but who waits for a lock is served
// before the end.
func TestStopServesWhoWaits(t *testing.T) {
	masters := startMasters(t)
	proxy := startProxy(t, harness.URLs(masters), "--drain-timeout", "20s")
	idle := connect(t, proxy)
	wantGrant(t, idle, "LOCK", "k", "holder", "PX", "1500")
	waiter := waitFor(t, proxy, "waiter")
	time.Sleep(arrival)
	stop(t, proxy, syscall.SIGTERM)
	if rest, err := idle.ReceiveAll(); err != nil || len(rest) > 0 {
		t.Errorf("an idle client: got %q, %v, want the end of the connection", rest, err)
	}
	reply, err := waiter.Receive()
	if ms, ok := reply.(int64); !ok || ms <= 0 {
		t.Fatalf("the waiter: got %#v, %v, want a validity", reply, err)
	}
	wantExit(t, proxy, 0, patience)
	everywhere(t, masters, func(master *harness.Redis) error { return stands(master, "0", "k", "waiter") })
}

// TestStopEndsWaiting: a wait that is longer than the drain timeout ends with an error that says why.
func TestStopEndsWaiting(t *testing.T) {
	masters := startMasters(t)
	proxy := startProxy(t, harness.URLs(masters), "--drain-timeout", "300ms")
	wantGrant(t, connect(t, proxy), "LOCK", "k", "holder", "PX", "60000")
	waiter := waitFor(t, proxy, "waiter")
	time.Sleep(arrival)
	began := time.Now()
	must(t, proxy.Signal(syscall.SIGINT))
	reply, err := waiter.Receive()
	if reply != any(harness.RespError("ERR the proxy is shutting down")) {
		t.Errorf("the waiter: got %#v, %v, want to hear that the proxy is shutting down", reply, err)
	}
	if took := time.Since(began); took < 300*time.Millisecond {
		t.Errorf("the waiter was sent away after %v already", took)
	}
	wantExit(t, proxy, 0, patience)
	everywhere(t, masters, func(master *harness.Redis) error { return stands(master, "0", "k", "holder") })
}

// TestSecondSignal: whoever asks twice does not want to wait.
func TestSecondSignal(t *testing.T) {
	masters := startMasters(t)
	for _, second := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		proxy := startProxy(t, harness.URLs(masters), "--drain-timeout", "1m")
		holder := connect(t, proxy)
		wantGrant(t, holder, "LOCK", second.String(), "holder", "PX", "60000")
		must(t, holder.Send(harness.AppendCommand(nil, "LOCK", second.String(), "waiter", "PX", "60000", "BLOCK", "0")))
		time.Sleep(arrival)
		stop(t, proxy, syscall.SIGTERM)
		must(t, proxy.Signal(second))
		wantExit(t, proxy, 1, atOnce)
	}
}

// TestStopUnderLoad: of clients that are cut off in the middle of their work, none has a lock that it was not told of.
func TestStopUnderLoad(t *testing.T) {
	masters := startMasters(t)
	proxy := startProxy(t, harness.URLs(masters))
	names := []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p"}
	told := make([]bool, len(names))
	var workers sync.WaitGroup
	for i, name := range names {
		client := connect(t, proxy)
		workers.Go(func() { told[i] = lockUntilCut(client, name) })
	}
	time.Sleep(300 * time.Millisecond)
	must(t, proxy.Signal(syscall.SIGTERM))
	workers.Wait()
	wantExit(t, proxy, 0, patience)
	for i, name := range names {
		if !told[i] {
			everywhere(t, masters, func(master *harness.Redis) error { return lacks(master, name) })
		}
	}
}

// lockUntilCut locks and unlocks until the connection ends. It reports whether that was behind a grant.
func lockUntilCut(client *harness.Client, key string) (granted bool) {
	for {
		if reply, err := client.Do("LOCK", key, "t", "PX", "60000"); err != nil || reply == nil {
			return false
		}
		if _, err := client.Do("UNLOCK", key, "t"); err != nil {
			return true
		}
	}
}

// TestCrashLeavesLocks: locks outlive the proxy that gave them; another one knows them.
func TestCrashLeavesLocks(t *testing.T) {
	f := startLinkedFleet(t, 2)
	wantGrant(t, connect(t, f.proxies[0]), "LOCK", "k", "t", "PX", "60000")
	must(t, f.proxies[0].Kill())
	other := connect(t, f.proxies[1])
	want(t, other, nil, "LOCK", "k", "u", "PX", "60000")
	want(t, other, int64(1), "UNLOCK", "k", "t")
	wantGrant(t, other, "LOCK", "k", "u", "PX", "60000")
}
