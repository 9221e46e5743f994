package upstream

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"redlock-proxy/internal/logtest"
	"redlock-proxy/internal/redistest"
)

// testTimeout limits the wait for events that must happen. It never decides the result.
const testTimeout = time.Minute

// scriptedServer answers each command with the result of a function; if that is "", it closes the
// connection.
type scriptedServer struct {
	ln    net.Listener
	dials atomic.Int64

	mu       sync.Mutex
	received []string
}

func startScripted(t *testing.T, answer func(command string) string) *scriptedServer {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &scriptedServer{ln: ln}
	var running sync.WaitGroup
	t.Cleanup(func() { ln.Close(); running.Wait() })
	running.Go(func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			s.dials.Add(1)
			running.Go(func() { s.serve(conn, answer) })
		}
	})
	return s
}

func (s *scriptedServer) serve(conn net.Conn, answer func(string) string) {
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(testTimeout))
	in := bufio.NewReader(conn)
	for {
		command, err := readCommand(in)
		if err != nil {
			return
		}
		s.mu.Lock()
		s.received = append(s.received, command)
		s.mu.Unlock()
		reply := answer(command)
		if reply == "" {
			return
		}
		for i := range reply { // byte by byte, so that the proxy reads it in pieces
			_, _ = io.WriteString(conn, reply[i:i+1])
		}
	}
}

// readCommand reads an array of bulk strings as words separated by blanks.
func readCommand(in *bufio.Reader) (string, error) {
	var n, size int
	if _, err := fmt.Fscanf(in, "*%d\r\n", &n); err != nil {
		return "", err
	}
	words := make([]string, n)
	for i := range words {
		if _, err := fmt.Fscanf(in, "$%d\r\n", &size); err != nil {
			return "", err
		}
		word := make([]byte, size+2)
		if _, err := io.ReadFull(in, word); err != nil {
			return "", err
		}
		words[i] = string(word[:size])
	}
	return strings.Join(words, " "), nil
}

func (s *scriptedServer) url(user string) string { return "redis://" + user + s.ln.Addr().String() }

func newTestUpstream(t *testing.T, url string) (*Upstream, *logtest.Buffer) {
	t.Helper()
	log := &logtest.Buffer{}
	up, err := New(url, time.Second, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	return up, log
}

func TestUpstreamHandshake(t *testing.T) {
	for _, c := range []struct {
		user, path     string
		answers        map[string]string
		want, received string
	}{
		{"", "", nil, "", ""},
		{":pw@", "", nil, "", "AUTH pw"},
		{"joe:p%20w@", "/3", nil, "", "AUTH joe p w, SELECT 3"},
		{"", "/3", nil, "", "SELECT 3"},
		{":pw@", "/3", map[string]string{"AUTH pw": "-WRONGPASS no\r\n"}, "AUTH: WRONGPASS no", "AUTH pw"},
		{":pw@", "/3", map[string]string{"SELECT 3": "-ERR DB index is out of range\r\n"},
			"SELECT: ERR DB index is out of range", "AUTH pw, SELECT 3"},
		{":pw@", "", map[string]string{"AUTH pw": "+QUEUED\r\n"}, "AUTH: +QUEUED", "AUTH pw"},
		{":pw@", "", map[string]string{"AUTH pw": ""}, "the upstream closed the connection", "AUTH pw"},
	} {
		s := startScripted(t, func(command string) string {
			if answer, scripted := c.answers[command]; scripted {
				return answer
			}
			return "+OK\r\n"
		})
		up, _ := newTestUpstream(t, s.url(c.user)+c.path)
		conn, err := up.Connect(t.Context())
		if err == nil {
			conn.Close()
		}
		want := "upstream " + s.ln.Addr().String() + ": " + c.want
		if c.want == "" && err != nil || c.want != "" && (err == nil || err.Error() != want) {
			t.Errorf("%s%s: got %v, want %q", c.user, c.path, err, want)
		}
		s.mu.Lock()
		if got := strings.Join(s.received, ", "); got != c.received {
			t.Errorf("%s%s: the upstream got %q, want %q", c.user, c.path, got, c.received)
		}
		s.mu.Unlock()
	}
}

// TestUpstreamCachesRefusal checks that no client repeats a failed dial immediately.
func TestUpstreamCachesRefusal(t *testing.T) {
	s := startScripted(t, func(string) string { return "-WRONGPASS no\r\n" })
	up, err := New(s.url(":pw@"), time.Minute, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	startedAt := time.Now()
	var clients sync.WaitGroup
	results := make(chan error, 200)
	for range cap(results) {
		clients.Go(func() {
			_, err := up.Connect(t.Context())
			results <- err
		})
	}
	clients.Wait()
	// Clients that start after a pause on a busy machine may dial again.
	maxCount := maxDials * (2 + int64(time.Since(startedAt)/(dialPause/2)))
	for range cap(results) {
		var upErr *Error
		if err := <-results; !errors.As(err, &upErr) ||
			upErr.Reply() != "ERR upstream "+s.ln.Addr().String()+": AUTH: WRONGPASS no" {
			t.Fatal(err)
		}
	}
	if n := s.dials.Load(); n > maxCount {
		t.Errorf("%d dials for %d clients", n, cap(results))
	}
	before := s.dials.Load()
	time.Sleep(2 * dialPause) // longer than the pause that this test checks
	if _, err := up.Connect(t.Context()); err == nil || s.dials.Load() == before {
		t.Errorf("after a pause: %v, %d dials", err, s.dials.Load())
	}
}

func TestUpstreamConnectEndsWithItsContext(t *testing.T) {
	up, _ := newTestUpstream(t, "redis://127.0.0.1:1")
	for range maxDials {
		up.dials <- struct{}{}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := up.Connect(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

func TestUpstreamHangsDuringHandshake(t *testing.T) {
	hang := make(chan struct{})
	s := startScripted(t, func(string) string { <-hang; return "" })
	defer close(hang)
	up, err := New(s.url(":pw@"), 50*time.Millisecond, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := up.Connect(t.Context()); err == nil || !strings.HasSuffix(err.Error(), ": no answer in time") {
		t.Error(err)
	}
}

// TestUpstreamProbe checks that the probe finds out whether the upstream is up, and whether a new
// connection may do everything. Only explicit replies count, and they remain valid while the
// upstream does not answer.
func TestUpstreamProbe(t *testing.T) {
	const userReply = "*6\r\n+commands\r\n$5\r\n+@all\r\n+keys\r\n$2\r\n~*\r\n+channels\r\n$2\r\n&*\r\n"
	var answers atomic.Value
	s := startScripted(t, func(command string) string {
		replies := answers.Load().([]string)
		for i, name := range []string{"PING", "WHOAMI", "GETUSER", "INFO"} {
			if strings.Contains(command, name) && i < len(replies) {
				if replies[i] == "dies" {
					answers.Store([]string{""})
					return ""
				}
				return replies[i]
			}
		}
		return ""
	})
	up, log := newTestUpstream(t, s.url(""))
	unknown := "-ERR unknown command\r\n"
	info := func(version string) string {
		text := "# Server\r\nredis_version:" + version
		return fmt.Sprintf("$%d\r\n%s\r\n", len(text), text)
	}
	for i, c := range []struct {
		answers   []string
		status    string
		grantsAll bool
		logged    string
	}{
		{[]string{""}, "the upstream closed the connection", false, "upstream down"},
		{[]string{"+PONG\r\n"}, "", false, "upstream up"},
		{[]string{"+PONG\r\n", "+default\r\n", userReply}, "", true, ""},
		// The rights cannot have changed.
		{[]string{""}, "the upstream closed the connection", true, "upstream down"},
		{[]string{""}, "the upstream closed the connection", true, ""},
		{[]string{"+PONG\r\n", "+default\r\n", userReply}, "", true, "upstream up"},
		// The upstream dies in the middle of a probe.
		{[]string{"+PONG\r\n", "dies"}, "the upstream closed the connection", true, "upstream down"},
		{[]string{"-NOAUTH Authentication required.\r\n", "-NOAUTH Authentication required.\r\n"}, "", false,
			"upstream up"},
		// ACL is answered during loading.
		{[]string{"-LOADING x\r\n", "+default\r\n", userReply}, "", true, ""},
		{[]string{"-ERR max number of clients reached\r\n"}, "", false, ""},
		{[]string{"+PONG\r\n", "+default\r\n", "-NOPERM x\r\n"}, "", false, ""},
		{[]string{"-NOPERM x\r\n", "-NOPERM x\r\n", userReply, info("7.0.15")}, "", false, ""},
		{[]string{"+PONG\r\n", "+default\r\n", strings.Replace(userReply, "~*", "~a", 1)}, "", false, ""},
		{[]string{"+PONG\r\n", "+default\r\n", strings.Replace(userReply, "&*", "&a", 1)}, "", false, ""},
		// This is a version without ACL.
		{[]string{"+PONG\r\n", unknown, unknown, info("5.0.14")}, "", true, ""},
		{[]string{"+PONG\r\n", unknown, unknown, info("7.0.15")}, "", false, ""},
		{[]string{"+PONG\r\n", unknown, unknown, info("15.0.0")}, "", false, ""},
		{[]string{"-NOAUTH x\r\n", unknown, unknown, info("5.0.14")}, "", false, ""},
	} {
		answers.Store(c.answers)
		before := len(log.String())
		up.Probe(t.Context())
		_, err := up.Status()
		if status := fmt.Sprint(err); err == nil && c.status != "" || err != nil && status != c.status {
			t.Errorf("%d: %v", i, err)
		}
		if up.GrantsAll() != c.grantsAll {
			t.Errorf("%d: everything is allowed: %v", i, up.GrantsAll())
		}
		if got := log.String()[before:]; strings.Contains(got, "msg=") != (c.logged != "") ||
			!strings.Contains(got, c.logged) {
			t.Errorf("%d: logged %q", i, got)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	before := log.String()
	if up.Probe(ctx); log.String() != before {
		t.Errorf("a probe that was broken off logged %q", log.String()[len(before):])
	}
}

// TestUpstreamWithWrongScheme checks that if the URL has the wrong scheme, the log and the clients'
// errors name the right scheme.
func TestUpstreamWithWrongScheme(t *testing.T) {
	tlsServer := httptest.NewTLSServer(nil)
	t.Cleanup(tlsServer.Close)
	plain := redistest.New(t, redistest.Options{})
	for url, want := range map[string]string{
		"redis://" + tlsServer.Listener.Addr().String(): "it requires TLS: use rediss:// instead of redis://",
		"rediss://" + plain.Addr():                      "it does not use TLS: use redis:// instead of rediss://",
	} {
		up, log := newTestUpstream(t, url)
		for range 2 {
			up.Probe(t.Context())
			if _, err := up.Status(); err == nil || err.Error() != want {
				t.Errorf("%s: got %v, want %s", url, err, want)
			}
		}
		if got := up.Failure(ErrDisconnected).Reply(); !strings.HasSuffix(got, ": "+want) {
			t.Errorf("%s: clients get %s", url, got)
		}
		if got := up.Failure(syscall.ECONNREFUSED).Reply(); !strings.HasSuffix(got, ": connection refused") {
			t.Errorf("%s: clients get %s", url, got)
		}
		if got := log.String(); strings.Count(got, want) != 1 {
			t.Errorf("%s: the log is %s", url, got)
		}
		up.Close()
	}
}

func TestUpstreamRunEndsWithItsContext(t *testing.T) {
	s := startScripted(t, func(string) string { return "+PONG\r\n" })
	up, _ := newTestUpstream(t, s.url(""))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- up.Run(ctx) }()
	redistest.Await(t, "it dials", func() bool { return s.dials.Load() > 0 })
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestNew(t *testing.T) {
	for url, want := range map[string]string{
		"redis://h":             "h:6379",
		"redis://h:1/2":         "h:1",
		"rediss://u:p@h:1":      "h:1",
		"unix:///tmp/redis.soc": "/tmp/redis.soc",
	} {
		up, err := New(url, 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		if name, _ := up.Status(); name != want || up.Timeout() != DefaultTimeout {
			t.Errorf("%s: %s, %v", url, name, up.Timeout())
		}
	}
	for _, url := range []string{"", "h:1", "http://h", "redis://h/x", "redis://h:port"} {
		if _, err := New(url, 0, nil); err == nil || !strings.HasPrefix(err.Error(), "upstream: ") {
			t.Errorf("%q: %v", url, err)
		}
	}
}

func TestPlainCause(t *testing.T) {
	refused := &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	for _, c := range []struct {
		err  error
		want string
	}{
		{refused, "connection refused"},
		{fmt.Errorf("x: %w", refused), "connection refused"},
		{os.NewSyscallError("read", syscall.ECONNRESET), "connection reset by peer"},
		{&net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}, "no answer in time"},
		{context.DeadlineExceeded, "no answer in time"},
		{&net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "h"}},
			"lookup h: no such host"},
		{&net.OpError{Op: "dial", Net: "unix", Err: os.NewSyscallError("connect", syscall.ENOENT)},
			"no such file or directory"},
		{io.EOF, "the upstream closed the connection"},
	} {
		if got := plainCause(c.err).Error(); got != c.want {
			t.Errorf("%v: %q, want %q", c.err, got, c.want)
		}
	}
}

// TestPublicCause checks that the errors for clients of a cluster's node contain neither a name nor
// an address of the node.
func TestPublicCause(t *testing.T) {
	up, err := NewNode("rediss://ignored", 0, slog.New(slog.DiscardHandler), func() {})
	if err != nil {
		t.Fatal(err)
	}
	up.MoveTo("0123456789", "node-1.internal:7000")
	certificate := &tls.CertificateVerificationError{Err: x509.HostnameError{Certificate: &x509.Certificate{}, Host: "10.1.1.1"}}
	for _, c := range []struct {
		err  error
		want string
	}{
		{&net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "node-1.internal"}}, "its name cannot be resolved"},
		{certificate, "its certificate is for a different name"},
		{io.EOF, "the upstream closed the connection"},
	} {
		if got, want := up.Failure(c.err).Error(), "upstream cluster node 01234567: "+c.want; got != want {
			t.Errorf("%v: %q, want %q", c.err, got, want)
		}
	}
}
