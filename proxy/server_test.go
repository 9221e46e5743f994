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
	first.say("PING\r\n", pong)
	second.say("PING\r\n", pong)
	third := b.connect()
	third.expect("-ERR max number of clients reached\r\n")
	third.expectClosed()
	if n := b.server.Clients(); n != 2 {
		t.Errorf("%d clients are counted, with one turned away", n)
	}
	first.say("PING\r\n", pong)
	second.say("QUIT\r\n", fine)
	b.waitClients(1)
	fourth := b.connect()
	fourth.say("PING\r\n", pong)
}

// TestClientNumbers: each client has its own number, which it can ask for.
func TestClientNumbers(t *testing.T) {
	b := serveLocks(t, &scriptedLocks{})
	for _, want := range []string{":1\r\n", ":2\r\n", ":3\r\n"} {
		b.connect().say("CLIENT ID\r\n", want)
	}
}

// TestSilentClientsDoNotDisturb: the server's accept loop must not wait for one client.
func TestSilentClientsDoNotDisturb(t *testing.T) {
	b := serveLocks(t, &scriptedLocks{})
	for range 100 {
		b.connect()
	}
	b.connect().say("PING\r\n", pong)
	b.waitClients(101)
}

func TestDrainClosesIdleClientsAtOnce(t *testing.T) {
	b := startTestServer(t, serverOptions{locks: &scriptedLocks{}, Options: Options{DrainTimeout: time.Hour}})
	silent, used, half := b.connect(), b.connect(), b.connect()
	used.say("PING\r\n", pong)
	half.say("PING\r\n*2\r\n$4\r\nEC", pong)
	b.waitClients(3)
	b.stop()
	for _, p := range []*peer{silent, used, half} {
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

// slow is a LOCK that does not wait for other clients, but is slow with newSlowLocks.
const slow = "LOCK k t PX 5000\r\n"

func newSlowLocks() *waitingLocks {
	l := newWaitingLocks()
	waits := l.lock
	l.lock = func(ctx context.Context, req quorum.LockRequest) (time.Duration, error) {
		req.Wait = -1
		return waits(ctx, req)
	}
	return l
}

func TestDrainLetsWhatRunsFinish(t *testing.T) {
	locks := newSlowLocks()
	b := startTestServer(t, serverOptions{locks: locks, Options: Options{DrainTimeout: time.Hour}})
	p, idle := b.connect(), b.connect()
	p.send(slow + "PING\r\n")
	await(t, "the LOCK", locks.waiting)
	b.stop()
	idle.expectClosed()
	locks.grants <- struct{}{}
	// Commands that were already read are run, too; nothing else is read.
	if got := p.all(); got != ":5000\r\n" && got != ":5000\r\n"+pong {
		t.Errorf("got %q", got)
	}
	b.waitStopped()
	if got := locks.wasReleased(); len(got) != 0 {
		t.Errorf("released %q", got)
	}
}

// TestDrainRefusesWhatWaits: commands that wait for other clients are refused at once, and so are
// commands that were read after them.
func TestDrainRefusesWhatWaits(t *testing.T) {
	locks := newWaitingLocks()
	b := startTestServer(t, serverOptions{locks: locks, Options: Options{DrainTimeout: time.Hour}})
	p, other := b.connect(), b.connect()
	p.send(blocked + blocked)
	other.send(blocked)
	await(t, "a LOCK", locks.waiting)
	await(t, "the other LOCK", locks.waiting)
	b.stop()
	const refused = "-ERR the proxy is shutting down; try again\r\n"
	if got := p.all(); got != refused+refused {
		t.Errorf("got %q", got)
	}
	if got := other.all(); got != refused {
		t.Errorf("the other got %q", got)
	}
	b.waitStopped()
}

func TestDrainCutsOffWhatTakesTooLong(t *testing.T) {
	locks := newSlowLocks()
	b := startTestServer(t, serverOptions{locks: locks, Options: Options{DrainTimeout: time.Millisecond}})
	p, other := b.connect(), b.connect()
	p.send("PING\r\n" + slow + "PING\r\n")
	other.send(slow)
	await(t, "the LOCK", locks.waiting)
	await(t, "the other LOCK", locks.waiting)
	b.stop()
	for _, want := range []string{pong + "-ERR the proxy is shutting down; try again\r\n",
		"-ERR the proxy is shutting down; try again\r\n"} {
		if got := p.all(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		p = other
	}
	b.waitStopped()
}

// TestDrainCutsOffClientsThatDoNotRead: a client that reads nothing cannot delay the drain.
func TestDrainCutsOffClientsThatDoNotRead(t *testing.T) {
	b := startTestServer(t, serverOptions{locks: &scriptedLocks{}, Options: Options{DrainTimeout: time.Millisecond}})
	p := b.connect()
	go fillUp(p.conn)
	b.connect().say("PING\r\n", pong)
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

// TestServeReturnsWhenTheListenerIsClosed: one server may serve several listeners; each Serve
// returns when its own listener is closed.
func TestServeReturnsWhenTheListenerIsClosed(t *testing.T) {
	var ln net.Listener
	b := startTestServer(t, serverOptions{locks: &scriptedLocks{}, listen: func(inner net.Listener) net.Listener {
		ln = inner
		return inner
	}})
	p := b.connect()
	p.say("PING\r\n", pong)
	ln.Close()
	p.expectClosed()
	b.waitStopped()
}
