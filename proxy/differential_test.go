package proxy_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"redlock-proxy/internal/randomcommands"
	"redlock-proxy/internal/redistest"
	"redlock-proxy/proxy"
)

// TestDifferential sends the same random commands to one server directly and to another server
// through the proxy, and compares the bytes. Between these commands, the proxy also gets lock
// commands. The test runs with and without lock keys, for five seconds each. REDLOCK_PIPELINES sets
// a number of pipelines instead, and REDLOCK_TEST_SEED repeats one stream.
func TestDifferential(t *testing.T) {
	t.Run("without lock keys", func(t *testing.T) { testDifferential(t) })
	// The globs do not match the names of the locks, because DBSIZE would count matching locks.
	t.Run("beside lock keys", func(t *testing.T) { testDifferential(t, "held:*", "*:lock") })
}

func testDifferential(t *testing.T, lockKeys ...string) {
	newDifferential(t, lockKeys).runAll()
}

// TestDifferentialWithPauses repeats TestDifferential with clients that pause within their streams,
// and are parked in most of their pauses.
func TestDifferentialWithPauses(t *testing.T) {
	skipOverTLS(t)
	d := newDifferential(t, nil, func(s *proxy.Server) { s.SetIdleTime(100 * time.Microsecond) })
	d.pauses = true
	d.runAll()
	if d.parked == 0 {
		t.Error("no client was parked")
	}
}

// runAll compares one stream after the other, until the time has passed or enough pipelines were
// compared.
func (d *differential) runAll() {
	seed, start := envNumber(d.T, "REDLOCK_TEST_SEED", 1), time.Now()
	last, wanted := seed, envNumber(d.T, "REDLOCK_PIPELINES", 0)
	for ; ; last++ {
		if d.run(last); d.Failed() {
			d.Fatalf("REDLOCK_TEST_SEED=%d go test ./proxy -run %s", last, d.Name())
		}
		switch {
		case os.Getenv("REDLOCK_TEST_SEED") != "":
		case wanted > 0 && d.pipelines < wanted, wanted == 0 && time.Since(start) < 5*time.Second:
			continue
		}
		break
	}
	d.Logf("seeds %d to %d: %d pipelines, %d commands and %d locks, %d bytes of replies", seed, last, d.pipelines,
		d.commands, d.locks, d.bytes)
}

// envNumber returns the number in an environment variable.
func envNumber(t *testing.T, name string, defaultValue int) int {
	env := os.Getenv(name)
	if env == "" {
		return defaultValue
	}
	n, err := strconv.Atoi(env)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// differential holds two new servers, one of them behind a proxy.
type differential struct {
	*testing.T
	testProxy            *testProxy
	directAddr, upstream string // addresses
	admins               []*peer

	next                              int // number for the next unique value
	pipelines, commands, locks, bytes int

	pauses bool // clients pause between the pieces that they send
	parked int  // how often a client was found to be parked during a pause
}

func newDifferential(t *testing.T, lockKeys []string, prepare ...func(*proxy.Server)) *differential {
	return newDifferentialWith(t, proxy.Options{}, lockKeys, prepare...)
}

func newDifferentialWith(
	t *testing.T, opts proxy.Options, lockKeys []string, prepare ...func(*proxy.Server),
) *differential {
	// A high hz allows short timeouts of blocking commands.
	args := []string{"--enable-debug-command", "yes", "--hz", "500"}
	direct := startRedis(t, args...)
	upstream := startRedis(t, args...)
	r := startProxyWith(t, upstream.URL(), opts, lockKeys, prepare...)
	return &differential{
		T: t, testProxy: r, directAddr: direct.Addr(), upstream: upstream.Addr(),
		admins: []*peer{dial(t, direct.Addr()), dial(t, upstream.Addr())},
	}
}

// pair holds a client of each of the two servers.
type pair struct {
	direct, proxiedPeer *peer
	stream              *randomcommands.Stream
}

// run compares one stream of a few clients that take turns.
func (d *differential) run(seed int) {
	for _, admin := range d.admins {
		_ = admin.conn.SetDeadline(time.Now().Add(testTimeout))
		admin.check("FLUSHALL", "+OK\r\n")
		// PUBLISH also counts clients whose connection has ended unnoticed.
		eventually(d.T, "the end of the subscribers before", func() bool {
			return strings.TrimSpace(strings.TrimPrefix(admin.ask("CLIENT LIST TYPE pubsub"), "$0")) == ""
		})
	}
	rng := rand.New(rand.NewPCG(uint64(seed), 1))
	var pairs []*pair
	for range 1 + rng.IntN(3) {
		p := &pair{dial(d.T, d.directAddr), d.testProxy.connect(), randomcommands.NewStream(rng, &d.next)}
		p.stream.HasLockKeys = d.testProxy.server.Table().LockKeys().HasPatterns()
		defer p.direct.conn.Close()
		defer p.proxiedPeer.conn.Close()
		pairs = append(pairs, p)
	}
	for turn := 0; turn < 8 && !d.Failed(); turn++ {
		mark := fmt.Sprintf("<%d.%d>", seed, turn)
		p := pairs[rng.IntN(len(pairs))]
		d.runTurn(p, p.stream.NextPipeline(1+rng.IntN(1<<rng.IntN(8)), mark), mark, rng)
	}
	d.block(pairs, rng)
	eventually(d.T, "the end of the clients before", func() bool { return d.testProxy.server.Clients() <= len(pairs) })
}

// runTurn sends a client's items, in pieces of random sizes, and compares the replies.
func (d *differential) runTurn(p *pair, items []randomcommands.Item, mark string, rng *rand.Rand) {
	d.pipelines++
	var plain, mixedCommands strings.Builder
	for _, it := range items {
		mixedCommands.WriteString(it.Command)
		if !strings.Contains(it.Command, "Lock\r\n") {
			plain.WriteString(it.Command)
			d.commands++
		} else {
			d.locks++
		}
	}
	go func() { _, _ = io.WriteString(p.direct.conn, plain.String()) }()
	pieces := split(mixedCommands.String(), rng)
	pauses := make([]time.Duration, len(pieces))
	for i := range pauses {
		if d.pauses && rng.IntN(4) == 0 {
			pauses[i] = time.Duration(rng.IntN(2000)) * time.Microsecond
		}
	}
	go func() {
		for i, piece := range pieces {
			time.Sleep(pauses[i]) // so that the pieces arrive at random times
			_, _ = io.WriteString(p.proxiedPeer.conn, piece)
		}
	}()
	want := withoutID(readUpTo(p.direct, bulk(mark)))
	got := withoutID(d.removeOwnReplies(items, readUpTo(p.proxiedPeer, bulk(mark))))
	d.bytes += len(want)
	d.parked += d.testProxy.server.ParkedCount()
	if got != want {
		d.Errorf("%s: %s", mark, randomcommands.FirstDifference(got, want))
		for _, it := range items {
			d.Logf("sent %.200q %q", it.Command, it.OwnReply)
		}
	}
}

// removeOwnReplies removes the replies to lock commands, in their order.
func (d *differential) removeOwnReplies(items []randomcommands.Item, got string) string {
	result := ""
	for _, it := range items {
		if it.OwnReply == "" {
			continue
		}
		before, after, found := strings.Cut(got, it.OwnReply)
		if !found {
			d.Errorf("%q was not answered with %q", it.Command, it.OwnReply)
		}
		result, got = result+before, after
	}
	return result + got
}

// block makes a client block in the middle of its stream until another client unblocks it.
func (d *differential) block(pairs []*pair, rng *rand.Rand) {
	if len(pairs) < 2 || d.Failed() {
		return
	}
	waiter, helper := pairs[0], pairs[1]
	if waiter.stream.InSubscribedMode() || helper.stream.InSubscribedMode() {
		return
	}
	before := []randomcommands.Item{{Command: lines("SELECT 5", "DEL list")}, {Command: cmd("PING <0>")}}
	d.runTurn(waiter, before, "<0>", rng)
	pipeline := lines("PING", "BLPOP list 0", "LLEN list", "PING <blocked>")
	unblocking := []randomcommands.Item{{Command: lines("SELECT 5", "RPUSH list x y", "PING <help>")}}
	for _, p := range []*peer{waiter.direct, waiter.proxiedPeer} {
		p.send(pipeline)
	}
	time.Sleep(time.Millisecond) // the replies are the same whether or not the client already waits
	d.runTurn(helper, unblocking, "<help>", rng)
	d.runTurn(waiter, nil, "<blocked>", rng)
}

// TestGeneratorCoversAllCommands checks that the random streams contain every kind of command.
// Otherwise the differential tests would compare too little.
func TestGeneratorCoversAllCommands(t *testing.T) {
	redistest.SkipShort(t)
	next := 0
	stream := randomcommands.NewStream(rand.New(rand.NewPCG(1, 2)), &next)
	var generatedCommands strings.Builder
	for i := range 500 {
		for _, it := range stream.NextPipeline(50, fmt.Sprint(i)) {
			generatedCommands.WriteString(it.Command)
		}
	}
	text := generatedCommands.String()
	upper := strings.ToUpper(text)
	missing := slices.DeleteFunc(
		[]string{"LOCK", "MULTI", "EXEC", "DISCARD", "HELLO", "RESET", "SUBSCRIBE", "PSUBSCRIBE", "UNSUBSCRIBE",
			"REPLY", "SELECT", "TRACKING", "BLPOP", "EVAL", "XADD", "ZADD", "WATCH", "NOSUCH"},
		func(name string) bool { return strings.Contains(upper, "\r\n"+name+"\r\n") })
	if len(missing) > 0 {
		t.Errorf("never made up: %q", missing)
	}
	for _, part := range []string{"  GET \t", `"GET" "`, "\xff", strings.Repeat("v", 10_000)} {
		if !strings.Contains(text, part) {
			t.Errorf("never made up: %.20q", part)
		}
	}
}
