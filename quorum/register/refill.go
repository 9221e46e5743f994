package register

import (
	"context"
	"time"

	"redlock-proxy/quorum/cell"
)

// Any proxy that notices it restores a key that a majority holds on the masters that lack it.
// REGISTER.md (Refilling) states the rule and the reasons.

// markTTL is how long a mark stays. It is shorter than a removal, so that the value takes the place
// of the mark before the removal expires.
const markTTL = removalTTL - time.Second

// filling names the marks that an Update is to replace.
type filling struct {
	attempt cell.Attempt
	mark    cell.Ballot
}

// isConsistent reports whether a majority holds this very value, a proxy put it, and no holder has
// another value.
func (t tally) isConsistent() bool { return t.standing == Held && t.isTaken() && !t.mixed }

// mastersLacking returns the masters that hold nothing under the key. marked reports whether a
// master has a mark there.
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

// refill gives a key to masters that lack it. It marks its place there, and fills the mark once no
// round can be under way that counted on the absence of the key. held is the incarnation that the
// previous look found. If another incarnation holds the key now, refill looks again later.
// Otherwise, while a lock passes quickly from holder to holder, marks for past holders would keep
// the next holders from these masters.
func (r *Register) refill(ctx context.Context, key string, t tally, replies []Reply, held cell.Attempt) {
	if r.opts.Unlimited || t.shortest >= 0 && t.shortest < leftoverPause {
		return // a round without a limit never ends; or the key expires before that
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

// markPlaces marks the place of a key on masters that lack it, and schedules the filling. It
// reports whether any master has put a mark.
func (r *Register) markPlaces(ctx context.Context, key string, t tally, lack []int) bool {
	op := cell.Take{Names: []string{key}, Attempt: t.attempt, Tokens: []string{""}, Mark: r.nextBallot(0), TTL: markTTL}
	if t.shortest >= 0 {
		op.TTL = min(op.TTL, t.shortest) // the mark blocks other clients no longer than the key does
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

// fillMarked lets a majority of the holders accept their value again, and then the marked masters.
func (r *Register) fillMarked(key string, by *filling) {
	ctx, cancel := context.WithTimeout(context.Background(), repairTime)
	defer cancel()
	defer r.repairLater(key)
	if _, t, _, err := r.readAll(ctx, key); err != nil || !t.isConsistent() || t.attempt != by.attempt {
		return // a ballot would only disturb the present holder
	}
	_, _ = r.Update(ctx, Change{Key: key, settle: true, fill: by, Run: leave})
}

// fills reports whether a cell is a mark that a proposal replaces. The proposal keeps the held
// value.
func (u *update) fills(p proposal, f cell.Found) bool {
	return u.fill != nil && f.Form == cell.Mark && f.Promised == u.fill.mark &&
		p.same && p.value.Present && p.base.attempt == u.fill.attempt
}

// missedExtension reports whether a cell of the held incarnation expires well before the lease on a
// majority.
func (t tally) missedExtension(c cell.Found) bool {
	return c.Holds(t.attempt) && c.Accepted == t.accepted && compareLeft(c.Left+time.Second, t.left) < 0 && c.Left >= 0
}

// extendMissed extends the lease of a key on masters that missed an extension. It returns false if
// only a ballot can do that.
func (r *Register) extendMissed(key string, t tally, replies []Reply) bool {
	if r.opts.HoldsSeveralKeys != nil && r.opts.HoldsSeveralKeys(t.value.Text) {
		return true // the ends of other keys depend on the end of the cell
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
