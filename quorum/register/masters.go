package register

import (
	"context"
	"slices"
	"time"

	"redlock-proxy/quorum/cell"
	"redlock-proxy/quorum/vote"
)

// State is the outcome of an operation at one master.
type State byte

const (
	// Waiting means that a reply may still arrive.
	Waiting State = iota
	// Counted means that the master replied, and its vote counts.
	Counted
	// Uncounted means that the master replied, but its vote does not count, because it may have
	// forgotten cells that other masters hold. It may have done the operation.
	Uncounted
	// Failed means that the operation was not sent, or the reply is an error. It was not done.
	Failed
	// Unknown means that the operation was sent, and may or may not be done.
	Unknown
)

// Reply is the outcome and the reply of one master in a round.
type Reply struct {
	State State
	cell.Answer
	// Err is the reason why the master's vote does not count.
	Err error
}

// isYes reports whether the master did the operation, and its vote counts.
func (r *Reply) isYes() bool { return r.State == Counted && r.Applied }

// answered reports whether the master replied with a vote that counts.
func (r *Reply) answered() bool { return r.State == Counted }

// refused reports whether the master did not do the operation because of the content of its cell.
func (r *Reply) refused() bool { return r.State == Counted && !r.Applied && !r.isFenceTooLow() }

// isNotDone reports whether the master certainly never does the operation.
func (r *Reply) isNotDone() bool {
	return r.State == Failed || (r.State == Counted || r.State == Uncounted) && !r.Applied
}

func (r *Reply) mayBeDone() bool { return r.State != Waiting && !r.isNotDone() }

// Round is a set of operations, at most one for each master, whose replies may still arrive.
type Round interface {
	// Replies returns one reply for each master, as of the return of Ask.
	Replies() []Reply
	// OnLaterReply calls f with each reply that arrived or arrives after the return of Ask. It
	// may be called once.
	OnLaterReply(f func(master int, r Reply))
	// Drop withdraws the operations that were not sent yet. They count as Failed.
	Drop()
	// Release releases the round and the slice that Replies returned, for reuse. It may be called
	// once. Calls that OnLaterReply scheduled still happen.
	Release()
}

// Masters delivers the operations of a register. The operations on one key reach a master in the
// order of Ask and Tell, unless the connection to the master broke. Concurrent calls of Ask have
// the same order at all masters.
type Masters interface {
	// Ask sends ops[i] to master number i, or nothing if ops[i] is nil. It returns as soon as
	// decided returns true for the replies so far, or all masters replied. The error is the cause
	// of ctx if ctx ended first; the round continues nevertheless.
	Ask(ctx context.Context, ops []cell.Op, decided func([]Reply) bool) (Round, error)
	// Tell sends an operation without waiting for its reply. If untilReplied is set, Tell repeats
	// it until the master has replied, even if the master was away meanwhile.
	Tell(master int, op cell.Op, untilReplied bool)
	// RunAfter calls f after d, if the process still runs.
	RunAfter(d time.Duration, f func())
	// HasAllVotes reports whether all masters vote, as far as this process knows.
	HasAllVotes() bool
	// ScheduleCompare compares all keys once all masters vote: a master was away and may lack
	// cells.
	ScheduleCompare()
	// VoterCount returns the number of masters that vote, as far as this process knows.
	VoterCount() int
	// Clock returns the median of the masters' clocks, since 1970. It may be wrong.
	Clock() time.Duration
	// Pause waits for a random time that grows with failures, or returns the cause of ctx.
	Pause(ctx context.Context, failures int) error
	// Now returns the time by the monotonic clock.
	Now() time.Time
}

func (r *Register) repeatOp(op cell.Op) []cell.Op { return slices.Repeat([]cell.Op{op}, r.n) }

// neverDecided lets Ask wait for every master.
func neverDecided([]Reply) bool { return false }

func count(replies []Reply, match func(*Reply) bool) int {
	n := 0
	for i := range replies {
		if match(&replies[i]) {
			n++
		}
	}
	return n
}

func countWaiting(replies []Reply) int {
	return count(replies, func(r *Reply) bool { return r.State == Waiting })
}

// countVotes returns the result of a vote. Masters that have not replied may still vote yes.
func countVotes(replies []Reply, yes func(*Reply) bool) vote.Result {
	return vote.Count(len(replies), count(replies, yes), countWaiting(replies))
}

// HasAnswerQuorum reports whether a majority replied with votes that count.
func HasAnswerQuorum(replies []Reply) bool { return countVotes(replies, (*Reply).answered) == vote.Won }

func isAppliedByMajority(replies []Reply) bool {
	return countVotes(replies, (*Reply).isYes) == vote.Won
}

// onEachReply calls f with each reply of a round, now or when it arrives.
func onEachReply(round Round, f func(master int, reply Reply)) {
	for i, reply := range round.Replies() {
		f(i, reply)
	}
	round.OnLaterReply(f)
}
