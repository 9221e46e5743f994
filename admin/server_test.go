package admin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// replyTimeout limits the wait of a test for a response.
const replyTimeout = 30 * time.Second

// startServer runs a server with these checks until the test ends.
func startServer(t *testing.T, profiles bool, checks ...Check) (addr string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := New(Options{
		Ready: func() []Check { return checks }, Profiles: profiles,
		Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "metric 1\n")
		}),
		Page: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, "page "+r.URL.Path+"\n")
		}),
	})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx, ln) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		http.DefaultClient.CloseIdleConnections()
	})
	return ln.Addr().String()
}

// sendRequest sends one request.
func sendRequest(t *testing.T, method, url string) (code int, body string) {
	t.Helper()
	request, err := http.NewRequest(method, url, strings.NewReader(""))
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

func TestPages(t *testing.T) {
	healthy := startServer(t, false, Check{Name: "clients", Text: "served"}, Check{Name: "locks", FormerName: "masters",
		Text: "3 of 3 vote"})
	degraded := startServer(t, true,
		Check{Name: "clients", Text: "served"},
		Check{Name: "upstream", State: Degraded, Text: "down\r\n[+]upstream: up\x1b[2J"},
	)
	failed := startServer(t, false,
		Check{Name: "locks", FormerName: "masters", State: Failed, Text: "1 of 3 vote"},
		Check{Name: "upstream", State: Degraded, Text: "down"},
	)
	for _, c := range []struct {
		addr, method, path string
		code               int
		body               string
	}{
		{healthy, "GET", "/livez", 200, "ok\n"},
		{failed, "GET", "/livez", 200, "ok\n"},
		{healthy, "HEAD", "/livez", 200, ""},
		{healthy, "GET", "/readyz", 200, "[+]clients: served\n[+]locks: 3 of 3 vote\nready\n"},
		{degraded, "GET", "/readyz", 200,
			"[+]clients: served\n[!]upstream: down  [+]upstream: up [2J\nready, but degraded\n"},
		{failed, "GET", "/readyz", 503, "[-]locks: 1 of 3 vote\n[!]upstream: down\nnot ready\n"},
		{failed, "HEAD", "/readyz", 503, ""},
		{failed, "GET", "/readyz?exclude=locks", 200, "[!]upstream: down\nready, but degraded\n"},
		{failed, "GET", "/readyz?exclude=masters", 200, "[!]upstream: down\nready, but degraded\n"},
		{failed, "GET", "/readyz?exclude=", 400, "exclude: unknown check; /readyz lists the checks\n"},
		{failed, "GET", "/readyz?exclude=masters&exclude=upstream", 200, "ready\n"},
		{failed, "GET", "/readyz?exclude=quorum", 400, "exclude: unknown check; /readyz lists the checks\n"},
		{healthy, "GET", "/metrics", 200, "metric 1\n"},
		{healthy, "POST", "/metrics", 405, "Method Not Allowed\n"},
		{healthy, "POST", "/readyz", 405, "Method Not Allowed\n"},
		{healthy, "DELETE", "/livez", 405, "Method Not Allowed\n"},
		{healthy, "GET", "/", 200, "page /\n"},
		{healthy, "GET", "/status/v1", 200, "page /status/v1\n"},
		{healthy, "POST", "/status/v1", 405, "Method Not Allowed\n"},
		{healthy, "POST", "/", 405, "Method Not Allowed\n"},
		{healthy, "GET", "/x", 404, "404 page not found\n"},
		{healthy, "GET", "/livez/x", 404, "404 page not found\n"},
		{healthy, "GET", "/debug/pprof/", 404, "404 page not found\n"},
		{healthy, "GET", "/debug/pprof/heap", 404, "404 page not found\n"},
		{degraded, "HEAD", "/debug/pprof/", 200, ""},
		{degraded, "HEAD", "/debug/pprof/heap", 200, ""},
		{degraded, "GET", "/debug/pprof/cmdline", 404, "Unknown profile\n"}, // may show passwords
		{degraded, "POST", "/debug/pprof/symbol", 405, "Method Not Allowed\n"},
	} {
		if code, body := sendRequest(t, c.method, "http://"+c.addr+c.path); code != c.code || body != c.body {
			t.Errorf("%s %s: got %d, %q, want %d, %q", c.method, c.path, code, body, c.code, c.body)
		}
	}
}

// TestSlowSenders checks that a new request gets its response while any number of
// connections send nothing or send slowly. The server closes the oldest of these connections.
func TestSlowSenders(t *testing.T) {
	addr := startServer(t, false)
	var slowConns []net.Conn
	for range 3 * MaxConns {
		conn := dial(t, addr)
		if _, err := io.WriteString(conn, "GET /livez HTTP/1.1\r\nHost: "); err != nil {
			t.Fatal(err)
		}
		slowConns = append(slowConns, conn)
		if err := requestLive(dial(t, addr)); err != nil {
			t.Fatalf("next to %d slow connections: %v", len(slowConns), err)
		}
	}
	if n, err := slowConns[0].Read(make([]byte, 1)); n != 0 || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the oldest: got %d bytes, %v, want the end", n, err)
	}
	last := slowConns[len(slowConns)-1]
	if _, err := io.WriteString(last, "proxy\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if n, err := last.Read(make([]byte, 100)); n == 0 {
		t.Errorf("the newest: %v", err)
	}
}

func dial(t *testing.T, addr string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.SetDeadline(time.Now().Add(replyTimeout))
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// requestLive requests /livez on a connection and keeps it open.
func requestLive(conn net.Conn) error {
	if _, err := io.WriteString(conn, "GET /livez HTTP/1.1\r\nHost: proxy\r\n\r\n"); err != nil {
		return err
	}
	var answer [4096]byte
	n, err := conn.Read(answer[:])
	if err == nil && !strings.HasPrefix(string(answer[:n]), "HTTP/1.1 200 OK\r\n") {
		err = fmt.Errorf("got %q", answer[:n])
	}
	return err
}

// TestMalformedRequest checks that a malformed request, or a request with a header that is too
// long, closes only its own connection.
func TestMalformedRequest(t *testing.T) {
	addr := startServer(t, false)
	healthy := dial(t, addr)
	for text, want := range map[string]string{
		"*1\r\n$4\r\nPING\r\n": "HTTP/1.1 400 Bad Request\r\n",
		"GET /livez HTTP/1.1\r\nHost: proxy\r\nX: " + strings.Repeat("x",
			64<<10) + "\r\n\r\n": "HTTP/1.1 431 Request Header Fields Too Large\r\n",
	} {
		conn := dial(t, addr)
		go func() { _, _ = io.WriteString(conn, text) }()
		var answer [4096]byte
		n, _ := conn.Read(answer[:])
		if !strings.HasPrefix(string(answer[:n]), want) {
			t.Errorf("got %q, want %q", answer[:n], want)
		}
	}
	if err := requestLive(healthy); err != nil {
		t.Error(err)
	}
}

// TestListenerFailure checks that Run returns the error of its listener.
func TestListenerFailure(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = ln.Close()
	s := New(Options{Metrics: http.NotFoundHandler(), Page: http.NotFoundHandler()})
	if err := s.Run(context.Background(), ln); !errors.Is(err, net.ErrClosed) {
		t.Errorf("got %v", err)
	}
}
