package sharing

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"redlock-proxy/internal/redistest"
	"redlock-proxy/internal/resp"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds how long a test waits for what must happen. It never decides.
const patience = 20 * time.Second

// direct is an upstream at an address.
type direct struct{ addr string }

func (d direct) ConnectAs(ctx context.Context, _, _ int) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(ctx, "tcp", d.addr)
}

func (direct) Term() uint64 { return 0 }

// reader is a client that takes what it is brought, or lets it lie.
type reader struct {
	*testing.T
	lane *Lane

	mu    sync.Mutex
	news  sync.Cond
	got   []byte
	ended int
	lost  int
	cause error
	large bool
	slow  bool // nothing is taken
	held  int
}

func newReader(t *testing.T, p *Pool) *reader {
	r := &reader{T: t}
	r.news.L = &r.mu
	r.lane = p.Lane(r)
	return r
}

func (r *reader) Take(p []byte, ended int, _ bool) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended += ended
	if r.got = append(r.got, p...); r.slow {
		r.held += len(p)
	}
	r.news.Broadcast()
	return r.held
}

func (r *reader) Large() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.large = true
}

func (r *reader) Catch() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.slow {
		r.news.Wait()
	}
	r.held = 0
}

func (r *reader) Lost(n int, _ bool, cause error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lost, r.cause = r.lost+n, cause
	r.news.Broadcast()
}

// takes has the reader take what waits for it.
func (r *reader) takes() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.slow = false
	r.news.Broadcast()
}

// send sends commands, on a new connection if need be.
func (r *reader) send(commands string, n int) {
	r.Helper()
	for !r.lane.Send([]byte(commands), n) {
		if err := r.lane.Open(r.Context(), Group{Proto: 2}); err != nil {
			r.Error(err)
			return
		}
	}
}

// await waits until so many replies have come or are lost, and gives what has come.
func (r *reader) await(n int) string {
	r.Helper()
	stop := time.AfterFunc(patience, func() { r.Error("waited in vain for replies"); r.Lost(1<<30, false, nil) })
	defer stop.Stop()
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.ended+r.lost < n {
		r.news.Wait()
	}
	return string(r.got)
}

func startPool(t *testing.T, size int) (*Pool, *redistest.Server) {
	t.Helper()
	server := redistest.New(t, redistest.Options{})
	p := New(size, Group{Proto: 2}, direct{server.Addr()}, nil, slog.New(slog.DiscardHandler))
	t.Cleanup(p.Close)
	return p, server
}

func command(words ...string) string { return string(resp.AppendWords(nil, words...)) }

// Many clients at once on few connections: each gets its own replies in its order.
func TestManyClientsFewConnections(t *testing.T) {
	p, server := startPool(t, 3)
	const clients, rounds = 60, 40
	var all sync.WaitGroup
	for who := range clients {
		all.Go(func() {
			r, want := newReader(t, p), ""
			for round := range rounds {
				text := fmt.Sprintf("%d-%d", who, round)
				r.send(command("ECHO", text)+command("INCR", "count")+command("ECHO", strings.Repeat(text, 1+round*round)), 3)
				got := r.await(3 * (round + 1))
				want += "$" + fmt.Sprint(len(text)) + "\r\n" + text + "\r\n"
				if !strings.HasPrefix(got, want) {
					t.Errorf("client %d: got %.200q\nwant %.200q", who, got[max(0, len(want)-200):], want)
					return
				}
				want = got
			}
		})
	}
	all.Wait()
	client := dialed(t, server.Addr())
	if got, err := client.Do("GET", "count"); got != fmt.Sprint(clients*rounds) {
		t.Errorf("INCR was done %v times (%v), not %d", got, err, clients*rounds)
	}
	if p.Len() != 3 {
		t.Errorf("%d connections", p.Len())
	}
}

// What is sent while somebody writes is written together: the upstream gets fewer pieces than commands.
func TestWritesAreMerged(t *testing.T) {
	here, there := net.Pipe()
	p := New(1, Group{Proto: 2}, given{here}, nil, slog.New(slog.DiscardHandler))
	defer p.Close()
	const clients = 50
	readers := make([]*reader, clients)
	for i := range readers {
		readers[i] = newReader(t, p)
		if err := readers[i].lane.Open(t.Context(), Group{Proto: 2}); err != nil {
			t.Fatal(err)
		}
	}
	var sent sync.WaitGroup
	sent.Go(func() { readers[0].send(command("PING"), 1) }) // and waits: nobody reads
	buf := make([]byte, 1<<16)
	if n, err := there.Read(buf[:1]); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	for _, r := range readers[1:] {
		r.send(command("PING"), 1) // does not wait
	}
	pieces, size := 0, 1
	for size < clients*len(command("PING")) {
		n, err := there.Read(buf)
		if err != nil {
			t.Fatal(err)
		}
		pieces, size = pieces+1, size+n
	}
	if pieces > 2 {
		t.Errorf("%d commands came in %d pieces", clients, pieces)
	}
	sent.Wait()
	if _, err := there.Write(bytes.Repeat([]byte("+PONG\r\n"), clients)); err != nil {
		t.Fatal(err)
	}
	for _, r := range readers {
		r.await(1)
	}
}

// given is an upstream with one connection.
type given struct{ conn net.Conn }

func (g given) ConnectAs(context.Context, int, int) (net.Conn, error) { return g.conn, nil }
func (given) Term() uint64                                            { return 0 }

// A client that takes nothing of a large reply holds nobody up: neither who was before, nor who comes later.
func TestSlowReaderHoldsNobodyUp(t *testing.T) {
	p, server := startPool(t, 1)
	client := dialed(t, server.Addr())
	if _, err := client.Do("SET", "big", strings.Repeat("v", 8<<20)); err != nil {
		t.Fatal(err)
	}
	slow := newReader(t, p)
	slow.slow = true
	slow.send(command("GET", "big"), 1)
	for i := range 20 {
		other := newReader(t, p)
		other.send(command("ECHO", fmt.Sprint(i)), 1)
		if got := other.await(1); !strings.HasSuffix(got, fmt.Sprintf("\r\n%d\r\n", i)) {
			t.Fatalf("got %q", got)
		}
	}
	slow.takes()
	if got := slow.await(1); len(got) != 8<<20+len("$8388608\r\n\r\n") || !slow.large {
		t.Errorf("%d bytes, large: %v", len(got), slow.large)
	}
}

// Each command is carried out once at the most, and answered or lost, when the upstream dies in the midst of them.
func TestLossIsToldOnce(t *testing.T) {
	p, server := startPool(t, 2)
	const clients = 20
	var all sync.WaitGroup
	var begun sync.WaitGroup
	begun.Add(clients)
	for range clients {
		all.Go(func() {
			r, sent := newReader(t, p), 0
			for r.ended == sent {
				if !r.lane.Send([]byte(strings.Repeat(command("INCR", "count"), 5)), 5) {
					if r.lane.Open(t.Context(), Group{Proto: 2}) != nil {
						return // it died while nothing was owed
					}
					continue
				}
				sent += 5
				r.await(sent)
				if sent == 50 {
					begun.Done()
				}
			}
			if r.ended+r.lost != sent || r.cause == nil {
				t.Errorf("%d replies and %d lost (%v) of %d", r.ended, r.lost, r.cause, sent)
			}
		})
	}
	begun.Wait()
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	all.Wait()
}

// A pool that is closed ends what goes on, and takes nothing more.
func TestCloseEndsAll(t *testing.T) {
	p, server := startPool(t, 2)
	r := newReader(t, p)
	r.send(command("PING"), 1)
	r.await(1)
	if err := server.Pause(); err != nil {
		t.Fatal(err)
	}
	r.send(command("PING"), 1)
	p.Close()
	if r.await(2); r.lost != 1 || r.cause == nil {
		t.Errorf("%d lost: %v", r.lost, r.cause)
	}
	if err := r.lane.Open(t.Context(), Group{Proto: 2}); err != errClosed {
		t.Errorf("a closed pool: %v", err)
	}
	if err := server.Continue(); err != nil {
		t.Fatal(err)
	}
}

// One connection is made for all who come at once, and the error of one that cannot be made is told to all of them.
func TestOneDialForAll(t *testing.T) {
	gate := make(chan struct{})
	up := &dials{gate: gate}
	p := New(1, Group{Proto: 2}, up, nil, slog.New(slog.DiscardHandler))
	defer p.Close()
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if err := newReader(t, p).lane.Open(t.Context(), Group{Proto: 2}); err != errNoReply {
				t.Errorf("%v", err)
			}
		})
	}
	redistest.Await(t, "it dials", func() bool { return up.count() > 0 })
	time.Sleep(20 * time.Millisecond) // others that would dial have begun to
	close(gate)
	all.Wait()
	if n := up.count(); n > 20/2 {
		t.Errorf("%d dials", n)
	}
}

// dials fail when the gate is open.
type dials struct {
	gate chan struct{}
	mu   sync.Mutex
	n    int
}

func (d *dials) ConnectAs(context.Context, int, int) (net.Conn, error) {
	d.mu.Lock()
	d.n++
	d.mu.Unlock()
	<-d.gate
	return nil, errNoReply
}

func (d *dials) count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.n
}

func (*dials) Term() uint64 { return 0 }

// Who stands behind a reply that has no end is told so, as is whose it is.
func TestEndlessReplyIsGivenUp(t *testing.T) {
	here, there := net.Pipe()
	p := New(1, Group{Proto: 2}, given{here}, nil, slog.New(slog.DiscardHandler))
	defer p.Close()
	p.endless = 10_000
	first, second := newReader(t, p), newReader(t, p)
	var sent sync.WaitGroup
	sent.Go(func() {
		first.send(command("KEYS", "*"), 1)
		second.send(command("PING"), 1)
	})
	read, total := make([]byte, 1<<10), len(command("KEYS", "*")+command("PING"))
	for got := 0; got < total; {
		n, err := there.Read(read)
		if err != nil {
			t.Fatal(err)
		}
		got += n
	}
	sent.Wait()
	_, err := there.Write([]byte("*1000000\r\n"))
	for err == nil {
		_, err = there.Write(bytes.Repeat([]byte(":1\r\n"), 100))
	}
	first.await(1)
	second.await(1)
	if first.lost != 1 || second.lost != 1 || second.cause != errEndless {
		t.Errorf("lost %d and %d: %v", first.lost, second.lost, second.cause)
	}
}
