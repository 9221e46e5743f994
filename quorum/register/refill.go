package register

import (
	"context"
	"time"

	"redlock-proxy/quorum/cell"
)

// REGISTER.md (Refilling) states the rule and the reasons.

// refillMarkTTL is the TTL of a mark. It is shorter than removalTTL, because a removal must not
// expire before the mark does.
const refillMarkTTL = removalTTL - time.Second

// filling identifies the marks that an Update replaces.
type filling struct {
	attempt cell.Attempt
	mark    cell.Ballot
}

// isConsistent reports whether a majority holds this value, a proxy wrote it, and all masters that
// hold it accepted the same ballot.
func (t tally) isConsistent() bool { return t.status == TallyHeld && t.isTaken() && !t.ballotsDiffer }

// mastersLacking returns the masters without the key. isMarked reports whether a master has a mark.
func mastersLacking(replies []Reply) (mastersWithoutKey []int, isMarked bool) {
	for m, reply := range replies {
		switch found := reply.KeyStates; {
		case reply.State != Counted:
		case found[0].Form == cell.Absent:
			mastersWithoutKey = append(mastersWithoutKey, m)
		case found[0].Form == cell.Mark:
			isMarked = true
		}
	}
	return mastersWithoutKey, isMarked
}

// refill gives a key to the masters that lack it. It writes a mark on each of these masters. It
// turns the mark into the value once no round can be under way that saw the key as absent.
// incarnation is the incarnation at the previous read. If it differs, refill reads again later.
// Otherwise a lock that changes hands quickly would leave marks for past holders, and the marked
// masters would refuse the next holders.
func (r *Register) refill(ctx context.Context, key string, t tally, replies []Reply, incarnation cell.Attempt) {
	if r.opts.Unlimited || t.shortestTimeLeft >= 0 && t.shortestTimeLeft < leftoverPause {
		// If rounds have no time limit, a round that saw the key as absent may still be under way.
		// If the remaining time is short, the key expires before the mark can be filled.
		return
	}
	lacking, isMarked := mastersLacking(replies)
	switch {
	case len(lacking) > 0 && incarnation != t.attempt:
		r.scheduleRefill(key, t.attempt)
	case len(lacking) > 0 && r.markMastersWithoutKey(ctx, key, t, lacking):
	case len(lacking) > 0, isMarked: // a client took the key, or another proxy refills it
		r.scheduleRepair(key)
	}
}

// markMastersWithoutKey marks the masters that lack a key, and schedules the filling. It reports
// whether a master was marked.
func (r *Register) markMastersWithoutKey(ctx context.Context, key string, t tally, mastersWithoutKey []int) bool {
	op := cell.Take{Names: []string{key}, Attempt: t.attempt, Tokens: []string{""}, Mark: r.nextBallot(0), TTL: refillMarkTTL}
	if t.shortestTimeLeft >= 0 {
		op.TTL = min(op.TTL, t.shortestTimeLeft) // the mark must not outlast the key
	}
	ops := make([]cell.Op, r.n)
	for _, m := range mastersWithoutKey {
		ops[m] = op
	}
	round, err := r.masters.Ask(ctx, ops, neverDecided)
	if err != nil || count(round.Replies(), (*Reply).isYes) == 0 {
		return false
	}
	r.masters.RunAfter(leftoverPause, func() { r.fillMarkedMasters(key, &filling{attempt: t.attempt, mark: op.Mark}) })
	return true
}

// fillMarkedMasters lets a majority accept the value again. Then the marked masters accept it.
func (r *Register) fillMarkedMasters(key string, marks *filling) {
	ctx, cancel := context.WithTimeout(context.Background(), repairTimeout)
	defer cancel()
	defer r.scheduleRepair(key)
	if _, t, _, err := r.readAll(ctx, key); err != nil || !t.isConsistent() || t.attempt != marks.attempt {
		return // a ballot would only disturb the current holder
	}
	_, _ = r.Update(ctx, Change{Key: key, alwaysAccept: true, fill: marks, Run: keepUnchanged})
}

// fillsMark reports whether a proposal replaces this mark with the current value.
func (u *update) fillsMark(p proposal, f cell.KeyState) bool {
	return u.fill != nil && f.Form == cell.Mark && f.Promised == u.fill.mark &&
		p.unchanged && p.value.Present && p.base.attempt == u.fill.attempt
}

// hasMissedExtension reports whether a cell expires long before a lease that a majority may have
// granted.
func (t tally) hasMissedExtension(c cell.KeyState) bool {
	return c.Holds(t.attempt) && c.Accepted == t.acceptedBallot && expiresLongBefore(c.TimeLeft, t.possibleTimeLeft)
}

// repeatMissedExtension extends the lease on masters that missed an extension. It returns false if
// a ballot must come first.
func (r *Register) repeatMissedExtension(key string, t tally, replies []Reply) bool {
	if r.opts.IsKeygroup != nil && r.opts.IsKeygroup(t.value.Text) {
		return true // the expiry of other keys depends on the expiry of the cell
	}
	settled := true
	for m, reply := range replies {
		if reply.State == Counted && t.hasMissedExtension(reply.KeyStates[0]) {
			settled = settled && reply.KeyStates[0].Settled()
			r.masters.Tell(m, cell.Extend{Name: key, Token: t.value.Text, Attempt: t.attempt, TTL: t.possibleTimeLeft}, false)
			if t.possibleTimeLeft != t.timeLeft {
				r.scheduleRepair(key) // then blocking copies may be leftovers
			}
		}
	}
	return settled
}
