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

// countedLocks holds each LOCK until the gate is open, and knows how many were under way at once
// from then on.
type countedLocks struct {
	scriptedLocks
	gate            chan struct{}
	begun, now, top atomic.Int64
}

func newCountedLocks() *countedLocks {
	l := &countedLocks{gate: make(chan struct{})}
	l.lock = func(_ context.Context, req quorum.LockRequest) (time.Duration, error) {
		l.begun.Add(1)
		if req.Token == "first" {
			<-l.gate
			return 0, quorum.ErrHeld
		}
		n := l.now.Add(1)
		defer l.now.Add(-1)
		for top := l.top.Load(); n > top && !l.top.CompareAndSwap(top, n); top = l.top.Load() {
		}
		time.Sleep(time.Millisecond) // in which others begin, if they may
		return 0, quorum.ErrHeld     // a reply that is not written at once
	}
	return l
}

// leave has n clients send a pipeline of so many LOCKs, and leave while the first of them is under
// way.
func (l *countedLocks) leave(t *testing.T, b *bench, n, commands int, leave func(*net.TCPConn) error) {
	t.Helper()
	pipeline := "PING\r\n" + array("LOCK", "k", "first", "PX", "100") + strings.Repeat(array("LOCK", "k", "more", "PX", "100"), commands-1)
	var all []*peer
	for range n {
		p := b.connect()
		p.send(pipeline)
		all = append(all, p)
	}
	b.eventually("their first LOCKs", func() bool { return l.begun.Load() == int64(n) })
	for _, p := range all {
		if err := leave(p.conn.(*net.TCPConn)); err != nil {
			t.Fatal(err)
		}
	}
	b.eventually("their leaving", func() bool {
		b.server.mu.Lock()
		defer b.server.mu.Unlock()
		for _, s := range b.server.sessions {
			if !s.in.wire.HasEnded() {
				return false
			}
		}
		return true
	})
	close(l.gate)
	b.clientsBecome(0)
}

// What had arrived of clients that leave is carried out, of all of them one command at a time.
func TestLeaversTakeTurns(t *testing.T) {
	needPoller(t)
	for name, leave := range leavings {
		t.Run(name, func(t *testing.T) {
			locks := newCountedLocks()
			b := serveLocks(t, locks)
			locks.leave(t, b, 8, 5, leave)
			if got := locks.top.Load(); got != 1 {
				t.Errorf("%d LOCKs of clients that send no more were under way at once", got)
			}
			if got := locks.begun.Load(); got != 8*5 {
				t.Errorf("%d LOCKs were carried out", got)
			}
		})
	}
}

// Of more clients than may wait, those have their commands dropped that are gone, and those not
// that still listen.
func TestTooManyLeavers(t *testing.T) {
	needPoller(t)
	const n, commands = 3 * maxGone, 5
	for name, leave := range leavings {
		t.Run(name, func(t *testing.T) {
			locks := newCountedLocks()
			b := serveLocks(t, locks)
			locks.leave(t, b, n, commands, leave)
			if got := locks.begun.Load(); name == "halfclose" && got != n*commands || name != "halfclose" && got >= n*commands {
				t.Errorf("%d LOCKs of %d were carried out", got, n*commands)
			}
		})
	}
}

// needPoller skips where nothing tells of the end of a stream before it is read.
func needPoller(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only on Linux there is a poller")
	}
}
