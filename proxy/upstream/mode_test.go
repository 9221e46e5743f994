package upstream

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
)

// Replies of servers about their mode.
const (
	standaloneHello = "*4\r\n$6\r\nserver\r\n$5\r\nredis\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n"
	clusterHello    = "*4\r\n$6\r\nserver\r\n$5\r\nredis\r\n$4\r\nmode\r\n$7\r\ncluster\r\n"
	noHello         = "-ERR unknown command 'HELLO'\r\n"
	clusterInfo     = "$33\r\n# Server\r\nredis_mode:cluster\r\nx:y\r\n\r\n"
	valkeyInfo      = "$34\r\n# Server\r\nserver_mode:cluster\r\nx:y\r\n\r\n"
)

func TestRedirects(t *testing.T) {
	for reply, want := range map[string]bool{standaloneHello: false, clusterHello: true, clusterInfo: true, valkeyInfo: true,
		"-NOPERM no\r\n": false} {
		if got := redirects(parseMode([]byte(reply))); got != want {
			t.Errorf("%q: %t", reply, got)
		}
	}
}

// startMode starts a server that answers HELLO and INFO with replies that can be changed.
func startMode(t *testing.T, hello, info string) (*scriptedServer, *atomic.Value) {
	var currentReplies atomic.Value
	currentReplies.Store([2]string{hello, info})
	return startScripted(t, func(command string) string {
		replies := currentReplies.Load().([2]string)
		switch strings.Fields(command)[0] {
		case "HELLO":
			return replies[0]
		case "INFO":
			return replies[1]
		case "ROLE":
			return masterRole
		case "PROXY":
			return "-ERR unknown command\r\n"
		}
		return "+PONG\r\n"
	}), &currentReplies
}

// TestClusterIsRefusedOnReconnect checks that a server that becomes a cluster node is refused by
// the next probe and by later connections. A former cluster node is used again.
func TestClusterIsRefusedOnReconnect(t *testing.T) {
	s, replies := startMode(t, standaloneHello, "")
	up, err := New("redis://"+s.ln.Addr().String(), testTimeout, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(up.Close)
	up.SetProxyID("id")
	up.RefuseClusters()
	probe := func(want error) {
		t.Helper()
		up.Probe(t.Context())
		if _, err := up.Status(); !errors.Is(err, want) {
			t.Errorf("probed: %v, want %v", err, want)
		}
		if conn, err := up.Connect(t.Context()); !errors.Is(err, want) {
			t.Errorf("connected: %v, want %v", err, want)
		} else if err == nil {
			conn.Close()
		}
	}
	probe(nil)
	for _, mode := range [][2]string{{clusterHello, ""}, {noHello, clusterInfo}, {"-NOAUTH x\r\n", valkeyInfo}} {
		replies.Store(mode)
		probe(ErrCluster)
	}
	replies.Store([2]string{noHello, "-NOPERM no\r\n"}) // the server does not report its mode
	up.mu.Lock()
	up.dialErr = nil
	up.mu.Unlock()
	probe(nil)
}

// TestClusterIsDetectedAfterALogin checks that a cluster that reports its mode only after a login
// is refused once RecordMode was called. It stays refused until it was down or reports another
// mode. The mode standalone changes nothing.
func TestClusterIsDetectedAfterALogin(t *testing.T) {
	const noAuth = "-NOAUTH x\r\n"
	s, replies := startMode(t, noAuth, noAuth)
	up, err := New("redis://"+s.ln.Addr().String(), testTimeout, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(up.Close)
	failovers := make(chan struct{}, 9)
	up.OnFailover(func() { failovers <- struct{}{} })
	up.SetProxyID("id")
	up.RefuseClusters()
	probe := func(want error) {
		t.Helper()
		up.mu.Lock()
		up.dialErr = nil
		up.mu.Unlock()
		up.Probe(t.Context())
		if _, err := up.Status(); !errors.Is(err, want) {
			t.Errorf("probed: %v, want %v", err, want)
		}
	}
	probe(nil)
	up.RecordMode([]byte("-NOAUTH x\r\n"))
	if probe(nil); !up.ModeUnknown() {
		t.Error("it is taken to have said it")
	}
	up.RecordMode([]byte(standaloneHello))
	if up.ModeUnknown() || up.Term() != 0 {
		t.Errorf("it hides %t, term %d", up.ModeUnknown(), up.Term())
	}
	probe(nil) // the server still does not report its mode to probes
	up.RecordMode([]byte(clusterHello))
	up.RecordMode([]byte(clusterHello))
	probe(ErrCluster)
	probe(ErrCluster)
	if up.Term() != 1 || !errors.Is(up.DisconnectCause(), ErrCluster) {
		t.Errorf("term %d, left for %v", up.Term(), up.DisconnectCause())
	}
	running, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { _ = up.Run(running); close(ended) }()
	<-failovers
	stop()
	<-ended
	replies.Store([2]string{standaloneHello, ""})
	probe(nil)
	if up.ModeUnknown() || !errors.Is(up.DisconnectCause(), ErrFailedOver) {
		t.Error("it is still taken for a cluster")
	}
}

// TestClusterIsRefusedOnFailover checks that a failover to a cluster node is refused with the first
// connection.
func TestClusterIsRefusedOnFailover(t *testing.T) {
	old, _ := startMode(t, standaloneHello, "")
	next, _ := startMode(t, clusterHello, "")
	s, replies := startSentinel(t, sentinelAnswers(old.ln.Addr().String(), 1))
	up, _ := newSentinelUpstream(t, "", s)
	up.SetProxyID("id")
	up.RefuseClusters()
	conn, err := up.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	replies.Store(sentinelAnswers(next.ln.Addr().String(), 2))
	if _, err := up.findMaster(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := up.Connect(t.Context()); !errors.Is(err, ErrCluster) {
		t.Errorf("connected: %v", err)
	}
}
