package register

import (
	"context"
	"slices"
	"time"

	"redlock-proxy/quorum/cell"
	"redlock-proxy/quorum/vote"
)

// State is the outcome of one operation at one master.
type State byte

const (
	// Waiting: the answer may still come.
	Waiting State = iota
	// Counted: the master answered, and its vote counts.
	Counted
	// Uncounted: the master answered and may have done the operation. Its vote does not count,
	// because the master may have forgotten cells that other masters hold.
	Uncounted
	// Failed: the master did not do the operation. It was not asked, or it answered with an error.
	Failed
	// Unknown: the master was asked, and may or may not have done the operation.
	Unknown
)

// Reply is the reply of one master in a round.
type Reply struct {
	State State
	cell.Answer
	// Err says why there is no vote.
	Err error
}

// yes reports whether the master did the operation, and its vote counts.
func (r *Reply) yes() bool { return r.State == Counted && r.Did }

// answered reports whether the master's vote counts, whatever it is.
func (r *Reply) answered() bool { return r.State == Counted }

// refused reports whether the master did not do the operation because of what its cell holds.
func (r *Reply) refused() bool { return r.State == Counted && !r.Did && !r.isFenceLow() }

// isNotDone reports whether the master has not done the operation and never will.
func (r *Reply) isNotDone() bool {
	return r.State == Failed || (r.State == Counted || r.State == Uncounted) && !r.Did
}

// mayBeDone reports whether the master did the operation, or may have done it.
func (r *Reply) mayBeDone() bool { return r.State != Waiting && !r.isNotDone() }

// Round is a round under way.
type Round interface {
	// Replies returns one reply for each master, as of the moment when Ask returned.
	Replies() []Reply
	// Later calls f with each reply that arrives after Ask returned, including replies that already
	// came.
	Later(f func(master int, r Reply))
	// Drop withdraws the operations that were not sent yet. They count as failed.
	Drop()
	// Forget releases the round and the slice that Replies returned, for reuse. It may be called
	// once. Calls that Later promised still happen.
	Forget()
}

// Masters delivers the operations of a register. An operation reaches a master after all operations
// on the same key that were asked or told before, unless the master's connection broke.
type Masters interface {
	// Ask sends ops[i] to master number i, or nothing if ops[i] is nil. It returns as soon as
	// decided accepts the replies so far, or all replies are in. If decided accepts no replies at
	// all, Ask returns at once. The error is the cause of ctx if ctx ended first; the round
	// continues nevertheless.
	Ask(ctx context.Context, ops []cell.Op, decided func([]Reply) bool) (Round, error)
	// Tell sends an operation without waiting for its reply. If owed is set, Tell repeats it until
	// the master has answered, even if the master was away meanwhile.
	Tell(master int, op cell.Op, owed bool)
	// After calls f after d, if the process still runs.
	After(d time.Duration, f func())
	// AllVote reports whether, as far as is known, all masters answer and vote.
	AllVote() bool
	// ScheduleCompare notes that a master may lack cells that other masters hold, because it was
	// away. Keys are compared once all masters are well.
	ScheduleCompare()
	// Voters returns how many masters answer and vote, as far as is known.
	Voters() int
	// Clock returns the median of the masters' clocks, since 1970, as far as is known. It may be
	// wrong.
	Clock() time.Duration
	// Pause waits for a random time that grows with the number of failures. The error is the cause
	// of ctx if ctx ended first.
	Pause(ctx context.Context, failures int) error
	// Now returns the time of the monotonic clock.
	Now() time.Time
}

// toAll returns the same operation for all masters.
func (r *Register) toAll(op cell.Op) []cell.Op { return slices.Repeat([]cell.Op{op}, r.n) }

// waitForAll never decides early, so that Ask waits for every master.
func waitForAll([]Reply) bool { return false }

// count returns how many replies satisfy a condition.
func count(replies []Reply, is func(*Reply) bool) int {
	n := 0
	for i := range replies {
		if is(&replies[i]) {
			n++
		}
	}
	return n
}

func countWaiting(replies []Reply) int {
	return count(replies, func(r *Reply) bool { return r.State == Waiting })
}

// countVotes returns the result of a vote. The replies that satisfy yes are yes votes. Masters that
// have not answered may still vote yes.
func countVotes(replies []Reply, yes func(*Reply) bool) vote.Result {
	return vote.Count(len(replies), count(replies, yes), countWaiting(replies))
}

// Answered reports whether a majority answered, with votes that count.
func Answered(replies []Reply) bool { return countVotes(replies, (*Reply).answered) == vote.Won }

// majorityDid reports whether a majority did the operation.
func majorityDid(replies []Reply) bool { return countVotes(replies, (*Reply).yes) == vote.Won }
