package register

import (
	"context"
	"time"

	"redlock-proxy/quorum/cell"
)

// REGISTER.md (Refilling) states the rule and the reasons.

// markTTL is the TTL of a mark: shorter than a removal, which must not expire before the mark does.
const markTTL = removalTTL - time.Second

// filling identifies the marks that an Update replaces.
type filling struct {
	attempt cell.Attempt
	mark    cell.Ballot
}

// isConsistent reports whether a majority holds this very value of a proxy, and no holder differs.
func (t tally) isConsistent() bool { return t.standing == Held && t.isTaken() && !t.mixed }

// mastersLacking returns the masters without the key. marked reports whether a master has a mark.
func mastersLacking(replies []Reply) (lack []int, marked bool) {
	for m, reply := range replies {
		switch found := reply.Found; {
		case reply.State != Counted:
		case found[0].Form == cell.Absent:
			lack = append(lack, m)
		case found[0].Form == cell.Mark:
			marked = true
		}
	}
	return lack, marked
}

// refill gives a key to the masters that lack it. It writes a mark on each of them, and turns the
// mark into the value once no round can be under way that saw the key as absent. held is the
// incarnation at the previous look. If it differs, refill looks again later: a lock that changes
// hands quickly would leave marks for past holders, which keep the next holders from these masters.
func (r *Register) refill(ctx context.Context, key string, t tally, replies []Reply, held cell.Attempt) {
	if r.opts.Unlimited || t.shortest >= 0 && t.shortest < leftoverPause {
		return // a round without a limit never ends, or the key expires before the mark is filled
	}
	lack, marked := mastersLacking(replies)
	switch {
	case len(lack) > 0 && held != t.attempt:
		r.repairMissing(key, t.attempt)
	case len(lack) > 0 && r.markPlaces(ctx, key, t, lack):
	case len(lack) > 0, marked: // a client took the key, or another proxy refills it
		r.repairLater(key)
	}
}

// markPlaces marks masters that lack a key, and schedules the filling. It reports whether any was
// marked.
func (r *Register) markPlaces(ctx context.Context, key string, t tally, lack []int) bool {
	op := cell.Take{Names: []string{key}, Attempt: t.attempt, Tokens: []string{""}, Mark: r.nextBallot(0), TTL: markTTL}
	if t.shortest >= 0 {
		op.TTL = min(op.TTL, t.shortest) // the mark must not outlast the key
	}
	ops := make([]cell.Op, r.n)
	for _, m := range lack {
		ops[m] = op
	}
	asked, err := r.masters.Ask(ctx, ops, waitForAll)
	if err != nil || count(asked.Replies(), (*Reply).yes) == 0 {
		return false
	}
	r.masters.After(leftoverPause, func() { r.fillMarked(key, &filling{attempt: t.attempt, mark: op.Mark}) })
	return true
}

// fillMarked lets a majority of the holders accept their value again, then the marked masters.
func (r *Register) fillMarked(key string, by *filling) {
	ctx, cancel := context.WithTimeout(context.Background(), repairTime)
	defer cancel()
	defer r.repairLater(key)
	if _, t, _, err := r.readAll(ctx, key); err != nil || !t.isConsistent() || t.attempt != by.attempt {
		return // a ballot would only disturb the current holder
	}
	_, _ = r.Update(ctx, Change{Key: key, settle: true, fill: by, Run: leave})
}

// fills reports whether a proposal replaces a mark with the value that is held.
func (u *update) fills(p proposal, f cell.Found) bool {
	return u.fill != nil && f.Form == cell.Mark && f.Promised == u.fill.mark &&
		p.same && p.value.Present && p.base.attempt == u.fill.attempt
}

// missedExtension reports whether a cell expires long before the lease of the majority.
func (t tally) missedExtension(c cell.Found) bool {
	return c.Holds(t.attempt) && c.Accepted == t.accepted && compareLeft(c.Left+time.Second, t.left) < 0 && c.Left >= 0
}

// extendMissed extends the lease where an extension was missed, or returns false if only a ballot
// can.
func (r *Register) extendMissed(key string, t tally, replies []Reply) bool {
	if r.opts.HoldsSeveralKeys != nil && r.opts.HoldsSeveralKeys(t.value.Text) {
		return true // the expiry of other keys depends on the expiry of the cell
	}
	settled := true
	for m, reply := range replies {
		if reply.State == Counted && t.missedExtension(reply.Found[0]) {
			settled = settled && reply.Found[0].Settled()
			r.masters.Tell(m, cell.Extend{Name: key, Token: t.value.Text, Attempt: t.attempt, TTL: t.left}, false)
		}
	}
	return settled
}
