package proxy_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"redlock-proxy/commands"
	"redlock-proxy/proxy"
	"redlock-proxy/quorum"
	"redlock-proxy/quorum/location"
)

// startBeforeMove starts a proxy with lock keys whose location is at.
func startBeforeMove(t *testing.T, upstreamURL string, at proxy.LockLocation) *testProxy {
	t.Helper()
	table := commands.NewRelayTable(commands.Options{Locks: memoryLocker{newMemoryLocks()},
		Settings: commands.Settings{MaxTTL: time.Hour}})
	return startProxyWith(t, upstreamURL, proxy.Options{UpstreamTable: table, LockLocation: at}, []string{"lock:*"})
}

// upstreamLocation implements LockLocation for locks that stay at the upstream.
type upstreamLocation struct{}

func (upstreamLocation) CurrentLocation() (quorum.Location, bool) {
	return quorum.Location{Place: location.Upstream}, true
}
func (upstreamLocation) IsLeavingMasters() bool           { return false }
func (upstreamLocation) LocationChanged() <-chan struct{} { return nil }
func (u upstreamLocation) AwaitLocation(context.Context) (quorum.Location, error) {
	at, _ := u.CurrentLocation()
	return at, nil
}
func (u upstreamLocation) Confirm(context.Context) (quorum.Location, error) {
	at, _ := u.CurrentLocation()
	return at, nil
}
func (upstreamLocation) ReportPaused(context.Context, int, quorum.PauseReport) error { return nil }

// movingLocation implements LockLocation for locks at the upstream, which move once moveBegan is
// closed. ReportPaused sends its reports to reports.
type movingLocation struct {
	upstreamLocation
	moveBegan chan struct{}
	reports   chan quorum.PauseReport
}

func (m movingLocation) CurrentLocation() (quorum.Location, bool) {
	select {
	case <-m.moveBegan:
		return quorum.Location{Place: location.MovingToMasters, Era: 1}, true
	default:
		return m.upstreamLocation.CurrentLocation()
	}
}
func (m movingLocation) LocationChanged() <-chan struct{} {
	if at, _ := m.CurrentLocation(); at.Moves() {
		return nil // no further notification
	}
	return m.moveBegan
}
func (m movingLocation) ReportPaused(_ context.Context, _ int, report quorum.PauseReport) error {
	m.reports <- report
	return nil
}

// pausedLocation implements LockLocation for locks that move until moveEnded is closed, and then
// are at the upstream.
type pausedLocation struct {
	upstreamLocation
	moveEnded chan struct{}
}

func (p pausedLocation) CurrentLocation() (quorum.Location, bool) {
	select {
	case <-p.moveEnded:
		return p.upstreamLocation.CurrentLocation()
	default:
		return quorum.Location{Place: location.MovingToMasters, Era: 1}, true
	}
}

func (p pausedLocation) AwaitLocation(ctx context.Context) (quorum.Location, error) {
	select {
	case <-p.moveEnded:
		return p.upstreamLocation.AwaitLocation(ctx)
	case <-ctx.Done():
		return quorum.Location{}, context.Cause(ctx)
	}
}

// TestClientsDisconnectDuringMove checks that the proxy drops a paused command if its client
// half-closes, and runs the command if its client waits.
func TestClientsDisconnectDuringMove(t *testing.T) {
	server := startRedis(t)
	location := pausedLocation{moveEnded: make(chan struct{})}
	proxied := startBeforeMove(t, server.URL(), location)
	halfClosed, waiting := proxied.connect(), proxied.connect()
	halfClosed.send(cmd("GET data") + cmd("SET lock:a left"))
	waiting.send(cmd("SET lock:b stayed"))
	halfClosed.expect("$-1\r\n")
	if err := halfClosed.conn.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan string, 1)
	go func() { ended <- halfClosed.readAll() }()
	select {
	case rest := <-ended:
		ended <- rest
	case <-time.After(2 * time.Second): // the client still waits
	}
	close(location.moveEnded)
	if rest := <-ended; rest != "" {
		t.Errorf("a client that sends no more gets %q", rest)
	}
	waiting.expect("+OK\r\n")
	waiting.check("GET lock:a", "$-1\r\n")
}

// TestIdleConnectionsStayIdle checks that the proxy never reports a connection as busy after it has
// reported the connection as idle. Otherwise PROXY MOVE would end that connection.
func TestIdleConnectionsStayIdle(t *testing.T) {
	server := startRedis(t)
	location := movingLocation{moveBegan: make(chan struct{}), reports: make(chan quorum.PauseReport, 1000)}
	proxied := startBeforeMove(t, server.URL(), location)
	blocks, queues, late := proxied.connect(), proxied.connect(), proxied.connect()
	for _, p := range []*peer{blocks, queues} {
		p.check("SET lock:a 1", "+OK\r\n")
		p.check("MULTI", "+OK\r\n")
	}
	blocks.check("DISCARD", "+OK\r\n")
	close(location.moveBegan)
	first := <-location.reports
	if len(first.BusyConns) > 0 || len(first.IdleConns) < 2 {
		t.Fatalf("at first: %+v, want both connections at rest", first)
	}
	queues.check("GET data", "+QUEUED\r\n")
	blocks.send(cmd("BLPOP list 0"))
	late.check("GET data", "$-1\r\n") // makes another connection, so that there is a new report
	for report := first; len(report.IdleConns)+len(report.BusyConns) <= len(first.IdleConns); {
		if report = <-location.reports; len(report.BusyConns) > 0 {
			t.Fatalf("then: %+v, and at first %+v", report, first)
		}
	}
	late.check("RPUSH list x", ":1\r\n")
	blocks.expect("*2\r\n$4\r\nlist\r\n$1\r\nx\r\n")
	queues.check("EXEC", "*1\r\n$-1\r\n")
}

// TestUnmatchedRepliesKeepAConnectionBusy checks that a connection with a command on a lock key is
// never reported as idle if the proxy cannot match its replies, because the command may still run.
func TestUnmatchedRepliesKeepAConnectionBusy(t *testing.T) {
	server := startRedis(t)
	location := movingLocation{moveBegan: make(chan struct{}), reports: make(chan quorum.PauseReport, 1000)}
	p := startBeforeMove(t, server.URL(), location).connect()
	p.send(lines("CLIENT REPLY SKIP", "MULTI", "DISCARD"))
	p.expect("+OK\r\n")
	p.send(cmd("BLPOP lock:list 0"))
	other := dial(t, server.Addr())
	eventually(t, "a blocked client", func() bool { return strings.Contains(other.ask("INFO clients"), "blocked_clients:1") })
	close(location.moveBegan)
	if report := <-location.reports; len(report.IdleConns) > 0 {
		t.Errorf("a connection with a blocked command is reported as idle: %+v", report)
	}
}

// TestLongCommandsOnLockKeysBeforeTheMove checks that commands on lock keys may have any length
// while the locks are at the upstream.
func TestLongCommandsOnLockKeysBeforeTheMove(t *testing.T) {
	server := startRedis(t)
	p := startBeforeMove(t, server.URL(), upstreamLocation{}).connect()
	p.check("SET lock:a 1", "+OK\r\n")
	mega := strings.Repeat("v", 1<<20)
	p.send(array("SET", "lock:a", mega) + cmd("STRLEN lock:a") + array("MSET", "lock:a", mega, "lock:b", mega) +
		array("EVAL", "return #ARGV[1]", "1", "lock:a", mega) + cmd("PING"))
	p.expect("+OK\r\n:1048576\r\n+OK\r\n:1048576\r\n+PONG\r\n")
}
