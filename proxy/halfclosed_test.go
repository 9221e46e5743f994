package proxy

import (
	"context"
	"net"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"redlock-proxy/quorum"
)

// countedLocks delays the first LOCK of each client until the test permits it, and counts the later
// LOCKs that run at the same time.
type countedLocks struct {
	scriptedLocks
	unblock                      chan struct{}
	started, running, maxRunning atomic.Int64
}

func newCountedLocks() *countedLocks {
	l := &countedLocks{unblock: make(chan struct{})}
	l.lock = func(_ context.Context, req quorum.LockRequest) (time.Duration, error) {
		l.started.Add(1)
		if req.Token == "first" {
			<-l.unblock
			return 0, quorum.ErrHeld
		}
		n := l.running.Add(1)
		defer l.running.Add(-1)
		for most := l.maxRunning.Load(); n > most && !l.maxRunning.CompareAndSwap(most, n); most = l.maxRunning.Load() {
		}
		time.Sleep(time.Millisecond) // time for other LOCKs to begin
		return 0, quorum.ErrHeld     // the server does not flush an error reply immediately
	}
	return l
}

// disconnectClients makes n clients send a pipeline of LOCKs, and disconnects them while their
// first LOCK runs.
func (l *countedLocks) disconnectClients(
	t *testing.T, b *testServer, n, commands int, disconnect func(*net.TCPConn) error,
) {
	t.Helper()
	pipeline := "PING\r\n" + array("LOCK", "k", "first", "PX", "100") +
		strings.Repeat(array("LOCK", "k", "more", "PX", "100"), commands-1)
	var peers []*peer
	for range n {
		p := b.connect()
		p.send(pipeline)
		peers = append(peers, p)
	}
	b.eventually("their first LOCKs", func() bool { return l.started.Load() == int64(n) })
	for _, p := range peers {
		if err := disconnect(p.conn.(*net.TCPConn)); err != nil {
			t.Fatal(err)
		}
	}
	b.eventually("the end of their streams", func() bool {
		b.server.mu.Lock()
		defer b.server.mu.Unlock()
		for _, s := range b.server.sessions {
			if !s.in.conn.HasEnded() {
				return false
			}
		}
		return true
	})
	close(l.unblock)
	b.waitClients(0)
}

// TestHalfClosedClientsTakeTurns checks that the remaining commands of disconnected clients run one
// at a time.
func TestHalfClosedClientsTakeTurns(t *testing.T) {
	needPoller(t)
	for name, disconnect := range disconnects {
		t.Run(name, func(t *testing.T) {
			locks := newCountedLocks()
			b := serveLocks(t, locks)
			locks.disconnectClients(t, b, 8, 5, disconnect)
			if got := locks.maxRunning.Load(); got > 1 {
				t.Errorf("%d LOCKs of clients that send no more were under way at once", got)
			}
			// A write to a closed connection can fail first. Then the client's commands are dropped.
			if got := locks.started.Load(); name == "halfclose" && got != 8*5 || got > 8*5 {
				t.Errorf("%d LOCKs were carried out", got)
			}
		})
	}
}

// TestTooManyHalfClosedClients makes too many disconnected clients wait. Commands of closed clients
// are dropped, but no commands of half-closed clients.
func TestTooManyHalfClosedClients(t *testing.T) {
	needPoller(t)
	const n, commands = 3 * maxHalfClosed, 5
	for name, disconnect := range disconnects {
		t.Run(name, func(t *testing.T) {
			locks := newCountedLocks()
			b := serveLocks(t, locks)
			locks.disconnectClients(t, b, n, commands, disconnect)
			if got := locks.started.Load(); name == "halfclose" && got != n*commands ||
				name != "halfclose" && got >= n*commands {
				t.Errorf("%d LOCKs of %d were carried out", got, n*commands)
			}
		})
	}
}

// needPoller skips the test on systems without a poller, where the end of a stream is noticed only
// by reading.
func needPoller(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only on Linux there is a poller")
	}
}
