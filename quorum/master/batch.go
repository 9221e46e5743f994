package master

import (
	"slices"
	"time"

	"redlock-proxy/quorum/cell"
	"redlock-proxy/quorum/guard"
	"redlock-proxy/quorum/register"
)

// Batch holds operations of one database that are sent together, and their replies. The next batch
// of the lane reuses its memory.
type Batch struct {
	db  int
	ops []*op
	// replies holds the replies to the ops.
	replies []reply
	// releases holds the releases among the ops that are sent as one script.
	releases releases
	// check is the guard's check at the end of the batch.
	check guard.Check
	// beforeRedis7 is set if the batch was sent in the syntax for a server before Redis 7.
	beforeRedis7 bool
	// sentAt is the time at which the batch was sent. deadline limits the wait for its replies.
	sentAt, deadline time.Time
	// extended is set once extendIfLate has extended the deadline.
	extended bool
}

// Len returns the number of operations.
func (f *Batch) Len() int { return len(f.ops) }

// Op returns operation number i and its database. If fullScript is set, the link must send the
// script instead of its SHA.
func (f *Batch) Op(i int) (db int, cellOp cell.Op, fullScript bool) {
	return f.db, f.ops[i].cellOp, f.ops[i].fullScript
}

// Answer sets the reply to operation number i.
func (f *Batch) Answer(i int, answer register.Reply) { f.replies[i] = answer }

// extendIfLate extends the deadline, once, if the proxy noticed the end of the wait late. Then this
// process, and probably its whole machine, was stopped, and the reply may already be in the socket.
// So the proxy notices the failure of a master later by the same time, at most by limit.
// extendIfLate reports whether to wait for the batch.
func (f *Batch) extendIfLate(now time.Time, limit time.Duration) bool {
	lateness := now.Sub(f.deadline)
	if lateness < 0 {
		return true
	}
	if f.extended || lateness < minLateness {
		return false
	}
	f.extended, f.deadline = true, now.Add(min(lateness, limit))
	return true
}

// minLateness exceeds the lateness of timers on a machine that is not busy.
const minLateness = 2 * time.Millisecond

// load sets the ops of the next batch, without replies.
func (f *Batch) load(ops []*op) {
	f.ops = ops
	f.replies = slices.Grow(f.replies[:0], len(ops))[:len(ops)]
	clear(f.replies)
}

// unload clears the ops and their replies.
func (f *Batch) unload() {
	f.releases.reset()
	clear(f.ops)
	clear(f.replies)
	f.ops, f.replies = f.ops[:0], f.replies[:0]
}

// writes reports whether any of the operations writes.
func (f *Batch) writes() bool {
	return slices.ContainsFunc(f.ops, func(o *op) bool { return o.cellOp.Writes() })
}

// fillMissingReplies sets the reply of each op that has none.
func (f *Batch) fillMissingReplies(state register.State, err error) {
	for i := range f.replies {
		if r := &f.replies[i]; r.State == register.Waiting {
			r.State, r.Err = state, err
		}
	}
}

// uncount marks the counted replies of the batch as uncounted, for a cause. Their callers undo the
// effects on the master, as after any uncounted reply.
func (f *Batch) uncount(cause error) {
	for i := range f.replies {
		if r := &f.replies[i]; r.State == register.Counted {
			r.State, r.Err = register.Uncounted, cause
		}
	}
}
