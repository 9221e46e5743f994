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

// Round implements register.Round. It holds one operation for each of several masters, and their
// replies.
type Round struct {
	ops []op
	// decided reports whether the replies so far decide the round.
	decided func([]register.Reply) bool
	done    chan struct{} // gets one value when the round is decided, or all masters have replied

	mu      sync.Mutex
	replies []register.Reply
	// signalled is set once done got its value.
	signalled bool
	// handedOver is set once the caller owns replies. Then handleReply passes further replies to
	// onLaterReply, or stores them in lateReplies until onLaterReply is set.
	handedOver   bool
	onLaterReply func(int, register.Reply)
	lateReplies  []lateReply

	// commonCommand is the command that several masters share.
	commonCommand command
	// refs counts the references: the caller until Release, and each op that is still in a lane.
	// Without references the round returns to pool, unless pool is nil.
	refs atomic.Int32
	pool *Rounds
}

// lateReply holds a reply that arrived after the caller got the replies.
type lateReply struct {
	master int
	reply  register.Reply
}

// Rounds is a pool of rounds of the same masters. The zero value is ready for use.
type Rounds struct {
	freeRounds sync.Pool
	// enqueueMu makes all masters get the rounds in the same order. Otherwise two LOCKs of a free
	// key might take some masters each.
	enqueueMu sync.Mutex
}

// get returns a round of n masters without operations.
func (rs *Rounds) get(n int, decided func([]register.Reply) bool) *Round {
	r, _ := rs.freeRounds.Get().(*Round)
	if r == nil || len(r.ops) != n {
		r = newRound(n, decided)
	}
	r.decided, r.pool = decided, rs
	return r
}

func newRound(n int, decided func([]register.Reply) bool) *Round {
	r := &Round{ops: make([]op, n), replies: make([]register.Reply, n), decided: decided, done: make(chan struct{}, 1)}
	for i := range r.ops {
		r.ops[i].round, r.ops[i].index = r, int32(i)
	}
	return r
}

// Release releases the caller's reference. The caller must not use the round or its replies
// afterwards. The function of OnLaterReply still gets later replies.
func (r *Round) Release() { r.unref() }

// unref releases one reference. After the last reference, it returns the round to the pool.
func (r *Round) unref() {
	if r.refs.Add(-1) == 0 && r.pool != nil {
		r.reset()
		r.pool.freeRounds.Put(r)
	}
}

// reset clears a round without references for reuse.
func (r *Round) reset() {
	for i := range r.ops {
		o := &r.ops[i]
		o.command, o.fullScript = nil, false
		o.stage.Store(stageQueued)
	}
	clear(r.replies)
	clear(r.lateReplies)
	r.decided, r.onLaterReply, r.lateReplies, r.signalled, r.handedOver = nil, nil, r.lateReplies[:0], false, false
	r.commonCommand.cellOp = nil
	if cap(r.commonCommand.words) > maxKeptCommandBytes {
		r.commonCommand.words = nil
	}
	select {
	case <-r.done: // the caller left before the decision
	default:
	}
}

// maxKeptCommandBytes limits the memory, in bytes, that a pooled round keeps for a command.
const maxKeptCommandBytes = 1 << 10

// Send sends ops[i] to masters[i] in a database, if ops[i] is not nil. An op for a master that is
// down fails at once. The round ends when decided returns true for the replies so far, possibly
// without any reply. Send calls onQueued, unless it is nil, after all ops are queued and before
// they are sent. onQueued reports whether more ops for the same masters are about to follow, to be
// sent in the same batch.
func (rs *Rounds) Send(
	masters []*Master, db int, ops []cell.Op, decided func([]register.Reply) bool, onQueued func() (more bool),
) *Round {
	r := rs.get(len(masters), decided)
	r.fill(db, ops)
	r.handedOver = r.decided(r.replies)
	r.send(masters, onQueued)
	return r
}

// fill sets the operation of each master. It encodes equal operations once.
func (r *Round) fill(db int, ops []cell.Op) {
	var lastCommand *command
	refs := int32(1)
	for i, cellOp := range ops {
		if cellOp == nil {
			r.replies[i] = register.Reply{State: register.Failed}
			continue
		}
		switch {
		case lastCommand == nil:
			lastCommand = &r.commonCommand
			lastCommand.set(db, cellOp)
		case !isSame(cellOp, lastCommand.cellOp):
			lastCommand = newCommand(db, cellOp)
		}
		r.ops[i].command = lastCommand
		refs++
	}
	r.refs.Store(refs)
}

// typicalMasters is a number of masters that most configurations do not exceed.
const typicalMasters = 5

// send pushes the ops to the lanes of their masters. Idle lanes send at once, together with ops
// that other runnable goroutines push.
func (r *Round) send(masters []*Master, onQueued func() bool) {
	var stackLanes [typicalMasters]*lane // stays on the stack
	idle := r.enqueue(masters, onQueued != nil, stackLanes[:0])
	moreFollows := onQueued != nil && onQueued()
	switch {
	case len(idle) == 0:
	case moreFollows:
		delayed := slices.Clone(idle)
		time.AfterFunc(sendDelay, func() { launchDelayed(delayed) })
	case onQueued != nil:
		runtime.Gosched()
		launchDelayed(idle)
	default:
		runtime.Gosched()
		for _, l := range idle {
			l.launch()
		}
	}
}

// enqueue pushes the ops to the lanes of their masters. It appends the lanes that the caller must
// launch to idle.
func (r *Round) enqueue(masters []*Master, delay bool, idle []*lane) []*lane {
	r.pool.enqueueMu.Lock()
	defer r.pool.enqueueMu.Unlock()
	for i, m := range masters {
		if o := &r.ops[i]; o.command != nil {
			if l := m.enqueue(o, delay); l != nil {
				idle = append(idle, l)
			}
		}
	}
	return idle
}

// sendDelay is the time that queued ops wait for ops that are about to follow. It is much longer
// than a goroutine needs to wake and push, and shorter than a noticeable round trip.
const sendDelay = 200 * time.Microsecond

// launchDelayed launches lanes that no other caller has launched yet.
func launchDelayed(lanes []*lane) {
	for _, l := range lanes {
		if l.claimDelayed() {
			l.launch()
		}
	}
}

// Wait waits until the round is decided, or all masters have replied. It returns the cause of ctx
// if ctx ended first.
func (r *Round) Wait(ctx context.Context) error {
	if r.handedOver { // decided before the first reply
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
	r.handedOver = true
	return err
}

// handleReply processes the reply of master number i.
func (r *Round) handleReply(i int, rep *register.Reply) {
	if notify := r.store(i, rep); notify != nil {
		notify(i, *rep)
	}
}

// store stores a reply. If the reply must be passed to onLaterReply, store returns onLaterReply.
func (r *Round) store(i int, rep *register.Reply) (notify func(int, register.Reply)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case !r.handedOver:
		r.replies[i] = *rep
		if !r.signalled && (r.allReplied() || r.decided(r.replies)) {
			r.signalled = true
			r.done <- struct{}{}
		}
	case r.onLaterReply != nil:
		return r.onLaterReply
	default:
		r.lateReplies = append(r.lateReplies, lateReply{i, *rep})
	}
	return nil
}

func (r *Round) allReplied() bool {
	for i := range r.replies {
		if r.replies[i].State == register.Waiting {
			return false
		}
	}
	return true
}

// Replies returns the replies that had arrived when Wait returned.
func (r *Round) Replies() []register.Reply { return r.replies }

// OnLaterReply calls f with each reply that has arrived, or will arrive, after Wait returned.
func (r *Round) OnLaterReply(f func(master int, reply register.Reply)) {
	r.mu.Lock()
	lateReplies := r.lateReplies
	r.lateReplies, r.onLaterReply = nil, f
	r.mu.Unlock()
	for _, stored := range lateReplies {
		f(stored.master, stored.reply)
	}
}

// Drop cancels the ops that have not been sent yet.
func (r *Round) Drop() {
	for i := range r.ops {
		if r.ops[i].command != nil && r.ops[i].markDropped() {
			r.handleReply(i, &register.Reply{State: register.Failed})
		}
	}
}
