package directwrites

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"redlock-proxy/commands/move"
	"redlock-proxy/internal/redistest"
	"redlock-proxy/internal/resp"

	"go.uber.org/goleak"
)

// server implements pushconn.Server with a real upstream.
type server struct {
	*redistest.Server
	login []string // the words of AUTH; nil without a login
}

func (s server) Name() string { return s.Addr() }

func (server) IsDown() bool { return false }

func (s server) Watch(ctx context.Context, _ int) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", s.Addr())
	if err != nil || s.login == nil {
		return conn, err
	}
	if _, err = conn.Write(resp.AppendWords(nil, s.login...)); err == nil {
		_, err = conn.Read(make([]byte, len("+OK\r\n")))
	}
	return conn, err
}

// logBuffer holds a log that several goroutines write.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logBuffer) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.buf.String(), text)
}

// testBench holds an upstream, and the Watcher that watches it.
type testBench struct {
	*testing.T
	*Watcher
	server       server
	atMasters    atomic.Bool
	directClient *redistest.Client
	log          *logBuffer
}

func newTestBench(t *testing.T, lockKeys []string, prepare func(*testBench)) *testBench {
	t.Helper()
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) })
	b := &testBench{T: t, server: server{Server: redistest.New(t, redistest.Options{})}, log: &logBuffer{}}
	b.atMasters.Store(true)
	direct, err := redistest.Dial(b.server.Addr(), 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	b.directClient = direct
	t.Cleanup(func() { _ = direct.Close() })
	if prepare != nil {
		prepare(b)
	}
	b.Watcher = New(Options{
		Upstream: b.server, LockKeys: lockKeys, IsAtMasters: b.atMasters.Load, OwnAddrs: func() []string { return nil },
		Logger: slog.New(slog.NewTextHandler(b.log, nil)),
	})
	ctx, end := context.WithCancel(context.Background())
	var tasks sync.WaitGroup
	tasks.Go(func() { b.Watcher.Run(ctx) })
	t.Cleanup(tasks.Wait)
	t.Cleanup(end)
	return b
}

func (b *testBench) do(words ...string) any {
	b.Helper()
	reply, err := b.directClient.Do(words...)
	if err != nil {
		b.Fatal(err)
	}
	return reply
}

func (b *testBench) await(event string, isMet func() bool) {
	b.Helper()
	redistest.Await(b, event, isMet)
}

func (b *testBench) hasState(want WatchState) func() bool {
	return func() bool { state, _ := b.State(); return state == want }
}

func (b *testBench) wantCount(n int64) {
	b.Helper()
	b.await(fmt.Sprintf("%d direct writes", n), func() bool { return b.Count() >= n })
	time.Sleep(3 * checkInterval) // wait long enough to see a wrong count
	if got := b.Count(); got != n {
		b.Errorf("%d direct writes are counted, want %d", got, n)
	}
}

// TestTracking checks that the Watcher detects a lock that a client takes at the upstream, in any
// database, and names the client. It must not count a lock that a move removes.
func TestTracking(t *testing.T) {
	b := newTestBench(t, []string{"lock:*", "lock:a*", "job:*:lock"}, func(b *testBench) { b.atMasters.Store(false) })
	b.do("CLIENT", "SETNAME", "culprit")
	b.do("SET", "lock:left", "v")
	if watch, _ := b.State(); watch != Off {
		t.Errorf("it is watched: %v", watch)
	}
	b.atMasters.Store(true)
	b.await("it is watched", b.hasState(Tracking))
	b.do("DEL", "lock:left")
	b.do("SET", "job:1", "no lock")
	b.do("SET", "other", "v")
	time.Sleep(3 * checkInterval) // wait long enough to see a wrong count
	b.wantCount(0)
	b.do("SELECT", "3")
	b.do("SET", "lock:a", "v", "NX", "PX", "60000")
	b.wantCount(1)
	b.await("the last one", func() bool { _, last := b.State(); return last != nil })
	watch, last := b.State()
	if watch != Tracking || last == nil || last.Glob != "lock:*" || len(last.Clients) != 1 ||
		!strings.HasPrefix(last.Clients[0], b.directClient.LocalAddr()+" name=culprit") {
		t.Errorf("got %v, %+v", watch, last)
	}
	b.do("HSET", "job:1:lock", "f", "v")
	b.wantCount(2)
	if n := b.log.count("lock keys are used at the upstream directly"); n != 1 {
		t.Errorf("%d warnings", n)
	}
	b.atMasters.Store(false)
	b.await("it is watched no more", b.hasState(Off))
	b.do("SET", "lock:b", "v")
	b.await("the connection is gone",
		func() bool { return !strings.Contains(fmt.Sprint(b.do("CLIENT", "LIST")), move.WatchName) })
	b.wantCount(2)
}

// TestManyChangedKeys checks that the Watcher checks some of many changed keys, and that the
// connection stays open.
func TestManyChangedKeys(t *testing.T) {
	b := newTestBench(t, []string{"lock:*"}, nil)
	b.await("it is watched", b.hasState(Tracking))
	b.do("EVAL", "for i = 1, 20000 do redis.call('SET', 'lock:' .. i, 'v') end", "0")
	b.await("they are noticed", func() bool { return b.Count() >= maxKeysPerCheck })
	b.do("EVAL", "for i = 1, 20000 do redis.call('DEL', 'lock:' .. i) end", "0")
	time.Sleep(3 * checkInterval) // wait long enough to see a wrong count
	b.do("FLUSHALL")
	counted := b.Count()
	b.do("SET", "lock:more", "v")
	b.wantCount(counted + 1)
}

// TestReconnect checks that the Watcher watches an upstream again after its restart.
func TestReconnect(t *testing.T) {
	b := newTestBench(t, []string{"lock:*"}, nil)
	b.await("it is watched", b.hasState(Tracking))
	if err := b.server.Restart(); err != nil {
		t.Fatal(err)
	}
	direct, err := redistest.Dial(b.server.Addr(), 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer direct.Close()
	b.await("a lock is noticed", func() bool {
		_, err := direct.Do("SET", "lock:"+strconv.Itoa(int(time.Now().UnixNano())), "v")
		return err == nil && b.Count() > 0
	})
}

// withPermissions returns a newTestBench option: the watcher is a user with only these permissions.
func withPermissions(rights ...string) func(*testBench) {
	return func(b *testBench) {
		b.do(append([]string{"ACL", "SETUSER", "u", "on", ">p", "~*"}, rights...)...)
		b.server.login = []string{"AUTH", "u", "p"}
	}
}

// TestImpossibleWatch checks that the log has the reason if the Watcher cannot watch the upstream.
func TestImpossibleWatch(t *testing.T) {
	for _, right := range []string{"-client", "-exists"} {
		b := newTestBench(t, []string{"lock:*"}, withPermissions("+@all", right))
		b.await("the state says so", b.hasState(Impossible))
		b.await("the log says so", func() bool { return b.log.count("refuses a required command") == 1 })
	}
	wildcard := newTestBench(t, []string{"*:lock"}, nil)
	wildcard.await("the state says so", wildcard.hasState(Impossible))
	wildcard.await("the log says so", func() bool { return wildcard.log.count("begins with a wildcard") == 1 })
	wildcard.do("SET", "a:lock", "v")
	wildcard.wantCount(0)
}

func TestPrefixes(t *testing.T) {
	var log logBuffer
	s := New(Options{LockKeys: []string{"b:*", "a", "ab?", "*x", "b:c*", "[q]"},
		Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if !slices.Equal(s.prefixes, []string{"a", "b:"}) || log.count("glob=*x\n") != 1 ||
		log.count("glob=[q]\n") != 1 || log.count("glob=") != 2 {
		t.Errorf("got %q, and logged %s", s.prefixes, log.buf.String())
	}
}

// TestSuspects checks that the suspects are clients with a recent locking command, and not proxies.
func TestSuspects(t *testing.T) {
	const proxies = "id=1 addr=10.0.0.1:1 name=redlock-proxy-watch idle=0 cmd=exists\nid=2 addr=10.0.0.1:2 name= idle=0 cmd=set\nid=3 addr=10.0.0.1:3 idle=0 cmd=set\n"
	for list, want := range map[string]string{
		"": "", proxies: "10.0.0.1:3 (or a client of a proxy there)",
		proxies + "id=4 addr=[::ffff:10.0.0.2]:4 name=w idle=1 cmd=evalsha\nid=5 addr=10.0.0.2:5 idle=0 cmd=hset\n":             "10.0.0.2:5, 10.0.0.2:4 name=w",
		"id=6 addr=10.0.0.3:6 idle=2 cmd=set\nid=7 addr=10.0.0.3:7 idle=0 cmd=get\nid=8 addr=10.0.0.3:8 idle=0 cmd=client|list": "",
	} {
		if got := strings.Join(suspects(list, []string{"10.0.0.1:2"}), ", "); got != want {
			t.Errorf("%s: got %q, want %q", list, got, want)
		}
	}
}
