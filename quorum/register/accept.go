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
	if u.timeLeft(b.passed) <= 0 {
		u.late = b.passed
		return Outcome{}, &splitError{}
	}
	if p.since.IsZero() {
		p.since = start
	}
	next := u.nextBallot(b.number.Round())
	opFor := func(now, passed time.Duration) cell.Accept {
		op := cell.Accept{
			Name: u.Key, Attempt: p.base.attempt, Ballot: b.number, Value: p.value,
			Keep: p.keep, Base: p.base.value.Last(), Shared: p.shared, Shift: p.shift, TTL: p.ttl,
		}
		if u.opts.Keep && !p.same && !u.noNextPromise {
			op.Next = next
		}
		if p.keep {
			// Both promises were made after the ballot began.
			op.Until, op.Near = p.until(now, passed), 2*passed
		}
		op.Deadline = now + u.timeLeft(passed)
		return op
	}
	ops := make([]cell.Op, u.n)
	for i, reply := range b.asked.Replies() {
		if reply.yes() && reply.Found[0].Attempt == p.base.attempt {
			ops[i] = opFor(reply.Now, b.passed)
		}
	}
	u.lastSent = u.masters.Now()
	asked, err := u.masters.Ask(ctx, ops, acceptDecided)
	u.completeLater(b, p, asked, opFor)
	replies := asked.Replies()
	landed := count(replies, func(r *Reply) bool { return r.State == Waiting || r.mayBeDone() }) > 0
	switch {
	case err != nil:
		return Outcome{}, err
	case majorityDid(replies):
		return u.accepted(b, p, next, replies, start), nil
	}
	if landed && !p.same {
		u.sent = append(u.sent, sentChange{p.decision, p.base.attempt, b.number, p.change, p.lease, p.since})
	}
	u.noteRounds(replies)
	if took := u.masters.Now().Sub(b.start); u.timeLeft(took) <= 0 {
		u.late = took
	}
	return Outcome{}, &splitError{}
}

// accepted returns the outcome of a chosen proposal, and stores the promises for the next ballot.
func (u *update) accepted(b ballot, p proposal, next cell.Ballot, replies []Reply, start time.Time) Outcome {
	if u.opts.Keep && !p.same && !u.noNextPromise {
		kept := promiseOf(b, p, next, replies)
		kept.start, kept.passed = start, u.masters.Now().Sub(start)
		u.promises.put(u.Key, kept)
	}
	if !p.same {
		u.grants.markReplaced(u.Key, p.value.Present)
	}
	return Outcome{
		Decision: p.decision,
		Granted: Granted{
			Validity: vote.Validity(p.lease, u.masters.Now().Sub(p.since)), Since: p.since,
			Attempt: p.base.attempt, Version: p.version(),
		},
	}
}

// acceptDecided accepts replies once a majority accepted, or none can and at least one master
// accepted. If no master has accepted so far, waiting avoids a ballot that finds out the effect.
func acceptDecided(replies []Reply) bool {
	result := countVotes(replies, (*Reply).yes)
	return result == vote.Won || result == vote.Lost && count(replies, (*Reply).yes) > 0
}

// completeLater sends the accept to masters whose promise is late, and to marked masters, but only
// if a majority accepted: else the proposal may have been abandoned. It also schedules a repair if
// some masters did not accept, or lack the key.
func (u *update) completeLater(b ballot, p proposal, asked Round, opFor func(now, passed time.Duration) cell.Accept) {
	r, key := u.Register, u.Key
	chosen := majorityDid(asked.Replies())
	late := func(master int, reply Reply, promises bool) {
		passed := r.masters.Now().Sub(b.start)
		if !chosen || reply.State != Counted || reply.Found[0].Attempt != p.base.attempt || u.timeLeft(passed) <= 0 {
			return
		}
		fills := u.fills(p, reply.Found[0])
		if !fills && !(promises && reply.Did) {
			return
		}
		op := opFor(reply.Now, passed)
		switch {
		case fills:
			op.Mark = u.fill.mark
		case p.shared:
			op.Base = cell.NoChange // the expiry of this cell was not compared
		}
		r.masters.Tell(master, op, false)
	}
	promised := b.asked.Replies()
	for master, reply := range promised {
		late(master, reply, false)
	}
	b.asked.Later(func(master int, reply Reply) { late(master, reply, true) })
	left := func(master int, reply Reply) {
		switch before := promised[master]; {
		case before.State != Counted || before.Found[0].Holds(p.base.attempt):
			r.repairUnlessDone(reply, key)
		case p.value.Present || before.Found[0].Form != cell.Absent:
			r.repairLater(key)
		}
	}
	for i, reply := range asked.Replies() {
		left(i, reply)
	}
	asked.Later(left)
}

// timeLeft returns how long after its promise a master may accept, if it promised at most passed
// after the ballot began. Without time left, no accept may be sent: the master may have forgotten
// its promise, and another ballot may have chosen a value.
func (u *update) timeLeft(passed time.Duration) time.Duration {
	if u.opts.Unlimited {
		return 24 * time.Hour
	}
	return Limit - passed
}
