package register

import (
	"context"
	"slices"
	"time"

	"redlock-proxy/quorum/cell"
	"redlock-proxy/quorum/vote"
)

// State is what came of one operation at one master.
type State byte

const (
	// Waiting: its answer may still come.
	Waiting State = iota
	// Counted: it answered, and its vote counts.
	Counted
	// Uncounted: it answered and may have done it, but its vote does not count, because
	// it may have forgotten what others hold.
	Uncounted
	// Failed: it has not done it: it was not asked, or answered an error.
	Failed
	// Unknown: it was asked, and whether it did it is not known.
	Unknown
)

// Reply is one master's reply in a round.
type Reply struct {
	State State
	cell.Answer
	// Err is why there is no vote.
	Err error
}

// yes reports whether the master did it, and that counts.
func (r *Reply) yes() bool { return r.State == Counted && r.Did }

// answered reports whether the master's vote counts, whatever it is.
func (r *Reply) answered() bool { return r.State == Counted }

// refused reports whether the master did not do it because of what it holds.
func (r *Reply) refused() bool { return r.State == Counted && !r.Did && !r.isLow() }

// no reports whether the master has not done it and never will.
func (r *Reply) no() bool {
	return r.State == Failed || (r.State == Counted || r.State == Uncounted) && !r.Did
}

// did reports whether the master did it, or may have.
func (r *Reply) did() bool { return r.State != Waiting && !r.no() }

// Asked is a round under way.
type Asked interface {
	// Replies are those that were there when Ask returned, one for each master.
	Replies() []Reply
	// Later has f called with each reply that came, or will come, after Ask returned.
	Later(f func(master int, r Reply))
	// Drop takes back what was not sent yet: it is as if it had failed.
	Drop()
	// Forget may be called, once, by who does not use it any more, nor what Replies gave: that
	// memory may be used again. What was asked for with Later goes on.
	Forget()
}

// Masters is how a register reaches its masters. An operation reaches a master after
// all those of the same key that it was asked or told before, unless its connection broke.
type Masters interface {
	// Ask sends ops[i] to master number i, or nothing where that is nil, and returns when decided
	// says so of the replies so far, at once if it does of none, or all are in. The error is the
	// cause of ctx if that ended first; the round goes on all the same.
	Ask(ctx context.Context, ops []cell.Op, decided func([]Reply) bool) (Asked, error)
	// Tell sends an operation that nothing waits for. With owed set it is repeated until
	// the master has answered it, which may be after it was away.
	Tell(master int, op cell.Op, owed bool)
	// After calls f once d is over, if the process lives.
	After(d time.Duration, f func())
	// Well reports whether all masters answer and vote, as far as is known.
	Well() bool
	// Missed says that a master may lack what others hold, since it was away: once all are well,
	// keys are to be compared.
	Missed()
	// Voters is how many masters answer and vote, as far as is known.
	Voters() int
	// Clock is the median of the masters' clocks, since 1970, as far as is known. It may be wrong.
	Clock() time.Duration
	// Pause waits for a random time that grows with the number of failures; the error is
	// the cause of ctx if that ended first.
	Pause(ctx context.Context, failures int) error
	// Now is the monotonic clock.
	Now() time.Time
}

// toAll is the same operation for all masters.
func (r *Register) toAll(op cell.Op) []cell.Op { return slices.Repeat([]cell.Op{op}, r.n) }

// allIn decides nothing: every master is waited for.
func allIn([]Reply) bool { return false }

// count is how many replies are so.
func count(replies []Reply, is func(*Reply) bool) int {
	n := 0
	for i := range replies {
		if is(&replies[i]) {
			n++
		}
	}
	return n
}

func waiting(replies []Reply) int {
	return count(replies, func(r *Reply) bool { return r.State == Waiting })
}

// tally is the vote in which those replies say yes, and only masters that are waited for may still.
func tally(replies []Reply, yes func(*Reply) bool) vote.Result {
	return vote.Count(len(replies), count(replies, yes), waiting(replies))
}

// Answered reports whether a majority answered, with votes that count.
func Answered(replies []Reply) bool { return tally(replies, (*Reply).answered) == vote.Won }

// isDone reports whether a majority did it.
func isDone(replies []Reply) bool { return tally(replies, (*Reply).yes) == vote.Won }
