package keepalive

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"redlock-proxy/quorum"
)

const (
	// tick is the shortest pause between two checks of the queue, unless a lock is queued for an
	// earlier time. Renewals that become due within a tick share rounds.
	tick = 10 * time.Millisecond
	// maxWorkers limits the rounds that run at the same time.
	maxWorkers = 1024
)

// Locks extends locks. *quorum.Locker implements it, and documents the errors.
type Locks interface {
	Extend(ctx context.Context, key quorum.Key, token string, ttl time.Duration) (quorum.GrantedLock, error)
	ExtendTogether(ctx context.Context, requests []quorum.ExtendRequest) []quorum.GrantedLock
}

// Observer observes the kept locks, for metrics. Its methods must not wait.
type Observer interface {
	CountRenewal(key quorum.Key)
	CountLoss(key quorum.Key, reason string)
}

// noObserver is an Observer that does nothing.
type noObserver struct{}

func (noObserver) CountRenewal(quorum.Key)      {}
func (noObserver) CountLoss(quorum.Key, string) {}

// Keeper renews the kept locks of all clients. It is safe for concurrent use.
type Keeper struct {
	masters  Locks
	observer Observer

	mu    sync.Mutex
	locks map[quorum.Key]*Lock
	queue queue // the locks that wait for their time
	// dueLocks holds the locks to renew now, together. singleLocks holds the locks that a common
	// round did not extend.
	dueLocks, singleLocks []*Lock
	ctx                   context.Context
	nextCheck             time.Time // the time at which Run checks the queue again
	// workers counts the goroutines that renew.
	workers int
	tasks   sync.WaitGroup

	wakeSignal chan struct{}
	keptCount  atomic.Int64
	renewals   atomic.Int64
	losses     [reasonCount]atomic.Int64
}

// New returns a Keeper of locks on the masters. The Keeper renews no lock before Run. The observer
// may be nil.
func New(masters Locks, observer Observer) *Keeper {
	if observer == nil {
		observer = noObserver{}
	}
	return &Keeper{masters: masters, observer: observer, locks: map[quorum.Key]*Lock{}, wakeSignal: make(chan struct{}, 1)}
}

// Counts holds the counters of a Keeper.
type Counts struct {
	// Kept is the current number of kept locks. Renewals counts the renewals that succeeded, and
	// Losses the kept locks that were lost, by Reason.
	Kept, Renewals int64
	Losses         [reasonCount]int64
}

// TotalLosses returns the number of kept locks that were lost, except by MAXHOLD.
func (c Counts) TotalLosses() (n int64) {
	for _, reason := range Reasons() {
		if reason != MaxHold {
			n += c.Losses[reason]
		}
	}
	return n
}

// Counts returns the current counters.
func (k *Keeper) Counts() Counts {
	c := Counts{Kept: k.keptCount.Load(), Renewals: k.renewals.Load()}
	for i := range k.losses {
		c.Losses[i] = k.losses[i].Load()
	}
	return c
}

// IsKept reports whether the lock of a key is a kept lock of a client of this proxy.
func (k *Keeper) IsKept(key quorum.Key) bool {
	if k.keptCount.Load() == 0 {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.locks[key] != nil
}

// Stop stops keeping the lock of a key, if it has this token. It does not notify the client.
func (k *Keeper) Stop(key quorum.Key, token string) {
	if k.keptCount.Load() == 0 {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if l := k.locks[key]; l != nil && l.token == token {
		k.drop(l)
	}
}

// RemoveLost removes the kept lock of a key, and tells its client the reason. If token is not
// empty, RemoveLost removes only a lock with this token.
func (k *Keeper) RemoveLost(key quorum.Key, token string, reason Reason) {
	if k.keptCount.Load() == 0 {
		return
	}
	k.mu.Lock()
	l := k.locks[key]
	if l == nil || token != "" && l.token != token {
		k.mu.Unlock()
		return
	}
	k.dropLost(l, reason)
	k.mu.Unlock()
	l.holder.announce(push{lock: l, lost: true, reason: reason})
}

// RemoveAllLost removes the kept locks of all holders of a key, and tells their clients the reason.
func (k *Keeper) RemoveAllLost(key quorum.Key, reason Reason) {
	if k.keptCount.Load() == 0 {
		return
	}
	k.mu.Lock()
	var lost []*Lock
	for one, l := range k.locks {
		if one.Holder != "" && one.OfHolder("") == key {
			k.dropLost(l, reason)
			lost = append(lost, l)
		}
	}
	k.mu.Unlock()
	for _, l := range lost {
		l.holder.announce(push{lock: l, lost: true, reason: reason})
	}
	k.RemoveLost(key, "", reason)
}

// Run renews locks until ctx ends. It returns when the last renewal has ended.
func (k *Keeper) Run(ctx context.Context) {
	k.mu.Lock()
	k.ctx = ctx
	k.mu.Unlock()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		timer.Reset(k.dispatch(time.Now()))
		select {
		case <-ctx.Done():
		case <-k.wakeSignal:
		case <-timer.C:
		}
	}
	k.mu.Lock()
	k.ctx = nil // prevents the start of further workers
	k.mu.Unlock()
	k.tasks.Wait()
}

// idlePause is the pause of a Keeper without locks.
const idlePause = time.Hour

// dispatch hands the locks that are due to workers, and returns the pause until the next check.
func (k *Keeper) dispatch(now time.Time) time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	for len(k.queue) > 0 && !k.queue[0].at.After(now) {
		l := k.queue[0]
		k.queue.remove(l)
		k.dueLocks = append(k.dueLocks, l)
	}
	k.startWorkers()
	pause := idlePause
	if len(k.queue) > 0 {
		pause = max(tick, k.queue[0].at.Sub(now))
	}
	k.nextCheck = now.Add(pause)
	return pause
}

// startWorkers starts a worker for each round of renewals, up to maxWorkers. The caller holds mu.
func (k *Keeper) startWorkers() {
	if k.ctx == nil {
		return
	}
	ctx := k.ctx
	rounds := len(k.singleLocks) + (len(k.dueLocks)+maxTogether-1)/maxTogether
	for n := min(rounds, maxWorkers-k.workers); n > 0; n-- {
		k.workers++
		k.tasks.Go(func() { k.work(ctx) })
	}
}

// work renews locks until none is due.
func (k *Keeper) work(ctx context.Context) {
	for locks := k.nextLocks(); len(locks) > 0; locks = k.nextLocks() {
		if len(locks) > 1 {
			k.renewTogether(ctx, locks)
		} else {
			k.renewAlone(ctx, locks[0])
		}
	}
}

// nextLocks returns the locks to renew next, several of them together. If no lock is due, it ends
// the worker and returns none.
func (k *Keeper) nextLocks() []*Lock {
	k.mu.Lock()
	defer k.mu.Unlock()
	if n := len(k.singleLocks); n > 0 {
		l := k.singleLocks[n-1]
		k.singleLocks[n-1] = nil
		k.singleLocks = k.singleLocks[:n-1]
		return []*Lock{l}
	}
	if len(k.dueLocks) > 0 {
		group := k.takeGroup()
		if len(group) < maxTogether { // startWorkers has counted on fewer, larger rounds
			k.startWorkers()
		}
		return group
	}
	k.workers--
	k.singleLocks = nil
	return nil
}

// schedule queues a lock that waits until a time. The caller holds mu.
func (k *Keeper) schedule(l *Lock, at time.Time) {
	l.at = at
	k.queue.add(l)
	if at.Before(k.nextCheck) {
		k.nextCheck = at
		select {
		case k.wakeSignal <- struct{}{}:
		default:
		}
	}
}

// drop removes a lock. The caller holds mu.
func (k *Keeper) drop(l *Lock) {
	if l.dropped {
		return
	}
	l.dropped = true
	k.queue.remove(l)
	k.keptCount.Add(-1)
	if k.locks[l.key] == l {
		delete(k.locks, l.key)
	}
	l.holder.forget(l)
}

// dropLost removes a lock that was lost. The caller holds mu, and tells the client afterwards.
func (k *Keeper) dropLost(l *Lock, reason Reason) {
	if !l.dropped {
		k.losses[reason].Add(1)
		k.observer.CountLoss(l.key, reason.String())
		k.drop(l)
	}
}
