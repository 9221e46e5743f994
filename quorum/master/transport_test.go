package master

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"go.uber.org/goleak"

	"redlock-proxy/internal/redistest"
	"redlock-proxy/quorum/cell"
	"redlock-proxy/quorum/register"
)

// TestMain checks that no goroutine is left. It ignores a goroutine of go-redis: after a failed
// dial, a closed connection pool sleeps for a second before it ends.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"))
}

// dial returns a transport to a server.
func dial(t *testing.T, m *miniredis.Miniredis) *redisTransport {
	t.Helper()
	conn, err := newRedisTransport("redis://"+m.Addr(), Access{Timeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return conn
}

// replyTo returns the reply to one operation over a transport.
func replyTo(t *testing.T, conn *redisTransport, cellOp cell.Op) reply {
	t.Helper()
	o := noReplyOp(0, cellOp, false)
	o.fullScript = true
	f := &Batch{}
	f.load([]*op{o})
	_ = (&Master{transport: conn}).exchange(f)
	return f.replies[0]
}

// TestUnsupportedScheme checks that the error of a probe names the right scheme if the URL has the
// wrong scheme. After a successful probe, the error does not name a scheme.
func TestUnsupportedScheme(t *testing.T) {
	tlsServer := httptest.NewTLSServer(nil)
	t.Cleanup(tlsServer.Close)
	plain := miniredis.RunT(t)
	for url, want := range map[string]string{
		"redis://" + tlsServer.Listener.Addr().String(): "it requires TLS: use rediss:// instead of redis://",
		"rediss://" + plain.Addr():                      "it does not use TLS: use redis:// instead of rediss://",
	} {
		conn, err := newRedisTransport(url, Access{Timeout: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(conn.Close)
		if _, err := conn.Probe(t.Context()); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", url, err, want)
		}
		conn.reached.Store(true)
		if _, err := conn.Probe(t.Context()); err == nil || err.Error() == want {
			t.Errorf("%s, after a successful probe: %v", url, err)
		}
	}
}

// TestDecode checks that a reply that cannot be decoded is unknown, and that an error reply means
// that the command failed.
func TestDecode(t *testing.T) {
	m := miniredis.RunT(t)
	conn := dial(t, m)
	if got := replyTo(t, conn, undecodableOp{}); got.State != register.Unknown {
		t.Errorf("an undecodable answer: %+v", got)
	}
	m.SetError("ERR no")
	if got := replyTo(t, conn, cell.Read{Names: []string{"k"}}); got.State != register.Failed {
		t.Errorf("an error reply: %+v", got)
	}
	m.Close()
	if got := replyTo(t, conn, cell.Read{Names: []string{"k"}}); got.State != register.Failed {
		t.Errorf("no connection: %+v", got)
	}
}

// undecodableOp is a command whose reply cannot be decoded.
type undecodableOp struct{ cell.Op }

func (undecodableOp) Writes() bool     { return false }
func (undecodableOp) Words(bool) []any { return []any{"PING"} }
func (undecodableOp) Decode(any) (cell.Answer, error) {
	return cell.Answer{}, fmt.Errorf("unexpected reply")
}

// TestPanicInDecode checks that a panic while decoding a reply affects only its batch.
func TestPanicInDecode(t *testing.T) {
	conn := dial(t, miniredis.RunT(t))
	if got := replyTo(t, conn, panickingOp{}); got.State != register.Unknown || !strings.Contains(fmt.Sprint(got.Err), "boom") {
		t.Errorf("got %+v", got)
	}
	if got := replyTo(t, conn, cell.Read{Names: []string{"k"}}); got.State != register.Counted {
		t.Errorf("the next: %+v", got)
	}
}

// panickingOp is a command that panics while it decodes its reply.
type panickingOp struct{ undecodableOp }

func (panickingOp) Decode(any) (cell.Answer, error) { panic("boom") }

// TestCloseOfIdleLink checks that the proxy notices at once that a server closes an idle
// connection, as CLIENT KILL or the server's timeout does. The proxy loses no batch, and the master
// stays up.
func TestCloseOfIdleLink(t *testing.T) {
	server := miniredis.RunT(t)
	m := runMaster(t, "redis://"+server.Addr())
	mustRead(t, m)
	since := m.Health().Since
	server.Close()
	redistest.Await(t, "the connection ends", func() bool { return !m.lane0.hasLink() })
	if err := server.Restart(); err != nil {
		t.Fatal(err)
	}
	mustRead(t, m)
	if h := m.Health(); h.Since != since {
		t.Errorf("it was down: %+v", h)
	}
}

// runMaster runs a master at a URL until the test ends.
func runMaster(t *testing.T, url string) *Master {
	t.Helper()
	conn, err := NewTransport(url, Access{Timeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return runMasterWithTransport(t, conn)
}

func mustRead(t *testing.T, m *Master) {
	t.Helper()
	r := new(Rounds).Send([]*Master{m}, 0, []cell.Op{cell.Read{Names: []string{"k"}}},
		func(replies []register.Reply) bool { return replies[0].State != register.Waiting }, nil)
	if err := r.Wait(t.Context()); err != nil || r.Replies()[0].State != register.Counted {
		t.Fatalf("got %+v, %v", r.Replies(), err)
	}
}

func (l *lane) hasLink() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.link != nil
}
