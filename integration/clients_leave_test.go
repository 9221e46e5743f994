//go:build integration

package integration

import (
	"fmt"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/harness"
)

// arrival is how long a command may take to be read and to stand in its queue: nothing tells from outside.
const arrival = 100 * time.Millisecond

// atOnce is how long a waiter may take to be granted a lock that is free; all other things that could free it take far longer.
const atOnce = time.Second

// departure is a way to leave while waiting for a lock. wait sends the LOCK; the function that it returns leaves.
type departure struct {
	name string
	wait func(t *testing.T, proxy *harness.Proxy, token string) (leave func())
}

func departures() []departure {
	return []departure{
		{"killed", waitInProcess},
		{"closed", func(t *testing.T, proxy *harness.Proxy, token string) func() {
			client := waitFor(t, proxy, token)
			return func() { must(t, client.Close()) }
		}},
		{"half-closed", func(t *testing.T, proxy *harness.Proxy, token string) func() {
			client := waitFor(t, proxy, token)
			return func() { leaveByHalf(t, client) }
		}},
		{"closed with more commands sent", func(t *testing.T, proxy *harness.Proxy, token string) func() {
			client := waitFor(t, proxy, token)
			must(t, client.Send(harness.AppendCommand(nil, "PING")))
			return func() { must(t, client.Close()) }
		}},
	}
}

// waitInProcess waits in a process of its own, which is killed.
func waitInProcess(t *testing.T, proxy *harness.Proxy, token string) func() {
	t.Helper()
	if _, err := exec.LookPath("redis-cli"); err != nil {
		harness.Absent(t, "redis-cli: apt-get install redis-tools")
	}
	host, port, err := net.SplitHostPort(proxy.Addr())
	must(t, err)
	cmd := exec.Command("redis-cli", "-h", host, "-p", port, "LOCK", "k", token, "PX", "60000", "BLOCK", "60000")
	must(t, cmd.Start())
	return func() {
		must(t, cmd.Process.Kill())
		_ = cmd.Wait() // it was killed
	}
}

// waitFor sends a LOCK that waits.
func waitFor(t *testing.T, proxy *harness.Proxy, token string) *harness.Client {
	t.Helper()
	client := connect(t, proxy)
	must(t, client.Send(harness.AppendCommand(nil, "LOCK", "k", token, "PX", "60000", "BLOCK", "60000")))
	return client
}

// leaveByHalf ends the sending direction alone: like Redis, the proxy takes the client for gone, and hangs up.
func leaveByHalf(t *testing.T, client *harness.Client) {
	t.Helper()
	must(t, client.CloseWrite())
	if replies, err := client.ReceiveAll(); err != nil || len(replies) > 0 {
		t.Errorf("a client that ended its half: got %q, %v, want the end of the connection", replies, err)
	}
}

// TestClientsLeave: who leaves while waiting is granted nothing and keeps nobody from being next, be it at the head of the queue or
// in the middle of it.
func TestClientsLeave(t *testing.T) {
	for _, way := range departures() {
		t.Run(way.name, func(t *testing.T) {
			f := startFleet(t)
			proxy, holder := f.proxies[0], connect(t, f.proxies[0])
			wantGrant(t, holder, "LOCK", "k", "holder", "PX", "60000")
			leaveHead := way.wait(t, proxy, "head")
			time.Sleep(arrival)
			first := waitFor(t, proxy, "first")
			time.Sleep(arrival)
			leaveMiddle := way.wait(t, proxy, "middle")
			time.Sleep(arrival)
			second := waitFor(t, proxy, "second")
			time.Sleep(arrival)
			leaveHead()
			leaveMiddle()
			time.Sleep(arrival)
			want(t, holder, int64(1), "UNLOCK", "k", "holder")
			f.wantServed(t, first, "first")
			want(t, holder, int64(1), "UNLOCK", "k", "first")
			f.wantServed(t, second, "second")
		})
	}
}

// wantServed wants the reply to a LOCK that waits, at once, and its token on all masters.
func (f *fleet) wantServed(t *testing.T, client *harness.Client, token string) {
	t.Helper()
	began := time.Now()
	client.SetTimeout(atOnce)
	reply, err := client.Receive()
	if ms, ok := reply.(int64); !ok || ms <= 0 {
		t.Fatalf("LOCK k %s: got %#v, %v, want a validity at once", token, reply, err)
	}
	t.Logf("%s was served %v after the UNLOCK", token, time.Since(began).Round(10*time.Microsecond))
	everywhere(t, f.masters, func(master *harness.Redis) error { return stands(master, "0", "k", token) })
}

// TestAllLeave: when all have left, nothing is left of them, and the lock is free.
func TestAllLeave(t *testing.T) {
	f := startFleet(t)
	holder := connect(t, f.proxies[0])
	wantGrant(t, holder, "LOCK", "k", "holder", "PX", "60000")
	var leavers []*harness.Client
	for i := range 20 {
		leavers = append(leavers, waitFor(t, f.proxies[0], strconv.Itoa(i)))
	}
	time.Sleep(arrival)
	for _, leaver := range leavers {
		must(t, leaver.Close())
	}
	time.Sleep(arrival)
	if info, _ := do(t, holder, "INFO", "clients").(string); !strings.Contains(info, "connected_clients:1\r\n") {
		t.Errorf("got %q, want the holder alone to be connected", info)
	}
	want(t, holder, int64(1), "UNLOCK", "k", "holder")
	time.Sleep(arrival)
	everywhere(t, f.masters, func(master *harness.Redis) error { return lacks(master, "k") })
	wantGrant(t, holder, "LOCK", "k", "again", "PX", "60000")
}

// TestOrderOfService: 64 clients who wait for one key at one proxy are served strictly in turn.
func TestOrderOfService(t *testing.T) {
	const waiters = 64
	f := startFleet(t)
	holder := connect(t, f.proxies[0])
	wantGrant(t, holder, "LOCK", "k", "holder", "PX", "60000")
	order := make(chan turn, 2*waiters)
	for i := range waiters {
		client := waitFor(t, f.proxies[0], strconv.Itoa(i))
		go takeTurn(client, i, order)
		time.Sleep(10 * time.Millisecond) // so that they arrive one after the other
	}
	began := time.Now()
	want(t, holder, int64(1), "UNLOCK", "k", "holder")
	for i := range waiters {
		served := <-order
		must(t, served.err)
		if served.waiter != i {
			t.Fatalf("turn %d was that of waiter %d", i, served.waiter)
		}
	}
	t.Logf("%d waiters were served in turn, in %v", waiters, time.Since(began).Round(time.Millisecond))
}

// turn is who was served, or what went wrong.
type turn struct {
	waiter int
	err    error
}

// takeTurn waits for the grant, tells so, and gives the lock back: so turns are told in the order of the grants.
func takeTurn(client *harness.Client, waiter int, order chan<- turn) {
	client.SetTimeout(patience)
	reply, err := client.Receive()
	if ms, ok := reply.(int64); err == nil && (!ok || ms <= 0) {
		err = fmt.Errorf("LOCK of waiter %d: got %#v, want a validity", waiter, reply)
	}
	order <- turn{waiter, err}
	if reply, err := client.Do("UNLOCK", "k", strconv.Itoa(waiter)); err != nil || reply != any(int64(1)) {
		order <- turn{waiter, fmt.Errorf("UNLOCK of waiter %d: got %#v, %v, want 1", waiter, reply, err)}
	}
}
