package proxy

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/tidwall/redcon"

	"redlock-proxy/internal/logtest"
)

// TestRedconReadsOnlyTrigger checks that redcon's parser reads only a PING from the proxy.
func TestRedconReadsOnlyTrigger(t *testing.T) {
	clientEnd, serverEnd := net.Pipe()
	defer clientEnd.Close()
	defer serverEnd.Close()
	go func() { _, _ = clientEnd.Write([]byte("*1\r\n$9223372036854775807\r\n")) }()
	guarded := &triggerConn{Conn: serverEnd}
	cmd, err := redcon.NewReader(guarded).ReadCommand()
	if err != nil || len(cmd.Args) != 1 || string(cmd.Args[0]) != "PING" {
		t.Errorf("redcon reads %q, %v", cmd.Raw, err)
	}
	if n, err := guarded.Read(make([]byte, 100)); n != 0 || !errors.Is(err, net.ErrClosed) {
		t.Errorf("after the trigger: %d bytes, %v", n, err)
	}
	got := make([]byte, 4)
	if _, err := io.ReadFull(guarded.Conn, got); string(got) != "*1\r\n" {
		t.Errorf("the client's bytes begin with %q, %v", got, err)
	}
}

// TestTriggerInPieces checks that redcon may read redconTrigger in pieces.
func TestTriggerInPieces(t *testing.T) {
	guarded, got := &triggerConn{}, ""
	for len(got) < len(redconTrigger) {
		p := make([]byte, 3)
		n, err := guarded.Read(p)
		if n == 0 || err != nil {
			t.Fatalf("%q, then %d bytes, %v", got, n, err)
		}
		got += string(p[:n])
	}
	if got != redconTrigger {
		t.Errorf("trigger %q", got)
	}
}

// refusingListener fails in its first calls of Accept, as if the process had no free file
// descriptor.
type refusingListener struct {
	net.Listener
	refusals atomic.Int32
}

func (l *refusingListener) Accept() (net.Conn, error) {
	if l.refusals.Add(-1) >= 0 {
		return nil, &net.OpError{Op: "accept", Err: syscall.EMFILE}
	}
	return l.Listener.Accept()
}

// TestServerSurvivesAcceptErrors checks that a server without free file descriptors logs the
// failure, and accepts clients later.
func TestServerSurvivesAcceptErrors(t *testing.T) {
	b := startTestServer(t, serverOptions{locks: &scriptedLocks{}, listen: func(inner net.Listener) net.Listener {
		l := &refusingListener{Listener: inner}
		l.refusals.Store(3)
		return l
	}})
	b.connect().check("PING\r\n", pong)
	if n := strings.Count(b.log.String(), "cannot accept a client"); n != 1 {
		t.Errorf("%d times in the log: %s", n, b.log)
	}
	if n := b.server.AcceptErrors(); n != 3 {
		t.Errorf("%d are counted", n)
	}
}

// TestAcceptErrorsAreLoggedOnceAndCounted checks that continued failures are logged once a minute,
// with their number since the last entry.
func TestAcceptErrorsAreLoggedOnceAndCounted(t *testing.T) {
	log := &logtest.Buffer{}
	errs := acceptErrors{log: slog.New(slog.NewTextHandler(log, nil))}
	start := time.UnixMilli(0)
	for i := range 20 * 61 { // twenty a second
		errs.report(syscall.EMFILE, start.Add(time.Duration(i)*50*time.Millisecond))
	}
	text := log.String()
	if strings.Count(text, "\n") != 2 || !strings.Contains(text, "failures=1\n") ||
		!strings.Contains(text, "failures=1200\n") {
		t.Error(text)
	}
}
