package proxy_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"redlock-proxy/commands"
	"redlock-proxy/proxy"
	"redlock-proxy/quorum"
	"redlock-proxy/quorum/place"
)

// unmoved says that the locks are at the upstream, and stay there.
type unmoved struct{}

func (unmoved) Placed() (quorum.Placed, bool)                    { return quorum.Placed{Place: place.Upstream}, true }
func (unmoved) Departing() bool                                  { return false }
func (unmoved) Turned() <-chan struct{}                          { return nil }
func (u unmoved) Resting(context.Context) (quorum.Placed, error) { at, _ := u.Placed(); return at, nil }
func (u unmoved) Confirm(context.Context) (quorum.Placed, error) { at, _ := u.Placed(); return at, nil }
func (unmoved) SayHeld(context.Context, int, quorum.Held) error  { return nil }

// moving says that the locks are at the upstream, and being moved once began is closed. held gets
// what is said to be held back.
type moving struct {
	unmoved
	began chan struct{}
	held  chan quorum.Held
}

func (m moving) Placed() (quorum.Placed, bool) {
	select {
	case <-m.began:
		return quorum.Placed{Place: place.ToMasters, Era: 1}, true
	default:
		return m.unmoved.Placed()
	}
}
func (m moving) Turned() <-chan struct{} {
	if at, _ := m.Placed(); at.Moves() {
		return nil // it does not turn again
	}
	return m.began
}
func (m moving) SayHeld(_ context.Context, _ int, held quorum.Held) error {
	m.held <- held
	return nil
}

// paused says that the locks are being moved until it is closed, and then that they have stayed at
// the upstream.
type paused struct {
	unmoved
	over chan struct{}
}

func (p paused) Placed() (quorum.Placed, bool) {
	select {
	case <-p.over:
		return p.unmoved.Placed()
	default:
		return quorum.Placed{Place: place.ToMasters, Era: 1}, true
	}
}

func (p paused) Resting(ctx context.Context) (quorum.Placed, error) {
	select {
	case <-p.over:
		return p.unmoved.Resting(ctx)
	case <-ctx.Done():
		return quorum.Placed{}, context.Cause(ctx)
	}
}

// A command that is held back is dropped if its client sends no more, and carried out if it waits.
func TestClientsThatGiveUpDuringTheMove(t *testing.T) {
	server := startRedis(t)
	before := commands.NewRelayTable(commands.Options{Locks: memoryLocker{newMemoryLocks()}, Settings: commands.Settings{MaxTTL: time.Hour}})
	places := paused{over: make(chan struct{})}
	proxied := startProxyWith(t, server.URL(), proxy.Options{Unmoved: before, Places: places}, []string{"lock:*"})
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
	case <-time.After(2 * time.Second): // it is kept waiting
	}
	close(places.over)
	if rest := <-ended; rest != "" {
		t.Errorf("who sends no more is answered %q", rest)
	}
	stays.expect("+OK\r\n")
	stays.say("GET lock:a", "$-1\r\n")
}

// A connection that was said to be at rest is not said to be restless for what else its client does
// there: else it would be ended.
func TestConnectionsStayAtRest(t *testing.T) {
	server := startRedis(t)
	before := commands.NewRelayTable(commands.Options{Locks: memoryLocker{newMemoryLocks()}, Settings: commands.Settings{MaxTTL: time.Hour}})
	places := moving{began: make(chan struct{}), held: make(chan quorum.Held, 1000)}
	proxied := startProxyWith(t, server.URL(), proxy.Options{Unmoved: before, Places: places}, []string{"lock:*"})
	waits, queues, late := proxied.connect(), proxied.connect(), proxied.connect()
	for _, p := range []*peer{waits, queues} {
		p.say("SET lock:a 1", "+OK\r\n")
		p.say("MULTI", "+OK\r\n")
	}
	waits.say("DISCARD", "+OK\r\n")
	close(places.began)
	first := <-places.held
	if len(first.Restless) > 0 || len(first.Resting) < 2 {
		t.Fatalf("at first: %+v, want both connections at rest", first)
	}
	queues.say("GET data", "+QUEUED\r\n")
	waits.send(cmd("BLPOP list 0"))
	late.say("GET data", "$-1\r\n") // which makes another connection, so that it is said anew
	for said := first; len(said.Resting)+len(said.Restless) <= len(first.Resting); {
		if said = <-places.held; len(said.Restless) > 0 {
			t.Fatalf("then: %+v, and at first %+v", said, first)
		}
	}
	late.say("RPUSH list x", ":1\r\n")
	waits.expect("*2\r\n$4\r\nlist\r\n$1\r\nx\r\n")
	queues.say("EXEC", "*1\r\n$-1\r\n")
}

// While the locks are at the upstream, commands on lock keys may be as long as any.
func TestLongCommandsOnLockKeysBeforeTheMove(t *testing.T) {
	server := startRedis(t)
	locks := newMemoryLocks()
	before := commands.NewRelayTable(commands.Options{Locks: memoryLocker{locks}, Settings: commands.Settings{MaxTTL: time.Hour}})
	p := startProxyWith(t, server.URL(), proxy.Options{Unmoved: before, Places: unmoved{}}, []string{"lock:*"}).connect()
	p.say("SET lock:a 1", "+OK\r\n")
	mega := strings.Repeat("v", 1<<20)
	p.send(array("SET", "lock:a", mega) + cmd("STRLEN lock:a") + array("MSET", "lock:a", mega, "lock:b", mega) + array("EVAL", "return #ARGV[1]", "1", "lock:a", mega) + cmd("PING"))
	p.expect("+OK\r\n:1048576\r\n+OK\r\n:1048576\r\n+PONG\r\n")
}
