package master

import (
	"slices"
	"time"

	"redlock-proxy/quorum/cell"
	"redlock-proxy/quorum/guard"
	"redlock-proxy/quorum/register"
)

// Flight is one batch of operations on its way, all of one database; its memory is used again
// for the next one of the same lane.
type Flight struct {
	db  int
	ops []*op
	// replies are those of the ops.
	replies []reply
	// releases are those of the ops that go as one script.
	releases releases
	// check is the guard's, at the end of the batch.
	check guard.Check
	// old is whether it was sent in the form for a server before Redis 7.
	old bool
	// sent is when it left, until when its answers are waited for.
	sent, until time.Time
	// excused is set once it was waited for longer because the proxy itself was late.
	excused bool
}

// Len is how many operations the batch has.
func (f *Flight) Len() int { return len(f.ops) }

// Op is operation number i, and the database that it is for. whole is set where a script is to
// be sent instead of its SHA.
func (f *Flight) Op(i int) (db int, do cell.Op, whole bool) {
	return f.db, f.ops[i].do, f.ops[i].whole
}

// Answer takes the reply to operation number i.
func (f *Flight) Answer(i int, got register.Reply) { f.replies[i] = got }

// excuse has the batch waited for longer, once, where the end of the wait was itself noticed
// late: then this process, and probably its whole machine, stopped, and the answer may lie
// in the socket. A master that is dead is found out later by as long as that took, or by limit.
// It reports whether the batch is to be waited for.
func (f *Flight) excuse(now time.Time, limit time.Duration) bool {
	late := now.Sub(f.until)
	if late < 0 {
		return true
	}
	if f.excused || late < noticeable {
		return false
	}
	f.excused, f.until = true, now.Add(min(late, limit))
	return true
}

// noticeable is how late a timer is on a machine that has little to do, and more.
const noticeable = 2 * time.Millisecond

// load takes the ops of the next batch, which have no replies yet.
func (f *Flight) load(ops []*op) {
	f.ops = ops
	f.replies = slices.Grow(f.replies[:0], len(ops))[:len(ops)]
	clear(f.replies)
}

// unload forgets the ops and their replies.
func (f *Flight) unload() {
	f.releases.forget()
	clear(f.ops)
	clear(f.replies)
	f.ops, f.replies = f.ops[:0], f.replies[:0]
}

// writes reports whether any of the operations changes something.
func (f *Flight) writes() bool {
	return slices.ContainsFunc(f.ops, func(o *op) bool { return o.do.Writes() })
}

// fillIn gives those ops a reply that have none.
func (f *Flight) fillIn(state register.State, err error) {
	for i := range f.replies {
		if r := &f.replies[i]; r.State == register.Waiting {
			r.State, r.Err = state, err
		}
	}
}

// discount makes the votes of the batch none, for a cause: what it did is undone as any
// other.
func (f *Flight) discount(cause error) {
	for i := range f.replies {
		if r := &f.replies[i]; r.State == register.Counted {
			r.State, r.Err = register.Uncounted, cause
		}
	}
}
