package register

import (
	"context"
	"time"

	"redlock-proxy/quorum/cell"
	"redlock-proxy/quorum/vote"
)

// accept proposes a value to the masters that promised.
func (u *update) accept(ctx context.Context, b ballot, p proposal) (Outcome, error) {
	start := u.masters.Now()
	if u.timeLeft(b.elapsed) <= 0 {
		u.agreementTime = b.elapsed
		return Outcome{}, &splitError{}
	}
	if p.leaseStart.IsZero() {
		p.leaseStart = start
	}
	next := u.nextBallot(b.number.Round())
	opFor := func(now, elapsed time.Duration) cell.Accept {
		op := cell.Accept{
			Name: u.Key, Attempt: p.base.attempt, Ballot: b.number, Value: p.value,
			KeepTTL: p.keepTTL, BaseChange: p.base.value.LastChange(), Shared: p.shared, Shift: p.shift, TTL: p.ttl,
		}
		if u.opts.PromiseNextBallot && !p.unchanged && !u.noNextPromise {
			op.NextBallot = next
		}
		if p.keepTTL {
			// A master reported the remaining time, and this master its clock, at unknown moments
			// since the ballot began.
			op.Expiry, op.Uncertainty = p.expiryAt(now, elapsed), 2*elapsed
		}
		if p.shared && p.shift != 0 {
			op.Uncertainty = 0 // no cell keeps an end that is not shifted
		}
		op.Deadline = now + u.timeLeft(elapsed)
		return op
	}
	ops := make([]cell.Op, u.n)
	for i, reply := range b.prepareRound.Replies() {
		if reply.isYes() && reply.KeyStates[0].Attempt == p.base.attempt {
			ops[i] = opFor(reply.Now, b.elapsed)
		}
	}
	u.lastSent = u.masters.Now()
	round, err := u.masters.Ask(ctx, ops, acceptDecided)
	u.completeLater(b, p, round, opFor)
	replies := round.Replies()
	mayBeAccepted := count(replies, func(r *Reply) bool { return r.State == Waiting || r.mayBeDone() }) > 0
	switch {
	case err != nil:
		return Outcome{}, err
	case isAppliedByMajority(replies):
		return u.completeAccepted(b, p, next, replies, start), nil
	}
	if mayBeAccepted && !p.unchanged {
		u.sentChanges = append(u.sentChanges, sentChange{p.decision, p.base.attempt, b.number, p.change, p.lease, p.leaseStart, p.early})
	}
	u.noteRounds(replies)
	if elapsed := u.masters.Now().Sub(b.start); u.timeLeft(elapsed) <= 0 {
		u.agreementTime = elapsed
	}
	return Outcome{}, &splitError{}
}

// completeAccepted returns the outcome of a chosen proposal, and stores the promises for the next
// ballot.
func (u *update) completeAccepted(b ballot, p proposal, nextBallot cell.Ballot, replies []Reply, start time.Time) Outcome {
	if u.opts.PromiseNextBallot && !p.unchanged && !u.noNextPromise {
		stored := newPromise(b, p, nextBallot, replies)
		stored.start, stored.elapsed = start, u.masters.Now().Sub(start)
		u.promises.put(u.Key, stored)
	}
	if !p.unchanged {
		u.grants.markReplaced(u.Key, p.value.Present)
	}
	got := GrantedLock{LeaseStart: p.leaseStart, HeldUntil: p.heldUntil, Early: p.early, Attempt: p.base.attempt, Version: p.version()}
	got.Validity = vote.Validity(p.lease, u.masters.Now().Sub(p.leaseStart)+got.EndsEarlyBy(p.leaseStart, p.lease))
	return Outcome{Decision: p.decision, GrantedLock: got}
}

// acceptDecided ends the wait for replies once a majority accepted, or once at least one master
// accepted and no majority can accept. While no master has accepted, it waits for more replies: if
// no master accepts, no ballot has to find out the effect.
func acceptDecided(replies []Reply) bool {
	result := countVotes(replies, (*Reply).isYes)
	return result == vote.Won || result == vote.Lost && count(replies, (*Reply).isYes) > 0
}

// completeLater sends the accept to masters whose promise is late, and to marked masters, if a
// majority accepted. Otherwise this proxy may have abandoned the proposal. It also schedules a
// repair if some masters did not accept, or lack the key.
func (u *update) completeLater(b ballot, p proposal, round Round, opFor func(now, elapsed time.Duration) cell.Accept) {
	r, key := u.Register, u.Key
	chosen := isAppliedByMajority(round.Replies())
	completeOne := func(master int, reply Reply, isPromise bool) {
		passed := r.masters.Now().Sub(b.start)
		if !chosen || reply.State != Counted || reply.KeyStates[0].Attempt != p.base.attempt || u.timeLeft(passed) <= 0 {
			return
		}
		fills := u.fillsMark(p, reply.KeyStates[0])
		if !fills && !(isPromise && reply.Applied) {
			return
		}
		op := opFor(reply.Now, passed)
		switch {
		case fills:
			op.Mark = u.fill.mark
		case p.shared:
			op.BaseChange = cell.NoChange // the expiry of this cell was not compared
		}
		r.masters.Tell(master, op, false)
	}
	promised := b.prepareRound.Replies()
	for master, reply := range promised {
		completeOne(master, reply, false)
	}
	b.prepareRound.OnLaterReply(func(master int, reply Reply) { completeOne(master, reply, true) })
	repairIfMissing := func(master int, reply Reply) {
		switch promise := promised[master]; {
		case promise.State != Counted || promise.KeyStates[0].Holds(p.base.attempt):
			r.repairUnlessDone(reply, key)
		case p.value.Present || promise.KeyStates[0].Form != cell.Absent:
			r.scheduleRepair(key)
		}
	}
	for i, reply := range round.Replies() {
		repairIfMissing(i, reply)
	}
	round.OnLaterReply(repairIfMissing)
}

// timeLeft returns the time for which a master may accept after its promise, if the master promised
// at most elapsed after the ballot began. Without time left, no accept may be sent: the master may
// have forgotten its promise, and another ballot may have chosen a value.
func (u *update) timeLeft(elapsed time.Duration) time.Duration {
	if u.opts.Unlimited {
		return 24 * time.Hour
	}
	return Limit - elapsed
}
