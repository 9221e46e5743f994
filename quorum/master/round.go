package master

import (
	"context"
	"runtime"
	"slices"
	"sync"

	"redlock-proxy/quorum/cell"
	"redlock-proxy/quorum/register"
)

// Round is operations at several masters, and their replies. It is a register.Asked.
type Round struct {
	ops     []op
	decided func([]register.Reply) bool
	done    chan struct{} // closed when it is decided, or all replies are in

	mu      sync.Mutex
	replies []register.Reply
	closed  bool
	// shown are the replies that its caller was given; what comes after that is told to
	// later, or waits for it in tail.
	shown []register.Reply
	later func(int, register.Reply)
	tail  []int
}

// usualMasters is for how many masters a round is made in one piece.
const usualMasters = 5

// usualRound is a round with what it has for each master.
type usualRound struct {
	Round
	ops     [usualMasters]op
	replies [2 * usualMasters]register.Reply
}

// newRound is a round of n masters, of which none is asked yet.
func newRound(n int, decided func([]register.Reply) bool) *Round {
	if n > usualMasters {
		return &Round{
			ops: make([]op, n), replies: make([]register.Reply, n), shown: make([]register.Reply, 0, n),
			decided: decided, done: make(chan struct{}),
		}
	}
	u := &usualRound{}
	u.Round.ops, u.Round.replies, u.Round.shown = u.ops[:n], u.replies[:n:n], u.replies[n:n:2*n]
	u.decided, u.done = decided, make(chan struct{})
	return &u.Round
}

// Send gives ops[i] to masters[i], where there is one, in a database. A master that is down
// answers at once. The round is over when it is decided, which decided says of the replies
// so far; see Wait.
func Send(masters []*Master, db int, ops []cell.Op, decided func([]register.Reply) bool) *Round {
	r := newRound(len(masters), decided)
	r.fill(db, ops)
	r.send(masters)
	return r
}

// fill puts in what each master is to do. What is the same for several is encoded once.
func (r *Round) fill(db int, ops []cell.Op) {
	var last *change
	var lastOp cell.Op
	for i, do := range ops {
		if do == nil {
			r.replies[i] = register.Reply{State: register.Failed}
			continue
		}
		if last == nil || !isSame(do, lastOp) {
			last, lastOp = newChange(db, do), do
		}
		r.set(i, last)
	}
}

// set puts in what master number i is to do.
func (r *Round) set(i int, what *change) {
	o := &r.ops[i]
	o.change, o.round, o.index = what, r, int32(i)
}

// send gives the ops to the lanes of their masters. Those lanes that were idle send at once,
// with what other goroutines that can run now have for them, too.
func (r *Round) send(masters []*Master) {
	var few [usualMasters]*lane
	idle := few[:0]
	for i, m := range masters {
		if o := &r.ops[i]; o.change != nil {
			if l := m.ask(o); l != nil {
				idle = append(idle, l)
			}
		}
	}
	if len(idle) == 0 {
		return
	}
	runtime.Gosched()
	for _, l := range idle {
		l.launch()
	}
}

// Wait is over when the round is decided; the error is the cause of ctx if that ended first.
func (r *Round) Wait(ctx context.Context) error {
	var err error
	select {
	case <-r.done:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.shown = append(r.shown, r.replies...)
	return err
}

// answer takes the reply of master number i.
func (r *Round) answer(i int, got register.Reply) {
	if tell := r.place(i, got); tell != nil {
		tell(i, got)
	}
}

// place puts a reply where it belongs. If it is for later, it returns what is to be told.
func (r *Round) place(i int, got register.Reply) (tell func(int, register.Reply)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.replies[i] = got
	switch {
	case len(r.shown) == 0:
		if !r.closed && (r.allHere() || r.decided(r.replies)) {
			r.closed = true
			close(r.done)
		}
	case r.later != nil:
		return r.later
	default:
		r.tail = append(r.tail, i)
	}
	return nil
}

// allHere reports whether no reply is missing any more.
func (r *Round) allHere() bool {
	return !slices.ContainsFunc(r.replies, func(one register.Reply) bool { return one.State == register.Waiting })
}

// Replies are those that were there when the round was decided.
func (r *Round) Replies() []register.Reply { return r.shown }

// Later has f told of the replies that came after that, or will.
func (r *Round) Later(f func(master int, got register.Reply)) {
	r.mu.Lock()
	missed := r.tail
	r.tail, r.later = nil, f
	r.mu.Unlock()
	for _, i := range missed {
		f(i, r.replies[i])
	}
}

// Drop takes back what was not sent.
func (r *Round) Drop() {
	for i := range r.ops {
		if r.ops[i].change != nil && r.ops[i].drop() {
			r.answer(i, register.Reply{State: register.Failed})
		}
	}
}
