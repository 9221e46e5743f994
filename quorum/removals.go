package quorum

import (
	"container/heap"
	"context"
	"errors"
	"sync"
	"time"

	"redlock-proxy/internal/pacing"
	"redlock-proxy/quorum/register"
)

// A version that a command with an error may have put under a key is owed its removal: nobody holds a lock by it. So is a version whose
// release was answered with NOQUORUM. It is removed by ballot, by its version and never by its token, as soon as a majority can; over
// changes of the masters, and for at most as long as its lease. REGISTER.md (Taking back) says why that is enough.

// removals are those that are owed.
type removals struct {
	mu    sync.Mutex
	all   map[owedVersion]*removal
	due   dueRemovals // those that no payment is under way for
	bytes int
	// news is sent to when one is owed.
	news chan struct{}
}

type owedVersion struct {
	key Key
	// version is empty where no version is to be removed, but the masters are to agree on the end of what they hold.
	version string
}

type removal struct {
	owedVersion
	// until is when the lease is over.
	until time.Time
	// next is when it is due, and pause how long to wait after a payment that failed.
	next  time.Time
	pause time.Duration
	// mayArrive reports whether the version may still come to so many masters that they make a majority; nil: no.
	mayArrive func() bool
	// paid is set once a majority has answered since it was asked for.
	paid bool
}

const (
	// mostOwed and mostOwedBytes bound what is remembered: beyond them the TTL of the keys has to do.
	mostOwed, mostOwedBytes = 1 << 17, 64 << 20
	// paymentsAtOnce bounds the ballots that run beside each other.
	paymentsAtOnce = 16
	// paymentTime bounds one of them.
	paymentTime = 2 * time.Second
	// firstPause and longestPause bound the pauses between them.
	firstPause, longestPause = 50 * time.Millisecond, time.Second
)

func newRemovals() *removals {
	return &removals{all: map[owedVersion]*removal{}, news: make(chan struct{}, 1)}
}

func (r *removal) bytes() int {
	return len(r.key.Name) + len(r.key.Tag) + len(r.version)
}

// add remembers a removal, and reports whether there was room.
func (r *removals) add(one *removal) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if known := r.all[one.owedVersion]; known != nil {
		if one.until.After(known.until) {
			known.until = one.until
		}
		if one.mayArrive != nil {
			known.mayArrive = one.mayArrive
		}
		return true
	}
	if len(r.all) >= mostOwed || r.bytes+one.bytes() > mostOwedBytes {
		return false
	}
	r.all[one.owedVersion] = one
	r.bytes += one.bytes()
	heap.Push(&r.due, one)
	r.tell()
	return true
}

// take gives one that is due, or for how long none is.
func (r *removals) take(now time.Time) (one *removal, wait time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.due) > 0 {
		if one = r.due[0]; one.next.After(now) {
			return nil, one.next.Sub(now)
		}
		heap.Pop(&r.due)
		if now.Before(one.until) {
			return one, 0
		}
		r.forget(one)
	}
	return nil, time.Hour
}

func (r *removals) forget(one *removal) {
	delete(r.all, one.owedVersion)
	r.bytes -= one.bytes()
}

// settled notes whether a payment came to its end: a majority has answered that nothing of the version is there any more.
func (r *removals) settled(one *removal, paid bool, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch one.paid = one.paid || paid; {
	case paid && (one.mayArrive == nil || !one.mayArrive()):
		r.forget(one)
		return
	case paid:
		one.pause = longestPause
	default:
		one.pause = min(max(2*one.pause, firstPause), longestPause)
	}
	one.next = now.Add(one.pause)
	heap.Push(&r.due, one)
	r.tell()
}

// tell has who pays look again at what is due.
func (r *removals) tell() {
	select {
	case r.news <- struct{}{}:
	default:
	}
}

// owes reports whether a version of a key is owed its removal.
func (r *removals) owes(key Key, version string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all[versionOf(key, version)] != nil
}

// versionOf is a version of a key, wherever its locks were when a command named it: pay sees to that.
func versionOf(key Key, version string) owedVersion {
	key.Moves, key.Era = false, 0
	return owedVersion{key, version}
}

// len is how many there are.
func (r *removals) len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.all)
}

// ask has all be paid at once.
func (r *removals) ask(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, one := range r.all {
		one.paid = false
	}
	for _, one := range r.due {
		one.next = now
	}
	heap.Init(&r.due)
	r.tell()
}

// unpaid is how many have not been paid since they were asked for.
func (r *removals) unpaid() (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, one := range r.all {
		if !one.paid {
			n++
		}
	}
	return n
}

// dueRemovals is a heap of them, the first to be due first.
type dueRemovals []*removal

func (d dueRemovals) Len() int           { return len(d) }
func (d dueRemovals) Less(i, j int) bool { return d[i].next.Before(d[j].next) }
func (d dueRemovals) Swap(i, j int)      { d[i], d[j] = d[j], d[i] }
func (d *dueRemovals) Push(one any)      { *d = append(*d, one.(*removal)) }
func (d *dueRemovals) Pop() any {
	last := len(*d) - 1
	one := (*d)[last]
	(*d)[last], *d = nil, (*d)[:last]
	return one
}

// owe has a version of a key removed, for as long as its lease of ttl may last. mayArrive is as of a removal.
func (c *Cluster) owe(key Key, version string, ttl time.Duration, mayArrive func() bool) {
	now := time.Now()
	if ttl < 0 {
		ttl = c.now().guards.MaxTTL()
	}
	if key.Tag == "" && version != "" {
		c.now().keyspace(key.DB).Disown(key.Name, version)
	}
	one := &removal{owedVersion: versionOf(key, version), until: now.Add(ttl + register.Limit), next: now, mayArrive: mayArrive}
	if !c.removals.add(one) {
		c.log.Warn("a lock that may be held by nobody stays until its TTL ends: too many removals are pending", "key", key.Name)
	}
}

// RemovalsPending is how many versions of keys are owed their removal, after an error or because their client did not learn of them.
func (c *Cluster) RemovalsPending() int { return c.removals.len() }

// payRemovals pays what is owed, until ctx ends.
func (c *Cluster) payRemovals(ctx context.Context) {
	slots := make(chan struct{}, paymentsAtOnce)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for ctx.Err() == nil {
		if !c.HasQuorum() {
			_ = pacing.Sleep(ctx, firstPause)
			continue
		}
		one, wait := c.removals.take(time.Now())
		if one == nil {
			timer.Reset(wait)
			select {
			case <-c.removals.news:
			case <-timer.C:
			case <-ctx.Done():
			}
			continue
		}
		slots <- struct{}{}
		c.tasks.Go(func() {
			defer func() { <-slots }()
			c.removals.settled(one, c.pay(ctx, one), time.Now())
		})
	}
}

// pay removes a version, and reports whether a majority has answered that it is gone or was never there. Nothing is removed once this proxy holds
// back for a move, and what another set of masters was given meanwhile is not known.
func (c *Cluster) pay(ctx context.Context, one *removal) bool {
	if at, _ := c.Placed(); (at.Moves() || c.Departing()) && c.holding.Load() == int64(at.Era)+1 || !c.HasQuorum() {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, paymentTime)
	defer cancel()
	before := c.now()
	_, err := on(ctx, c, func(g *generation) (struct{}, error) { return struct{}{}, g.pay(ctx, one) })
	return (err == nil || errors.Is(err, ErrForeign)) && c.now() == before
}

func (g *generation) pay(ctx context.Context, one *removal) error {
	if one.version == "" {
		return g.explain(g.keyspace(one.key.DB).Settle(ctx, one.key.cell()))
	}
	looks, err := g.Read(ctx, []Key{one.key})
	if err != nil || looks[0].Version != one.version { // a ballot would be in the way of another who holds it
		return err
	}
	_, err = g.UpdateAll(ctx, []Key{one.key}, nil, only(func(l Look) (Decision, error) {
		if l.Present && l.Version == one.version {
			return Decision{Do: Remove}, nil
		}
		return Decision{}, nil
	}))
	return err
}

// settleRemovals waits until each version that is owed its removal now has got it from a majority, or ctx ends.
func (c *Cluster) settleRemovals(ctx context.Context) error {
	for c.removals.ask(time.Now()); c.removals.unpaid() > 0; {
		if err := pacing.Sleep(ctx, 5*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}
