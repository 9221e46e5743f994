// Package removals remembers which versions of keys are owed their removal, and has each removed
// until a majority of the masters has answered.
//
// A version that a command with an error may have put under a key is owed its removal: nobody holds
// a lock by it. So is a version whose release was answered with NOQUORUM. REGISTER.md (Taking back)
// says why that is enough. How a version is removed is the caller's: this package says which one,
// when, and until when.
package removals

import (
	"container/heap"
	"context"
	"sync"
	"time"

	"redlock-proxy/internal/pacing"
)

// Options say how removals are paid.
type Options[K comparable] struct {
	// Pay removes a version of a key, and reports whether a majority has answered that it is gone
	// or was never there.
	Pay func(ctx context.Context, key K, version string) bool
	// Ready reports whether a payment can succeed now.
	Ready func() bool
	// Size returns how many bytes a key takes.
	Size func(K) int
}

// Removals are those that are owed. It is safe for concurrent use; they are paid while Run runs.
type Removals[K comparable] struct {
	opts Options[K]

	mu  sync.Mutex
	all map[owed[K]]*removal[K]
	// due are those for which no payment is under way, unpaid how many were not paid since Settle
	// was called.
	due           dueFirst[K]
	bytes, unpaid int
	// news is sent to when something is due earlier than before.
	news chan struct{}
	// settled is closed when all are paid; nil: Settle does not wait.
	settled chan struct{}
}

type owed[K comparable] struct {
	key     K
	version string
}

type removal[K comparable] struct {
	owed[K]
	// until is when the lease is over.
	until time.Time
	// next is when the next payment is due, pause the time between the last one that failed and
	// that.
	next  time.Time
	pause time.Duration
	// mayArrive reports whether the version may still come to so many masters that they make a
	// majority; nil: no.
	mayArrive func() bool
	paid      bool
}

const (
	// mostOwed and mostBytes bound what is remembered: beyond them the TTL of the keys has to do.
	mostOwed, mostBytes = 1 << 17, 64 << 20
	// paymentsAtOnce bounds the payments that run at the same time, PaymentTime how long each
	// takes.
	paymentsAtOnce = 16
	PaymentTime    = 2 * time.Second
	// firstPause and longestPause bound the pauses between payments for one version.
	firstPause, longestPause = 50 * time.Millisecond, time.Second
)

// New returns removals of which none is owed yet.
func New[K comparable](opts Options[K]) *Removals[K] {
	return &Removals[K]{opts: opts, all: map[owed[K]]*removal[K]{}, news: make(chan struct{}, 1)}
}

// Add owes a version its removal until its lease is over, and reports whether there was room. Once
// it was paid it is paid again as long as mayArrive, unless it is nil, reports that the version may
// still arrive at a majority.
func (r *Removals[K]) Add(key K, version string, until time.Time, mayArrive func() bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	one := &removal[K]{owed: owed[K]{key, version}, until: until, next: time.Now(), mayArrive: mayArrive}
	if known := r.all[one.owed]; known != nil {
		if until.After(known.until) {
			known.until = until
		}
		if mayArrive != nil {
			known.mayArrive = mayArrive
		}
		return true
	}
	if len(r.all) >= mostOwed || r.bytes+r.sizeOf(one) > mostBytes {
		return false
	}
	r.all[one.owed] = one
	r.bytes += r.sizeOf(one)
	r.unpaid++
	r.push(one)
	return true
}

// Owes reports whether a version of a key is owed its removal.
func (r *Removals[K]) Owes(key K, version string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all[owed[K]{key, version}] != nil
}

// Len returns how many are owed.
func (r *Removals[K]) Len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.all)
}

// Run pays what is owed until ctx ends. Each payment is a task of tasks.
func (r *Removals[K]) Run(ctx context.Context, tasks *sync.WaitGroup) {
	slots := make(chan struct{}, paymentsAtOnce)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		if !r.opts.Ready() {
			_ = pacing.Sleep(ctx, firstPause)
			continue
		}
		one, wait := r.take()
		if one == nil {
			timer.Reset(wait)
			select {
			case <-r.news:
			case <-timer.C:
			case <-ctx.Done():
			}
			continue
		}
		slots <- struct{}{}
		tasks.Go(func() {
			defer func() { <-slots }()
			paying, cancel := context.WithTimeout(ctx, PaymentTime)
			defer cancel()
			r.settle(one, r.opts.Pay(paying, one.key, one.version))
		})
	}
}

// Settle waits until each version that is owed its removal when Settle is called was paid after
// that.
//
// The error is the cause of ctx.
func (r *Removals[K]) Settle(ctx context.Context) error {
	settled := r.payAll()
	select {
	case <-settled:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// payAll makes all due at once, and returns what is closed when they are paid.
func (r *Removals[K]) payAll() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, one := range r.all {
		one.paid = false
	}
	r.unpaid = len(r.all)
	for _, one := range r.due {
		one.next, one.pause = time.Now(), 0
	}
	heap.Init(&r.due)
	r.tell()
	if r.settled == nil {
		r.settled = make(chan struct{})
	}
	settled := r.settled
	r.checkSettled()
	return settled
}

// take returns a removal that is due, or for how long none is.
func (r *Removals[K]) take() (one *removal[K], wait time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for now := time.Now(); len(r.due) > 0; {
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

// settle notes whether a payment succeeded.
func (r *Removals[K]) settle(one *removal[K], paid bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case paid && (one.mayArrive == nil || !one.mayArrive()):
		r.forget(one)
		return
	case paid:
		r.markPaid(one)
		one.pause = longestPause
	default:
		one.pause = min(max(2*one.pause, firstPause), longestPause)
	}
	one.next = time.Now().Add(one.pause)
	r.push(one)
}

func (r *Removals[K]) forget(one *removal[K]) {
	r.markPaid(one)
	delete(r.all, one.owed)
	r.bytes -= r.sizeOf(one)
}

func (r *Removals[K]) markPaid(one *removal[K]) {
	if !one.paid {
		one.paid = true
		r.unpaid--
		r.checkSettled()
	}
}

// checkSettled wakes Settle if all are paid.
func (r *Removals[K]) checkSettled() {
	if r.unpaid == 0 && r.settled != nil {
		close(r.settled)
		r.settled = nil
	}
}

func (r *Removals[K]) push(one *removal[K]) {
	heap.Push(&r.due, one)
	r.tell()
}

// tell makes Run look again at what is due.
func (r *Removals[K]) tell() {
	select {
	case r.news <- struct{}{}:
	default:
	}
}

func (r *Removals[K]) sizeOf(one *removal[K]) int { return r.opts.Size(one.key) + len(one.version) }

// dueFirst is a heap: the first to be due is on top.
type dueFirst[K comparable] []*removal[K]

func (d dueFirst[K]) Len() int           { return len(d) }
func (d dueFirst[K]) Less(i, j int) bool { return d[i].next.Before(d[j].next) }
func (d dueFirst[K]) Swap(i, j int)      { d[i], d[j] = d[j], d[i] }
func (d *dueFirst[K]) Push(one any)      { *d = append(*d, one.(*removal[K])) }
func (d *dueFirst[K]) Pop() any {
	last := len(*d) - 1
	one := (*d)[last]
	(*d)[last], *d = nil, (*d)[:last]
	return one
}
