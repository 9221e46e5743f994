package register

import (
	"context"
	"time"

	"redlock-proxy/quorum/cell"
	"redlock-proxy/quorum/vote"
)

// accept has the masters that promised accept a value. It is made once a majority did.
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
		op := cell.Accept{Name: u.Key, Attempt: p.base.attempt, Ballot: b.number, Value: p.value, Keep: p.keep, Base: p.base.value.Last(), Shared: p.shared, Shift: p.shift, TTL: p.ttl}
		if u.opts.Keep && !p.same && !u.unpromised {
			op.Next = next
		}
		if p.keep {
			op.Until, op.Near = p.until(now, passed), 2*passed // both promises were made at any time since the ballot began
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
	u.asked = u.masters.Now()
	asked, err := u.masters.Ask(ctx, ops, acceptDecided)
	u.afterwards(b, p, asked, opFor)
	replies := asked.Replies()
	landed := count(replies, func(r *Reply) bool { return r.State == Waiting || r.did() }) > 0
	switch {
	case err != nil:
		return Outcome{}, err
	case isDone(replies):
		return u.accepted(b, p, next, replies, start), nil
	}
	if landed && !p.same {
		u.sent = append(u.sent, sentChange{p.decision, p.base.attempt, b.number, p.change, p.lease, p.since})
	}
	u.saw(replies)
	if took := u.masters.Now().Sub(b.start); u.timeLeft(took) <= 0 {
		u.late = took
	}
	return Outcome{}, &splitError{}
}

// accepted is what came of a proposal that a majority accepted; what it promised for the next
// ballot is remembered.
func (u *update) accepted(b ballot, p proposal, next cell.Ballot, replies []Reply, start time.Time) Outcome {
	if u.opts.Keep && !p.same && !u.unpromised {
		kept := promiseOf(b, p, next, replies)
		kept.start, kept.passed = start, u.masters.Now().Sub(start)
		u.promises.put(u.Key, kept)
	}
	if !p.same {
		u.grants.replaced(u.Key, p.value.Present)
	}
	return Outcome{
		Decision: p.decision, Granted: Granted{Validity: vote.Validity(p.lease, u.masters.Now().Sub(p.since)), Since: p.since, Attempt: p.base.attempt, Version: p.version()},
	}
}

// acceptDecided: a majority accepted, or none can. Where none has accepted so far it is worth
// waiting for whether any does: else what became of it would have to be found out.
func acceptDecided(replies []Reply) bool {
	result := tally(replies, (*Reply).yes)
	return result == vote.Won || result == vote.Lost && count(replies, (*Reply).yes) > 0
}

// afterwards has masters accept whose promise comes late, where a majority has: else what no master
// accepted yet may have been given up. The same goes for marked ones that are to be filled. And it
// has the key looked at again if some did not accept, or lack it.
func (u *update) afterwards(b ballot, p proposal, asked Asked, opFor func(now, passed time.Duration) cell.Accept) {
	r, key := u.Register, u.Key
	chosen := isDone(asked.Replies())
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
			op.Base = cell.NoChange // its own end was not among those that were compared
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
			r.mendUnless(reply, key)
		case p.value.Present || before.Found[0].Form != cell.Absent:
			r.mendLater(key)
		}
	}
	for i, reply := range asked.Replies() {
		left(i, reply)
	}
	asked.Later(left)
}

// timeLeft is for how long after its promise a master may accept, if that was made at
// the latest so long after the ballot began. Where none is left no accept is sent: the
// promise may have been forgotten by now, and another ballot have been chosen since.
func (u *update) timeLeft(passed time.Duration) time.Duration {
	if u.opts.Unlimited {
		return 24 * time.Hour
	}
	return Limit - passed
}
