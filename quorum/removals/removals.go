// Package removals records versions of keys whose removal is pending, and retries each removal
// until a majority of the masters has answered.
//
// A proxy must remove a version that a command may have put under a key if the command ended with
// an error: no client holds this version. It must also remove a version whose release was answered
// with NOQUORUM. REGISTER.md (Taking back) explains why this is enough. This package decides when
// to remove which version, and for how long to try. The caller removes the version.
package removals

import (
	"container/heap"
	"context"
	"sync"
	"time"

	"redlock-proxy/internal/pacing"
)

// Options configures Removals.
type Options[K comparable] struct {
	// Remove removes a version of a key. It reports whether a majority has replied that the version
	// is gone or was never there.
	Remove func(ctx context.Context, key K, version string) bool
	// IsReady reports whether Remove can succeed now.
	IsReady func() bool
	// Size returns the size of a key in bytes.
	Size func(K) int
}

// Removals is a set of pending removals, which Run carries out. It is safe for concurrent use.
type Removals[K comparable] struct {
	opts Options[K]

	mu              sync.Mutex
	pendingRemovals map[keyVersion[K]]*removal[K]
	// scheduledRemovals holds the removals that are not running. pendingCount counts the removals
	// that have not succeeded since WaitAll was last called.
	scheduledRemovals   removalQueue[K]
	bytes, pendingCount int
	// wakeup receives a signal when a removal becomes due earlier.
	wakeup chan struct{}
	// allRemoved is closed when all removals have succeeded. It is nil if WaitAll does not wait.
	allRemoved chan struct{}
}

// keyVersion identifies a version of a key.
type keyVersion[K comparable] struct {
	key     K
	version string
}

// removal is a pending removal.
type removal[K comparable] struct {
	keyVersion[K]
	// leaseEnd is the time at which the lease expires.
	leaseEnd time.Time
	// nextAttempt is the time at which Remove is due next. pause is the time between the last call
	// of Remove and nextAttempt.
	nextAttempt time.Time
	pause       time.Duration
	// mayArrive reports whether the version may still arrive at a majority of the masters; nil
	// means that it may not.
	mayArrive func() bool
	removed   bool
}

const (
	// maxPending and maxBytes limit the recorded versions. Further versions stay until their TTL
	// expires.
	maxPending, maxBytes = 1 << 17, 64 << 20
	// maxParallelRemovals limits the concurrent calls of Remove, AttemptTime the duration of each.
	maxParallelRemovals = 16
	AttemptTime         = 2 * time.Second
	// firstPause and longestPause limit the pauses between two calls of Remove for one version.
	firstPause, longestPause = 50 * time.Millisecond, time.Second
)

// New returns an empty set of removals.
func New[K comparable](opts Options[K]) *Removals[K] {
	return &Removals[K]{opts: opts, pendingRemovals: map[keyVersion[K]]*removal[K]{}, wakeup: make(chan struct{}, 1)}
}

// Add records a version that must be removed until its lease expires, and reports whether there was
// room. mayArrive, unless it is nil, reports whether the version may still arrive at a majority of
// the masters. While the version may arrive, Run repeats the removal even after it succeeded.
func (r *Removals[K]) Add(key K, version string, leaseEnd time.Time, mayArrive func() bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	entry := &removal[K]{keyVersion: keyVersion[K]{key, version}, leaseEnd: leaseEnd, nextAttempt: time.Now(), mayArrive: mayArrive}
	if existing := r.pendingRemovals[entry.keyVersion]; existing != nil {
		if leaseEnd.After(existing.leaseEnd) {
			existing.leaseEnd = leaseEnd
		}
		if mayArrive != nil {
			existing.mayArrive = mayArrive
		}
		return true
	}
	if len(r.pendingRemovals) >= maxPending || r.bytes+r.sizeOf(entry) > maxBytes {
		return false
	}
	r.pendingRemovals[entry.keyVersion] = entry
	r.bytes += r.sizeOf(entry)
	r.pendingCount++
	r.push(entry)
	return true
}

// IsPending reports whether the removal of a version of a key is pending.
func (r *Removals[K]) IsPending(key K, version string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pendingRemovals[keyVersion[K]{key, version}] != nil
}

// Len returns the number of pending removals.
func (r *Removals[K]) Len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.pendingRemovals)
}

// Run carries out pending removals until ctx ends. Each call of Remove runs in tasks.
func (r *Removals[K]) Run(ctx context.Context, tasks *sync.WaitGroup) {
	slots := make(chan struct{}, maxParallelRemovals)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		if !r.opts.IsReady() {
			_ = pacing.Sleep(ctx, firstPause)
			continue
		}
		entry, wait := r.nextDueRemoval()
		if entry == nil {
			timer.Reset(wait)
			select {
			case <-r.wakeup:
			case <-timer.C:
			case <-ctx.Done():
			}
			continue
		}
		slots <- struct{}{}
		tasks.Go(func() {
			defer func() { <-slots }()
			attempt, cancel := context.WithTimeout(ctx, AttemptTime)
			defer cancel()
			r.noteAttempt(entry, r.opts.Remove(attempt, entry.key, entry.version))
		})
	}
}

// WaitAll makes all pending removals due. It waits until each removal, including removals added
// meanwhile, has succeeded since the call, or the lease of its version has expired.
//
// The error is the cause of ctx.
func (r *Removals[K]) WaitAll(ctx context.Context) error {
	allRemoved := r.makeAllDue()
	select {
	case <-allRemoved:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// makeAllDue makes all removals due now. It returns a channel that is closed when all removals have
// succeeded.
func (r *Removals[K]) makeAllDue() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, entry := range r.pendingRemovals {
		entry.removed = false
	}
	r.pendingCount = len(r.pendingRemovals)
	for _, entry := range r.scheduledRemovals {
		entry.nextAttempt, entry.pause = time.Now(), 0
	}
	heap.Init(&r.scheduledRemovals)
	r.wake()
	if r.allRemoved == nil {
		r.allRemoved = make(chan struct{})
	}
	allRemoved := r.allRemoved
	r.closeIfAllRemoved()
	return allRemoved
}

// nextDueRemoval returns a removal that is due, or the time until the next removal is due.
func (r *Removals[K]) nextDueRemoval() (entry *removal[K], wait time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for now := time.Now(); len(r.scheduledRemovals) > 0; {
		if entry = r.scheduledRemovals[0]; entry.nextAttempt.After(now) {
			return nil, entry.nextAttempt.Sub(now)
		}
		heap.Pop(&r.scheduledRemovals)
		if now.Before(entry.leaseEnd) {
			return entry, 0
		}
		r.forget(entry)
	}
	return nil, time.Hour
}

// noteAttempt records whether a call of Remove succeeded.
func (r *Removals[K]) noteAttempt(entry *removal[K], removed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case removed && (entry.mayArrive == nil || !entry.mayArrive()):
		r.forget(entry)
		return
	case removed:
		r.markRemoved(entry)
		entry.pause = longestPause
	default:
		entry.pause = min(max(2*entry.pause, firstPause), longestPause)
	}
	entry.nextAttempt = time.Now().Add(entry.pause)
	r.push(entry)
}

func (r *Removals[K]) forget(entry *removal[K]) {
	r.markRemoved(entry)
	delete(r.pendingRemovals, entry.keyVersion)
	r.bytes -= r.sizeOf(entry)
}

func (r *Removals[K]) markRemoved(entry *removal[K]) {
	if !entry.removed {
		entry.removed = true
		r.pendingCount--
		r.closeIfAllRemoved()
	}
}

// closeIfAllRemoved wakes WaitAll if all removals have succeeded.
func (r *Removals[K]) closeIfAllRemoved() {
	if r.pendingCount == 0 && r.allRemoved != nil {
		close(r.allRemoved)
		r.allRemoved = nil
	}
}

func (r *Removals[K]) push(entry *removal[K]) {
	heap.Push(&r.scheduledRemovals, entry)
	r.wake()
}

// wake makes Run check again which removal is due.
func (r *Removals[K]) wake() {
	select {
	case r.wakeup <- struct{}{}:
	default:
	}
}

func (r *Removals[K]) sizeOf(entry *removal[K]) int {
	return r.opts.Size(entry.key) + len(entry.version)
}

// removalQueue is a heap of removals. The removal that is due first is on top.
type removalQueue[K comparable] []*removal[K]

func (d removalQueue[K]) Len() int           { return len(d) }
func (d removalQueue[K]) Less(i, j int) bool { return d[i].nextAttempt.Before(d[j].nextAttempt) }
func (d removalQueue[K]) Swap(i, j int)      { d[i], d[j] = d[j], d[i] }
func (d *removalQueue[K]) Push(entry any)    { *d = append(*d, entry.(*removal[K])) }
func (d *removalQueue[K]) Pop() any {
	last := len(*d) - 1
	entry := (*d)[last]
	(*d)[last], *d = nil, (*d)[:last]
	return entry
}
