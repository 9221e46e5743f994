package register

import (
	"context"
	"time"

	"redlock-proxy/quorum/cell"
)

// A key that a majority holds is restored on masters that lack it, by whichever proxy sees that.
// REGISTER.md (Refilling) has the rule, and why nothing less will do.

// markFor is how long a mark stays: less than a removal, so that the value fills its place before
// the removal has ended.
const markFor = removedFor - time.Second

// filling is what an Update is to put in the place of marks.
type filling struct {
	attempt cell.Attempt
	mark    cell.Ballot
}

// isWhole reports whether a majority holds this very value, which a proxy put there, and no holder
// another.
func (f finding) isWhole() bool { return f.standing == Held && f.taken() && !f.mixed }

// whoLack are the masters that hold nothing under the key, and whether any has a mark there.
func whoLack(replies []Reply) (lack []int, marked bool) {
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

// refill has masters that lack a key hold it, too: it marks its place there, and fills it once no
// round can still be under way that counted on what they held before. It does so only where the
// same incarnation held the key at the look before, of which held is what it found; else it looks
// again. While a lock passes from hand to hand, its places would be marked for holders who have
// already left, and the next ones could not use these masters.
func (r *Register) refill(ctx context.Context, key string, f finding, replies []Reply, held cell.Attempt) {
	if r.opts.Unlimited || f.shortest >= 0 && f.shortest < sweepPause {
		return // a round without a limit is never over; or it ends before that
	}
	lack, marked := whoLack(replies)
	switch {
	case len(lack) > 0 && held != f.attempt:
		r.mendLacking(key, f.attempt)
	case len(lack) > 0 && r.markPlaces(ctx, key, f, lack):
	case len(lack) > 0, marked: // it was taken, or another proxy is at it
		r.mendLater(key)
	}
}

// markPlaces marks the place of a key on masters that lack it, to be filled later, and reports
// whether any did.
func (r *Register) markPlaces(ctx context.Context, key string, f finding, lack []int) bool {
	op := cell.Take{Names: []string{key}, Attempt: f.attempt, Tokens: []string{""}, Mark: r.nextBallot(0), TTL: markFor}
	if f.shortest >= 0 {
		op.TTL = min(op.TTL, f.shortest) // in nobody's way for longer than what it is for
	}
	ops := make([]cell.Op, r.n)
	for _, m := range lack {
		ops[m] = op
	}
	asked, err := r.masters.Ask(ctx, ops, allIn)
	if err != nil || count(asked.Replies(), (*Reply).yes) == 0 {
		return false
	}
	r.masters.After(sweepPause, func() { r.fillMarked(key, &filling{attempt: f.attempt, mark: op.Mark}) })
	return true
}

// fillMarked has a majority of the holders accept what they hold, and then the marked masters.
func (r *Register) fillMarked(key string, by *filling) {
	ctx, cancel := context.WithTimeout(context.Background(), mendTime)
	defer cancel()
	defer r.mendLater(key)
	if _, f, _, err := r.inspect(ctx, key); err != nil || !f.isWhole() || f.attempt != by.attempt {
		return // a ballot would only be in the way of who holds it now
	}
	_, _ = r.Update(ctx, Change{Key: key, settle: true, fill: by, Run: leave})
}

// fills reports whether a cell is one of the marks in whose place a proposal comes: the value that
// is held, unchanged.
func (u *update) fills(p proposal, f cell.Found) bool {
	return u.fill != nil && f.Form == cell.Mark && f.Promised == u.fill.mark && p.same && p.value.Present && p.base.attempt == u.fill.attempt
}

// isShort reports whether a cell of what is held ends well before it does on a majority.
func (f finding) isShort(c cell.Found) bool {
	return c.Holds(f.attempt) && c.Accepted == f.accepted && compareLeft(c.Left+time.Second, f.left) < 0 && c.Left >= 0
}

// extendMissed has masters that missed an extension keep a key for as long as a majority does. It
// reports false where only a ballot can.
func (r *Register) extendMissed(key string, f finding, replies []Reply) bool {
	if r.opts.Shared != nil && r.opts.Shared(f.value.Text) {
		return true // the ends of others hang on it
	}
	settled := true
	for m, reply := range replies {
		if reply.State == Counted && f.isShort(reply.Found[0]) {
			settled = settled && reply.Found[0].Settled()
			r.masters.Tell(m, cell.Extend{Name: key, Token: f.value.Text, Attempt: f.attempt, TTL: f.left}, false)
		}
	}
	return settled
}
