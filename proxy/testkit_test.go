package proxy

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"redlock-proxy/commands"
	"redlock-proxy/internal/logtest"
	"redlock-proxy/internal/redistest"
	"redlock-proxy/internal/resp"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testTimeout limits how long a test waits for an event that must happen. It never decides the
// result.
const testTimeout = time.Minute

// connTimeout limits the time of a test's connection, for tests that hang.
const connTimeout = 10 * testTimeout

// testServer holds a running server with its dependencies.
type testServer struct {
	*testing.T
	server      *Server
	addr        string
	log         *logtest.Buffer
	stop        context.CancelFunc // begins the drain
	serveResult chan error         // the result of Serve
}

// serverOptions configures a testServer.
type serverOptions struct {
	Options
	locks  commands.Locks
	listen func(net.Listener) net.Listener
}

// serveLocks starts a server over these locks.
func serveLocks(t *testing.T, locks commands.Locks) *testServer {
	t.Helper()
	return startTestServer(t, serverOptions{locks: locks})
}

func startTestServer(t *testing.T, opts serverOptions) *testServer {
	t.Helper()
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ln := tcp
	if opts.listen != nil {
		ln = opts.listen(tcp)
	}
	b := &testServer{T: t, addr: tcp.Addr().String(), log: &logtest.Buffer{}, serveResult: make(chan error, 1)}
	opts.Table = commands.NewTable(commands.Options{Locks: opts.locks,
		Settings: commands.Settings{MaxTTL: 24 * time.Hour}})
	opts.Logger = slog.New(slog.NewTextHandler(b.log, nil))
	b.server = NewServer(opts.Options)
	b.server.SetNow(frozenClock())
	ctx, stop := context.WithCancel(context.Background())
	b.stop = stop
	go func() { b.serveResult <- b.server.Serve(ctx, ln) }()
	t.Cleanup(func() {
		stop()
		b.waitStopped()
	})
	return b
}

// frozenClock returns a clock that stands still, so that a validity is sent as it was granted.
func frozenClock() func() time.Time {
	now := time.Now()
	return func() time.Time { return now }
}

// waitStopped waits until Serve has returned, and fails if it did not return nil.
func (b *testServer) waitStopped() {
	b.Helper()
	select {
	case err := <-b.serveResult:
		if err != nil {
			b.Errorf("Serve: %v", err)
		}
		b.serveResult <- nil // so that later calls return, too
	case <-time.After(testTimeout):
		b.Fatal("the server does not stop")
	}
}

// waitClients waits until n clients are connected.
func (b *testServer) waitClients(n int) {
	b.Helper()
	b.eventually("the number of clients", func() bool { return b.server.Clients() == n })
}

func (b *testServer) eventually(event string, condition func() bool) {
	b.Helper()
	redistest.Await(b, event, condition)
}

// await receives one value, and fails after a timeout.
func await[T any](t *testing.T, event string, from <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-from:
	case <-time.After(testTimeout):
		t.Fatalf("timeout: %s", event)
	}
	return v
}

// peer is a client that sends and reads bytes.
type peer struct {
	t    *testing.T
	conn net.Conn
	in   *bufio.Reader
}

func (b *testServer) connect() *peer {
	b.Helper()
	conn, err := net.Dial("tcp", b.addr)
	if err != nil {
		b.Fatal(err)
	}
	return newPeer(b.T, conn)
}

func newPeer(t *testing.T, conn net.Conn) *peer {
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(connTimeout))
	return &peer{t, conn, bufio.NewReader(conn)}
}

// send writes bytes. It ignores errors of a closed connection.
func (p *peer) send(s string) {
	p.t.Helper()
	if _, err := io.WriteString(p.conn, s); isTimeout(err) {
		p.t.Fatalf("the server does not read: %v", err)
	}
}

// flood writes s this many times, without using memory for it.
func (p *peer) flood(s string, times int) {
	p.t.Helper()
	b := []byte(s)
	for range times {
		if _, err := p.conn.Write(b); err != nil {
			p.t.Fatalf("the server does not read: %v", err)
		}
	}
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// expect reads exactly these bytes.
func (p *peer) expect(want string) {
	p.t.Helper()
	got := make([]byte, len(want))
	n, err := io.ReadFull(p.in, got)
	if string(got[:n]) != want {
		p.t.Fatalf("got %.300q, %v\nwant %.300q", got[:n], err, want)
	}
}

// check sends bytes and expects the reply.
func (p *peer) check(s, want string) {
	p.t.Helper()
	p.send(s)
	p.expect(want)
}

// readLine reads one line, without its end.
func (p *peer) readLine() string {
	p.t.Helper()
	line, err := p.in.ReadString('\n')
	if err != nil {
		p.t.Fatalf("got %q, %v", line, err)
	}
	return strings.TrimSuffix(line, "\r\n")
}

// readAll reads until the server closes.
func (p *peer) readAll() string {
	p.t.Helper()
	got, err := io.ReadAll(p.in)
	if isTimeout(err) {
		p.t.Fatalf("the server does not close; got %.200q", got)
	}
	return string(got)
}

// expectClosed fails unless the server closes without another byte.
func (p *peer) expectClosed() {
	p.t.Helper()
	if got := p.readAll(); got != "" {
		p.t.Fatalf("got %q", got)
	}
}

// array returns a command in RESP.
func array(words ...string) string { return string(resp.AppendWords(nil, words...)) }

// pipeListener accepts connections within the process: each write at one end is one read at the
// other end.
type pipeListener struct {
	net.Listener
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func newPipeListener(inner net.Listener) *pipeListener {
	return &pipeListener{Listener: inner, conns: make(chan net.Conn), done: make(chan struct{})}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.done) })
	return l.Listener.Close()
}

// dial returns the client's end.
func (l *pipeListener) dial() net.Conn {
	clientEnd, serverEnd := net.Pipe()
	l.conns <- serverEnd
	return clientEnd
}
