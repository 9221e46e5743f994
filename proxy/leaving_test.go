package proxy_test

import (
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"redlock-proxy/proxy"
	"redlock-proxy/quorum"
)

// withAndWithoutUpstream runs a test at a lock server and in front of an upstream; lock:* are lock
// keys at both.
func withAndWithoutUpstream(t *testing.T, test func(t *testing.T, newTestProxy func() *testProxy)) {
	t.Run("lock server", func(t *testing.T) { test(t, func() *testProxy { return newLockServer(t) }) })
	t.Run("upstream", func(t *testing.T) {
		test(t, func() *testProxy {
			return newTestProxy(t, testTimeout, startRedis(t).URL(), proxy.Options{}, []string{"lock:*"})
		})
	})
}

// limitedListener accepts connections whose writes together accept a limited number of bytes, and
// then fail.
type limitedListener struct {
	net.Listener
	remaining *atomic.Int64
}

func (l limitedListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	return limitedConn{conn, l.remaining}, err
}

type limitedConn struct {
	net.Conn
	remaining *atomic.Int64
}

func (c limitedConn) Write(p []byte) (int, error) {
	n := min(len(p), int(c.remaining.Load()))
	c.remaining.Add(-int64(n))
	if _, err := c.Conn.Write(p[:n]); err != nil || n == len(p) {
		return n, err
	}
	return n, errors.New("no more is taken")
}

// TestPartiallyWrittenReplies covers several replies that are written together. A reply counts as
// delivered if the socket accepted all of it. The locks that the other replies grant are released.
func TestPartiallyWrittenReplies(t *testing.T) {
	skipOverTLS(t) // TLS writes more bytes than the replies
	grants := []struct{ line, reply, key string }{
		{"SET lock:a t NX PX 60000", "+OK\r\n", "lock:a"}, {"SETNX lock:b t", ":1\r\n", "lock:b"},
		{"MSETNX lock:c t lock:d t", ":1\r\n", "lock:d"}, {"LOCK lock:e t PX 60000", ":60000\r\n", "lock:e"},
	}
	withAndWithoutUpstream(t, func(t *testing.T, newTestProxy func() *testProxy) {
		r, remaining := newTestProxy(), &atomic.Int64{}
		r.serve(limitedListener{listen(t), remaining})
		sent, whole := "", ""
		for _, g := range grants {
			sent, whole = sent+cmd(g.line), whole+g.reply
		}
		for written := range len(whole) {
			remaining.Store(1 << 20)
			p := r.connect()
			// After this LOCK, the proxy knows the client's user and rights.
			p.check("LOCK known t PX 1000", ":1000\r\n")
			p.check("UNLOCK known t", ":1\r\n")
			remaining.Store(int64(written))
			p.send(sent)
			p.expectAll(whole[:written])
			eventually(t, "the end of its session", func() bool { return r.server.Clients() == 0 })
			end := 0
			for _, g := range grants {
				end += len(g.reply)
				if got, want := r.locks.holder(0, g.key) == "t", end <= written; got != want {
					t.Errorf("%q left: %s is held: %v, want %v", whole[:written], g.key, got, want)
				}
				_ = r.locks.Release(t.Context(), quorum.Key{Name: g.key}, "t")
			}
			_ = r.locks.Release(t.Context(), quorum.Key{Name: "lock:c"}, "t")
		}
	})
}

// TestPanicReleasesUndeliveredLocks checks that locks whose grants were not sent before a panic are
// released, because the client did not get them.
func TestPanicReleasesUndeliveredLocks(t *testing.T) {
	r := newLockServer(t)
	r.locks.beforeLock = func(name string) {
		if name == "bad" {
			panic("on purpose")
		}
	}
	r.serve(listen(t))
	p := r.connect()
	p.send(lines("SET lock:k t NX PX 5000", "LOCK bad t PX 5000"))
	p.expectAll("")
	eventually(t, "the end of its session", func() bool { return r.server.Clients() == 0 })
	if holder := r.locks.holder(0, "lock:k"); holder != "" {
		t.Errorf("held by %q", holder)
	}
}

// TestValidityIsSentAtOnce checks that a reply with a validity is sent before the next command
// begins, which may take long.
func TestValidityIsSentAtOnce(t *testing.T) {
	for _, line := range []string{"LOCK lock:a t PX 60000", "LOCK lock:a t PX 60000 AT", "EXTEND lock:a t PX 60000"} {
		withAndWithoutUpstream(t, func(t *testing.T, newTestProxy func() *testProxy) {
			r, proceed := newTestProxy(), make(chan struct{})
			r.locks.beforeLock = func(name string) {
				if name == "lock:slow" {
					await(t, "the reply before it", proceed)
				}
			}
			r.serve(listen(t))
			if strings.HasPrefix(line, "EXTEND") {
				r.connect().check("LOCK lock:a t PX 1000", ":1000\r\n")
			}
			p := r.connect()
			p.send(lines("PING", line, "LOCK lock:slow t PX 5000"))
			p.expect("+PONG\r\n")
			if got := p.readReply(); !strings.Contains(got, ":60000\r\n") {
				t.Errorf("%s: %q", line, got)
			}
			close(proceed)
			p.expect(":5000\r\n")
		})
	}
}

// TestValidityOfADelayedReply checks that a reply contains the validity at the time of sending,
// even if it has to wait until the client reads.
func TestValidityOfADelayedReply(t *testing.T) {
	r := newTestProxy(t, testTimeout, startRedis(t).URL(), proxy.Options{}, nil)
	granted := time.Now()
	var clockReads atomic.Int32
	advance := make(chan struct{})
	r.server.SetNow(func() time.Time {
		if clockReads.Add(1) == 1 {
			return granted
		}
		select {
		case <-advance:
			return granted.Add(3 * time.Second)
		default:
			return granted
		}
	})
	r.serve(listen(t))
	p, other := r.connect(), r.connect()
	p.send(cmd("HELLO 3"))
	p.readReply()
	p.send(cmd("SUBSCRIBE c"))
	p.readReply()
	if _, err := r.locks.Take(t.Context(), quorum.TakeRequest{Keys: []quorum.Key{{Name: "k"}},
		TakeOptions: quorum.TakeOptions{Tokens: []string{"other"}}}); err != nil {
		t.Fatal(err)
	}
	p.send(cmd("LOCK k t PX 5000 BLOCK 60000"))
	eventually(t, "the client to wait", func() bool { return r.locks.waiters() == 1 })
	// big does not fit into the buffers, but is below Redis' limit for a subscriber.
	big := strings.Repeat("x", 16<<20)
	other.check("PUBLISH c "+big, ":1\r\n")
	p.expect(">3\r\n$7\r\nmessage\r\n")
	_ = r.locks.Release(t.Context(), quorum.Key{Name: "k"}, "other")
	eventually(t, "the grant", func() bool { return clockReads.Load() > 0 })
	close(advance)
	p.expect("$1\r\nc\r\n" + bulk(big) + ":2000\r\n")
}
