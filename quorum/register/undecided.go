package register

import (
	"context"
	"slices"

	"redlock-proxy/quorum/cell"
	"redlock-proxy/quorum/vote"
)

// retryUndecided repeats an attempt on masters that refused it, if the attempt needs them because
// some masters give no vote. The masters may have refused because of cells that are about to
// expire, which do not expire on all masters at the same moment. Each master is asked again only
// after it refused.
func (r *Register) retryUndecided(ctx context.Context, op cell.Take, round Round) (Round, error) {
	for tries := 1; needsRetry(round.Replies()) && tries <= undecidedTries; tries++ {
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
