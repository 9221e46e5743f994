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

// countedLocks holds each LOCK until the gate is open, and counts how many run at once from then
// on.
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
		time.Sleep(time.Millisecond) // time in which other LOCKs begin, if they may
		return 0, quorum.ErrHeld     // a reply that is not written at once
	}
	return l
}

// leave makes n clients send a pipeline of LOCKs, and leave while the first of them runs.
func (l *countedLocks) leave(t *testing.T, b *testServer, n, commands int, leave func(*net.TCPConn) error) {
	t.Helper()
	pipeline := "PING\r\n" + array("LOCK", "k", "first", "PX", "100") +
		strings.Repeat(array("LOCK", "k", "more", "PX", "100"), commands-1)
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
	b.waitClients(0)
}

// TestLeaversTakeTurns: commands that have arrived from clients that leave run one at a time.
func TestLeaversTakeTurns(t *testing.T) {
	needPoller(t)
	for name, leave := range waysToLeave {
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

// TestTooManyLeavers: if more clients than may wait have left, the commands of clients that are
// gone are dropped, but not those of clients that still read.
func TestTooManyLeavers(t *testing.T) {
	needPoller(t)
	const n, commands = 3 * maxHalfClosed, 5
	for name, leave := range waysToLeave {
		t.Run(name, func(t *testing.T) {
			locks := newCountedLocks()
			b := serveLocks(t, locks)
			locks.leave(t, b, n, commands, leave)
			if got := locks.begun.Load(); name == "halfclose" && got != n*commands ||
				name != "halfclose" && got >= n*commands {
				t.Errorf("%d LOCKs of %d were carried out", got, n*commands)
			}
		})
	}
}

// needPoller skips the test on systems without a poller: nothing reports the end before it is read.
func needPoller(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only on Linux there is a poller")
	}
}
