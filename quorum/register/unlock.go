package register

import (
	"context"
	"errors"
	"slices"
	"time"

	"redlock-proxy/quorum/cell"
)

// Unlock removes the key if it holds the token. A lock of this proxy takes one round trip, another
// two.
//
// Errors: ErrNotHeld (as *RefusedError if the current value is known), *NoQuorum, ErrContended, or
// the cause of ctx. The release continues even after ctx has ended. If it is unknown whether the
// lock is released, Unlock calls owed, unless it is nil, with each known version that may remain,
// and its remaining time. Such a version is owed its removal.
func (r *Register) Unlock(ctx context.Context, key, token string, owed func(version string, left time.Duration)) error {
	entry := r.grants.find(key, withToken(token))
	seen, err := r.unlock(ctx, key, token)
	if err == nil || errors.Is(err, ErrNotHeld) || errors.Is(err, ErrContended) || owed == nil {
		return err
	}
	if entry != nil {
		owed(entry.currentVersion(), r.leaseLeft(entry))
	}
	if seen.Present {
		owed(seen.Version, seen.Longest)
	}
	if none, ok := errors.AsType[*NoQuorum](err); ok && !seen.Present {
		for _, f := range cellsWithToken(none.Replies, token) {
			if entry == nil || f.Attempt == entry.attempt { // else it is another lock with the same token
				owed(version(f.Attempt, f.Value), f.Left)
			}
		}
	}
	return err
}

func cellsWithToken(replies []Reply, token string) (all []cell.Found) {
	for _, reply := range replies {
		for _, f := range reply.Found {
			if (f.Form == cell.Plain || f.Form == cell.Register) && f.Value.Present && f.Value.Text == token {
				all = append(all, f)
			}
		}
	}
	return all
}

func (r *Register) leaseLeft(entry *grant) time.Duration {
	if ends := r.grants.snapshot(entry).ends; !ends.IsZero() {
		return max(ends.Sub(r.masters.Now()), 0)
	}
	return cell.Endless
}

// unlock returns the value that it tried to remove by ballot, if any.
func (r *Register) unlock(ctx context.Context, key, token string) (seen Look, err error) {
	entry := r.grants.take(key, withToken(token))
	if entry == nil {
		return r.removeByBallot(ctx, key, token, "")
	}
	start := r.masters.Now()
	asked, err := r.release(ctx, key, entry.attempt)
	if err != nil {
		return Look{}, err
	}
	replies := asked.Replies()
	if late := r.masters.Now().Sub(start); r.isLate(late) {
		// A master may have forgotten its deletion, and copied the cell from another master.
		return Look{}, &NoQuorum{Replies: replies, Late: late}
	}
	now := r.grants.snapshot(entry) // replies to earlier requests came earlier
	switch r.evaluateRelease(&now, replies, start) {
	case releaseDone:
		asked.Forget()
		return Look{}, nil
	case releaseOther:
		return r.removeByBallot(ctx, key, token, "")
	case releaseByBallot:
		return r.finishRelease(ctx, key, entry, replies, start)
	case releaseNone:
		return Look{}, &RefusedError{Err: ErrNotHeld} // nothing can have a majority
	default:
		return Look{}, &NoQuorum{Replies: replies}
	}
}

// release deletes the plain cells of an attempt. Masters that do not reply are owed the deletion. A
// cell that promised a ballot remains, and may be a leftover now.
func (r *Register) release(ctx context.Context, key string, a cell.Attempt) (Round, error) {
	op := cell.Op(cell.Remove{Name: key, Attempt: a, How: cell.Release})
	asked, err := r.masters.Ask(ctx, r.toAll(op), func(replies []Reply) bool { // else wait for all masters
		return majorityDid(replies) || Answered(replies) && hasRegister(replies, a)
	})
	owe := func(master int, reply Reply) {
		switch {
		case reply.State == Unknown, reply.State == Failed:
			r.masters.Tell(master, op, true)
		case reply.State == Counted && !reply.Did && reply.Found[0].Form != cell.Absent:
			r.repairLater(key)
		}
	}
	for i, reply := range asked.Replies() {
		owe(i, reply)
	}
	asked.Later(owe)
	return asked, err
}

func hasRegister(replies []Reply, a cell.Attempt) bool {
	return count(replies, func(r *Reply) bool {
		return len(r.Found) > 0 && r.Found[0].Form == cell.Register && r.Found[0].Attempt == a
	}) > 0
}

type releaseVerdict int

const (
	releaseUnknown  releaseVerdict = iota
	releaseDone                    // this release ended the lock
	releaseNone                    // the lock had ended before
	releaseOther                   // the lock had ended before; another attempt may hold the same token
	releaseByBallot                // some master promised a ballot: a ballot decides
)

// evaluateRelease determines the effect of deleting the plain cells of a granted attempt. Only this
// release deletes them, so a lost cell expired, or a ballot replaced it. See REGISTER.md,
// Releasing.
func (r *Register) evaluateRelease(g *grant, replies []Reply, start time.Time) releaseVerdict {
	if r.heldByAnother(g, replies) {
		return releaseOther
	}
	replies = g.withoutPending(replies)
	deleted := count(replies, (*Reply).yes)
	counted := count(replies, (*Reply).answered)
	switch {
	case deleted >= r.quorum:
		return releaseDone
	case hasRegister(replies, g.attempt):
		return releaseByBallot
	case r.endedBefore(g, replies, start) && resolve(replies, 0).standing == Absent:
		return releaseNone
	case r.endedBefore(g, replies, start):
		return releaseOther
	case g.countLost(replies) > 0:
		return releaseUnknown
	case deleted > 0 && r.n-counted < r.quorum && !g.expired(r.masters.Now()):
		return releaseDone // masters that did not reply still hold it, but are too few
	default:
		return releaseUnknown
	}
}

// heldByAnother reports whether a majority holds another attempt or a foreign value, and this
// release deleted nothing, so that the lock had lost its majority before.
func (r *Register) heldByAnother(g *grant, replies []Reply) bool {
	t := resolve(replies, 0)
	return (t.standing == Foreign || t.standing == Held && t.attempt != g.attempt) &&
		count(replies, (*Reply).mayBeDone)+countWaiting(replies) == 0
}

// withoutPending returns the replies, but treats a master as unknown if the lock may still reach
// it. A request may be on its way for any time.
func (g *grant) withoutPending(replies []Reply) []Reply {
	if !slices.Contains(g.pending, true) {
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

// mayReach reports whether the lock may still reach a master that does not hold it now. A cell that
// it deleted may be a copy from a catch-up.
func (g *grant) mayReach(master int, reply Reply) bool {
	switch {
	case !g.pending[master]:
		return false
	case reply.yes():
		return true
	default:
		return reply.isNotDone() && (len(reply.Found) == 0 || !reply.Found[0].Holds(g.attempt))
	}
}

// countLost returns how many masters took the lock and certainly lost it, but not by this release.
func (g *grant) countLost(replies []Reply) int {
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

// endedBefore reports whether the lock had ended before the release that began at start. A lost
// cell alone proves nothing: its lease may have expired meanwhile. Or its master restarted, could
// copy nothing because this release had deleted other cells, and granted the key to another client.
func (r *Register) endedBefore(g *grant, replies []Reply, start time.Time) bool {
	lost := g.countLost(replies)
	kept := count(replies, func(r *Reply) bool { return r.State == Counted && !r.Did })
	return lost > 0 && kept == r.n || lost >= r.quorum && (g.ttl < 0 || g.expired(start))
}

// finishRelease completes a release by ballot.
func (r *Register) finishRelease(
	ctx context.Context, key string, entry *grant, replies []Reply, start time.Time,
) (Look, error) {
	seen, err := r.removeByBallot(ctx, key, entry.token, entry.attempt)
	now := r.grants.snapshot(entry)
	g := &now
	switch {
	case errors.Is(err, ErrContended):
		return Look{}, &NoQuorum{Replies: replies, Unclear: true, Overtaken: true} // some cells may be deleted
	case !errors.Is(err, ErrNotHeld), seen.incarnation == g.attempt:
		return seen, err
	case r.endedBefore(g, replies, start):
		return r.removeByBallot(ctx, key, g.token, "")
	case r.wasIntact(g, replies) && !g.mayArriveLate && !r.isLate(r.masters.Now().Sub(start)):
		// Only this release can have ended it in such a short time. The ballot saw the effect of
		// every take under way: both use one connection, unless it broke.
		return Look{}, nil
	default: // seen is another client's value
		return Look{}, &NoQuorum{Replies: replies, Unclear: true}
	}
}

// wasIntact reports whether a majority held the attempt as granted until the release, so that
// nothing had taken the lock away. A blocking copy counts if the master had taken the lock.
func (r *Register) wasIntact(g *grant, replies []Reply) bool {
	whole := 0
	for i, reply := range replies {
		switch {
		case reply.yes():
			whole++
		case reply.State != Counted || reply.Found[0].Attempt != g.attempt:
		case reply.Found[0].Form == cell.Register && reply.Found[0].Accepted == "",
			reply.Found[0].Form == cell.Blocking && g.holders[i]:
			whole++
		}
	}
	return whole >= r.quorum
}

// removeByBallot removes the key if it holds the token. It returns the value that it saw or tried
// to remove last. If only is set, it leaves a value of another attempt.
func (r *Register) removeByBallot(ctx context.Context, key, token string, only cell.Attempt) (seen Look, err error) {
	holds := func(l Look) bool { return l.Present && l.Value == token && (only == "" || l.incarnation == only) }
	var last Look
	seen, _, err = r.updateIf(ctx, Change{Key: key, Expect: &token, Run: func(l Look) (Decision, error) {
		last = l
		return Decision{Do: Remove}, nil
	}}, holds)
	if err != nil && !errors.Is(err, ErrNotHeld) {
		return last, err
	}
	return seen, err
}

// updateIf is an Update that runs only on values that satisfy holds. It returns the value on which
// it decided, and ErrNotHeld if that value does not satisfy holds.
func (r *Register) updateIf(ctx context.Context, c Change, holds func(Look) bool) (seen Look, out Outcome, err error) {
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
		return seen, out, &RefusedError{Err: ErrNotHeld, Current: seen}
	}
	return seen, out, nil
}
