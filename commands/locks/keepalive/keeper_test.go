package keepalive

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"redlock-proxy/quorum"
)

// fakeMasters extends locks, and records the time of each extension. No common round extends locks
// whose names begin with "alone".
type fakeMasters struct {
	start time.Time

	mu     sync.Mutex
	calls  []string
	rounds int // the calls of ExtendTogether
	delay  time.Duration
	err    error
}

func (f *fakeMasters) Extend(
	ctx context.Context, key quorum.Key, token string, ttl time.Duration,
) (quorum.GrantedLock, error) {
	f.mu.Lock()
	f.record(key, token, ttl)
	took, err := f.delay, f.err
	f.mu.Unlock()
	return f.answer(ctx, ttl, took, err)
}

// ExtendTogether extends none of the locks if a call of Extend would fail.
func (f *fakeMasters) ExtendTogether(ctx context.Context, requests []quorum.ExtendRequest) []quorum.GrantedLock {
	f.mu.Lock()
	f.rounds++
	leases, took, err := make([]quorum.GrantedLock, len(requests)), f.delay, f.err
	for i, r := range requests {
		if !strings.HasPrefix(r.Key.Name, "alone") {
			f.record(r.Key, r.Token, r.TTL)
			leases[i].LeaseStart = time.Now()
		}
	}
	f.mu.Unlock()
	for i, r := range requests {
		lease, failure := f.answer(ctx, r.TTL, took, err)
		if leases[i].Validity = lease.Validity; failure != nil {
			return make([]quorum.GrantedLock, len(requests))
		}
		took = 0
	}
	return leases
}

// record records an extension. The caller holds mu.
func (f *fakeMasters) record(key quorum.Key, token string, ttl time.Duration) {
	f.calls = append(f.calls, fmt.Sprintf("%v %s %s %v", time.Since(f.start).Round(tick), key.Name, token, ttl))
}

// answer waits for took, and returns a lease or err.
func (f *fakeMasters) answer(ctx context.Context, ttl, took time.Duration, err error) (quorum.GrantedLock, error) {
	select {
	case <-time.After(took):
	case <-ctx.Done():
		return quorum.GrantedLock{}, context.Cause(ctx)
	}
	return quorum.GrantedLock{Validity: ttl*99/100 - took}, err
}

func (f *fakeMasters) set(delay time.Duration, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.delay, f.err = delay, err
}

func (f *fakeMasters) takeCalls() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	text := strings.Join(f.calls, "; ")
	f.calls = nil
	return text
}

// fakeClient is a client's connection, and records the pushes to the client.
type fakeClient struct {
	mu            sync.Mutex
	disconnected  bool
	resp3         bool
	output        string
	unblockSignal chan struct{} // if not nil, Push waits until it is closed
}

func (c *fakeClient) HasDisconnected() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.disconnected
}

func (c *fakeClient) TakesPushes() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.resp3
}

func (c *fakeClient) Push(ctx context.Context, take func() []byte) {
	if c.unblockSignal != nil {
		select {
		case <-c.unblockSignal:
		case <-ctx.Done():
			return
		}
	}
	p := take()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.output += strings.ReplaceAll(string(p), "\r\n", " ")
}

func (c *fakeClient) takeOutput() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	text := c.output
	c.output = ""
	return text
}

const (
	keptPush = ">4 $4 lock $4 kept $1 k "
	lostPush = ">4 $4 lock $4 lost $1 k "
)

// countingObserver is an Observer that counts. It fails the test if a key has an unexpected name.
type countingObserver struct {
	*testing.T
	renewals, losses atomic.Int64
}

func (o *countingObserver) CountRenewal(key quorum.Key) { o.count(&o.renewals, key) }

func (o *countingObserver) CountLoss(key quorum.Key, _ string) { o.count(&o.losses, key) }

func (o *countingObserver) count(n *atomic.Int64, key quorum.Key) {
	if n.Add(1); key.Name == "" {
		o.Errorf("an event of %+v", key)
	}
}

// fixture holds a running Keeper with one client.
type fixture struct {
	*testing.T
	masters *fakeMasters
	keeper  *Keeper
	client  *fakeClient
	holder  *Holder
}

// runInBubble runs a test with virtual time.
func runInBubble(t *testing.T, test func(f *fixture)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		masters := &fakeMasters{start: time.Now()}
		observer := &countingObserver{T: t}
		f := &fixture{T: t, masters: masters, keeper: New(masters, observer), client: &fakeClient{resp3: true}}
		f.holder = f.keeper.NewHolder(f.client)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { f.keeper.Run(ctx); close(ended) }()
		test(f)
		f.holder.Close()
		stop()
		<-ended
		c := f.keeper.Counts()
		if losses := c.TotalLosses() + c.Losses[MaxHold]; observer.renewals.Load() != c.Renewals || observer.losses.Load() != losses {
			t.Errorf("the observer got %d renewals and %d losses, of %+v", observer.renewals.Load(), observer.losses.Load(), c)
		}
		if c.Kept != 0 || len(f.keeper.queue) != 0 || f.holder.Size() != 0 {
			t.Errorf("at the end: %+v, %d in the queue, %d bytes", c, len(f.keeper.queue), f.holder.Size())
		}
	})
}

// keep starts to keep the lock of a key with a TTL of 3 s.
func (f *fixture) keep(holder *Holder, name, token string, maxHold time.Duration) {
	f.Helper()
	l, err := holder.Reserve(quorum.Key{Name: name}, name, token)
	if err != nil {
		f.Fatal(err)
	}
	now := time.Now()
	l.Keep(Term{TTL: 3 * time.Second, LeaseStart: now, ValidUntil: now.Add(2970 * time.Millisecond), MaxHold: maxHold})
}

// expectAfter lets time pass, and checks the renewals and pushes during this time.
func (f *fixture) expectAfter(d time.Duration, calls, output string) {
	f.Helper()
	time.Sleep(d)
	synctest.Wait()
	if got := f.masters.takeCalls(); got != calls {
		f.Errorf("after %v: renewals %q, want %q", time.Since(f.masters.start), got, calls)
	}
	if got := f.client.takeOutput(); got != output {
		f.Errorf("after %v: pushes %q, want %q", time.Since(f.masters.start), got, output)
	}
}

// TestRenewals checks that the Keeper renews a lock at each third of its TTL, until Stop.
func TestRenewals(t *testing.T) {
	runInBubble(t, func(f *fixture) {
		f.keep(f.holder, "k", "t", 0)
		f.expectAfter(999*time.Millisecond, "", "")
		f.expectAfter(11*time.Millisecond, "1s k t 3s", keptPush+":2970 ")
		f.expectAfter(time.Second, "2s k t 3s", keptPush+":2970 ")
		f.keeper.Stop(quorum.Key{Name: "k"}, "other")
		if !f.keeper.IsKept(quorum.Key{Name: "k"}) {
			f.Error("stopped by another token")
		}
		f.keeper.Stop(quorum.Key{Name: "k"}, "t")
		f.expectAfter(time.Minute, "", "")
		if c := f.keeper.Counts(); c.Renewals != 2 || c.Losses != [reasonCount]int64{} {
			f.Errorf("counts %+v", c)
		}
	})
}

// TestMaxHold checks that the last lease ends with MAXHOLD, and that the Keeper tells the
// client.
func TestMaxHold(t *testing.T) {
	runInBubble(t, func(f *fixture) {
		f.keep(f.holder, "k", "t", 4500*time.Millisecond)
		f.expectAfter(1010*time.Millisecond, "1s k t 3s", keptPush+":2970 ")
		f.expectAfter(time.Second, "2s k t 2.5s", keptPush+":2475 ")
		f.expectAfter(2450*time.Millisecond, "", "")
		f.expectAfter(40*time.Millisecond, "", lostPush+"$8 max_hold ")
		f.expectAfter(time.Minute, "", "")
	})
}

// TestLossOfUnheldLock checks that the Keeper tells the client immediately that its lock is
// gone.
func TestLossOfUnheldLock(t *testing.T) {
	runInBubble(t, func(f *fixture) {
		f.keep(f.holder, "k", "t", 0)
		f.masters.set(0, quorum.ErrNotHeld)
		f.expectAfter(1010*time.Millisecond, "1s k t 3s", lostPush+"$8 not_held ")
		f.expectAfter(time.Minute, "", "")
		f.keep(f.holder, "k", "t", 0)
		f.keeper.RemoveLost(quorum.Key{Name: "k"}, "", Forced)
		f.expectAfter(time.Minute, "", lostPush+"$6 forced ")
		if c := f.keeper.Counts(); c.Losses[NotHeld] != 1 || c.Losses[Forced] != 1 {
			f.Errorf("counts %+v", c)
		}
	})
}

// TestRetriesWithoutQuorum checks that a lock without a quorum is lost when its validity ends, even
// while a renewal hangs. If a majority answers again before that time, the lock is kept.
func TestRetriesWithoutQuorum(t *testing.T) {
	for _, took := range []time.Duration{0, time.Hour} {
		runInBubble(t, func(f *fixture) {
			f.keep(f.holder, "k", "t", 0)
			f.masters.set(took, &quorum.NoQuorumError{})
			time.Sleep(2960 * time.Millisecond)
			f.masters.takeCalls()
			f.expectAfter(0, "", "")
			time.Sleep(30 * time.Millisecond)
			f.masters.takeCalls()
			f.expectAfter(0, "", lostPush+"$9 no_quorum ")
			f.expectAfter(time.Minute, "", "")
		})
	}
	runInBubble(t, func(f *fixture) {
		f.keep(f.holder, "k", "t", 0)
		f.masters.set(0, &quorum.NoQuorumError{})
		time.Sleep(2450 * time.Millisecond)
		f.masters.set(0, nil)
		time.Sleep(200 * time.Millisecond)
		// The renewal of the second third follows at once, so that no third is left out. The client may
		// get one push for both.
		synctest.Wait()
		if calls := f.masters.takeCalls(); !strings.HasSuffix(calls, "2.4s k t 3s; 2.5s k t 3s; 2.5s k t 3s") {
			f.Errorf("renewals %q", calls)
		}
		if got := f.client.takeOutput(); got != keptPush+":2970 " && got != keptPush+":2970 "+keptPush+":2970 " {
			f.Errorf("pushes %q", got)
		}
		f.expectAfter(400*time.Millisecond, "3s k t 3s", keptPush+":2970 ")
	})
}

// TestLossOfSeveralLocks checks that locks that are renewed together are lost when their validity
// ends, as a single lock is, even while their round hangs.
func TestLossOfSeveralLocks(t *testing.T) {
	runInBubble(t, func(f *fixture) {
		f.keep(f.holder, "k", "t", 0)
		f.keep(f.holder, "l", "t", 0)
		f.masters.set(time.Hour, nil)
		time.Sleep(2980 * time.Millisecond)
		if c := f.keeper.Counts(); c.Kept != 0 || c.Losses[NoQuorum] != 2 {
			f.Errorf("counts %+v", c)
		}
	})
}

// TestConnectionEnd checks that the Keeper renews no lock once the client has left.
func TestConnectionEnd(t *testing.T) {
	runInBubble(t, func(f *fixture) {
		f.keep(f.holder, "k", "t", 0)
		f.client.mu.Lock()
		f.client.disconnected = true
		f.client.mu.Unlock()
		f.expectAfter(time.Minute, "", "")
		if f.keeper.IsKept(quorum.Key{Name: "k"}) {
			f.Error("still kept")
		}
	})
	runInBubble(t, func(f *fixture) {
		f.keep(f.holder, "k", "t", 0)
		f.holder.Clear()
		f.expectAfter(time.Minute, "", "")
		f.keep(f.holder, "k", "t", 0)
		f.holder.Stop()
		f.keep(f.holder, "k", "t", 0)
		f.expectAfter(time.Minute, "", "")
	})
}

// TestTakeover checks that a second connection can take over a lock. The end of the first
// connection then has no effect on the lock.
func TestTakeover(t *testing.T) {
	runInBubble(t, func(f *fixture) {
		other := &fakeClient{}
		holder := f.keeper.NewHolder(other)
		defer holder.Close()
		f.keep(f.holder, "k", "t", 0)
		f.expectAfter(500*time.Millisecond, "", "")
		f.keep(holder, "k", "t", 0)
		f.holder.Stop()
		f.expectAfter(time.Second, "1.5s k t 3s", "")
		f.keep(holder, "k", "t", 0) // the same connection can also take over the lock
		f.expectAfter(time.Second, "2.5s k t 3s", "")
	})
	runInBubble(t, func(f *fixture) {
		holder := f.keeper.NewHolder(&fakeClient{})
		defer holder.Close()
		f.keep(f.holder, "k", "t", 0)
		f.keep(holder, "k", "other", 0)
		f.expectAfter(1010*time.Millisecond, "1s k other 3s", lostPush+"$8 not_held ")
	})
}

// TestTakeoverBeforeDelivery checks a client whose reply is noted as delivered after another client
// has taken over the lock: the lock stays with the later client.
func TestTakeoverBeforeDelivery(t *testing.T) {
	for _, token := range []string{"t", "other"} {
		runInBubble(t, func(f *fixture) {
			holder := f.keeper.NewHolder(&fakeClient{})
			defer holder.Close()
			earlier := time.Now()
			first, err := f.holder.Reserve(quorum.Key{Name: "k"}, "k", "t")
			if err != nil {
				f.Fatal(err)
			}
			time.Sleep(100 * time.Millisecond)
			f.keep(holder, "k", token, 0)
			first.Keep(Term{TTL: 3 * time.Second, LeaseStart: earlier, ValidUntil: earlier.Add(2970 * time.Millisecond)})
			f.holder.Stop()
			f.expectAfter(1010*time.Millisecond, "1.1s k "+token+" 3s", "")
		})
	}
}

// TestResultAfterDrop checks the end of a renewal whose lock was released or lost meanwhile. The
// renewal changes nothing, and the client gets no push.
func TestResultAfterDrop(t *testing.T) {
	for _, err := range []error{nil, quorum.ErrNotHeld} {
		runInBubble(t, func(f *fixture) {
			f.keep(f.holder, "k", "t", 0)
			f.masters.set(500*time.Millisecond, err)
			f.expectAfter(1100*time.Millisecond, "1s k t 3s", "")
			f.keeper.Stop(quorum.Key{Name: "k"}, "t")
			f.expectAfter(time.Minute, "", "")
		})
	}
}

// TestBlockedClient checks that the number of pushes to a client that does not read stays
// small.
func TestBlockedClient(t *testing.T) {
	runInBubble(t, func(f *fixture) {
		f.client.unblockSignal = make(chan struct{})
		f.keep(f.holder, "k", "t", 0)
		f.expectAfter(10500*time.Millisecond, "1s k t 3s; 2s k t 3s; 3s k t 3s; 4s k t 3s; 5s k t 3s; 6s k t 3s; 7s k t 3s; 8s k t 3s; 9s k t 3s; 10s k t 3s", "")
		close(f.client.unblockSignal)
		f.expectAfter(0, "", keptPush+":2470 ")
	})
}

// TestNoPushesForRESP2 checks that a RESP2 client gets no push.
func TestNoPushesForRESP2(t *testing.T) {
	runInBubble(t, func(f *fixture) {
		f.client.resp3 = false
		f.keep(f.holder, "k", "t", 0)
		f.expectAfter(1010*time.Millisecond, "1s k t 3s", "")
		f.masters.set(0, quorum.ErrNotHeld)
		f.expectAfter(time.Second, "2s k t 3s", "")
	})
}

// TestRenewOnce checks the renewals before the proxy closes a connection. They run immediately,
// cause no push, and do not move later renewals.
func TestRenewOnce(t *testing.T) {
	runInBubble(t, func(f *fixture) {
		f.keep(f.holder, "k", "t", 0)
		f.keep(f.holder, "l", "t", 3*time.Second) // its first lease is already its last
		f.expectAfter(500*time.Millisecond, "", "")
		f.holder.RenewOnce(f.Context())
		f.expectAfter(0, "500ms k t 3s", "")
		f.expectAfter(510*time.Millisecond, "1s k t 3s", keptPush+":2970 ")
		f.masters.set(time.Hour, nil)
		ctx, cancel := context.WithTimeout(f.Context(), 100*time.Millisecond)
		defer cancel()
		f.holder.RenewOnce(ctx)
		f.expectAfter(0, "1.01s k t 3s", "")
	})
}

// TestManyLocks checks that the Keeper renews many locks together, each at its time, and that one
// client cannot keep too many locks.
func TestManyLocks(t *testing.T) {
	runInBubble(t, func(f *fixture) {
		for i := range MaxLocks {
			f.keep(f.holder, fmt.Sprint("k", i), "t", 0)
		}
		f.keep(f.holder, "k1", "t", 0)
		if _, err := f.holder.Reserve(quorum.Key{Name: "more"}, "more", "t"); err == nil ||
			!strings.HasPrefix(err.Error(), "too many kept locks") {
			f.Errorf("one too many: %v", err)
		}
		f.client.resp3 = false
		f.masters.set(5*time.Millisecond, nil)
		time.Sleep(1500 * time.Millisecond)
		if c := f.keeper.Counts(); c.Kept != MaxLocks || c.Renewals != MaxLocks {
			f.Errorf("counts %+v", c)
		}
		f.keeper.mu.Lock()
		defer f.keeper.mu.Unlock()
		if f.keeper.workers != 0 || !slices.ContainsFunc(f.keeper.queue, func(l *Lock) bool { return l.name == "k7" }) {
			f.Errorf("%d workers, %d locks", f.keeper.workers, len(f.keeper.queue))
		}
	})
}

// TestRenewalsTogether checks that locks with the same due time share rounds. If a round does not
// extend a lock, the keeper renews or loses that lock independently.
func TestRenewalsTogether(t *testing.T) {
	runInBubble(t, func(f *fixture) {
		f.client.resp3 = false
		for i := range 2*maxTogether + 1 {
			f.keep(f.holder, fmt.Sprint("k", i), "t", 0)
		}
		f.keep(f.holder, "alone", "t", 0)
		time.Sleep(1010 * time.Millisecond)
		if c := f.keeper.Counts(); c.Renewals != 2*maxTogether+2 || f.masters.rounds != 3 {
			f.Errorf("%d renewals in %d rounds", c.Renewals, f.masters.rounds)
		}
		f.masters.set(0, quorum.ErrNotHeld)
		time.Sleep(time.Second)
		if c := f.keeper.Counts(); c.Kept != 0 || c.Losses[NotHeld] != 2*maxTogether+2 {
			f.Errorf("counts %+v", c)
		}
	})
}

// TestLocksOfOneRound checks that locks with long names, and locks of different databases, do not
// share a round.
func TestLocksOfOneRound(t *testing.T) {
	k := New(nil, nil)
	add := func(n, db, size int) {
		for range n {
			k.dueLocks = append(k.dueLocks, &Lock{key: quorum.Key{DB: db, Name: strings.Repeat("k", size)}})
		}
	}
	add(2, 0, 10)
	add(1, 1, 10)
	add(5, 0, maxTogetherBytes/3)
	add(1, 0, 2*maxTogetherBytes)
	add(maxTogether+1, 0, 1)
	var sizes []int
	for len(k.dueLocks) > 0 {
		sizes = append(sizes, len(k.takeGroup()))
	}
	if want := []int{2, 1, 2, 2, 1, 1, maxTogether, 1}; !slices.Equal(sizes, want) {
		t.Errorf("groups of %v, want %v", sizes, want)
	}
}

// TestDatabasesByTurns checks that locks that cannot share rounds do not wait for each other.
func TestDatabasesByTurns(t *testing.T) {
	runInBubble(t, func(f *fixture) {
		f.client.resp3 = false
		f.masters.set(100*time.Millisecond, nil)
		const n = 200
		for i := range n {
			l, err := f.holder.Reserve(quorum.Key{Name: fmt.Sprint("k", i), DB: i % 2}, "k", "t")
			if err != nil {
				f.Fatal(err)
			}
			now := time.Now()
			l.Keep(Term{TTL: 3 * time.Second, LeaseStart: now, ValidUntil: now.Add(2970 * time.Millisecond)})
			time.Sleep(time.Microsecond) // so they become due by turns
		}
		time.Sleep(1500 * time.Millisecond)
		if c := f.keeper.Counts(); c.Renewals != n {
			f.Errorf("%d of %d locks were renewed", c.Renewals, n)
		}
	})
}

// TestPanicDuringRenewal checks that a renewal that panics counts as failed.
func TestPanicDuringRenewal(t *testing.T) {
	runInBubble(t, func(f *fixture) {
		f.keep(f.holder, "k", "t", 0)
		f.masters.set(0, errors.New("bug"))
		time.Sleep(2990 * time.Millisecond)
		f.masters.takeCalls()
		f.expectAfter(0, "", lostPush+"$6 failed ")
	})
}
