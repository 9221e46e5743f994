package proxy

import (
	"context"
	"errors"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"redlock-proxy/quorum"
)

func TestMaxClients(t *testing.T) {
	b := startTestServer(t, serverOptions{locks: &scriptedLocks{}, Options: Options{MaxClients: 2}})
	first, second := b.connect(), b.connect()
	first.check("PING\r\n", pong)
	second.check("PING\r\n", pong)
	third := b.connect()
	third.expect("-ERR max number of clients reached\r\n")
	third.expectClosed()
	if n := b.server.Clients(); n != 2 {
		t.Errorf("%d clients are counted, with one turned away", n)
	}
	first.check("PING\r\n", pong)
	second.check("QUIT\r\n", okReply)
	b.waitClients(1)
	fourth := b.connect()
	fourth.check("PING\r\n", pong)
}

// TestClientNumbers checks that each client has its own number, which it can ask for.
func TestClientNumbers(t *testing.T) {
	b := serveLocks(t, &scriptedLocks{})
	for _, want := range []string{":1\r\n", ":2\r\n", ":3\r\n"} {
		b.connect().check("CLIENT ID\r\n", want)
	}
}

// TestSilentClientsDoNotDisturb checks that the server's accept loop does not wait for clients that
// send nothing.
func TestSilentClientsDoNotDisturb(t *testing.T) {
	b := serveLocks(t, &scriptedLocks{})
	for range 100 {
		b.connect()
	}
	b.connect().check("PING\r\n", pong)
	b.waitClients(101)
}

func TestDrainClosesIdleClientsAtOnce(t *testing.T) {
	b := startTestServer(t, serverOptions{locks: &scriptedLocks{}, Options: Options{DrainTimeout: time.Hour}})
	silent, used, incomplete := b.connect(), b.connect(), b.connect()
	used.check("PING\r\n", pong)
	incomplete.check("PING\r\n*2\r\n$4\r\nEC", pong)
	b.waitClients(3)
	b.stop()
	for _, p := range []*peer{silent, used, incomplete} {
		p.expectClosed()
	}
	b.waitStopped()
	if n := b.server.Clients(); n != 0 {
		t.Errorf("%d clients left", n)
	}
	if _, err := net.Dial("tcp", b.addr); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a new client: %v", err)
	}
}

// slowCommand is a LOCK that does not wait for other clients, but is slow with newSlowLocks.
const slowCommand = "LOCK k t PX 5000\r\n"

func newSlowLocks() *waitingLocks {
	l := newWaitingLocks()
	lock := l.lock
	l.lock = func(ctx context.Context, req quorum.LockRequest) (time.Duration, error) {
		req.Wait = -1
		return lock(ctx, req)
	}
	return l
}

func TestDrainWaitsForRunningCommands(t *testing.T) {
	locks := newSlowLocks()
	b := startTestServer(t, serverOptions{locks: locks, Options: Options{DrainTimeout: time.Hour}})
	p, idle := b.connect(), b.connect()
	p.send(slowCommand + "PING\r\n")
	await(t, "the LOCK", locks.waitingTokens)
	b.stop()
	idle.expectClosed()
	locks.grants <- struct{}{}
	// The server also runs commands that it has already read. It reads nothing else.
	if got := p.readAll(); got != ":5000\r\n" && got != ":5000\r\n"+pong {
		t.Errorf("got %q", got)
	}
	b.waitStopped()
	if got := locks.releasedLocks(); len(got) != 0 {
		t.Errorf("released %q", got)
	}
}

// TestDrainRefusesWaitingCommands checks that a draining server immediately refuses commands that
// wait for other clients, and the commands that it read after them.
func TestDrainRefusesWaitingCommands(t *testing.T) {
	locks := newWaitingLocks()
	b := startTestServer(t, serverOptions{locks: locks, Options: Options{DrainTimeout: time.Hour}})
	p, other := b.connect(), b.connect()
	p.send(blockingCommand + blockingCommand)
	other.send(blockingCommand)
	await(t, "a LOCK", locks.waitingTokens)
	await(t, "the other LOCK", locks.waitingTokens)
	b.stop()
	const refusedReply = "-ERR the proxy is shutting down; try again\r\n"
	if got := p.readAll(); got != refusedReply+refusedReply {
		t.Errorf("got %q", got)
	}
	if got := other.readAll(); got != refusedReply {
		t.Errorf("the other got %q", got)
	}
	b.waitStopped()
}

func TestDrainEndsCommandsAtItsTimeout(t *testing.T) {
	locks := newSlowLocks()
	b := startTestServer(t, serverOptions{locks: locks, Options: Options{DrainTimeout: time.Millisecond}})
	p, other := b.connect(), b.connect()
	p.send("PING\r\n" + slowCommand + "PING\r\n")
	other.send(slowCommand)
	await(t, "the LOCK", locks.waitingTokens)
	await(t, "the other LOCK", locks.waitingTokens)
	b.stop()
	for _, want := range []string{pong + "-ERR the proxy is shutting down; try again\r\n",
		"-ERR the proxy is shutting down; try again\r\n"} {
		if got := p.readAll(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		p = other
	}
	b.waitStopped()
}

// TestDrainDisconnectsClientsThatDoNotRead checks that a client that reads nothing cannot delay the
// drain.
func TestDrainDisconnectsClientsThatDoNotRead(t *testing.T) {
	b := startTestServer(t, serverOptions{locks: &scriptedLocks{}, Options: Options{DrainTimeout: time.Millisecond}})
	p := b.connect()
	go fillUp(p.conn)
	b.connect().check("PING\r\n", pong)
	b.stop()
	b.waitStopped()
}

// fillUp sends commands until the connection ends, and reads nothing.
func fillUp(conn net.Conn) {
	flood := []byte(strings.Repeat(array("ECHO", strings.Repeat("x", 1000)), 100))
	for {
		if _, err := conn.Write(flood); err != nil {
			return
		}
	}
}

// TestServeReturnsWhenTheListenerIsClosed checks that Serve returns when its listener is closed.
func TestServeReturnsWhenTheListenerIsClosed(t *testing.T) {
	var ln net.Listener
	b := startTestServer(t, serverOptions{locks: &scriptedLocks{}, listen: func(inner net.Listener) net.Listener {
		ln = inner
		return inner
	}})
	p := b.connect()
	p.check("PING\r\n", pong)
	ln.Close()
	p.expectClosed()
	b.waitStopped()
}
