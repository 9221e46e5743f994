package register

import (
	"context"
	"slices"

	"redlock-proxy/quorum/cell"
	"redlock-proxy/quorum/vote"
)

// insist asks masters again that refused an attempt where all others are needed, since some give no
// vote: cells that are about to end do not end everywhere at the same moment. Each master is asked
// again only after it refused.
func (r *Register) insist(ctx context.Context, op cell.Take, asked Asked) (Asked, error) {
	for tries := 1; isUndecided(asked.Replies()) && tries <= openTries; tries++ {
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
		more, err := r.masters.Ask(ctx, ops, func(replies []Reply) bool { return takeDecided(joined(before, ops, replies)) })
		asked = askedTwice{asked, more, joined(before, ops, more.Replies())}
		if err != nil {
			return asked, err
		}
	}
	return asked, nil
}

// isUndecided reports whether a majority answered an attempt, of which some refused, and those that
// did not answer leave open whether it has one.
func isUndecided(replies []Reply) bool {
	return takeResult(replies) == vote.Pending && Answered(replies) &&
		count(replies, (*Reply).refused) > 0 && !refusedByOne(replies)
}

// joined are the replies of a round, and of those masters that were asked again the later ones.
func joined(before []Reply, ops []cell.Op, again []Reply) []Reply {
	all := slices.Clone(before)
	for i := range all {
		if ops[i] != nil {
			all[i] = again[i]
		}
	}
	return all
}

// askedTwice is a round of which some masters were asked again, after they had refused.
type askedTwice struct {
	first, again Asked
	replies      []Reply
}

func (a askedTwice) Replies() []Reply { return a.replies }

func (a askedTwice) Later(f func(master int, r Reply)) {
	a.first.Later(f)
	a.again.Later(f)
}

func (a askedTwice) Drop() {
	a.first.Drop()
	a.again.Drop()
}

func (a askedTwice) Forget() {
	a.first.Forget()
	a.again.Forget()
}
