//go:build integration

package locks

import (
	"errors"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"redlock-proxy/integration/faults"
	"redlock-proxy/integration/holdings"
	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

const (
	// grantsEnv sets the number of grants for which TestOverlap waits.
	grantsEnv = "REDLOCK_GRANTS"
	// defaultGrants is the default; it takes half a minute on two busy cores. make overlap uses
	// more.
	defaultGrants = 6_000

	contenderCount = 64
	lease          = 2 * time.Second
)

// TestOverlap checks that two of 64 clients of two proxies never hold one lock at the same time.
// Meanwhile a minority of the masters is stopped, disconnected and continued at random.
func TestOverlap(t *testing.T) {
	grants, seed := kit.SizeFrom(t, grantsEnv, defaultGrants), kit.NumberFrom(t, kit.SeedEnv, rand.Uint64())
	t.Logf("%d grants wanted (%s); seed %d (%s)", grants, grantsEnv, seed, kit.SeedEnv)
	f := kit.StartLinkedFleet(t, 2)
	c := startContest(t, f, seed, randomHoldTime)
	disturber := faults.StartDisturber(f, seed, faults.FaultsWithoutDataLoss()...)
	waitErr := c.WaitFor(t, int(grants))
	faultCounts, err := disturber.Stop()
	c.Stop()
	c.Report(t)
	t.Logf("the masters were disturbed: %v", faultCounts)
	kit.Must(t, errors.Join(waitErr, err))
	if overlaps := c.History.Overlaps(); len(overlaps) > 0 {
		t.Errorf("%d OVERLAPS in %d grants, such as: %v", len(overlaps), c.History.Count(), overlaps[0])
	}
	for reply, times := range c.Replies {
		if strings.HasPrefix(reply, revivedReply) {
			t.Errorf("%d times: %s", times, revivedReply)
		}
	}
}

// TestOverlapDetection checks that the same contest finds overlaps if a client deletes the key
// directly on a majority of the masters.
func TestOverlapDetection(t *testing.T) {
	redistest.SkipShort(t)
	f := kit.StartLinkedFleet(t, 2)
	var hold atomic.Int64 // longer than a grant takes on a busy machine
	hold.Store(int64(300 * time.Millisecond))
	c := startContest(t, f, rand.Uint64(), func(*rand.Rand) time.Duration { return time.Duration(hold.Load()) })
	for range 40 {
		time.Sleep(50 * time.Millisecond) // some locks are granted meanwhile
		for _, master := range f.Masters[:3] {
			deleteKey(t, master, contestedKey)
		}
	}
	hold.Store(0) // or the waiting clients would take long to end
	c.Stop()
	c.Report(t)
	overlaps := c.History.Overlaps()
	if len(overlaps) == 0 {
		t.Fatal("no overlap was found: TestOverlap shows nothing")
	}
	t.Logf("%d overlaps in %d grants, such as: %v", len(overlaps), c.History.Count(), overlaps[0])
}

// deleteKey deletes a key on one master, whatever its value.
func deleteKey(t *testing.T, master *redistest.Server, key string) {
	t.Helper()
	client, err := redistest.Dial(master.Addr(), kit.WaitLimit)
	kit.Must(t, err)
	defer client.Close()
	kit.Do(t, client, "DEL", key)
}

// randomHoldTime returns the time for which a client keeps the lock. Usually this is zero,
// sometimes a part of the lease, and rarely longer than the lease.
func randomHoldTime(random *rand.Rand) time.Duration {
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
	// contestedKey is the key of all clients.
	contestedKey = "contested"
	// revivedReply is the name under which the contest counts granted EXTENDs of released locks.
	revivedReply = "EXTEND of a lock that was given back was granted"
)

// startContest lets 64 clients of two proxies contend. hold returns the time for which a client
// keeps the lock.
func startContest(t *testing.T, f *kit.Fleet, seed uint64, hold func(*rand.Rand) time.Duration) *holdings.Contest {
	t.Helper()
	c := holdings.NewContest()
	for i := range contenderCount {
		contender := &contender{
			contest: c, name: strconv.Itoa(i), client: kit.Connect(t, f.Proxies[i%len(f.Proxies)]),
			random: rand.New(rand.NewPCG(seed, uint64(i)+2)), hold: hold,
		}
		contender.client.SetTimeout(time.Minute)
		c.AddClient(contender.name, contender.runTurn)
	}
	return c
}

// contender is one client of a contest.
type contender struct {
	contest *holdings.Contest
	name    string
	client  *redistest.Client
	random  *rand.Rand
	hold    func(*rand.Rand) time.Duration
}

// runTurn waits for the lock, holds it, sometimes for longer than its lease, and releases it.
func (c *contender) runTurn(token string) {
	received, until := c.requestLock("LOCK", contestedKey, token, "PX", kit.Millis(lease), "BLOCK", "10000")
	if until == 0 {
		time.Sleep(5 * time.Millisecond) // another error may follow immediately
		return
	}
	holdTime := c.hold(c.random)
	time.Sleep(holdTime) // the contender holds the lock
	if holdTime > lease || c.random.IntN(20) == 0 {
		_, extended := c.requestLock("EXTEND", contestedKey, token, "PX", kit.Millis(lease))
		until = max(until, extended)
	}
	c.contest.AddHolding(holdings.NewHolding(token, received, until, c.contest.History.Now()))
	reply, err := c.client.Do("UNLOCK", contestedKey, token)
	c.contest.CountReply("UNLOCK", reply, err)
	if reply == any(int64(1)) && c.random.IntN(20) == 0 {
		c.extendReleased(token)
	}
}

// extendReleased tries to extend a released lock, which must fail.
func (c *contender) extendReleased(token string) {
	if _, until := c.requestLock("EXTEND", contestedKey, token, "PX", kit.Millis(lease)); until > 0 {
		c.contest.CountReply(revivedReply, nil, nil)
	}
}

// requestLock sends a LOCK or EXTEND. It returns the time of the reply, and the end of the
// validity, or 0 if the reply is no grant.
func (c *contender) requestLock(command ...string) (received, until time.Duration) {
	reply, err := c.client.Do(command...)
	received = c.contest.History.Now()
	ms, ok := reply.(int64)
	if !ok || err != nil {
		c.contest.CountReply(command[0], reply, err)
		return received, 0
	}
	c.contest.CountReply(command[0], "validity", nil)
	return received, received + time.Duration(ms)*time.Millisecond
}
