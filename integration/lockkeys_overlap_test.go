//go:build integration

package integration

import (
	"errors"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"redlock-proxy/integration/harness"
)

const (
	// keyGrantsEnv sets how many grants TestOverlapOfLockKeys waits for.
	keyGrantsEnv = "REDLOCK_KEY_GRANTS"
	// defaultKeyGrants take some seconds on two busy cores.
	defaultKeyGrants = 400

	// contestedKey is the lock key that all want, and shortLease for how long they take it.
	contestedKey = "lock:contested"
	shortLease   = 150 * time.Millisecond
	keyHolders   = 16
)

// TestOverlapOfLockKeys: clients of two proxies take the same lock by SET NX PX, extend and release it by script, and often let it
// end by itself, while a minority of the masters is stopped, cut off and killed. By the clock of each, no two hold it at once.
func TestOverlapOfLockKeys(t *testing.T) {
	grants, seed := numberFrom(t, keyGrantsEnv, defaultKeyGrants), numberFrom(t, seedEnv, rand.Uint64())
	t.Logf("%d grants wanted (%s); seed %d (%s)", grants, keyGrantsEnv, seed, seedEnv)
	f := startLockKeyFleet(t, 2)
	c := startKeyContest(t, f.addrs(), seed)
	disturber := startDisturber(f, seed, lockKeyDisturbances()...)
	starved := c.waitFor(t, int(grants))
	done, err := disturber.stop()
	c.stop()
	c.report(t)
	t.Logf("the masters were disturbed: %v", done)
	must(t, errors.Join(starved, err))
	if found := overlaps(c.history.holdings); len(found) > 0 {
		t.Errorf("%d OVERLAPS in %d grants, such as: %v", len(found), len(c.history.holdings), found[0])
	}
}

// TestOverlapOfLockKeysOfOneRedis: a single Redis that is well has no overlaps either.
func TestOverlapOfLockKeysOfOneRedis(t *testing.T) {
	c := startKeyContest(t, []string{startRedis(t).Addr()}, rand.Uint64())
	must(t, c.waitFor(t, 400))
	c.stop()
	c.report(t)
	if found := overlaps(c.history.holdings); len(found) > 0 {
		t.Errorf("%d overlaps, such as %v", len(found), found[0])
	}
}

// TestOverlapOfLockKeysIsSeen: with two Redises that know nothing of each other there are overlaps, and they are found.
func TestOverlapOfLockKeysIsSeen(t *testing.T) {
	c := startKeyContest(t, []string{startRedis(t).Addr(), startRedis(t).Addr()}, rand.Uint64())
	must(t, c.waitFor(t, 200))
	c.stop()
	c.report(t)
	if found := overlaps(c.history.holdings); len(found) == 0 {
		t.Error("no overlap was found: TestOverlapOfLockKeys shows nothing")
	}
}

// startKeyContest has clients of these addresses contend for contestedKey.
func startKeyContest(t *testing.T, addrs []string, seed uint64) *contest {
	t.Helper()
	c := &contest{history: newHistory(), enough: make(chan int, 1), over: make(chan struct{}), replies: map[string]int{}}
	for i := range keyHolders {
		client, err := harness.Dial(addrs[i%len(addrs)], patience)
		must(t, err)
		t.Cleanup(func() { _ = client.Close() })
		who := &keyHolder{contest: c, name: strconv.Itoa(i), client: client, random: rand.New(rand.NewPCG(seed, uint64(i)+1000))}
		c.workers.Go(func() { c.turns(who.name, who.turn) })
	}
	return c
}

// keyHolder is a client that knows a lock by its own clock alone: it has it from the reply on, until the TTL is over since it asked.
type keyHolder struct {
	contest *contest
	name    string
	client  *harness.Client
	random  *rand.Rand
}

// turn asks once, as a client that polls does, and when it has the lock holds it for a while, extends it now and then, and mostly
// gives it back.
func (h *keyHolder) turn(token string) {
	received, until := h.ask("OK", "SET", contestedKey, token, "NX", "PX", shortLeaseMillis())
	if until == 0 {
		h.sleep(4 * time.Millisecond)
		return
	}
	for h.random.IntN(20) == 0 {
		h.sleep(shortLease / 2)
		if _, longer := h.ask(int64(1), "EVAL", extendIfOwn, "1", contestedKey, token, shortLeaseMillis()); longer > 0 {
			until = longer
		}
	}
	if h.random.IntN(200) == 0 {
		h.contest.granted(relied(token, received, until, 0)) // never given back
		return
	}
	h.contest.granted(relied(token, received, until, h.contest.history.now()))
	reply, err := h.client.Do("EVAL", releaseIfOwn, "1", contestedKey, token)
	h.contest.count("release", reply, err)
}

// ask sends a command that gives a lease if its reply is yes. It returns when the reply was there, and until when the lease may be
// relied on: 0 if not at all. It ends a little early, as clocks do not run alike.
func (h *keyHolder) ask(yes any, command ...string) (received, until time.Duration) {
	sent := h.contest.history.now()
	reply, err := h.client.Do(command...)
	received = h.contest.history.now()
	h.contest.count(command[0], reply, err)
	if err != nil || reply != yes {
		return received, 0
	}
	return received, sent + shortLease - shortLease/100 - 2*time.Millisecond
}

func (h *keyHolder) sleep(limit time.Duration) {
	time.Sleep(time.Duration(h.random.Int64N(int64(limit))))
}

func shortLeaseMillis() string { return strconv.FormatInt(shortLease.Milliseconds(), 10) }
