//go:build integration

package locks

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"redlock-proxy/integration/faults"
	"redlock-proxy/integration/holdings"
	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// TestSeveral checks MLOCK, MUNLOCK and MEXTEND with two proxies.
func TestSeveral(t *testing.T) {
	f := kit.StartLinkedFleet(t, 2)
	one, two := kit.Connect(t, f.Proxies[0]), kit.Connect(t, f.Proxies[1])
	const ttl = "60000"
	wantHeld := func(keys ...string) {
		t.Helper()
		for _, key := range []string{"a", "b", "c"} {
			want := "free"
			if slices.Contains(keys, key) {
				want = "held"
			}
			if info := kit.ReplyText(kit.Do(t, two, "LOCKINFO", key)); !strings.HasPrefix(info, "[state "+want+" ") {
				t.Errorf("%s: %s, want %s", key, info, want)
			}
		}
	}
	kit.WantGrant(t, one, "MLOCK", "2", "a", "b", "me", "PX", ttl)
	wantHeld("a", "b")
	for _, refused := range []string{"MLOCK 2 b c you PX 60000", "MLOCK 2 c a you PX 60000", "LOCK a you PX 60000",
		"MEXTEND 2 a c me PX 60000", "MEXTEND 1 a you PX 60000"} {
		kit.WantReply(t, two, refused, nil)
	}
	wantHeld("a", "b")
	kit.WantGrant(t, two, "MEXTEND", "2", "a", "b", "me", "PX", ttl)
	kit.WantGrant(t, one, "EXTEND", "a", "me", "PX", ttl)
	kit.WantReply(t, two, "MUNLOCK 3 a b c you", int64(0))
	kit.WantReply(t, one, "UNLOCK b me", int64(1))
	kit.WantReply(t, one, "MUNLOCK 3 a b c me", int64(1))
	wantHeld()
	// A removal by the ballot of another proxy stays for a while. MLOCK waits until it has expired.
	kit.WantGrant(t, two, "MLOCK", "3", "a", "b", "c", "you", "PX", ttl)
	wantHeld("a", "b", "c")
	kit.WantReply(t, two, "MUNLOCK 3 a b c you", int64(3))
	wantHeld()
}

// TestFencesOfSeveral checks that MLOCK gives all keys one fence, above each key's earlier fences.
func TestFencesOfSeveral(t *testing.T) {
	f := kit.StartLinkedFleet(t, 2)
	clients := []*redistest.Client{kit.Connect(t, f.Proxies[0]), kit.Connect(t, f.Proxies[1])}
	random := rand.New(rand.NewPCG(1, 2))
	last := map[string]int64{}
	for i := range 200 {
		client, keys := clients[i%2], []string{"a", "b", "c", "d"}[:1+random.IntN(4)]
		if random.IntN(2) == 0 {
			slices.Reverse(keys)
		}
		words := slices.Concat([]string{"MLOCK", strconv.Itoa(len(keys))}, keys, []string{"t", "PX", "60000", "FENCE"})
		if len(keys) == 1 {
			words = []string{"LOCK", keys[0], "t", "PX", "60000", "FENCE"}
		}
		fields, _ := kit.Do(t, client, words...).([]any)
		if len(fields) != 6 || fields[4] != any("fence") {
			t.Fatalf("%v: %v", words, fields)
		}
		fence := fields[5].(int64)
		for _, key := range keys {
			if fence <= last[key] {
				t.Fatalf("%v: fence %d of %s after %d", words, fence, key, last[key])
			}
			last[key] = fence
			if got := kit.Do(t, client, "FENCE", key); got != any(fence) {
				t.Fatalf("FENCE %s: %v, want %d", key, got, fence)
			}
		}
		kit.Want(t, client, int64(len(keys)), slices.Concat([]string{"MUNLOCK", strconv.Itoa(len(keys))}, keys, []string{"t"})...)
	}
}

// TestSeveralAreKept checks that MLOCK … KEEPALIVE renews each key until it is released.
func TestSeveralAreKept(t *testing.T) {
	f := kit.StartFleet(t)
	client, rival := kit.Connect(t, f.Proxies[0]), kit.Connect(t, f.Proxies[0])
	kit.WantGrant(t, client, "MLOCK", "2", "a", "b", "me", "PX", "3000", "KEEPALIVE")
	// Four renewals of each key take longer than the TTL.
	kit.Await(t, "renewals", func() bool {
		return infoNumber(t, rival, "redlock_lock_renewals_total") >= 8
	})
	kit.WantReply(t, rival, "MLOCK 2 b c you PX 1000", nil)
	kit.WantReply(t, client, "MUNLOCK 2 a b me", int64(2))
	kit.WantGrant(t, rival, "MLOCK", "3", "a", "b", "c", "you", "PX", "60000")
}

// TestSeveralOfOneTag checks several keys that share a cell, because they have a hash tag.
func TestSeveralOfOneTag(t *testing.T) {
	f := kit.StartFleet(t, "--lock-keys", "*", "--lock-tags", "*")
	one, two := kit.Connect(t, f.Proxies[0]), kit.Connect(t, f.Proxies[0])
	kit.WantGrant(t, one, "MLOCK", "2", "{x}:a", "{x}:b", "me", "PX", "60000")
	kit.WantReply(t, two, "MLOCK 2 {x}:b {x}:c you PX 60000", nil)
	kit.WantPrefix(t, two, "MLOCK 2 {x}:c {y}:a you PX 60000", "ERR cannot take these keys together: ")
	kit.WantPrefix(t, two, "MLOCK 2 {x}:c c you PX 60000", "ERR cannot take these keys together: ")
	kit.WantPrefix(t, two, "MLOCK 2 {x}:c {x}:d you PX 60000 FENCE", "ERR a key that shares its hash tag ")
	kit.WantGrant(t, one, "MEXTEND", "2", "{x}:a", "{x}:b", "me", "PX", "60000")
	kit.Must(t, two.Send(redistest.AppendCommand(nil, "MLOCK", "2", "{x}:c", "{x}:b", "you", "PX", "60000", "BLOCK", "60000")))
	kit.WantBlocked(t, f.Proxies[0], 1)
	kit.WantReply(t, one, "MUNLOCK 2 {x}:a {x}:b me", int64(2))
	reply, err := two.Receive()
	kit.Must(t, err)
	if !kit.IsGranted(reply) {
		t.Errorf("got %v", reply)
	}
}

// TestSeveralWaitForEachKey checks that a waiter for several keys is served as soon as the last one
// is free, at any proxy, and that no order of the keys deadlocks.
func TestSeveralWaitForEachKey(t *testing.T) {
	f := kit.StartLinkedFleet(t, 2)
	holders := []*redistest.Client{kit.Connect(t, f.Proxies[0]), kit.Connect(t, f.Proxies[1])}
	kit.WantGrant(t, holders[0], "LOCK", "a", "me", "PX", "600000")
	kit.WantGrant(t, holders[1], "LOCK", "b", "me", "PX", "600000")
	var waiters []*redistest.Client
	for i, order := range [][]string{{"a", "b"}, {"b", "a"}} {
		waiter := kit.Connect(t, f.Proxies[i])
		words := slices.Concat([]string{"MLOCK", "2"}, order, []string{"you", "PX", "600000", "BLOCK", "0"})
		kit.Must(t, waiter.Send(redistest.AppendCommand(nil, words...)))
		kit.WantBlocked(t, f.Proxies[i], 1)
		waiters = append(waiters, waiter)
	}
	free := kit.Connect(t, f.Proxies[0])
	kit.WantReply(t, holders[0], "UNLOCK a me", int64(1))
	kit.Await(t, "a is not held while the waiters wait for b", func() bool {
		reply := kit.Do(t, free, "LOCK", "a", "third", "PX", "600000")
		return kit.IsGranted(reply)
	})
	kit.WantReply(t, free, "UNLOCK a third", int64(1))
	kit.WantReply(t, holders[1], "UNLOCK b me", int64(1))
	served := make(chan error, len(waiters))
	for _, waiter := range waiters {
		go func() {
			reply, err := waiter.Receive()
			if err == nil && !kit.IsGranted(reply) {
				err = fmt.Errorf("got %v", reply)
			}
			if err == nil {
				_, err = waiter.Do("MUNLOCK", "2", "a", "b", "you")
			}
			served <- err
		}()
	}
	for range waiters {
		kit.Must(t, <-served)
	}
}

// severalContest lets clients contend for several keys at a time. No key may be held twice.
type severalContest struct {
	*holdings.Contest
	// keys holds a history of each key.
	keys []*holdings.History

	mu    sync.Mutex
	waits []time.Duration
}

// keyCount is the number of keys of a severalContest. Each client takes up to three of them.
const keyCount = 64

func newSeveralContest() *severalContest {
	c := &severalContest{Contest: holdings.NewContest()}
	startedAt := time.Now()
	for range keyCount {
		c.keys = append(c.keys, holdings.HistorySince(startedAt))
	}
	return c
}

// now returns the time by which the histories of the keys are recorded.
func (c *severalContest) now() time.Duration { return c.keys[0].Now() }

// wantNoOverlap fails the test if a key was held twice.
func (c *severalContest) wantNoOverlap(t *testing.T) {
	t.Helper()
	for i, history := range c.keys {
		if overlaps := history.Overlaps(); len(overlaps) > 0 {
			t.Errorf("key %d: %d OVERLAPS in %d grants, such as: %v", i, len(overlaps), history.Count(), overlaps[0])
		}
	}
}

// reportWaits logs the mean, the 99th percentile and the longest wait.
func (c *severalContest) reportWaits(t *testing.T) {
	t.Helper()
	slices.Sort(c.waits)
	sum := time.Duration(0)
	for _, wait := range c.waits {
		sum += wait
	}
	mean := sum / time.Duration(max(1, len(c.waits)))
	longest := c.waits[len(c.waits)-1]
	t.Logf("%d waits: mean %v, p99 %v, longest %v (%.1f times the mean)", len(c.waits), mean,
		c.waits[len(c.waits)*99/100], longest, float64(longest)/float64(mean))
}

// severalContender is one client of a severalContest.
type severalContender struct {
	contest *severalContest
	client  *redistest.Client
	random  *rand.Rand
	// sharesToken makes the client use a token that other clients use, too.
	sharesToken bool
	// block is the time limit of a wait in milliseconds; 0 means no limit.
	block string
	// keys is the number of keys that the client takes; 0 means one to three at random.
	keys int
	hold func(*rand.Rand) time.Duration
}

// sharedLease is the lease of a client that uses the token of other clients. It is longer than any
// delay of a command, so that no such client releases a later lock of the same token.
const sharedLease = 3 * lease

// runTurn waits for some keys, holds them, sometimes for longer than the lease, and releases them.
func (c *severalContender) runTurn(token string) {
	leaseTime := lease
	if c.sharesToken {
		token, leaseTime = "shared", sharedLease
	}
	keys := c.random.Perm(keyCount)[:cmp.Or(c.keys, 1+c.random.IntN(3))]
	names := make([]string, len(keys))
	for i, key := range keys {
		names[i] = "several:" + strconv.Itoa(key)
	}
	several := append([]string{strconv.Itoa(len(names))}, names...)
	sent := c.contest.now()
	received, until := c.request(slices.Concat([]string{"MLOCK"}, several, []string{token, "PX", kit.Millis(leaseTime), "BLOCK", c.block})...)
	if until == 0 {
		time.Sleep(5 * time.Millisecond) // another error may follow immediately
		return
	}
	c.contest.addWait(received - sent)
	holdTime := c.hold(c.random)
	time.Sleep(holdTime) // the client holds the keys
	if !c.sharesToken && c.random.IntN(20) == 0 {
		_, extended := c.request(slices.Concat([]string{"MEXTEND"}, several, []string{token, "PX", kit.Millis(lease)})...)
		until = max(until, extended)
	}
	released := c.contest.now()
	if until <= received {
		return // the reply came when the lease had ended
	}
	for _, key := range keys {
		c.contest.keys[key].Add(holdings.NewHolding(token, received, until, released))
	}
	c.contest.AddHolding(holdings.Holding{Token: token})
	if c.sharesToken && until-released < sharedLease-time.Second {
		return // the command may be late, when another client holds the keys with the same token
	}
	reply, err := c.client.Do(slices.Concat([]string{"MUNLOCK"}, several, []string{token})...)
	c.contest.CountReply("MUNLOCK", reply, err)
}

func (c *severalContest) addWait(wait time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waits = append(c.waits, wait)
}

// request sends an MLOCK or MEXTEND with AT. It returns the time of the reply, and the end of the
// validity, or 0 if the reply is no grant. The validity counts from the moment at which the command
// was sent, because a proxy that is stopped delays its replies.
func (c *severalContender) request(command ...string) (received, until time.Duration) {
	sent := c.contest.now()
	reply, err := c.client.Do(append(command, "AT")...)
	received = c.contest.now()
	fields, isGranted := reply.([]any)
	if !isGranted || err != nil {
		c.contest.CountReply(command[0], reply, err)
		return received, 0
	}
	c.contest.CountReply(command[0], "validity", nil)
	validity, waited := fields[1].(int64), fields[3].(int64)
	return received, sent + time.Duration(waited+validity)*time.Millisecond
}

// startSeveralContest lets 64 clients of the proxies contend.
func startSeveralContest(
	t *testing.T, f *kit.Fleet, seed uint64, block string, keys int, hold func(*rand.Rand) time.Duration,
) *severalContest {
	t.Helper()
	c := newSeveralContest()
	for i := range contenderCount {
		contender := &severalContender{
			contest: c, client: kit.Connect(t, f.Proxies[i%len(f.Proxies)]), random: rand.New(rand.NewPCG(seed, uint64(i)+2)),
			sharesToken: i%4 == 0, block: block, keys: keys, hold: hold,
		}
		contender.client.SetTimeout(time.Minute)
		c.AddClient(strconv.Itoa(i), contender.runTurn)
	}
	return c
}

// TestOverlapOfSeveral checks that no key is held by two of 64 clients of two proxies, each of
// which takes up to three keys together. Meanwhile a minority of the masters is stopped and
// disconnected at random, and sometimes a proxy is stopped. Some clients use the same token.
func TestOverlapOfSeveral(t *testing.T) {
	redistest.SkipShort(t)
	grants, seed := kit.SizeFrom(t, grantsEnv, defaultGrants), kit.NumberFrom(t, kit.SeedEnv, rand.Uint64())
	t.Logf("%d grants wanted (%s); seed %d (%s)", grants, grantsEnv, seed, kit.SeedEnv)
	f := kit.StartLinkedFleet(t, 2)
	c := startSeveralContest(t, f, seed, "10000", 0, randomHoldTime)
	disturber := faults.StartDisturber(f, seed, faults.FaultsWithoutDataLoss()...)
	stopStalls := stallProxies(f, seed)
	waitErr := c.WaitFor(t, int(grants))
	stallErr := stopStalls()
	faultCounts, err := disturber.Stop()
	c.Stop()
	c.Report(t)
	t.Logf("the masters were disturbed: %v", faultCounts)
	kit.Must(t, errors.Join(waitErr, stallErr, err))
	c.wantNoOverlap(t)
}

// TestOverlapOfSeveralIsDetected checks that the same contest finds overlaps if a client deletes
// the keys directly on a majority of the masters.
func TestOverlapOfSeveralIsDetected(t *testing.T) {
	redistest.SkipShort(t)
	f := kit.StartLinkedFleet(t, 2)
	var hold atomic.Int64 // longer than a grant takes on a busy machine
	hold.Store(int64(300 * time.Millisecond))
	c := startSeveralContest(t, f, rand.Uint64(), "10000", 3, func(*rand.Rand) time.Duration { return time.Duration(hold.Load()) })
	words := []string{"DEL"}
	for i := range keyCount {
		words = append(words, "several:"+strconv.Itoa(i))
	}
	for range 40 {
		time.Sleep(50 * time.Millisecond) // some locks are granted meanwhile
		for _, master := range f.Masters[:3] {
			kit.Must(t, kit.SendToMaster(master, words...))
		}
	}
	hold.Store(0) // or the waiting clients would take long to end
	c.Stop()
	c.Report(t)
	overlaps := 0
	for _, history := range c.keys {
		overlaps += len(history.Overlaps())
	}
	if overlaps == 0 {
		t.Fatal("no overlap was found: TestOverlapOfSeveral shows nothing")
	}
	t.Logf("%d overlaps", overlaps)
}

// stallProxies stops the proxies for a part of a second, one at a time, and continues them, until
// the returned function is called.
func stallProxies(f *kit.Fleet, seed uint64) (stop func() error) {
	stopping, done := make(chan struct{}), make(chan error)
	go func() {
		random := rand.New(rand.NewPCG(seed, 0))
		for {
			select {
			case <-stopping:
				done <- nil
				return
			case <-time.After(time.Duration(random.Int64N(int64(10 * time.Second)))):
			}
			proxy := f.Proxies[random.IntN(len(f.Proxies))]
			err := proxy.Pause()
			time.Sleep(time.Duration(random.Int64N(int64(time.Second)))) // the proxy stands still
			if err = errors.Join(err, proxy.Continue()); err != nil {
				<-stopping
				done <- err
				return
			}
		}
	}()
	return func() error { close(stopping); return <-done }
}

// TestWaitsOfSeveral checks that 64 clients of two proxies, each of which waits without a limit for
// three of 64 keys at random, do not deadlock. It logs how long they wait.
func TestWaitsOfSeveral(t *testing.T) {
	grants := kit.SizeFrom(t, grantsEnv, defaultGrants)
	f := kit.StartFleet(t)
	f.Proxies = append(f.Proxies, kit.StartProxy(t, redistest.URLs(f.Masters)))
	c := startSeveralContest(t, f, rand.Uint64(), "0", 3, func(random *rand.Rand) time.Duration {
		return time.Duration(random.Int64N(int64(4 * time.Millisecond)))
	})
	err := c.WaitFor(t, int(grants))
	c.Stop()
	c.Report(t)
	c.reportWaits(t)
	kit.Must(t, err)
	c.wantNoOverlap(t)
}
