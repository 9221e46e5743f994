//go:build integration

package locks

import (
	"fmt"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/harness"
	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// disconnectCase is a way to disconnect while waiting for a lock. wait sends the LOCK, and returns
// a function that disconnects.
type disconnectCase struct {
	name string
	wait func(t *testing.T, proxy *harness.Proxy, token string) (disconnect func())
}

func disconnectCases() []disconnectCase {
	return []disconnectCase{
		{"killed", waitInProcess},
		{"closed", func(t *testing.T, proxy *harness.Proxy, token string) func() {
			client := kit.StartWaiter(t, proxy, token)
			return func() { kit.Must(t, client.Close()) }
		}},
		{"half-closed", func(t *testing.T, proxy *harness.Proxy, token string) func() {
			client := kit.StartWaiter(t, proxy, token)
			return func() { closeHalf(t, client) }
		}},
		{"closed with more commands sent", func(t *testing.T, proxy *harness.Proxy, token string) func() {
			client := kit.StartWaiter(t, proxy, token)
			kit.Must(t, client.Send(redistest.AppendCommand(nil, "PING")))
			return func() { kit.Must(t, client.Close()) }
		}},
	}
}

// waitInProcess waits in a separate process. The returned function kills the process.
func waitInProcess(t *testing.T, proxy *harness.Proxy, token string) func() {
	t.Helper()
	if _, err := exec.LookPath("redis-cli"); err != nil {
		redistest.SkipMissing(t, "redis-cli: apt-get install redis-tools")
	}
	host, port, err := net.SplitHostPort(proxy.Addr())
	kit.Must(t, err)
	cmd := exec.Command("redis-cli", "-h", host, "-p", port, "LOCK", "k", token, "PX", "60000", "BLOCK", "60000")
	kit.Must(t, cmd.Start())
	return func() {
		kit.Must(t, cmd.Process.Kill())
		_ = cmd.Wait() // reports that the process was killed
	}
}

// closeHalf closes only the sending direction. Like Redis, the proxy then considers the client
// gone, and closes the connection.
func closeHalf(t *testing.T, client *redistest.Client) {
	t.Helper()
	kit.Must(t, client.CloseWrite())
	if replies, err := client.ReceiveAll(); err != nil || len(replies) > 0 {
		t.Errorf("a client that ended its half: got %q, %v, want the end of the connection", replies, err)
	}
}

// TestWaiterDisconnect checks that a client that disconnects while waiting is granted nothing, and
// does not block the next client. The client is at the head or in the middle of the queue.
func TestWaiterDisconnect(t *testing.T) {
	for _, disconnect := range disconnectCases() {
		t.Run(disconnect.name, func(t *testing.T) {
			t.Parallel()
			f := kit.StartFleet(t)
			proxy, holder := f.Proxies[0], kit.Connect(t, f.Proxies[0])
			kit.WantGrant(t, holder, "LOCK", "k", "holder", "PX", "60000")
			disconnectHead := disconnect.wait(t, proxy, "head")
			kit.WantBlocked(t, proxy, 1)
			firstWaiter := kit.StartWaiter(t, proxy, "first")
			kit.WantBlocked(t, proxy, 2)
			disconnectMiddle := disconnect.wait(t, proxy, "middle")
			kit.WantBlocked(t, proxy, 3)
			secondWaiter := kit.StartWaiter(t, proxy, "second")
			kit.WantBlocked(t, proxy, 4)
			disconnectHead()
			disconnectMiddle()
			kit.WantBlocked(t, proxy, 2)
			kit.Want(t, holder, int64(1), "UNLOCK", "k", "holder")
			wantServed(t, f, firstWaiter, "first")
			kit.Want(t, holder, int64(1), "UNLOCK", "k", "first")
			wantServed(t, f, secondWaiter, "second")
		})
	}
}

// wantServed fails the test unless a waiting LOCK is granted in time, on all masters.
func wantServed(t *testing.T, f *kit.Fleet, client *redistest.Client, token string) {
	t.Helper()
	startedAt := time.Now()
	client.SetTimeout(kit.GrantLimit)
	reply, err := client.Receive()
	if ms, ok := reply.(int64); !ok || ms <= 0 {
		t.Fatalf("LOCK k %s: got %#v, %v, want a validity at once", token, reply, err)
	}
	t.Logf("%s was served %v after the UNLOCK", token, time.Since(startedAt).Round(10*time.Microsecond))
	kit.EachMaster(t, f.Masters, func(master *redistest.Server) error { return kit.CheckToken(master, "0", "k", token) })
}

// TestDisconnectOfAllWaiters checks that no waiter remains, and that the lock is free, when all
// waiting clients have disconnected.
func TestDisconnectOfAllWaiters(t *testing.T) {
	f := kit.StartFleet(t)
	holder := kit.Connect(t, f.Proxies[0])
	kit.WantGrant(t, holder, "LOCK", "k", "holder", "PX", "60000")
	var waiters []*redistest.Client
	for i := range 20 {
		waiters = append(waiters, kit.StartWaiter(t, f.Proxies[0], strconv.Itoa(i)))
	}
	kit.WantBlocked(t, f.Proxies[0], len(waiters))
	for _, waiter := range waiters {
		kit.Must(t, waiter.Close())
	}
	kit.WantBlocked(t, f.Proxies[0], 0)
	kit.AwaitShortly(t, func() error {
		if info, _ := kit.Do(t, holder, "INFO", "clients").(string); !strings.Contains(info, "connected_clients:1\r\n") {
			return fmt.Errorf("got %q, want the holder alone to be connected", info)
		}
		return nil
	})
	kit.Want(t, holder, int64(1), "UNLOCK", "k", "holder")
	kit.EachMaster(t, f.Masters, func(master *redistest.Server) error { return kit.CheckAbsent(master, "k") })
	kit.WantGrant(t, holder, "LOCK", "k", "again", "PX", "60000")
}

// TestOrderOfService checks that 64 clients that wait for one key at one proxy are served strictly
// in turn.
func TestOrderOfService(t *testing.T) {
	const waiters = 64
	f := kit.StartFleet(t)
	holder := kit.Connect(t, f.Proxies[0])
	kit.WantGrant(t, holder, "LOCK", "k", "holder", "PX", "60000")
	order := make(chan turn, 2*waiters)
	for i := range waiters {
		client := kit.StartWaiter(t, f.Proxies[0], strconv.Itoa(i))
		kit.WantBlocked(t, f.Proxies[0], i+1) // so that the LOCKs arrive one after the other
		go takeTurn(client, i, order)
	}
	startedAt := time.Now()
	kit.Want(t, holder, int64(1), "UNLOCK", "k", "holder")
	for i := range waiters {
		next := <-order
		kit.Must(t, next.err)
		if next.waiter != i {
			t.Fatalf("turn %d was that of waiter %d", i, next.waiter)
		}
	}
	t.Logf("%d waiters were served in turn, in %v", waiters, time.Since(startedAt).Round(time.Millisecond))
}

// turn is the served client, or an error.
type turn struct {
	waiter int
	err    error
}

// takeTurn waits for the grant, reports it, and then releases the lock, so that turns are reported
// in the order of the grants.
func takeTurn(client *redistest.Client, waiter int, order chan<- turn) {
	client.SetTimeout(kit.WaitLimit)
	reply, err := client.Receive()
	if ms, ok := reply.(int64); err == nil && (!ok || ms <= 0) {
		err = fmt.Errorf("LOCK of waiter %d: got %#v, want a validity", waiter, reply)
	}
	order <- turn{waiter, err}
	if reply, err := client.Do("UNLOCK", "k", strconv.Itoa(waiter)); err != nil || reply != any(int64(1)) {
		order <- turn{waiter, fmt.Errorf("UNLOCK of waiter %d: got %#v, %v, want 1", waiter, reply, err)}
	}
}
