package lease

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeProxy answers lock commands with the given functions.
type fakeProxy struct {
	lock, extend, unlock func(c *server.Peer)
	unlocks              atomic.Int32
}

func replyInt(n int) func(*server.Peer) { return func(c *server.Peer) { c.WriteInt(n) } }

func replyGrant(validity int) func(*server.Peer) {
	return func(c *server.Peer) {
		c.WriteLen(4)
		c.WriteBulk("validity")
		c.WriteInt(validity)
		c.WriteBulk("waited")
		c.WriteInt(0)
	}
}

// client starts the fake proxy and returns a client of it.
func (p *fakeProxy) client(t *testing.T) *redis.Client {
	t.Helper()
	s, err := server.NewServer("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	for name, answer := range map[string]func(*server.Peer){"LOCK": p.lock, "EXTEND": p.extend, "UNLOCK": p.unlock} {
		err := s.Register(name, func(c *server.Peer, _ string, _ []string) {
			if name == "UNLOCK" {
				p.unlocks.Add(1)
			}
			answer(c)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	opts := &redis.Options{Addr: s.Addr().String()}
	ConfigureClient(opts)
	client := redis.NewClient(opts)
	t.Cleanup(func() { _ = client.Close(); s.Close() })
	return client
}

// TestRun checks how the command ends, depending on the proxy's replies.
func TestRun(t *testing.T) {
	hang := func(c *server.Peer) { time.Sleep(time.Second) }
	replyNull := func(c *server.Peer) { c.WriteNull() }
	replyError := func(c *server.Peer) { c.WriteError("NOQUORUM 1 of 3") }
	firstThen := func(first, later func(*server.Peer)) func(*server.Peer) {
		var n atomic.Int32
		return func(c *server.Peer) {
			if n.Add(1) == 1 {
				first(c)
			} else {
				later(c)
			}
		}
	}
	for _, test := range []struct {
		name    string
		proxy   *fakeProxy
		command string
		want    string // the beginning of the error, or the state in which the command ended
		unlocks int32
	}{
		{"no faults", &fakeProxy{lock: replyGrant(1400), extend: replyInt(1400), unlock: replyInt(1)}, "sleep 2; exit 3", "exit status 3", 1},
		{"one try to extend fails", &fakeProxy{lock: replyGrant(1400), extend: firstThen(replyError, replyInt(1400)), unlock: replyInt(1)}, "sleep 2",
			"exit status 0", 1},
		{"the lock is gone", &fakeProxy{lock: replyGrant(1000), extend: replyNull, unlock: replyInt(1)}, "exec sleep 60",
			"the lock was lost: it expired or was released", 0},
		{"no try succeeds", &fakeProxy{lock: replyGrant(1000), extend: replyError, unlock: replyInt(1)}, "exec sleep 60",
			"the lock was lost: it could not be extended in time: NOQUORUM 1 of 3", 0},
		{"no answer comes", &fakeProxy{lock: replyGrant(1000), extend: hang, unlock: replyInt(1)}, "exec sleep 60",
			"the lock was lost: it could not be extended in time: no answer in time", 0},
		{"no answer comes after an error", &fakeProxy{lock: replyGrant(1000), extend: firstThen(replyError, hang), unlock: replyInt(1)},
			"exec sleep 60", "the lock was lost: it could not be extended in time: NOQUORUM 1 of 3", 0},
		{"less time than asked for", &fakeProxy{lock: replyGrant(20), extend: replyInt(20), unlock: replyInt(1)}, "exec sleep 60",
			"the lock was lost: ", 0},
		{"the lock is gone at the release", &fakeProxy{lock: replyGrant(1400), extend: replyInt(1400), unlock: replyInt(0)}, "exit 0",
			"the lock was lost: it expired or was released", 1},
		{"the release fails", &fakeProxy{lock: replyGrant(1400), extend: replyInt(1400), unlock: replyError}, "exit 4", "exit status 4", 1},
		{"held by another client", &fakeProxy{lock: replyNull, extend: replyNull, unlock: replyNull}, "exit 0", "the lock is held by another client", 0},
		{"no validity", &fakeProxy{lock: replyGrant(0), extend: replyNull, unlock: replyNull}, "exit 0", "the reply has no validity", 0},
		{"another answer", &fakeProxy{lock: func(c *server.Peer) { c.WriteOK() }, extend: replyNull, unlock: replyNull}, "exit 0", "", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			job := Job{
				Request: Request{Key: "k", TTL: 1500 * time.Millisecond}, Proxies: NewProxies(test.proxy.client(t)),
				Command: exec.Command("sh", "-c", test.command), GracePeriod: 5 * time.Second, Report: func(error) {},
			}
			state, err := job.Run(t.Context())
			got := ""
			if err != nil {
				got = err.Error()
			} else {
				got = state.String()
			}
			if !strings.HasPrefix(got, test.want) || test.proxy.unlocks.Load() != test.unlocks || test.want == "" &&
				err == nil {
				t.Errorf("%q after %d releases, want %q after %d", got, test.proxy.unlocks.Load(), test.want, test.unlocks)
			}
		})
	}
}

// TestSignalWhileWaiting checks that a signal ends the wait immediately, even if the proxy does not
// answer.
func TestSignalWhileWaiting(t *testing.T) {
	lockReceived, testDone := make(chan bool, 1), make(chan bool)
	p := fakeProxy{lock: func(*server.Peer) { lockReceived <- true; <-testDone }, extend: replyInt(1), unlock: replyInt(1)}
	signals := make(chan os.Signal, 1)
	job := Job{Request: Request{Key: "k", TTL: time.Second, Wait: time.Hour}, Proxies: NewProxies(p.client(t)),
		Command: exec.Command("true"), Signals: signals}
	go func() { <-lockReceived; signals <- syscall.SIGTERM }()
	_, err := job.Run(t.Context())
	close(testDone)
	var interruptedErr *InterruptedError
	if !errors.As(err, &interruptedErr) || interruptedErr.Signal != syscall.SIGTERM || job.Command.Process != nil {
		t.Errorf("%v", err)
	}
}

// TestNextProxy checks that a command that a proxy does not answer goes to the next proxy. If the
// next proxy replies to UNLOCK that the lock was not held, the lock is not lost: the first proxy
// may have released it.
func TestNextProxy(t *testing.T) {
	closeConn := func(c *server.Peer) { c.Close() }
	for _, test := range []struct {
		name          string
		first, second *fakeProxy
		want          string // the beginning of the error, or the state in which the command ended
	}{
		{"the first proxy is unreachable", nil, &fakeProxy{lock: replyGrant(1400), extend: replyInt(1400), unlock: replyInt(1)}, "exit status 0"},
		{"it closes at the LOCK", &fakeProxy{lock: closeConn, extend: closeConn, unlock: closeConn},
			&fakeProxy{lock: replyGrant(1400), extend: replyInt(1400), unlock: replyInt(1)}, "exit status 0"},
		{"it closes at the EXTEND", &fakeProxy{lock: replyGrant(1400), extend: closeConn, unlock: closeConn},
			&fakeProxy{lock: replyGrant(1400), extend: replyInt(1400), unlock: replyInt(1)}, "exit status 0"},
		{"it closes at the UNLOCK", &fakeProxy{lock: replyGrant(1400), extend: replyInt(1400), unlock: closeConn},
			&fakeProxy{lock: replyGrant(1400), extend: replyInt(1400), unlock: replyInt(0)}, "exit status 0"},
		{"it refuses the lock", &fakeProxy{lock: func(c *server.Peer) { c.WriteNull() }, extend: closeConn, unlock: closeConn},
			&fakeProxy{lock: replyGrant(1400), extend: replyInt(1400), unlock: replyInt(1)}, "the lock is held"},
		{"both close", &fakeProxy{lock: closeConn, extend: closeConn, unlock: closeConn},
			&fakeProxy{lock: closeConn, extend: closeConn, unlock: closeConn}, "EOF"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			first := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", MaxRetries: -1, DialerRetries: 1})
			defer first.Close()
			if test.first != nil {
				first = test.first.client(t)
			}
			job := Job{
				Request: Request{Key: "k", TTL: 1500 * time.Millisecond}, Proxies: NewProxies(first, test.second.client(t)),
				Command: exec.Command("sh", "-c", "sleep 1"), GracePeriod: 5 * time.Second, Report: func(error) {},
			}
			state, err := job.Run(t.Context())
			got := ""
			if err != nil {
				got = err.Error()
			} else {
				got = state.String()
			}
			if !strings.HasPrefix(got, test.want) {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}
