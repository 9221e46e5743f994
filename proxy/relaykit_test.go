package proxy_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"redlock-proxy/commands"
	"redlock-proxy/commands/server"
	"redlock-proxy/internal/certtest"
	"redlock-proxy/internal/redistest"
	"redlock-proxy/proxy"
	"redlock-proxy/proxy/upstream"
)

// testTimeout limits how long a test waits for an event that must happen. It never decides the
// result.
const testTimeout = time.Minute

// connTimeout limits the time of a test's connection, for tests that hang.
const connTimeout = 10 * testTimeout

// testProxy runs a proxy in this process, in front of an upstream.
type testProxy struct {
	*testing.T
	addr      string
	upstream  *upstream.Upstream
	locks     *memoryLocks
	server    *proxy.Server
	stop      context.CancelFunc // begins the drain
	serveDone chan struct{}      // closed when Serve has returned
	clientTLS *tls.Config        // the clients' TLS settings; nil without TLS
}

// startRedis starts a redis-server for the test.
func startRedis(t *testing.T, args ...string) *redistest.Server {
	t.Helper()
	return redistest.New(t, redistest.Options{ExtraArgs: args})
}

// startRelay starts a redis-server and a proxy in front of it.
func startRelay(t *testing.T, args ...string) (*testProxy, *redistest.Server) {
	t.Helper()
	server := startRedis(t, args...)
	return startProxy(t, server.URL()), server
}

func startProxy(t *testing.T, url string) *testProxy {
	t.Helper()
	return startProxyWith(t, url, proxy.Options{}, nil)
}

// startProxyWith starts a proxy that serves until the test ends. It probes the upstream once.
// REDLOCK_TEST_QUIET=1ms makes all tests park clients whenever they pause, and REDLOCK_TEST_TLS=1
// makes the clients speak TLS.
func startProxyWith(
	t *testing.T, url string, opts proxy.Options, lockKeys []string, prepare ...func(*proxy.Server),
) *testProxy {
	t.Helper()
	return startProxyWithin(t, testTimeout, url, opts, lockKeys, prepare...)
}

// startProxyWithin starts a proxy like startProxyWith, with a timeout for the upstream.
func startProxyWithin(
	t *testing.T, timeout time.Duration, url string, opts proxy.Options, lockKeys []string,
	prepare ...func(*proxy.Server),
) *testProxy {
	t.Helper()
	r := newTestProxy(t, timeout, url, opts, lockKeys, prepare...)
	r.serve(listen(t))
	return r
}

// frozenClock returns a clock that stands still, so that a validity is sent as it was granted.
func frozenClock() func() time.Time {
	now := time.Now()
	return func() time.Time { return now }
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return ln
}

// newTestProxy returns a proxy that does not serve yet.
func newTestProxy(
	t *testing.T, timeout time.Duration, url string, opts proxy.Options, lockKeys []string,
	prepare ...func(*proxy.Server),
) *testProxy {
	t.Helper()
	log := slog.New(slog.NewTextHandler(testLog{t}, nil))
	up, err := upstream.New(url, timeout, log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(up.Close)
	up.Probe(t.Context())
	r := &testProxy{T: t, upstream: up, locks: newMemoryLocks(), serveDone: make(chan struct{})}
	if os.Getenv("REDLOCK_TEST_TLS") != "" && opts.TLS == nil {
		opts.TLS, r.clientTLS = tlsSettings(t)
	}
	opts.Upstream = up
	if opts.Logger == nil {
		opts.Logger = log
	}
	opts.Table = commands.NewRelayTable(commands.Options{
		Locks: memoryLocker{r.locks}, Register: r.locks, AllKeys: r.locks, Functions: up, LockKeys: lockKeys,
		Settings: commands.Settings{MaxTTL: time.Hour}, Server: server.Options{Version: "1.2.3", Upstream: up.Status},
		Users: opts.Users,
	})
	r.server = proxy.NewServer(opts)
	r.server.SetNow(frozenClock())
	if idleTime, err := time.ParseDuration(os.Getenv("REDLOCK_TEST_QUIET")); err == nil {
		r.server.SetIdleTime(idleTime)
	}
	for _, prepareServer := range prepare {
		prepareServer(r.server)
	}
	return r
}

// serve serves the clients of ln until the test ends.
func (r *testProxy) serve(ln net.Listener) {
	r.addr = ln.Addr().String()
	ctx, stop := context.WithCancel(context.Background())
	r.stop = stop
	go func() {
		defer close(r.serveDone)
		if err := r.server.Serve(ctx, ln); err != nil {
			r.Errorf("Serve: %v", err)
		}
	}()
	r.Cleanup(func() { stop(); await(r.T, "the server's end", r.serveDone) })
}

// testLog shows the proxy's log if a test fails. A panic in the log makes the test fail.
type testLog struct{ t *testing.T }

func (l testLog) Write(p []byte) (int, error) {
	if strings.Contains(string(p), "panic") {
		l.t.Errorf("%s", p)
	} else {
		l.t.Logf("%s", p)
	}
	return len(p), nil
}

func await(t *testing.T, event string, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(testTimeout):
		t.Fatalf("timeout: %s", event)
	}
}

func eventually(t *testing.T, event string, condition func() bool) {
	t.Helper()
	redistest.Await(t, event, condition)
}

// connect returns a new client of the proxy.
func (r *testProxy) connect() *peer {
	r.Helper()
	p := dial(r.T, r.addr)
	if r.clientTLS != nil {
		p.speakTLS(r.clientTLS)
	}
	return p
}

// peer is a client that sends and reads bytes.
type peer struct {
	*testing.T
	conn peerConn
	in   *bufio.Reader
}

// peerConn represents a TCP connection, with or without TLS.
type peerConn interface {
	net.Conn
	CloseWrite() error
	SetLinger(seconds int) error
	SetReadBuffer(bytes int) error
}

// tlsConn implements peerConn by TLS over a TCP connection.
type tlsConn struct {
	*tls.Conn
	socket peerConn
}

func (c tlsConn) SetLinger(seconds int) error   { return c.socket.SetLinger(seconds) }
func (c tlsConn) SetReadBuffer(bytes int) error { return c.socket.SetReadBuffer(bytes) }

// speakTLS switches the connection to TLS.
func (p *peer) speakTLS(settings *tls.Config) {
	p.conn = tlsConn{tls.Client(p.conn, settings), p.conn}
	p.in = bufio.NewReader(p.conn)
}

// tlsSettings returns TLS settings for a proxy and its clients.
func tlsSettings(t *testing.T) (server, client *tls.Config) {
	t.Helper()
	ca := certtest.NewCA(t)
	return &tls.Config{Certificates: []tls.Certificate{ca.Issue(t).TLS}},
		&tls.Config{RootCAs: ca.Pool(), ServerName: "localhost"}
}

// skipOverTLS skips the test if its clients use TLS. Tests call it if their clients cannot use TLS,
// or must be parked: TLS clients are never parked.
func skipOverTLS(t *testing.T) {
	t.Helper()
	if os.Getenv("REDLOCK_TEST_TLS") != "" {
		t.Skip("SKIPPED: not over TLS")
	}
}

// startTLS starts a proxy like startProxyWith, with TLS clients.
func startTLS(
	t *testing.T, url string, opts proxy.Options, lockKeys []string, prepare ...func(*proxy.Server),
) *testProxy {
	t.Helper()
	server, client := tlsSettings(t)
	if opts.TLS == nil {
		opts.TLS = server
	}
	r := startProxyWith(t, url, opts, lockKeys, prepare...)
	r.clientTLS = client
	return r
}

func dial(t *testing.T, addr string) *peer {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(connTimeout))
	return &peer{t, conn.(*net.TCPConn), bufio.NewReader(conn)}
}

// send writes bytes. It ignores errors of a closed connection.
func (p *peer) send(s string) {
	p.Helper()
	if _, err := io.WriteString(p.conn, s); isTimeout(err) {
		p.Fatalf("the server does not read: %v", err)
	}
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// expect fails unless the server's next bytes are want.
func (p *peer) expect(want string) {
	p.Helper()
	got := make([]byte, len(want))
	n, err := io.ReadFull(p.in, got)
	if string(got[:n]) != want {
		p.Fatalf("got %q, %v\nwant %q", got[:n], err, want)
	}
}

// check sends a command of words separated by blanks, and fails unless the reply is want.
func (p *peer) check(line, want string) {
	p.Helper()
	p.send(cmd(line))
	got, err := readReply(p.in)
	if got != want {
		p.Fatalf("%s: got %q, %v\nwant %q", line, got, err, want)
	}
}

// ask sends a command and returns its reply.
func (p *peer) ask(line string) string {
	p.Helper()
	p.send(cmd(line))
	return p.readReply()
}

// readReply reads one whole reply, unchanged.
func (p *peer) readReply() string {
	p.Helper()
	got, err := readReply(p.in)
	if err != nil {
		p.Fatalf("got %q, %v", got, err)
	}
	return got
}

// readAll reads until the server closes.
func (p *peer) readAll() string {
	p.Helper()
	got, err := io.ReadAll(p.in)
	if isTimeout(err) {
		p.Fatalf("the server does not close; got %.300q", got)
	}
	return string(got)
}

// expectAll fails unless the server sends exactly these bytes and closes.
func (p *peer) expectAll(want string) {
	p.Helper()
	if got := p.readAll(); got != want {
		p.Fatalf("up to the end: got %q\nwant %q", got, want)
	}
}

// array returns a command in RESP.
func array(words ...string) string { return string(redistest.AppendCommand(nil, words...)) }

// cmd returns the command in a line of words separated by blanks.
func cmd(line string) string { return array(strings.Split(line, " ")...) }

// lines returns a pipeline of commands as in cmd.
func lines(commands ...string) string {
	pipeline := ""
	for _, line := range commands {
		pipeline += cmd(line)
	}
	return pipeline
}

func bulk(s string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(s), s) }

// readReply reads one reply of RESP2 or RESP3, unchanged.
func readReply(in *bufio.Reader) (string, error) {
	line, err := in.ReadString('\n')
	if err != nil {
		return line, err
	}
	n, numberErr := strconv.Atoi(strings.TrimSuffix(line[1:], "\r\n"))
	switch line[0] {
	case '$', '=', '!':
		if n < 0 {
			return line, nil
		}
		payload := make([]byte, n+2)
		got, err := io.ReadFull(in, payload)
		return line + string(payload[:got]), err
	case '%', '|':
		n *= 2
	case '*', '~', '>':
	default:
		return line, nil
	}
	if numberErr != nil {
		return line, numberErr
	}
	if line[0] == '|' { // an attribute belongs to the reply that follows it
		n++
	}
	var reply strings.Builder
	reply.WriteString(line)
	for range n {
		element, err := readReply(in)
		reply.WriteString(element)
		if err != nil {
			return reply.String(), err
		}
	}
	return reply.String(), nil
}
