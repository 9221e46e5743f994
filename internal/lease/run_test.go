package lease

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2/server"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeProxy answers lock commands with the given functions.
type fakeProxy struct {
	lock, extend, unlock func(c *server.Peer)
	extends, unlocks     atomic.Int32
}

func replyInt(n int) func(*server.Peer) { return func(c *server.Peer) { c.WriteInt(n) } }

func replyNull(c *server.Peer) { c.WriteNull() }

func closeConn(c *server.Peer) { c.Close() }

func replyGrant(validity int) func(*server.Peer) {
	return func(c *server.Peer) {
		c.WriteMapLen(2)
		c.WriteBulk("validity")
		c.WriteInt(validity)
		c.WriteBulk("waited")
		c.WriteInt(0)
	}
}

// thenPush answers with reply, and afterwards sends a push about the key k at each interval. value
// is the last element of the push, in RESP.
func thenPush(reply func(*server.Peer), interval time.Duration, event, value string) func(*server.Peer) {
	return func(c *server.Peer) {
		reply(c)
		ended := make(chan bool)
		c.OnDisconnect(func() { close(ended) })
		go func() {
			for {
				select {
				case <-ended:
					return
				case <-time.After(interval):
				}
				c.WriteRaw(fmt.Sprintf(">4\r\n+lock\r\n+%s\r\n+k\r\n%s\r\n", event, value))
				c.Flush()
			}
		}()
	}
}

// start starts the fake proxy.
func (p *fakeProxy) start(t *testing.T) Proxy {
	t.Helper()
	s, err := server.NewServer("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	for name, answer := range map[string]func(*server.Peer){
		"HELLO": replyGrant(0), "LOCK": p.lock, "EXTEND": p.extend, "UNLOCK": p.unlock,
	} {
		err := s.Register(name, func(c *server.Peer, _ string, _ []string) {
			switch name {
			case "EXTEND":
				p.extends.Add(1)
			case "UNLOCK":
				p.unlocks.Add(1)
			}
			answer(c)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return Proxy{Network: "tcp", Addr: s.Addr().String()}
}

// testTTL is the TTL in most tests. With a validity of 3.7 s, an EXTEND is due a second after the
// grant.
const testTTL = 4500 * time.Millisecond

// runShell runs a script while it holds the lock of k, with a TTL, through the proxies. It returns
// the state in which the script ended, or the error.
func runShell(t *testing.T, ttl time.Duration, script string, list ...Proxy) string {
	t.Helper()
	proxies := NewProxies(list...)
	defer proxies.Close()
	job := Job{
		Request: Request{Keys: []string{"k"}, TTL: ttl}, Proxies: proxies, Command: exec.Command("sh", "-c", script),
		Environ: func(*Lock) []string { return nil }, GracePeriod: 5 * time.Second, Report: func(error) {},
	}
	state, err := job.Run(t.Context())
	if err != nil {
		return err.Error()
	}
	return state.String()
}

// TestRun checks how the command ends, depending on the proxy's replies.
func TestRun(t *testing.T) {
	hang := func(c *server.Peer) { time.Sleep(time.Second) }
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
		{"no faults", &fakeProxy{lock: replyGrant(3700), extend: replyGrant(3700), unlock: replyInt(1)}, "sleep 2; exit 3", "exit status 3", 1},
		{"one try to extend fails", &fakeProxy{lock: replyGrant(3700), extend: firstThen(replyError, replyGrant(3700)), unlock: replyInt(1)}, "sleep 2",
			"exit status 0", 1},
		{"the lock is gone", &fakeProxy{lock: replyGrant(1000), extend: replyNull, unlock: replyInt(1)}, "exec sleep 60",
			"the lock was lost: it expired or was released", 0},
		{"no try succeeds", &fakeProxy{lock: replyGrant(1000), extend: replyError, unlock: replyInt(1)}, "exec sleep 60",
			"the lock was lost: it could not be extended in time: NOQUORUM 1 of 3", 0},
		{"no answer comes", &fakeProxy{lock: replyGrant(1000), extend: hang, unlock: replyInt(1)}, "exec sleep 60",
			"the lock was lost: it could not be extended in time: no answer in time", 0},
		{"no answer comes after an error", &fakeProxy{lock: replyGrant(1000), extend: firstThen(replyError, hang), unlock: replyInt(1)},
			"exec sleep 60", "the lock was lost: it could not be extended in time: NOQUORUM 1 of 3", 0},
		{"less time than asked for", &fakeProxy{lock: replyGrant(20), extend: replyGrant(20), unlock: replyInt(1)}, "exec sleep 60",
			"the lock was lost: ", 0},
		{"the lock is gone at the release", &fakeProxy{lock: replyGrant(3700), extend: replyGrant(3700), unlock: replyInt(0)}, "exit 0",
			"the lock was lost: it expired or was released", 1},
		{"the release fails", &fakeProxy{lock: replyGrant(3700), extend: replyGrant(3700), unlock: replyError}, "exit 4", "exit status 4", 1},
		{"held by another client", &fakeProxy{lock: replyNull, extend: replyNull, unlock: replyNull}, "exit 0", "the lock is held by another client", 0},
		{"no validity", &fakeProxy{lock: replyGrant(0), extend: replyNull, unlock: replyNull}, "exit 0", "unexpected reply", 0},
		{"another answer", &fakeProxy{lock: func(c *server.Peer) { c.WriteOK() }, extend: replyNull, unlock: replyNull}, "exit 0", "unexpected reply", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got := runShell(t, testTTL, test.command, test.proxy.start(t))
			if !strings.HasPrefix(got, test.want) || test.proxy.unlocks.Load() != test.unlocks {
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
	job := Job{Request: Request{Keys: []string{"k"}, TTL: testTTL, Wait: time.Hour}, Proxies: NewProxies(p.start(t)),
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
	for _, test := range []struct {
		name          string
		first, second *fakeProxy
		want          string // the beginning of the error, or the state in which the command ended
	}{
		{"the first proxy is unreachable", nil, &fakeProxy{lock: replyGrant(3700), extend: replyGrant(3700), unlock: replyInt(1)}, "exit status 0"},
		{"it closes at the LOCK", &fakeProxy{lock: closeConn, extend: closeConn, unlock: closeConn},
			&fakeProxy{lock: replyGrant(3700), extend: replyGrant(3700), unlock: replyInt(1)}, "exit status 0"},
		{"it closes at the EXTEND", &fakeProxy{lock: replyGrant(3700), extend: closeConn, unlock: closeConn},
			&fakeProxy{lock: replyGrant(3700), extend: replyGrant(3700), unlock: replyInt(1)}, "exit status 0"},
		{"it replies to the EXTEND with an error", &fakeProxy{lock: replyGrant(3700),
			extend: func(c *server.Peer) { c.WriteError("NOQUORUM 1 of 3") }, unlock: closeConn},
			&fakeProxy{lock: replyGrant(3700), extend: replyGrant(3700), unlock: replyInt(1)}, "exit status 0"},
		{"it closes after the LOCK", &fakeProxy{lock: func(c *server.Peer) {
			replyGrant(3700)(c)
			time.AfterFunc(100*time.Millisecond, c.Close)
		}, extend: closeConn, unlock: closeConn},
			&fakeProxy{lock: closeConn, extend: replyGrant(3700), unlock: replyInt(1)}, "exit status 0"},
		{"it closes at the UNLOCK", &fakeProxy{lock: replyGrant(3700), extend: replyGrant(3700), unlock: closeConn},
			&fakeProxy{lock: replyGrant(3700), extend: replyGrant(3700), unlock: replyInt(0)}, "exit status 0"},
		{"it refuses the lock", &fakeProxy{lock: func(c *server.Peer) { c.WriteNull() }, extend: closeConn, unlock: closeConn},
			&fakeProxy{lock: replyGrant(3700), extend: replyGrant(3700), unlock: replyInt(1)}, "the lock is held"},
		{"both close", &fakeProxy{lock: closeConn, extend: closeConn, unlock: closeConn},
			&fakeProxy{lock: closeConn, extend: closeConn, unlock: closeConn}, "EOF"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			first := Proxy{Network: "tcp", Addr: "127.0.0.1:1"}
			if test.first != nil {
				first = test.first.start(t)
			}
			got := runShell(t, testTTL, "sleep 2", first, test.second.start(t))
			if !strings.HasPrefix(got, test.want) {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

// TestReportedLoss checks that the command ends as soon as the proxy reports the loss of the lock.
// Without the report, an EXTEND is due 11 s after the grant.
func TestReportedLoss(t *testing.T) {
	for reason, want := range map[string]string{
		"not_held": "the lock was lost: it expired or was released",
		"forced":   "the lock was lost: it expired or was released",
		"moved":    "the lock was lost: it could not be extended in time: moved",
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			p := &fakeProxy{lock: thenPush(replyGrant(29000), 50*time.Millisecond, "lost", "+"+reason), extend: closeConn, unlock: replyInt(1)}
			if got := runShell(t, 30*time.Second, "exec sleep 60", p.start(t)); got != want || p.extends.Load() != 0 {
				t.Errorf("%q after %d EXTENDs, want %q", got, p.extends.Load(), want)
			}
		})
	}
}

// TestNoExtend checks that the client sends no EXTEND while the proxy reports its renewals. Without
// the reports, an EXTEND is due 2 s after the grant.
func TestNoExtend(t *testing.T) {
	t.Parallel()
	p := &fakeProxy{lock: thenPush(replyGrant(20000), 50*time.Millisecond, "kept", ":29698"), extend: closeConn, unlock: replyInt(1)}
	if got := runShell(t, 30*time.Second, "sleep 3", p.start(t)); got != "exit status 0" || p.extends.Load() != 0 {
		t.Errorf("%s after %d EXTENDs", got, p.extends.Load())
	}
}

// TestRenewedEnd checks that a delayed push promises no more than the lease that it reports.
func TestRenewedEnd(t *testing.T) {
	const ttl = 3 * time.Second
	granted := time.Now()
	end := granted.Add(ttl)
	for _, test := range []struct{ arrival, validity, want time.Duration }{
		{ttl / 3, ttl, ttl + ttl/3},                         // in time
		{ttl / 3, ttl - time.Second/2, ttl + time.Second/2}, // a slow renewal
		{ttl / 2, ttl, ttl + ttl/3},                         // delayed by the network
	} {
		if got := renewedEnd(end, granted.Add(test.arrival), test.validity, ttl).Sub(granted); got != test.want {
			t.Errorf("a push for %v after %v: valid for %v, want %v", test.validity, test.arrival, got, test.want)
		}
	}
}

// TestRequestCommand checks the commands for one key and for several keys.
func TestRequestCommand(t *testing.T) {
	for _, test := range []struct {
		keys []string
		want string
	}{{[]string{"a"}, "[LOCK a t PX 1000]"}, {[]string{"a", "b"}, "[MLOCK 2 a b t PX 1000]"}} {
		if got := fmt.Sprint(Request{Keys: test.keys}.command("LOCK", "t", "PX", 1000)); got != test.want {
			t.Errorf("%s, want %s", got, test.want)
		}
	}
}
