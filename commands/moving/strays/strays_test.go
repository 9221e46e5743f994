package strays

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
	"testing"
	"time"

	"redlock-proxy/commands/moving"
	"redlock-proxy/internal/redistest"
	"redlock-proxy/internal/resp"
	"redlock-proxy/quorum"
	"redlock-proxy/quorum/place"

	"go.uber.org/goleak"
)

// server is a real upstream.
type server struct {
	*redistest.Server
	login []string // AUTH; nil: none
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

// places are where a test says that the locks are.
type places struct {
	mu     sync.Mutex
	at     place.Place
	turned chan struct{}
}

func (p *places) Placed() (quorum.Placed, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return quorum.Placed{Place: p.at, Era: 1}, true
}

func (p *places) Turned() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.turned
}

func (p *places) turn(to place.Place) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.at = to
	close(p.turned)
	p.turned = make(chan struct{})
}

// logged is a log that is written meanwhile.
type logged struct {
	mu  sync.Mutex
	has bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.has.Write(p)
}

func (l *logged) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.has.String(), text)
}

// bench is an upstream that is watched.
type bench struct {
	*testing.T
	*Strays
	server server
	places *places
	direct *redistest.Client
	log    *logged
}

func newBench(t *testing.T, at place.Place, lockKeys []string, prepare func(*bench)) *bench {
	t.Helper()
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) })
	b := &bench{T: t, server: server{Server: redistest.New(t, redistest.Options{})}, places: &places{at: at, turned: make(chan struct{})}, log: &logged{}}
	direct, err := redistest.Dial(b.server.Addr(), 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	b.direct = direct
	t.Cleanup(func() { _ = direct.Close() })
	if prepare != nil {
		prepare(b)
	}
	b.Strays = New(Options{
		Upstream: b.server, LockKeys: lockKeys, Places: b.places, Own: func() []string { return nil }, Logger: slog.New(slog.NewTextHandler(b.log, nil)),
	})
	ctx, end := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { b.Strays.Run(ctx) })
	t.Cleanup(running.Wait)
	t.Cleanup(end)
	return b
}

func (b *bench) do(words ...string) any {
	b.Helper()
	reply, err := b.direct.Do(words...)
	if err != nil {
		b.Fatal(err)
	}
	return reply
}

func (b *bench) soon(what string, met func() bool) {
	b.Helper()
	redistest.Await(b, what, met)
}

func (b *bench) isWatched(how Watch) func() bool {
	return func() bool { is, _ := b.State(); return is == how }
}

func (b *bench) wantCount(n int64) {
	b.Helper()
	b.soon(fmt.Sprintf("%d strays", n), func() bool { return b.Count() >= n })
	time.Sleep(3 * roundPause) // in which what must not be counted would be
	if got := b.Count(); got != n {
		b.Errorf("%d strays are counted, want %d", got, n)
	}
}

// TestTracking: a lock that is taken at the upstream is noticed, with who it was, in any database; one that a move removes is not.
func TestTracking(t *testing.T) {
	b := newBench(t, place.Upstream, []string{"lock:*", "lock:a*", "job:*:lock"}, nil)
	b.do("CLIENT", "SETNAME", "culprit")
	b.do("SET", "lock:left", "v")
	b.places.turn(place.ToMasters)
	b.do("SET", "lock:moving", "v")
	if watch, _ := b.State(); watch != Off {
		t.Errorf("it is watched: %v", watch)
	}
	b.places.turn(place.Masters)
	b.soon("it is watched", b.isWatched(Tracking))
	b.do("DEL", "lock:left", "lock:moving")
	b.do("SET", "job:1", "no lock")
	b.do("SET", "other", "v")
	time.Sleep(3 * roundPause) // in which what must not be counted would be
	b.wantCount(0)
	b.do("SELECT", "3")
	b.do("SET", "lock:a", "v", "NX", "PX", "60000")
	b.wantCount(1)
	watch, last := b.State()
	if watch != Tracking || last == nil || last.Glob != "lock:*" || len(last.Clients) != 1 || !strings.HasPrefix(last.Clients[0], b.direct.LocalAddr()+" name=culprit") {
		t.Errorf("got %v, %+v", watch, last)
	}
	b.do("HSET", "job:1:lock", "f", "v")
	b.wantCount(2)
	if n := b.log.count("lock keys are used at the upstream directly"); n != 1 {
		t.Errorf("%d complaints", n)
	}
	b.places.turn(place.ToUpstream)
	b.soon("it is watched no more", b.isWatched(Off))
	b.do("SET", "lock:b", "v")
	b.soon("the connection is gone", func() bool { return !strings.Contains(fmt.Sprint(b.do("CLIENT", "LIST")), moving.WatchName) })
	b.wantCount(2)
}

// TestBrief: a lock that is released before anybody can look is noticed from the second time on.
func TestBrief(t *testing.T) {
	b := newBench(t, place.Masters, []string{"lock:*"}, nil)
	b.soon("it is watched", b.isWatched(Tracking))
	for range 3 {
		b.do("EVAL", "redis.call('SET', KEYS[1], 'v'); redis.call('DEL', KEYS[1])", "1", "lock:a")
		time.Sleep(3 * roundPause) // in which what must not be counted would be
	}
	b.wantCount(2)
	b.do("FLUSHALL")
	b.wantCount(2)
}

// TestMany: of many keys at once some are looked at, and the connection stands.
func TestMany(t *testing.T) {
	b := newBench(t, place.Masters, []string{"lock:*"}, nil)
	b.soon("it is watched", b.isWatched(Tracking))
	b.do("EVAL", "for i = 1, 20000 do redis.call('SET', 'lock:' .. i, 'v') end", "0")
	b.soon("they are noticed", func() bool { return b.Count() >= maxRound })
	b.do("EVAL", "for i = 1, 20000 do redis.call('DEL', 'lock:' .. i) end", "0")
	time.Sleep(3 * roundPause) // in which what must not be counted would be
	counted := b.Count()
	b.do("SET", "lock:more", "v")
	b.wantCount(counted + 1)
}

// TestReconnects: an upstream that restarts is watched again.
func TestReconnects(t *testing.T) {
	b := newBench(t, place.Masters, []string{"lock:*"}, nil)
	b.soon("it is watched", b.isWatched(Tracking))
	if err := b.server.Restart(); err != nil {
		t.Fatal(err)
	}
	direct, err := redistest.Dial(b.server.Addr(), 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer direct.Close()
	b.soon("a lock is noticed", func() bool {
		_, err := direct.Do("SET", "lock:"+strconv.Itoa(int(time.Now().UnixNano())), "v")
		return err == nil && b.Count() > 0
	})
}

// restricted has the upstream watched by a user with these rights.
func restricted(rights ...string) func(*bench) {
	return func(b *bench) {
		b.do(append([]string{"ACL", "SETUSER", "u", "on", ">p", "~*"}, rights...)...)
		b.server.login = []string{"AUTH", "u", "p"}
	}
}

// TestLooking: without the right to be told of changes it is looked through, each lock is counted once.
func TestLooking(t *testing.T) {
	b := newBench(t, place.Masters, []string{"lock:*"}, restricted("+@all", "-client"))
	b.soon("it is looked through", b.isWatched(Looking))
	b.do("SET", "lock:a", "v")
	b.soon("it is noticed", func() bool { return b.Count() == 1 })
	time.Sleep(lookPause + time.Second/2) // in which it looks once more
	b.wantCount(1)
	b.do("EVAL", fmt.Sprintf("for i = 1, %d do redis.call('SET', i, 'v') end", maxLooked), "0")
	b.soon("it has too many keys", b.isWatched(Impossible))
	if n := b.log.count("too many keys"); n != 1 {
		t.Errorf("it is told %d times", n)
	}
}

// TestImpossible: where it cannot be watched, that is told.
func TestImpossible(t *testing.T) {
	b := newBench(t, place.Masters, []string{"lock:*"}, func(b *bench) {
		b.do("SET", "k", "v")
		restricted("+@all", "-client", "-scan")(b)
	})
	b.soon("that is known", b.isWatched(Impossible))
	b.soon("that is told", func() bool { return b.log.count("it refuses what that needs") == 1 })
	wild := newBench(t, place.Masters, []string{"*:lock"}, nil)
	wild.soon("that is known", wild.isWatched(Impossible))
	wild.soon("that is told", func() bool { return wild.log.count("begin with a wildcard") == 1 })
	wild.do("SET", "a:lock", "v")
	wild.wantCount(0)
}

func TestPrefixes(t *testing.T) {
	s := New(Options{LockKeys: []string{"b:*", "a", "ab?", "*x", "b:c*", "[q]"}})
	if !slices.Equal(s.prefixes, []string{"a", "b:"}) || !slices.Equal(s.unwatched, []string{"*x", "[q]"}) {
		t.Errorf("got %q, and not %q", s.prefixes, s.unwatched)
	}
}

// TestSuspects: who has just done what a lock needs, and is no proxy.
func TestSuspects(t *testing.T) {
	const proxies = "id=1 addr=10.0.0.1:1 name=redlock-proxy-watch idle=0 cmd=exists\nid=2 addr=10.0.0.1:2 name= idle=0 cmd=set\nid=3 addr=10.0.0.1:3 idle=0 cmd=set\n"
	for list, want := range map[string]string{
		"": "", proxies: "10.0.0.1:3 (or of a proxy there)",
		proxies + "id=4 addr=[::ffff:10.0.0.2]:4 name=w idle=1 cmd=evalsha\nid=5 addr=10.0.0.2:5 idle=0 cmd=hset\n":             "10.0.0.2:5, 10.0.0.2:4 name=w",
		"id=6 addr=10.0.0.3:6 idle=2 cmd=set\nid=7 addr=10.0.0.3:7 idle=0 cmd=get\nid=8 addr=10.0.0.3:8 idle=0 cmd=client|list": "",
	} {
		if got := strings.Join(suspects(list, []string{"10.0.0.1:2"}), ", "); got != want {
			t.Errorf("%s: got %q, want %q", list, got, want)
		}
	}
}

// TestStanding: lock keys in all databases are found.
func TestCountAt(t *testing.T) {
	upstream := redistest.New(t, redistest.Options{})
	standing := func() string {
		n, first, more, err := CountAt(t.Context(), server{Server: upstream}, []string{"lock:*"})
		return fmt.Sprintf("%d %q %v %v", n, first, more, err)
	}
	client, err := redistest.Dial(upstream.Addr(), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for _, c := range []struct {
		do   []string
		want string
	}{
		{[]string{"SET", "a", "v"}, `0 "" false <nil>`},
		{[]string{"SELECT", "3"}, `0 "" false <nil>`},
		{[]string{"SET", "lock:a", "v"}, `1 "lock:a" false <nil>`},
		{[]string{"EVAL", fmt.Sprintf("for i = 1, %d do redis.call('SET', 'x' .. i, 'v') end redis.call('DEL', 'lock:a')", maxCounted), "0"}, `0 "" true <nil>`},
	} {
		if _, err := client.Do(c.do...); err != nil {
			t.Fatal(err)
		}
		if got := standing(); got != c.want {
			t.Errorf("after %.3q: got %s, want %s", c.do, got, c.want)
		}
	}
}
