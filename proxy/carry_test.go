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

// placesAtUpstream is a LockLocation whose locks are and stay at the upstream.
type placesAtUpstream struct{}

func (placesAtUpstream) CurrentLocation() (quorum.Location, bool) {
	return quorum.Location{Place: location.Upstream}, true
}
func (placesAtUpstream) IsLeavingMasters() bool   { return false }
func (placesAtUpstream) Changed() <-chan struct{} { return nil }
func (u placesAtUpstream) AwaitLocation(context.Context) (quorum.Location, error) {
	at, _ := u.CurrentLocation()
	return at, nil
}
func (u placesAtUpstream) Confirm(context.Context) (quorum.Location, error) {
	at, _ := u.CurrentLocation()
	return at, nil
}
func (placesAtUpstream) ReportPaused(context.Context, int, quorum.PauseReport) error { return nil }

// placesMoving is a LockLocation whose locks are at the upstream, and move once began is closed. It
// sends the reports of paused commands to held.
type placesMoving struct {
	placesAtUpstream
	began chan struct{}
	held  chan quorum.PauseReport
}

func (m placesMoving) CurrentLocation() (quorum.Location, bool) {
	select {
	case <-m.began:
		return quorum.Location{Place: location.ToMasters, Era: 1}, true
	default:
		return m.placesAtUpstream.CurrentLocation()
	}
}
func (m placesMoving) Changed() <-chan struct{} {
	if at, _ := m.CurrentLocation(); at.Moves() {
		return nil // there is no further notification
	}
	return m.began
}
func (m placesMoving) ReportPaused(_ context.Context, _ int, held quorum.PauseReport) error {
	m.held <- held
	return nil
}

// placesPaused is a LockLocation whose locks move until over is closed, and remain at the upstream.
type placesPaused struct {
	placesAtUpstream
	over chan struct{}
}

func (p placesPaused) CurrentLocation() (quorum.Location, bool) {
	select {
	case <-p.over:
		return p.placesAtUpstream.CurrentLocation()
	default:
		return quorum.Location{Place: location.ToMasters, Era: 1}, true
	}
}

func (p placesPaused) AwaitLocation(ctx context.Context) (quorum.Location, error) {
	select {
	case <-p.over:
		return p.placesAtUpstream.AwaitLocation(ctx)
	case <-ctx.Done():
		return quorum.Location{}, context.Cause(ctx)
	}
}

// TestClientsThatGiveUpDuringTheMove: a paused command is dropped if its client sends no more, and
// runs if its client waits.
func TestClientsThatGiveUpDuringTheMove(t *testing.T) {
	server := startRedis(t)
	before := commands.NewRelayTable(commands.Options{Locks: memoryLocker{newMemoryLocks()},
		Settings: commands.Settings{MaxTTL: time.Hour}})
	places := placesPaused{over: make(chan struct{})}
	proxied := startProxyWith(t, server.URL(), proxy.Options{Unmoved: before, LockLocation: places}, []string{"lock:*"})
	leaves, stays := proxied.connect(), proxied.connect()
	leaves.send(cmd("GET data") + cmd("SET lock:a left"))
	stays.send(cmd("SET lock:b stayed"))
	leaves.expect("$-1\r\n")
	if err := leaves.conn.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan string, 1)
	go func() { ended <- leaves.all() }()
	select {
	case rest := <-ended:
		ended <- rest
	case <-time.After(2 * time.Second): // the client is kept waiting
	}
	close(places.over)
	if rest := <-ended; rest != "" {
		t.Errorf("a client that sends no more gets %q", rest)
	}
	stays.expect("+OK\r\n")
	stays.say("GET lock:a", "$-1\r\n")
}

// TestConnectionsStayAtRest: a connection that was reported to be at rest stays so, whatever its
// client does on it. Otherwise the mover would end it.
func TestConnectionsStayAtRest(t *testing.T) {
	server := startRedis(t)
	before := commands.NewRelayTable(commands.Options{Locks: memoryLocker{newMemoryLocks()},
		Settings: commands.Settings{MaxTTL: time.Hour}})
	places := placesMoving{began: make(chan struct{}), held: make(chan quorum.PauseReport, 1000)}
	proxied := startProxyWith(t, server.URL(), proxy.Options{Unmoved: before, LockLocation: places}, []string{"lock:*"})
	waits, queues, late := proxied.connect(), proxied.connect(), proxied.connect()
	for _, p := range []*peer{waits, queues} {
		p.say("SET lock:a 1", "+OK\r\n")
		p.say("MULTI", "+OK\r\n")
	}
	waits.say("DISCARD", "+OK\r\n")
	close(places.began)
	first := <-places.held
	if len(first.BusyConns) > 0 || len(first.IdleConns) < 2 {
		t.Fatalf("at first: %+v, want both connections at rest", first)
	}
	queues.say("GET data", "+QUEUED\r\n")
	waits.send(cmd("BLPOP list 0"))
	late.say("GET data", "$-1\r\n") // makes another connection, so that there is a new report
	for said := first; len(said.IdleConns)+len(said.BusyConns) <= len(first.IdleConns); {
		if said = <-places.held; len(said.BusyConns) > 0 {
			t.Fatalf("then: %+v, and at first %+v", said, first)
		}
	}
	late.say("RPUSH list x", ":1\r\n")
	waits.expect("*2\r\n$4\r\nlist\r\n$1\r\nx\r\n")
	queues.say("EXEC", "*1\r\n$-1\r\n")
}

// TestLongCommandsOnLockKeysBeforeTheMove: while the locks are at the upstream, commands on lock
// keys may have any length.
func TestLongCommandsOnLockKeysBeforeTheMove(t *testing.T) {
	server := startRedis(t)
	locks := newMemoryLocks()
	before := commands.NewRelayTable(commands.Options{Locks: memoryLocker{locks},
		Settings: commands.Settings{MaxTTL: time.Hour}})
	p := startProxyWith(t, server.URL(), proxy.Options{Unmoved: before, LockLocation: placesAtUpstream{}},
		[]string{"lock:*"}).connect()
	p.say("SET lock:a 1", "+OK\r\n")
	mega := strings.Repeat("v", 1<<20)
	p.send(array("SET", "lock:a", mega) + cmd("STRLEN lock:a") + array("MSET", "lock:a", mega, "lock:b", mega) +
		array("EVAL", "return #ARGV[1]", "1", "lock:a", mega) + cmd("PING"))
	p.expect("+OK\r\n:1048576\r\n+OK\r\n:1048576\r\n+PONG\r\n")
}
