package register

import (
	"context"
	"slices"

	"redlock-proxy/quorum/cell"
	"redlock-proxy/quorum/vote"
)

// retryUndecided repeats an attempt on masters that refused it, if the attempt needs them because
// some masters give no vote: cells that are about to expire do not expire everywhere at the same
// moment. Each master is asked again only after it refused.
func (r *Register) retryUndecided(ctx context.Context, op cell.Take, asked Round) (Round, error) {
	for tries := 1; needsRetry(asked.Replies()) && tries <= undecidedTries; tries++ {
		before := slices.Clone(asked.Replies())
		ops := make([]cell.Op, r.n)
		for i, reply := range before {
			if reply.refused() {
				ops[i] = op
			}
		}
		if err := r.masters.Pause(ctx, tries); err != nil {
			return asked, err
		}
		more, err := r.masters.Ask(ctx, ops, func(replies []Reply) bool {
			return takeDecided(mergeReplies(before, ops, replies))
		})
		asked = retriedRound{asked, more, mergeReplies(before, ops, more.Replies())}
		if err != nil {
			return asked, err
		}
	}
	return asked, nil
}

// needsRetry reports whether a majority replied, some of these masters refused, and the masters
// that did not reply decide whether the attempt has a majority.
func needsRetry(replies []Reply) bool {
	return takeResult(replies) == vote.Pending && Answered(replies) &&
		count(replies, (*Reply).refused) > 0 && !refusedByOne(replies)
}

// mergeReplies replaces the replies of masters that were asked again.
func mergeReplies(before []Reply, ops []cell.Op, retry []Reply) []Reply {
	all := slices.Clone(before)
	for i := range all {
		if ops[i] != nil {
			all[i] = retry[i]
		}
	}
	return all
}

// retriedRound is a round that was repeated on masters that had refused.
type retriedRound struct {
	first, retry Round
	replies      []Reply
}

func (a retriedRound) Replies() []Reply { return a.replies }

func (a retriedRound) Later(f func(master int, r Reply)) {
	a.first.Later(f)
	a.retry.Later(f)
}

func (a retriedRound) Drop() {
	a.first.Drop()
	a.retry.Drop()
}

func (a retriedRound) Forget() {
	a.first.Forget()
	a.retry.Forget()
}
