package single

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"redlock-proxy/commands/command"
	"redlock-proxy/internal/redistest"
	"redlock-proxy/internal/resp"
	"redlock-proxy/quorum"
	"redlock-proxy/quorum/place"

	"go.uber.org/goleak"
)

// server is a real upstream, as the waker has it.
type server struct {
	*redistest.Server
	login []string // AUTH of the waker; nil: none
}

func (s server) Name() string { return s.Addr() }

func (server) IsDown() bool { return false }

func (s server) Watch(ctx context.Context, db int) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", s.Addr())
	if err != nil || s.login == nil {
		return conn, err
	}
	if _, err = conn.Write(resp.AppendWords(nil, s.login...)); err == nil {
		_, err = conn.Read(make([]byte, len("+OK\r\n")))
	}
	return conn, err
}

// bench are the locks of an upstream.
type bench struct {
	*testing.T
	*Locks
	server server
	direct *redistest.Client
	logged *logged
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

func (l *logged) contains(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.has.String(), text)
}

func newBench(t *testing.T, change func(*server, *Options)) *bench {
	t.Helper()
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) })
	b := &bench{T: t, server: server{Server: redistest.New(t, redistest.Options{})}, logged: &logged{}}
	direct, err := redistest.Dial(b.server.Addr(), 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	b.direct = direct
	t.Cleanup(func() { _ = direct.Close() })
	opts := Options{LockKeys: []string{"k*"}, Name: b.server.Addr, Watched: b.server, Logger: slog.New(slog.NewTextHandler(b.logged, nil))}
	if change != nil {
		change(&b.server, &opts)
		if opts.Watched != nil {
			opts.Watched = b.server
		}
	}
	b.Locks = New(opts)
	t.Cleanup(b.Locks.Close)
	return b
}

// do has another client do something at the upstream itself.
func (b *bench) do(words ...string) any {
	b.Helper()
	reply, err := b.direct.Do(words...)
	if err != nil {
		b.Fatal(err)
	}
	return reply
}

// client is one of the proxy's, and counts what is asked for it.
func (b *bench) client() (client *ForClient, puts *atomic.Int32) {
	b.Helper()
	conn, err := net.Dial("tcp", b.server.Addr())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = conn.Close() })
	in := bufio.NewReader(conn)
	puts = new(atomic.Int32)
	return b.For(command.Call{Ctx: b.Context(), Client: &command.Client{Put: func(_ context.Context, words ...string) ([]byte, error) {
		puts.Add(1)
		if _, err := conn.Write(resp.AppendWords(nil, words...)); err != nil {
			return nil, err
		}
		return redistest.ReadRaw(in)
	}}}), puts
}

func request(token string) quorum.LockRequest {
	return quorum.LockRequest{Key: quorum.Key{Name: "k"}, Token: token, TTL: time.Hour, Wait: quorum.Forever}
}

// waits has a client of its own wait for the lock.
func (b *bench) waits(req quorum.LockRequest) (done chan error, puts *atomic.Int32) {
	b.Helper()
	client, puts := b.client()
	now := b.Waiting()
	done = b.waitsOf(client, req)
	b.until(func() bool { return b.Waiting() == now+1 })
	return done, puts
}

// waitsOf is waits of a client.
func (b *bench) waitsOf(client *ForClient, req quorum.LockRequest) (done chan error) {
	done = make(chan error, 1)
	now := b.Waiting()
	go func() {
		_, err := client.Lock(b.Context(), req)
		done <- err
	}()
	b.until(func() bool { return b.Waiting() > now || len(done) > 0 })
	return done
}

func (b *bench) until(is func() bool) {
	b.Helper()
	redistest.Await(b, "what must come true", is)
}

// watched waits until the waker watches a key.
func (b *bench) watched() {
	b.Helper()
	b.until(func() bool { return b.waker.Standings()[0].Keys > 0 })
}

// TestWokenByRemoval: whoever removes the key, in whatever way; there is nobody to ask again and again meanwhile.
func TestWokenByRemoval(t *testing.T) {
	b := newBench(t, nil)
	for _, ends := range [][]string{{"DEL", "k"}, {"RENAME", "k", "other"}, {"FLUSHALL"}, {"PEXPIRE", "k", "50"}} {
		b.do("SET", "k", "another", "PX", "100000")
		done, _ := b.waits(request("t"))
		b.watched()
		b.do(ends...)
		if err := <-done; err != nil {
			t.Errorf("%q: %v", ends, err)
		}
		if has := b.do("GET", "k"); has != any("t") {
			t.Errorf("%q: the key holds %v", ends, has)
		}
	}
}

// TestWokenByExpiry: the lock of one who never comes back ends by itself, whatever its type.
func TestWokenByExpiry(t *testing.T) {
	b := newBench(t, nil)
	for _, kind := range [][]string{{"SET", "k", "another"}, {"HSET", "k", "another", "1"}, {"ZADD", "k", "1", "another"}} {
		b.do("DEL", "k")
		b.do(kind...)
		b.do("PEXPIRE", "k", "100")
		done, _ := b.waits(request("t"))
		if err := <-done; err != nil {
			t.Errorf("%q: %v", kind, err)
		}
	}
}

// TestQueue: who came first is served first, and nobody else asks the upstream meanwhile; nor does one who does not wait get ahead of them.
func TestQueue(t *testing.T) {
	b := newBench(t, nil)
	b.do("SET", "k", "another")
	var waiting []chan error
	var puts []*atomic.Int32
	for _, token := range []string{"t0", "t1", "t2", "t3"} {
		done, asked := b.waits(request(token))
		waiting, puts = append(waiting, done), append(puts, asked)
	}
	b.watched()
	hasty, asked := b.client()
	req := request("hasty")
	req.Wait = 0
	if _, err := hasty.Lock(b.Context(), req); !errors.Is(err, quorum.ErrHeld) || asked.Load() != 0 {
		t.Errorf("it gets ahead: %v", err)
	}
	b.do("DEL", "k")
	for i, done := range waiting {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		token := request([]string{"t0", "t1", "t2", "t3"}[i]).Token
		if has := b.do("GET", "k"); has != any(token) {
			t.Fatalf("the key holds %v, want %v", has, token)
		}
		for _, other := range puts[min(i+2, len(puts)):] { // the next one is the head by now
			if n := other.Load(); n != 0 {
				t.Errorf("one who is not the head asked %d times", n)
			}
		}
		client, _ := b.client()
		if err := client.Unlock(b.Context(), quorum.Key{Name: "k"}, token); err != nil {
			t.Fatal(err)
		}
	}
}

// places say that the locks are at the upstream until they turn.
type places struct {
	turned chan struct{}
	moves  atomic.Bool
}

func (p *places) Placed() (quorum.Placed, bool) {
	if p.moves.Load() {
		return quorum.Placed{Place: place.ToMasters, Era: 3}, true
	}
	return quorum.Placed{Place: place.Upstream}, false
}

func (p *places) Turned() <-chan struct{} { return p.turned }

var errLeft = errors.New("the client left")

// TestWaitsEnd: with the time, with the client, and when the locks move; the next one waits on.
func TestWaitsEnd(t *testing.T) {
	where := &places{turned: make(chan struct{})}
	b := newBench(t, func(_ *server, opts *Options) { opts.Places = where })
	b.do("SET", "k", "another")
	req := request("t")
	req.Wait = time.Millisecond
	first, _ := b.client()
	done := b.waitsOf(first, request("t0"))
	client, _ := b.client()
	if _, err := client.Lock(b.Context(), req); !errors.Is(err, quorum.ErrHeld) {
		t.Errorf("at the end of its time: %v", err)
	}
	second, _ := b.client()
	leaves := make(chan struct{})
	b.leavesBy(second, leaves)
	next := b.waitsOf(second, request("t1"))
	close(leaves)
	if err := <-next; !errors.Is(err, errLeft) || b.Waiting() != 1 {
		t.Errorf("after the client left: %v, %d wait", err, b.Waiting())
	}
	where.moves.Store(true)
	close(where.turned)
	var elsewhere *quorum.ElsewhereError
	if err := <-done; !errors.As(err, &elsewhere) || elsewhere.Now.Era != 3 {
		t.Errorf("when the locks move: %v", err)
	}
	if has := b.do("GET", "k"); has != any("another") || b.Waiting() != 0 {
		t.Errorf("the key holds %v, %d wait", has, b.Waiting())
	}
}

// TestWatch: the client is watched between tries, and never during one, for that watches it, too.
func TestWatch(t *testing.T) {
	b := newBench(t, func(_ *server, opts *Options) { opts.Watched = nil })
	b.do("SET", "k", "another")
	client, puts := b.client()
	leaves := make(chan struct{})
	watching := b.leavesBy(client, leaves)
	put := client.client.Put
	client.client.Put = func(ctx context.Context, words ...string) ([]byte, error) {
		if watching.Load() != 0 {
			t.Error("the client is watched during a try")
		}
		return put(ctx, words...)
	}
	done := b.waitsOf(client, request("t"))
	b.until(func() bool { return puts.Load() > 3 })
	close(leaves)
	if err := <-done; !errors.Is(err, errLeft) || watching.Load() != 0 {
		t.Errorf("%v, %d watches go on", err, watching.Load())
	}
	if done := b.waitsOf(client, request("t")); !errors.Is(<-done, errLeft) {
		t.Error("one who has left waits")
	}
}

// leavesBy has a client leave at a time, and counts the watches for that.
func (b *bench) leavesBy(client *ForClient, leaves chan struct{}) *atomic.Int32 {
	watching := new(atomic.Int32)
	client.client.Wait = func(ctx context.Context) (context.Context, func()) {
		watching.Add(1)
		ctx, leave := context.WithCancelCause(ctx)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			select {
			case <-leaves:
				leave(errLeft)
			case <-ctx.Done():
			}
		}()
		return ctx, func() { leave(nil); <-ended; watching.Add(-1) }
	}
	return watching
}

// TestUnwatched: where nothing reports changes, or the upstream refuses to, the head polls.
func TestUnwatched(t *testing.T) {
	for title, change := range map[string]func(*server, *Options){
		"nothing": func(_ *server, opts *Options) { opts.Watched = nil },
		"refused": func(s *server, _ *Options) { s.login = []string{"AUTH", "few", "pw"} },
	} {
		t.Run(title, func(t *testing.T) {
			b := newBench(t, change)
			b.do("ACL", "SETUSER", "few", "on", ">pw", "~*", "+@all", "-client")
			b.do("SET", "k", "another")
			done, puts := b.waits(request("t"))
			b.until(func() bool { return puts.Load() > 2 })
			b.until(func() bool { return title == "nothing" || b.logged.contains("NOPERM") })
			b.do("DEL", "k")
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
}

// TestSlowUpstream: a lock of which nothing is left when it is granted is given back.
func TestSlowUpstream(t *testing.T) {
	b := newBench(t, nil)
	client, _ := b.client()
	put := client.client.Put
	client.client.Put = func(ctx context.Context, words ...string) ([]byte, error) {
		if words[0] == "SET" {
			time.Sleep(50 * time.Millisecond) // the upstream is slow
		}
		return put(ctx, words...)
	}
	req := request("t")
	req.Wait, req.TTL = 0, 50*time.Millisecond
	if _, err := client.Lock(b.Context(), req); err == nil || !strings.Contains(err.Error(), "nothing is left of the TTL") {
		t.Errorf("got %v", err)
	}
	if has := b.do("EXISTS", "k"); has != any(int64(0)) {
		t.Error("it is held")
	}
}

// TestExtend: a TTL is never shortened, and one without an end stays so.
func TestExtend(t *testing.T) {
	b := newBench(t, nil)
	client, _ := b.client()
	for _, test := range []struct {
		before   []string
		from, to int64 // of the PTTL after it
	}{
		{[]string{"SET", "k", "t", "PX", "5000"}, 5001, 10_000},
		{[]string{"SET", "k", "t", "PX", "100000"}, 10_001, 100_000},
		{[]string{"SET", "k", "t"}, -1, -1},
	} {
		b.do(test.before...)
		got, err := client.Extend(b.Context(), quorum.Key{Name: "k"}, "t", 10*time.Second)
		if err != nil || got.Validity > 9898*time.Millisecond || got.Validity <= 0 {
			t.Errorf("%q: %v, %v", test.before, got.Validity, err)
		}
		if left := b.do("PTTL", "k").(int64); left < test.from || left > test.to {
			t.Errorf("%q: %d ms are left", test.before, left)
		}
	}
}

// TestNames: keys of the upstream that are locks come first, then those of the masters that are none, with their prefix; nothing comes after enough.
func TestNames(t *testing.T) {
	for _, globs := range [][]string{{"k*"}, {"k*", "j?"}} {
		b := newBench(t, func(_ *server, opts *Options) { opts.LockKeys = globs })
		b.do("MSET", "k1", "a", "k2", "a", "other", "a")
		client, _ := b.client()
		all := b.Holders(command.Call{Ctx: b.Context(), Client: client.client}, names{"p:k3", "p:m1", "m2"}, "p:")
		for enough, want := range map[bool][]string{false: {"m2", "p:k1", "p:k2", "p:m1"}, true: {"p:k1", "p:k2"}} {
			var found []string
			if err := all.Names(b.Context(), 0, func(names []string) (bool, error) {
				found = append(found, names...)
				return !enough, nil
			}); err != nil {
				t.Fatal(err)
			}
			if slices.Sort(found); !slices.Equal(found, want) {
				t.Errorf("%q: %q, want %q", globs, found, want)
			}
		}
	}
}

// names are the keys of the masters, all free.
type names []string

func (n names) Names(_ context.Context, _ int, page func([]string) (bool, error)) error {
	_, err := page(n)
	return err
}

func (names) Holdings(_ context.Context, keys []quorum.Key) ([]quorum.Holding, error) {
	return make([]quorum.Holding, len(keys)), nil
}

func (names) Remove(context.Context, quorum.Key) (bool, error) { return false, nil }
