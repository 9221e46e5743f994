//go:build integration

package lockkeys

import (
	"errors"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"redlock-proxy/integration/faults"
	"redlock-proxy/integration/holdings"
	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

const (
	// keyGrantsEnv sets the number of grants for which TestOverlapOfLockKeys waits.
	keyGrantsEnv = "REDLOCK_KEY_GRANTS"
	// defaultKeyGrants is the default; it takes some seconds on two busy cores.
	defaultKeyGrants = 400

	// contestedKey is the lock key of all clients; shortLease is its lease.
	contestedKey = "lock:contested"
	shortLease   = 600 * time.Millisecond
	keyHolders   = 16
)

// TestOverlapOfLockKeys checks that, by their own clocks, two clients never hold a lock at the same
// time. Clients of two proxies take the same lock by SET NX PX, extend and release it by script,
// and sometimes let it expire. Meanwhile a minority of the masters is stopped, disconnected and
// killed.
func TestOverlapOfLockKeys(t *testing.T) {
	grants, seed := kit.SizeFrom(t, keyGrantsEnv, defaultKeyGrants), kit.NumberFrom(t, kit.SeedEnv, rand.Uint64())
	t.Logf("%d grants wanted (%s); seed %d (%s)", grants, keyGrantsEnv, seed, kit.SeedEnv)
	f := startLockKeyFleet(t, 2)
	c := startKeyContest(t, f.Addrs(), seed, contestedKey)
	disturber := faults.StartDisturber(f, seed, lockKeyFaults()...)
	waitErr := c.WaitFor(t, int(grants))
	faultCounts, err := disturber.Stop()
	c.Stop()
	c.Report(t)
	t.Logf("the masters were disturbed: %v", faultCounts)
	kit.Must(t, errors.Join(waitErr, err))
	if overlaps := c.History.Overlaps(); len(overlaps) > 0 {
		t.Errorf("%d OVERLAPS in %d grants, such as: %v", len(overlaps), c.History.Count(), overlaps[0])
	}
}

// TestOverlapOfLockKeysOfOneRedis checks that the contest finds no overlap with a single Redis
// without faults.
func TestOverlapOfLockKeysOfOneRedis(t *testing.T) {
	redistest.SkipShort(t)
	c := startKeyContest(t, []string{kit.StartReference(t).Addr()}, rand.Uint64(), contestedKey)
	kit.Must(t, c.WaitFor(t, 400))
	c.Stop()
	c.Report(t)
	if overlaps := c.History.Overlaps(); len(overlaps) > 0 {
		t.Errorf("%d overlaps, such as %v", len(overlaps), overlaps[0])
	}
}

// TestOverlapDetectionOfLockKeys checks that the contest finds overlaps with two independent Redis
// servers.
func TestOverlapDetectionOfLockKeys(t *testing.T) {
	redistest.SkipShort(t)
	c := startKeyContest(t, []string{kit.StartReference(t).Addr(), kit.StartReference(t).Addr()}, rand.Uint64(),
		contestedKey)
	kit.Must(t, c.WaitFor(t, 200))
	c.Stop()
	c.Report(t)
	if overlaps := c.History.Overlaps(); len(overlaps) == 0 {
		t.Error("no overlap was found: TestOverlapOfLockKeys shows nothing")
	}
}

// startKeyContest starts clients that contend for a key. The clients use the addresses in turn.
func startKeyContest(t *testing.T, addrs []string, seed uint64, key string) *holdings.Contest {
	t.Helper()
	c := holdings.NewContest()
	for i := range keyHolders {
		client, err := redistest.Dial(addrs[i%len(addrs)], kit.WaitLimit)
		kit.Must(t, err)
		t.Cleanup(func() { _ = client.Close() })
		holder := &keyHolder{contest: c, key: key, name: strconv.Itoa(i), client: client,
			random: rand.New(rand.NewPCG(seed, uint64(i)+1000))}
		c.AddClient(holder.name, holder.runTurn)
	}
	return c
}

// keyHolder is a client that judges its lock only by its own clock. It relies on the lock from the
// reply until the TTL has passed since the request.
type keyHolder struct {
	contest *holdings.Contest
	key     string
	name    string
	client  *redistest.Client
	random  *rand.Rand
}

// runTurn requests the lock once, as a polling client does. If granted, it sometimes holds the lock
// for a while and extends it. Then it releases the lock, or rarely lets it expire.
func (h *keyHolder) runTurn(token string) {
	received, until := h.requestLease("OK", "SET", h.key, token, "NX", "PX", kit.Millis(shortLease))
	if until == 0 {
		h.sleep(4 * time.Millisecond)
		return
	}
	for h.random.IntN(20) == 0 {
		h.sleep(shortLease / 2)
		if _, extended := h.requestLease(int64(1), "EVAL", extendScript, "1", h.key, token, kit.Millis(shortLease)); extended > 0 {
			until = extended
		}
	}
	if h.random.IntN(200) == 0 {
		h.contest.AddHolding(holdings.NewHolding(token, received, until, 0)) // never released
		return
	}
	h.contest.AddHolding(holdings.NewHolding(token, received, until, h.contest.History.Now()))
	reply, err := h.client.Do("EVAL", releaseScript, "1", h.key, token)
	h.contest.CountReply("release", reply, err)
}

// requestLease sends a command that grants a lease if the reply equals grantReply. It returns the
// time of the reply, and the time until which the client may rely on the lease, or 0 without a
// lease. The client stops relying on the lease slightly before its end, because clocks drift.
func (h *keyHolder) requestLease(grantReply any, command ...string) (received, until time.Duration) {
	sent := h.contest.History.Now()
	reply, err := h.client.Do(command...)
	received = h.contest.History.Now()
	h.contest.CountReply(command[0], reply, err)
	if err != nil || reply != grantReply {
		return received, 0
	}
	return received, sent + shortLease - shortLease/100 - 2*time.Millisecond
}

func (h *keyHolder) sleep(limit time.Duration) {
	// The client holds the lock, or lets other clients take it.
	time.Sleep(time.Duration(h.random.Int64N(int64(limit))))
}
