package register

import (
	"context"
	"errors"
	"slices"
	"time"

	"redlock-proxy/quorum/cell"
)

// Unlock removes the key if it holds the token. A lock that this proxy granted is released in one
// round trip; another takes two.
//
// Errors: ErrNotHeld (as *InsteadError where the current value is known), *NoQuorum, ErrContended,
// or the cause of ctx; what was begun goes on all the same. After an error by which it is not known
// owed, unless it is nil, is called with each version that was to be removed, as far as the masters
// told, and how long it may be there: it is owed its removal.
func (r *Register) Unlock(ctx context.Context, key, token string, owed func(version string, left time.Duration)) error {
	one := r.grants.find(key, of(token))
	seen, err := r.unlock(ctx, key, token)
	if err == nil || errors.Is(err, ErrNotHeld) || errors.Is(err, ErrContended) || owed == nil {
		return err
	}
	if one != nil {
		owed(one.made(), r.leftOf(one))
	}
	if seen.Present {
		owed(seen.Version, seen.Longest)
	}
	if none, ok := errors.AsType[*NoQuorum](err); ok && !seen.Present {
		for _, f := range holding(none.Replies, token) {
			if one == nil || f.Attempt == one.attempt { // else it is another lock with the same token
				owed(version(f.Attempt, f.Value), f.Left)
			}
		}
	}
	return err
}

// holding are the cells that hold a token, of those that masters reported.
func holding(replies []Reply, token string) (all []cell.Found) {
	for _, reply := range replies {
		for _, f := range reply.Found {
			if (f.Form == cell.Plain || f.Form == cell.Register) && f.Value.Present && f.Value.Text == token {
				all = append(all, f)
			}
		}
	}
	return all
}

// leftOf is how long a lease may last that this proxy granted.
func (r *Register) leftOf(one *grant) time.Duration {
	if ends := r.grants.asOf(one).ends; !ends.IsZero() {
		return max(ends.Sub(r.masters.Now()), 0)
	}
	return cell.Endless
}

// unlock is Unlock, and returns what it was about to remove by ballot, if it came to that.
func (r *Register) unlock(ctx context.Context, key, token string) (seen Look, err error) {
	one := r.grants.take(key, of(token))
	if one == nil {
		return r.removeSeen(ctx, key, token, "")
	}
	start := r.masters.Now()
	asked, err := r.release(ctx, key, one.attempt)
	if err != nil {
		return Look{}, err
	}
	replies := asked.Replies()
	if late := r.masters.Now().Sub(start); r.late(late) {
		// A master that deleted it may have forgotten that, and copied it from others.
		return Look{}, &NoQuorum{Replies: replies, Late: late}
	}
	now := r.grants.asOf(one) // what it asked for before has been answered before
	switch r.judgeRelease(&now, replies, start) {
	case releaseDone:
		asked.Forget()
		return Look{}, nil
	case releaseOther:
		return r.removeSeen(ctx, key, token, "")
	case releaseByBallot:
		return r.releaseRest(ctx, key, &now, replies, start)
	case releaseNone:
		return Look{}, &InsteadError{Err: ErrNotHeld} // nothing can have a majority
	default:
		return Look{}, &NoQuorum{Replies: replies}
	}
}

// release deletes the plain cells of an attempt. Masters that do not answer are owed it; a cell
// that is left, since a ballot was promised there, may be nobody's now.
func (r *Register) release(ctx context.Context, key string, a cell.Attempt) (Asked, error) {
	op := cell.Op(cell.Remove{Name: key, Attempt: a, How: cell.Release})
	asked, err := r.masters.Ask(ctx, r.toAll(op), func(replies []Reply) bool { // else each answer says more
		return isDone(replies) || Answered(replies) && hasRegister(replies, a)
	})
	owe := func(master int, reply Reply) {
		switch {
		case reply.State == Unknown, reply.State == Failed:
			r.masters.Tell(master, op, true)
		case reply.State == Counted && !reply.Did && reply.Found[0].Form != cell.Absent:
			r.mendLater(key)
		}
	}
	for i, reply := range asked.Replies() {
		owe(i, reply)
	}
	asked.Later(owe)
	return asked, err
}

// hasRegister reports whether some master holds the attempt in register form.
func hasRegister(replies []Reply, a cell.Attempt) bool {
	return count(replies, func(r *Reply) bool {
		return len(r.Found) > 0 && r.Found[0].Form == cell.Register && r.Found[0].Attempt == a
	}) > 0
}

type releaseVerdict int

const (
	releaseUnknown  releaseVerdict = iota
	releaseDone                    // it was released by this
	releaseNone                    // it was over before
	releaseOther                   // it was over before; another attempt may hold the same token
	releaseByBallot                // a ballot was promised somewhere: ballots decide
)

// judgeRelease says what the deletions of the plain cells of a granted attempt came to.
// Only the proxy that granted it deletes such cells, and only once; cells for which a
// ballot was promised are not deleted. So a holder that has nothing any more lost it
// by the end of its lease, or to one that a ballot chose. REGISTER.md has the cases.
func (r *Register) judgeRelease(g *grant, replies []Reply, start time.Time) releaseVerdict {
	if r.heldByAnother(g, replies) {
		return releaseOther
	}
	replies = g.settled(replies)
	deleted := count(replies, (*Reply).yes)
	counted := count(replies, (*Reply).answered)
	switch {
	case deleted >= r.quorum:
		return releaseDone
	case hasRegister(replies, g.attempt):
		return releaseByBallot
	case r.overBefore(g, replies, start) && resolve(replies, 0).standing == Absent:
		return releaseNone
	case r.overBefore(g, replies, start):
		return releaseOther
	case g.lost(replies) > 0:
		return releaseUnknown
	case deleted > 0 && r.n-counted < r.quorum && !g.over(r.masters.Now()):
		return releaseDone // the holders that are silent have it still, and are too few
	default:
		return releaseUnknown
	}
}

// heldByAnother reports whether a majority holds another attempt, or what no proxy wrote, and this
// release deleted nothing: then the lock had lost its majority before.
func (r *Register) heldByAnother(g *grant, replies []Reply) bool {
	f := resolve(replies, 0)
	return (f.standing == Foreign || f.standing == Held && f.attempt != g.attempt) && count(replies, (*Reply).did)+waiting(replies) == 0
}

// settled are the replies without those of masters that have not got the lock, or no longer,
// and that it may still reach: what it asked them for may be on its way, without bound.
func (g *grant) settled(replies []Reply) []Reply {
	if !slices.Contains(g.open, true) {
		return replies
	}
	sure := slices.Clone(replies)
	for i, reply := range replies {
		if g.mayReach(i, reply) {
			sure[i] = Reply{State: Unknown}
		}
	}
	return sure
}

// mayReach reports whether the lock may still reach a master that has not got it, or no
// longer: what was deleted there may be a copy that it caught up with.
func (g *grant) mayReach(master int, reply Reply) bool {
	switch {
	case !g.open[master]:
		return false
	case reply.yes():
		return true
	default:
		return reply.no() && (len(reply.Found) == 0 || !reply.Found[0].Holds(g.attempt))
	}
}

func (g *grant) mayReachAny(replies []Reply) bool {
	for i, reply := range replies {
		if g.mayReach(i, reply) {
			return true
		}
	}
	return false
}

// lost is how many masters that took the lock for sure have not got it any more, and it
// was not this release that deleted it.
func (g *grant) lost(replies []Reply) int {
	n := 0
	for i, reply := range replies {
		if !g.holders[i] || reply.State != Counted || reply.Did {
			continue
		}
		if f := reply.Found[0]; !f.IsUndecided() && (f.Attempt != g.attempt || f.Form == cell.Mark) {
			n++
		}
	}
	return n
}

// overBefore reports whether the lock was over before the release that began at start. A
// lost cell proves nothing by itself: its lease may have ended meanwhile, or its master may have
// restarted and found nothing to copy, when the release had already deleted others and
// it had been taken since.
func (r *Register) overBefore(g *grant, replies []Reply, start time.Time) bool {
	lost := g.lost(replies)
	kept := count(replies, func(r *Reply) bool { return r.State == Counted && !r.Did })
	return lost > 0 && kept == r.n || lost >= r.quorum && (g.ttl < 0 || g.over(start))
}

// releaseRest goes on by ballot where some cells have taken register form.
func (r *Register) releaseRest(ctx context.Context, key string, g *grant, replies []Reply, start time.Time) (Look, error) {
	seen, err := r.removeSeen(ctx, key, g.token, g.attempt)
	switch {
	case errors.Is(err, ErrContended):
		return Look{}, &NoQuorum{Replies: replies, Unclear: true, Overtaken: true} // some cells may be gone
	case !errors.Is(err, ErrNotHeld), seen.incarnation == g.attempt:
		return seen, err
	case r.overBefore(g, replies, start):
		return r.removeSeen(ctx, key, g.token, "")
	case r.stoodWhole(g, replies) && !g.mayReachAny(replies) && !r.late(r.masters.Now().Sub(start)):
		return Look{}, nil // this release ended it: nothing else can have, in so short a time
	default: // what was seen is another's
		return Look{}, &NoQuorum{Replies: replies, Unclear: true}
	}
}

// stoodWhole reports whether a majority held the attempt as it was granted until it was to be
// released: then it had not been taken away before. A blocking copy counts where the master had
// taken it.
func (r *Register) stoodWhole(g *grant, replies []Reply) bool {
	whole := 0
	for i, reply := range replies {
		switch {
		case reply.yes():
			whole++
		case reply.State != Counted || reply.Found[0].Attempt != g.attempt:
		case reply.Found[0].Form == cell.Register && reply.Found[0].Accepted == "", reply.Found[0].Form == cell.Blocking && g.holders[i]:
			whole++
		}
	}
	return whole >= r.quorum
}

// removeSeen removes the key by ballot if it holds the token, and returns what was seen last, or
// was last to be removed. With only set, what another attempt created stays.
func (r *Register) removeSeen(ctx context.Context, key, token string, only cell.Attempt) (seen Look, err error) {
	holds := func(l Look) bool { return l.Present && l.Value == token && (only == "" || l.incarnation == only) }
	var last Look
	seen, _, err = r.ifHeld(ctx, Change{Key: key, Expect: &token, Run: func(l Look) (Decision, error) {
		last = l
		return Decision{Do: Remove}, nil
	}}, holds)
	if err != nil && !errors.Is(err, ErrNotHeld) {
		return last, err
	}
	return seen, err
}

// ifHeld is an Update whose Run is for what holds alone, with what it was decided on; else the
// error is ErrNotHeld.
func (r *Register) ifHeld(ctx context.Context, c Change, holds func(Look) bool) (seen Look, out Outcome, err error) {
	run := c.Run
	c.Run = func(l Look) (d Decision, err error) {
		if holds(l) {
			d, err = run(l)
		}
		d.Note = l
		return d, err
	}
	out, err = r.Update(ctx, c)
	if err != nil {
		return Look{}, out, err
	}
	if seen = out.Decision.Note.(Look); !holds(seen) {
		return seen, out, &InsteadError{Err: ErrNotHeld, Instead: seen}
	}
	return seen, out, nil
}
