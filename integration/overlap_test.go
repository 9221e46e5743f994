//go:build integration

package integration

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"redlock-proxy/integration/harness"
)

const (
	// grantsEnv and seedEnv set how many grants TestOverlap waits for, and repeat the random choices of a run.
	grantsEnv = "REDLOCK_GRANTS"
	seedEnv   = "REDLOCK_SEED"
	// defaultGrants take about a minute on two busy cores.
	defaultGrants = 20_000

	contenders = 64
	lease      = 2 * time.Second
)

// TestOverlap: two proxies, 64 clients and one key, while a minority of the masters is stopped, cut off and continued at random.
// Two clients must never hold the lock at once.
func TestOverlap(t *testing.T) {
	grants, seed := numberFrom(t, grantsEnv, defaultGrants), numberFrom(t, seedEnv, rand.Uint64())
	t.Logf("%d grants wanted (%s); seed %d (%s)", grants, grantsEnv, seed, seedEnv)
	f := startLinkedFleet(t, 2)
	c := startContest(t, f, seed, holdAtRandom)
	disturber := startDisturber(f, seed, disturbances()...)
	starved := c.waitFor(t, int(grants))
	done, err := disturber.stop()
	c.stop()
	c.report(t)
	t.Logf("the masters were disturbed: %v", done)
	must(t, errors.Join(starved, err))
	if found := overlaps(c.history.holdings); len(found) > 0 {
		t.Errorf("%d OVERLAPS in %d grants, such as: %v", len(found), len(c.history.holdings), found[0])
	}
	for reply, times := range c.replies {
		if strings.HasPrefix(reply, revived) {
			t.Errorf("%d times: %s", times, revived)
		}
	}
}

// TestOverlapIsSeen: with somebody who deletes the key on a majority of the masters behind the proxies' backs, the same contest has
// overlaps, and they are found.
func TestOverlapIsSeen(t *testing.T) {
	f := startLinkedFleet(t, 2)
	c := startContest(t, f, rand.Uint64(), func(*rand.Rand) time.Duration { return 20 * time.Millisecond })
	for range 20 {
		time.Sleep(50 * time.Millisecond)
		for _, master := range f.masters[:3] {
			remove(t, master, contested)
		}
	}
	c.stop()
	c.report(t)
	found := overlaps(c.history.holdings)
	if len(found) == 0 {
		t.Fatal("no overlap was found: TestOverlap shows nothing")
	}
	t.Logf("%d overlaps in %d grants, such as: %v", len(found), len(c.history.holdings), found[0])
}

// remove deletes a key on one master, whoever holds it.
func remove(t *testing.T, master *harness.Redis, key string) {
	t.Helper()
	client, err := harness.Dial(master.Addr(), patience)
	must(t, err)
	defer client.Close()
	do(t, client, "DEL", key)
}

// numberFrom reads an environment variable.
func numberFrom(t *testing.T, name string, preset uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return preset
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// holdAtRandom is how long a client keeps the lock: mostly not at all, sometimes for a part of the lease, and rarely for longer than
// it has it.
func holdAtRandom(random *rand.Rand) time.Duration {
	switch n := random.IntN(2000); {
	case n == 0:
		return lease + lease/10
	case n <= 10:
		return time.Duration(random.Int64N(int64(lease / 5)))
	case n <= 400:
		return time.Duration(random.Int64N(int64(2 * time.Millisecond)))
	default:
		return 0
	}
}

const (
	// contested is the key that all want.
	contested = "contested"
	// revived counts what must not be.
	revived = "EXTEND of a lock that was given back was granted"
)

// contest is 64 clients of two proxies who want the same lock again and again.
type contest struct {
	history *history
	enough  chan int // how many grants there were, now and then
	over    chan struct{}
	workers sync.WaitGroup

	mu      sync.Mutex
	replies map[string]int // to LOCK and UNLOCK
}

func startContest(t *testing.T, f *fleet, seed uint64, hold func(*rand.Rand) time.Duration) *contest {
	t.Helper()
	c := &contest{history: newHistory(), enough: make(chan int, 1), over: make(chan struct{}), replies: map[string]int{}}
	for i := range contenders {
		who := &contender{
			contest: c, name: strconv.Itoa(i), client: connect(t, f.proxies[i%len(f.proxies)]),
			random: rand.New(rand.NewPCG(seed, uint64(i)+2)), hold: hold,
		}
		who.client.SetTimeout(time.Minute)
		c.workers.Go(func() { c.turns(who.name, who.turn) })
	}
	return c
}

// waitFor waits for so many grants, as long as some come.
func (c *contest) waitFor(t *testing.T, grants int) error {
	t.Helper()
	last, step := 0, max(grants/10, 1)
	for last < grants {
		select {
		case last = <-c.enough:
			if last >= step {
				t.Logf("%d grants after %v", last, c.history.now().Round(time.Second))
				step += max(grants/10, 1)
			}
		case <-time.After(time.Minute):
			return fmt.Errorf("no grant within a minute, after %d", last)
		}
	}
	return nil
}

// stop lets every client finish its turn.
func (c *contest) stop() {
	close(c.over)
	c.workers.Wait()
}

// report logs the figures.
func (c *contest) report(t *testing.T) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	took := c.history.now()
	grants := c.history.count()
	t.Logf("%d grants in %v: %.0f per second; replies: %v", grants, took.Round(time.Millisecond), float64(grants)/took.Seconds(), c.replies)
}

// count counts a reply, by its kind.
func (c *contest) count(command string, reply any, err error) {
	kind := fmt.Sprintf("%s → %v", command, reply)
	if failure, bad := reply.(harness.RespError); bad {
		kind = command + " → " + firstWord(string(failure))
	}
	if err != nil {
		kind = fmt.Sprintf("%s: %v", command, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.replies[kind]++
}

func firstWord(text string) string {
	word, _, _ := strings.Cut(text, " ")
	return word
}

// contender is one client of a contest.
type contender struct {
	contest *contest
	name    string
	client  *harness.Client
	random  *rand.Rand
	hold    func(*rand.Rand) time.Duration
}

// turns has one client take turns, each with a token of its own, until the contest is over.
func (c *contest) turns(name string, turn func(token string)) {
	for n := 0; ; n++ {
		select {
		case <-c.over:
			return
		default:
			turn(name + "-" + strconv.Itoa(n))
		}
	}
}

// turn waits for the lock, holds it for a while, sometimes for longer than it was given at first, and gives it back.
func (c *contender) turn(token string) {
	received, until := c.ask("LOCK", contested, token, "PX", leaseMillis(), "BLOCK", "10000")
	if until == 0 {
		time.Sleep(5 * time.Millisecond) // an error may come again at once
		return
	}
	pause := c.hold(c.random)
	time.Sleep(pause)
	if pause > lease || c.random.IntN(20) == 0 {
		_, longer := c.ask("EXTEND", contested, token, "PX", leaseMillis())
		until = max(until, longer)
	}
	c.contest.granted(relied(token, received, until, c.contest.history.now()))
	reply, err := c.client.Do("UNLOCK", contested, token)
	c.contest.count("UNLOCK", reply, err)
	if reply == any(int64(1)) && c.random.IntN(20) == 0 {
		c.revive(token)
	}
}

// revive tries to extend what was given back, which must not be granted.
func (c *contender) revive(token string) {
	if _, until := c.ask("EXTEND", contested, token, "PX", leaseMillis()); until > 0 {
		c.contest.count(revived, nil, nil)
	}
}

// ask sends a LOCK or EXTEND. It returns when the reply was there, and until when the lock may be relied on: 0 if not at all.
func (c *contender) ask(command ...string) (received, until time.Duration) {
	reply, err := c.client.Do(command...)
	received = c.contest.history.now()
	ms, ok := reply.(int64)
	if !ok || err != nil {
		c.contest.count(command[0], reply, err)
		return received, 0
	}
	c.contest.count(command[0], "validity", nil)
	return received, received + time.Duration(ms)*time.Millisecond
}

func leaseMillis() string { return strconv.FormatInt(lease.Milliseconds(), 10) }

// granted records a holding.
func (c *contest) granted(one holding) {
	n := c.history.add(one)
	select {
	case c.enough <- n:
	default:
	}
}
