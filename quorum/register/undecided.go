package register

import (
	"context"
	"slices"

	"redlock-proxy/quorum/cell"
	"redlock-proxy/quorum/vote"
)

const (
	// maxRepetitions limits the repetitions of one attempt.
	maxRepetitions = 5
	// maxBlockedTries limits the tries of a command on a key that the same incarnation may hold. A
	// rival's attempt has ended by then, even if it was repeated maxRepetitions times.
	maxBlockedTries = 2 * maxRepetitions
)

// blockedTries counts the tries in a row that the same incarnation may have prevented. While some
// masters give no vote, a rival's attempt on a minority of the others may leave the state of a key
// undetermined. Such an attempt ends soon. An incarnation that remains is not such an attempt.
type blockedTries struct {
	holders []cell.Attempt
	tries   int
}

// count counts a try that any of these incarnations may have prevented, and returns the number
// of tries in a row that the same one of them may have prevented.
func (b *blockedTries) count(possibleHolders []cell.Attempt) int {
	remaining := slices.DeleteFunc(slices.Clone(b.holders), func(a cell.Attempt) bool {
		return !slices.Contains(possibleHolders, a)
	})
	if len(remaining) == 0 {
		remaining, b.tries = possibleHolders, 0
	}
	if len(remaining) > 0 {
		b.tries++
	}
	b.holders = remaining
	return b.tries
}

// areTooMany counts a try that failed with split. It reports whether the command should give up,
// because the state of its key has been undetermined for too long.
func (b *blockedTries) areTooMany(split *splitError, isPastDeadline bool) bool {
	tries := b.count(split.possibleHolders)
	return tries >= maxBlockedTries || tries > 0 && isPastDeadline
}

// retryUndecided repeats an attempt on masters that refused it, if the attempt needs them because
// some masters give no vote. The masters may have refused because of cells that are about to
// expire, which do not expire on all masters at the same moment. Each master is asked again only
// after it refused.
func (r *Register) retryUndecided(ctx context.Context, op cell.Take, round Round) (Round, error) {
	for tries := 1; needsRetry(round.Replies()) && tries <= maxRepetitions; tries++ {
		replies := slices.Clone(round.Replies())
		ops := make([]cell.Op, r.n)
		for i, reply := range replies {
			if reply.refused() {
				ops[i] = op
			}
		}
		if err := r.masters.Pause(ctx, tries); err != nil {
			return round, err
		}
		retry, err := r.masters.Ask(ctx, ops, func(laterReplies []Reply) bool {
			return takeDecided(mergeReplies(replies, ops, laterReplies))
		})
		round = retriedRound{round, retry, mergeReplies(replies, ops, retry.Replies())}
		if err != nil {
			return round, err
		}
	}
	return round, nil
}

// needsRetry reports whether a majority replied, some of these masters refused, and the missing
// votes decide whether the attempt has a majority.
func needsRetry(replies []Reply) bool {
	return takeResult(replies) == vote.Pending && HasAnswerQuorum(replies) &&
		count(replies, (*Reply).refused) > 0 && !isRefusedBySameHolder(replies)
}

// mergeReplies returns firstReplies, with the replies of retryReplies for the masters that were
// asked again.
func mergeReplies(firstReplies []Reply, ops []cell.Op, retryReplies []Reply) []Reply {
	merged := slices.Clone(firstReplies)
	for i := range merged {
		if ops[i] != nil {
			merged[i] = retryReplies[i]
		}
	}
	return merged
}

// retriedRound is a round that was repeated on masters that had refused.
type retriedRound struct {
	first, retry Round
	replies      []Reply
}

func (a retriedRound) Replies() []Reply { return a.replies }

func (a retriedRound) OnLaterReply(f func(master int, r Reply)) {
	a.first.OnLaterReply(f)
	a.retry.OnLaterReply(f)
}

func (a retriedRound) Drop() {
	a.first.Drop()
	a.retry.Drop()
}

func (a retriedRound) Release() {
	a.first.Release()
	a.retry.Release()
}
