package proxy

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// scripted is an upstream that answers each command with what answer says; "" is no
// answer, and the end.
type scripted struct {
	ln    net.Listener
	dials atomic.Int64

	mu   sync.Mutex
	seen []string
}

func startScripted(t *testing.T, answer func(command string) string) *scripted {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &scripted{ln: ln}
	var runs sync.WaitGroup
	t.Cleanup(func() { ln.Close(); runs.Wait() })
	runs.Go(func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			s.dials.Add(1)
			runs.Go(func() { s.serve(conn, answer) })
		}
	})
	return s
}

func (s *scripted) serve(conn net.Conn, answer func(string) string) {
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	in := bufio.NewReader(conn)
	for {
		command, err := readCommand(in)
		if err != nil {
			return
		}
		s.mu.Lock()
		s.seen = append(s.seen, command)
		s.mu.Unlock()
		reply := answer(command)
		if reply == "" {
			return
		}
		for i := range reply { // byte by byte, to be read in pieces
			_, _ = io.WriteString(conn, reply[i:i+1])
		}
	}
}

// readCommand reads an array of bulks as words separated by blanks.
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

func (s *scripted) url(user string) string { return "redis://" + user + s.ln.Addr().String() }

func newTestUpstream(t *testing.T, url string) (*Upstream, *logBuffer) {
	t.Helper()
	log := &logBuffer{}
	up, err := NewUpstream(url, time.Second, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	return up, log
}

func TestUpstreamGreeting(t *testing.T) {
	for _, c := range []struct {
		user, path string
		answers    map[string]string
		want, seen string
	}{
		{"", "", nil, "", ""},
		{":pw@", "", nil, "", "AUTH pw"},
		{"joe:p%20w@", "/3", nil, "", "AUTH joe p w, SELECT 3"},
		{"", "/3", nil, "", "SELECT 3"},
		{":pw@", "/3", map[string]string{"AUTH pw": "-WRONGPASS no\r\n"}, "AUTH: WRONGPASS no", "AUTH pw"},
		{":pw@", "/3", map[string]string{"SELECT 3": "-ERR DB index is out of range\r\n"}, "SELECT: ERR DB index is out of range", "AUTH pw, SELECT 3"},
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
		conn, err := up.connect(t.Context())
		if err == nil {
			conn.Close()
		}
		want := "upstream " + s.ln.Addr().String() + ": " + c.want
		if c.want == "" && err != nil || c.want != "" && (err == nil || err.Error() != want) {
			t.Errorf("%s%s: got %v, want %q", c.user, c.path, err, want)
		}
		s.mu.Lock()
		if got := strings.Join(s.seen, ", "); got != c.seen {
			t.Errorf("%s%s: the upstream got %q, want %q", c.user, c.path, got, c.seen)
		}
		s.mu.Unlock()
	}
}

// A dial that failed is not tried again at once, by whomever.
func TestUpstreamRemembersARefusal(t *testing.T) {
	s := startScripted(t, func(string) string { return "-WRONGPASS no\r\n" })
	up, _ := newTestUpstream(t, s.url(":pw@"))
	var all sync.WaitGroup
	first := make(chan error, 200)
	for range cap(first) {
		all.Go(func() {
			_, err := up.connect(t.Context())
			first <- err
		})
	}
	all.Wait()
	for range cap(first) {
		var failed *upstreamError
		if err := <-first; !errors.As(err, &failed) || failed.reply() != "ERR upstream "+s.ln.Addr().String()+": AUTH: WRONGPASS no" {
			t.Fatal(err)
		}
	}
	if n := s.dials.Load(); n > 2*maxDials {
		t.Errorf("%d dials for %d clients", n, cap(first))
	}
	before := s.dials.Load()
	time.Sleep(2 * dialPause)
	if _, err := up.connect(t.Context()); err == nil || s.dials.Load() == before {
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
	if _, err := up.connect(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

func TestUpstreamThatHangsAtTheGreeting(t *testing.T) {
	hang := make(chan struct{})
	s := startScripted(t, func(string) string { <-hang; return "" })
	defer close(hang)
	up, err := NewUpstream(s.url(":pw@"), 50*time.Millisecond, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := up.connect(t.Context()); err == nil || !strings.HasSuffix(err.Error(), ": no answer in time") {
		t.Error(err)
	}
}

// The probe learns whether the upstream is up and what it demands, and says so once.
func TestUpstreamProbe(t *testing.T) {
	var answer atomic.Value
	s := startScripted(t, func(string) string { return answer.Load().(string) })
	up, log := newTestUpstream(t, s.url(""))
	for i, c := range []struct {
		answer, status string
		demands        bool
		logged         string
	}{
		{"+PONG\r\n", "", false, "upstream up"},
		{"+PONG\r\n", "", false, ""},
		{"-NOAUTH Authentication required.\r\n", "", true, ""},
		{"", "EOF", true, "upstream down"}, // it demands what it did
		{"", "EOF", true, ""},
		{"-LOADING x\r\n", "", false, "upstream up"},
	} {
		answer.Store(c.answer)
		before := len(log.String())
		up.Probe(t.Context())
		_, err := up.Status()
		if status := fmt.Sprint(err); err == nil && c.status != "" || err != nil && status != c.status {
			t.Errorf("%d: %v", i, err)
		}
		if up.demandsLogin() != c.demands {
			t.Errorf("%d: demands a login: %v", i, up.demandsLogin())
		}
		if got := log.String()[before:]; strings.Contains(got, "msg=") != (c.logged != "") || !strings.Contains(got, c.logged) {
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

func TestUpstreamRunEndsWithItsContext(t *testing.T) {
	s := startScripted(t, func(string) string { return "+PONG\r\n" })
	up, _ := newTestUpstream(t, s.url(""))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- up.Run(ctx) }()
	for s.dials.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestNewUpstream(t *testing.T) {
	for url, want := range map[string]string{
		"redis://h":             "h:6379",
		"redis://h:1/2":         "h:1",
		"rediss://u:p@h:1":      "h:1",
		"unix:///tmp/redis.soc": "/tmp/redis.soc",
	} {
		up, err := NewUpstream(url, 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		if name, _ := up.Status(); name != want || up.options.DialTimeout != DefaultUpstreamTimeout {
			t.Errorf("%s: %s, %v", url, name, up.options.DialTimeout)
		}
	}
	for _, url := range []string{"", "h:1", "http://h", "redis://h/x", "redis://h:port"} {
		if _, err := NewUpstream(url, 0, nil); err == nil || !strings.HasPrefix(err.Error(), "upstream: ") {
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
		{&net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "h"}}, "lookup h: no such host"},
		{&net.OpError{Op: "dial", Net: "unix", Err: os.NewSyscallError("connect", syscall.ENOENT)}, "no such file or directory"},
		{io.EOF, "the upstream closed the connection"},
	} {
		if got := plainCause(c.err).Error(); got != c.want {
			t.Errorf("%v: %q, want %q", c.err, got, c.want)
		}
	}
}
