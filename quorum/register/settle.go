package register

import (
	"context"
	"slices"
	"time"

	"redlock-proxy/quorum/cell"
)

// settles are the pauses before an attempt is looked at of which too few masters answered.
var settles = [...]time.Duration{time.Second, 5 * time.Second, 30 * time.Second}

// settleLater looks at an attempt that may stand on a majority or not. Where it surely does
// not, what the others hold of it is undone; where it does, a client may have seen it, and
// it stays.
func (r *Register) settleLater(op cell.Take, tries int) {
	if tries == len(settles) {
		return
	}
	r.masters.After(settles[tries], func() {
		ctx, cancel := context.WithTimeout(context.Background(), mendTime)
		defer cancel()
		for _, key := range op.Names {
			asked, err := r.masters.Ask(ctx, all(r.n, cell.Read{Names: []string{key}}), func([]Reply) bool { return false })
			if err != nil {
				return
			}
			f := resolve(r.n, asked.Replies(), 0)
			switch {
			case f.standing == Open:
				r.settleLater(op, tries+1)
				return
			case f.attempt == op.Attempt && f.standing == Held:
				return
			}
		}
		for i := range r.n {
			r.undo(op.Names, op.Attempt, i)
		}
	})
}

// insist asks masters again that refused an attempt for nothing but cells that end well within the limit of its round, such as those of a
// removal. They do not end everywhere at the same moment, and where masters give no vote all others are needed. Each master is asked
// again only after it refused.
func (r *Register) insist(ctx context.Context, op cell.Take, asked Asked, start time.Time) (Asked, error) {
	until := start.Add(Limit / 2)
	for failures := 1; r.isUndecided(asked.Replies()) && r.masters.Now().Before(until); failures++ {
		if len(op.Names) == 1 && op.Fence == 0 {
			var err error
			if asked, err = r.timed(ctx, op, asked); err != nil {
				return asked, err
			}
		}
		ops := refusedForNow(op, asked.Replies(), until.Sub(r.masters.Now()))
		if ops == nil {
			break
		}
		if err := r.masters.Pause(ctx, failures); err != nil {
			return asked, err
		}
		before := slices.Clone(asked.Replies())
		more, err := r.masters.Ask(ctx, ops, func(replies []Reply) bool { return r.takeDecided(joined(before, ops, replies)) })
		asked = askedTwice{asked, more, joined(before, ops, more.Replies())}
		if err != nil {
			return asked, err
		}
	}
	return asked, nil
}

// timed is a round of which those that refused have told how long what they hold still stays.
func (r *Register) timed(ctx context.Context, op cell.Take, asked Asked) (Asked, error) {
	replies := slices.Clone(asked.Replies())
	ops := make([]cell.Op, len(replies))
	for i, reply := range replies {
		if reply.State == Counted && !reply.Did {
			ops[i] = cell.Read{Names: op.Names}
		}
	}
	told, err := r.masters.Ask(ctx, ops, func([]Reply) bool { return false })
	if err != nil {
		return asked, err
	}
	for i, reply := range told.Replies() {
		if ops[i] != nil && reply.State == Counted {
			replies[i].Found = slices.Clone(reply.Found)
		}
	}
	told.Forget()
	return withReplies{asked, replies}, nil
}

// withReplies is a round of which more is known by now.
type withReplies struct {
	Asked
	replies []Reply
}

func (a withReplies) Replies() []Reply { return a.replies }

// isUndecided reports whether a majority answered an attempt, and what the others hold decides.
func (r *Register) isUndecided(replies []Reply) bool {
	return count(replies, answered) >= r.quorum && count(replies, (*Reply).yes) < r.quorum &&
		r.n-count(replies, (*Reply).no) >= r.quorum && !r.refusedByOne(replies)
}

// refusedForNow are the operations for those masters that refused only for cells which end within a time; nil: there are none.
func refusedForNow(op cell.Take, replies []Reply, within time.Duration) (ops []cell.Op) {
	for i, reply := range replies {
		if reply.State != Counted || reply.Did || reply.isLow() || !areOver(reply.Found, within) {
			continue
		}
		if ops == nil {
			ops = make([]cell.Op, len(replies))
		}
		ops[i] = op
	}
	return ops
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
