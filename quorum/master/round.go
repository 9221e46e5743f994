package master

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"redlock-proxy/quorum/cell"
	"redlock-proxy/quorum/register"
)

// Round is operations at several masters, and their replies. It is a register.Asked.
type Round struct {
	ops     []op
	decided func([]register.Reply) bool
	done    chan struct{} // has one when it is decided, or all replies are in

	mu      sync.Mutex
	replies []register.Reply
	closed  bool
	// shown: the replies are its caller's. What comes after that goes to later, or waits for
	// it in tail.
	shown bool
	later func(int, register.Reply)
	tail  []tailed

	// common is what several are to do.
	common change
	// uses counts who may still come back to it: the caller until Forget, and each op that a lane
	// has not let go. pool takes it when there is none; nil: nobody does.
	uses atomic.Int32
	pool *Rounds
}

// tailed is a reply that came when the others were shown.
type tailed struct {
	master int
	got    register.Reply
}

// Rounds are rounds of the same masters, whose memory is used again. The zero value is ready.
type Rounds struct{ free sync.Pool }

// take is a round of n masters, of which none is asked yet.
func (rs *Rounds) take(n int, decided func([]register.Reply) bool) *Round {
	r, _ := rs.free.Get().(*Round)
	if r == nil || len(r.ops) != n {
		r = newRound(n, decided)
	}
	r.decided, r.pool = decided, rs
	return r
}

// newRound is a round of n masters, of which none is asked yet.
func newRound(n int, decided func([]register.Reply) bool) *Round {
	r := &Round{ops: make([]op, n), replies: make([]register.Reply, n), decided: decided, done: make(chan struct{}, 1)}
	for i := range r.ops {
		r.ops[i].round, r.ops[i].index = r, int32(i)
	}
	return r
}

// Forget is called by who does not look at it any more, nor at the replies. Later goes on.
func (r *Round) Forget() { r.letGo() }

// letGo is for each who will not come back. After the last one the round is used again.
func (r *Round) letGo() {
	if r.uses.Add(-1) == 0 && r.pool != nil {
		r.clean()
		r.pool.free.Put(r)
	}
}

// clean makes a round of which nobody knows any more as a new one.
func (r *Round) clean() {
	for i := range r.ops {
		o := &r.ops[i]
		o.change, o.whole = nil, false
		o.stage.Store(stageQueued)
	}
	clear(r.replies)
	clear(r.tail)
	r.decided, r.later, r.tail, r.closed, r.shown = nil, nil, r.tail[:0], false, false
	r.common.do = nil
	if cap(r.common.words) > keptWords {
		r.common.words = nil
	}
	select {
	case <-r.done: // its caller left before
	default:
	}
}

// keptWords is the most of a command's memory that is kept with a round, in bytes.
const keptWords = 1 << 10

// Send gives ops[i] to masters[i], where there is one, in a database. A master that is down answers
// at once. The round is over when it is decided, which decided says of the replies so far, also of
// none; see Wait. queued, unless it is nil, is called when all are queued and before they are sent:
// it reports whether more is about to follow for the same masters, which is to leave with them.
func (rs *Rounds) Send(masters []*Master, db int, ops []cell.Op, decided func([]register.Reply) bool, queued func() (more bool)) *Round {
	r := rs.take(len(masters), decided)
	r.fill(db, ops)
	r.shown = r.decided(r.replies)
	r.send(masters, queued)
	return r
}

// fill puts in what each master is to do. What is the same for several is encoded once.
func (r *Round) fill(db int, ops []cell.Op) {
	var last *change
	uses := int32(1)
	for i, do := range ops {
		if do == nil {
			r.replies[i] = register.Reply{State: register.Failed}
			continue
		}
		switch {
		case last == nil:
			last = &r.common
			last.set(db, do)
		case !isSame(do, last.do):
			last = newChange(db, do)
		}
		r.ops[i].change = last
		uses++
	}
	r.uses.Store(uses)
}

// usualMasters is how many there mostly are at the most.
const usualMasters = 5

// send gives the ops to the lanes of their masters. Those lanes that were idle send at once,
// with what other goroutines that can run now have for them, too.
func (r *Round) send(masters []*Master, queued func() bool) {
	var few [usualMasters]*lane // it stays on the stack
	idle := few[:0]
	for i, m := range masters {
		if o := &r.ops[i]; o.change != nil {
			if l := m.ask(o, queued != nil); l != nil {
				idle = append(idle, l)
			}
		}
	}
	follows := queued != nil && queued()
	switch {
	case len(idle) == 0:
	case follows:
		held := slices.Clone(idle)
		time.AfterFunc(holdTime, func() { launchHeld(held) })
	case queued != nil:
		runtime.Gosched()
		launchHeld(idle)
	default:
		runtime.Gosched()
		for _, l := range idle {
			l.launch()
		}
	}
}

// holdTime is how long what is queued is held for what follows it: by far longer than a goroutine
// needs to be woken and to ask, and shorter than a round trip that anybody would notice.
const holdTime = 200 * time.Microsecond

// launchHeld sends what nobody has sent yet.
func launchHeld(held []*lane) {
	for _, l := range held {
		if l.unhold() {
			l.launch()
		}
	}
}

// Wait is over when the round is decided; the error is the cause of ctx if that ended first.
func (r *Round) Wait(ctx context.Context) error {
	if r.shown { // it was decided before it began
		return nil
	}
	var err error
	select {
	case <-r.done:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.shown = true
	return err
}

// answer takes the reply of master number i.
func (r *Round) answer(i int, got *register.Reply) {
	if report := r.place(i, got); report != nil {
		report(i, *got)
	}
}

// place puts a reply where it belongs. If it is for later, it returns what is to be reported.
func (r *Round) place(i int, got *register.Reply) (report func(int, register.Reply)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case !r.shown:
		r.replies[i] = *got
		if !r.closed && (r.allHere() || r.decided(r.replies)) {
			r.closed = true
			r.done <- struct{}{}
		}
	case r.later != nil:
		return r.later
	default:
		r.tail = append(r.tail, tailed{i, *got})
	}
	return nil
}

// allHere reports whether no reply is missing any more.
func (r *Round) allHere() bool {
	for i := range r.replies {
		if r.replies[i].State == register.Waiting {
			return false
		}
	}
	return true
}

// Replies are those that were there when the round was decided.
func (r *Round) Replies() []register.Reply { return r.replies }

// Later has f called with the replies that came after that, or will.
func (r *Round) Later(f func(master int, got register.Reply)) {
	r.mu.Lock()
	missed := r.tail
	r.tail, r.later = nil, f
	r.mu.Unlock()
	for _, one := range missed {
		f(one.master, one.got)
	}
}

// Drop takes back what was not sent.
func (r *Round) Drop() {
	for i := range r.ops {
		if r.ops[i].change != nil && r.ops[i].drop() {
			r.answer(i, &register.Reply{State: register.Failed})
		}
	}
}
