package register

import (
	"context"
	"errors"
	"time"

	"redlock-proxy/quorum/cell"
	"redlock-proxy/quorum/vote"
)

// Extend gives a lock that is held a lease of ttl from now, where the one that it has is
// not longer anyway. It returns what it gives, as Lock does.
//
// One round extends what this proxy knows to be granted. What it does not, another proxy may owe its removal: a ballot extends that, and gives it a
// version of its own.
//
// Errors: ErrNotHeld (as *InsteadError where the current value is known), ErrTooShort, *NoQuorum, ErrContended, or the cause of ctx.
func (r *Register) Extend(ctx context.Context, key, token string, ttl time.Duration) (Granted, error) {
	if ttl >= 0 && ttl < vote.Shortest {
		return Granted{}, ErrTooShort
	}
	start := r.masters.Now()
	one := r.grants.find(key, of(token))
	if one == nil {
		longer, err := r.extendByBallot(ctx, key, token, ttl, nil)
		return r.leaseFrom(start, ttl, longer, nil, err)
	}
	op := cell.Extend{Name: key, Token: token, Attempt: one.attempt, TTL: ttl}
	asked, err := r.askAll(ctx, op, func(replies []Reply) bool { return extendDecided(replies, op) })
	if err != nil {
		return Granted{}, err
	}
	replies := asked.Replies()
	isLonger := longer(replies, ttl)
	switch got, ok := extended(replies); {
	case ok && got == one.made():
		r.noteLease(key, one.attempt, start, ttl)
		r.mendRest(asked, key)
	case ok, Answered(replies) && resolve(replies, 0).unsettled(), isPromised(replies, op):
		isLonger, err = r.extendByBallot(ctx, key, token, ttl, one.holder)
		replies = nil
	case notHeld(replies, op):
		// The attempt that this proxy knows is over; another may have the same token.
		r.grants.take(key, of(token))
		return r.Extend(ctx, key, token, ttl)
	default:
		err = &NoQuorum{Replies: replies}
	}
	return r.leaseFrom(start, ttl, isLonger, replies, err)
}

// leaseFrom is what an EXTEND gives that was begun at start: by one round with these replies, which has a limit, or, without replies, by ballots, of which each
// has its own.
func (r *Register) leaseFrom(start time.Time, ttl time.Duration, longer bool, replies []Reply, err error) (Granted, error) {
	if err != nil {
		return Granted{}, err
	}
	elapsed := r.masters.Now().Sub(start)
	given := Granted{Since: start, Longer: longer, Validity: vote.Validity(ttl, elapsed)}
	if ttl >= 0 && given.Validity < time.Millisecond || replies != nil && r.late(elapsed) {
		return Granted{}, &NoQuorum{Replies: replies, Late: elapsed}
	}
	return given, nil
}

func (r *Register) noteLease(key string, a cell.Attempt, start time.Time, ttl time.Duration) {
	ends := time.Time{}
	if ttl >= 0 {
		ends = start.Add(ttl)
	}
	r.grants.extended(key, a, ends)
}

// longer reports whether a master that extended had a longer lease than this.
func longer(replies []Reply, ttl time.Duration) bool {
	return count(replies, func(r *Reply) bool { return r.yes() && compareLeft(r.Found[0].Left, ttl) > 0 }) > 0
}

func extendDecided(replies []Reply, op cell.Extend) bool {
	_, ok := extended(replies)
	return ok || notHeld(replies, op) || isPromised(replies, op)
}

// isPromised reports whether the token is held, and too many masters did not extend it because a ballot may be under way.
func isPromised(replies []Reply, op cell.Extend) bool {
	if tally(replies, (*Reply).yes) != vote.Lost {
		return false
	}
	f := resolve(replies, 0)
	return f.standing == Held && f.taken() && f.value.Text == op.Token && (op.Attempt == "" || f.attempt == op.Attempt)
}

// extended reports whether a majority extended the same value of the same ballot, and which version that is.
func extended(replies []Reply) (string, bool) {
	votes := map[cell.Ballot]int{}
	for _, reply := range replies {
		if !reply.yes() {
			continue
		}
		f := reply.Found[0]
		if votes[f.Accepted]++; votes[f.Accepted] >= vote.Majority(len(replies)) {
			return version(f.Attempt, f.Value), true
		}
	}
	return "", false
}

// notHeld reports whether so many masters surely do not hold the token that no majority
// can, or a majority holds something else, or nothing can have one. A cell that a ballot changed proves nothing by itself: that
// ballot may never be chosen, and then what was chosen before it holds. Neither does one that holds the token, and promised a ballot.
func notHeld(replies []Reply, op cell.Extend) bool {
	if count(replies, func(r *Reply) bool { return r.State == Counted && !r.Did }) == 0 {
		return false
	}
	switch f := resolve(replies, 0); {
	case f.standing == Absent:
		return true
	case f.chosen:
		return f.standing == Foreign || !f.value.Present || f.value.Text != op.Token || op.Attempt != "" && f.attempt != op.Attempt
	}
	no := count(replies, func(r *Reply) bool { return r.State == Counted && !r.Did && denies(r.Found[0].Cell, op) })
	return no >= vote.ReadQuorum(len(replies))
}

// denies reports whether a cell shows by itself that its master did not extend because it does not hold the token.
func denies(c cell.Cell, op cell.Extend) bool {
	held := c.Form == cell.Register && c.Value.Text == op.Token && (op.Attempt == "" || c.Attempt == op.Attempt)
	return c.Form != cell.Blocking && c.Accepted == "" && !held
}

// extendByBallot extends where a ballot may be under way, or the lock was granted by another proxy. The longest lease that a promise reports may be that
// of a granted EXTEND: where it is longer than what is asked for it stays, and longer is returned. From then on this proxy knows the lock.
func (r *Register) extendByBallot(ctx context.Context, key, token string, ttl time.Duration, holder any) (longer bool, err error) {
	isLonger := func(l Look) bool { return compareLeft(l.Longest, ttl) > 0 }
	seen, out, err := r.ifHeld(ctx, Change{Key: key, Expect: &token, unpromised: true, Run: func(l Look) (Decision, error) {
		if l.Longest == cell.NotReported {
			return Decision{}, ErrNeedsLeft
		}
		return Decision{Do: Put, Value: token, TTL: ttl, KeepTTL: isLonger(l)}, nil
	}}, func(l Look) bool { return l.Present && l.Value == token })
	switch {
	case errors.Is(err, ErrForeign):
		return false, ErrNotHeld
	case err != nil:
		return false, err
	}
	lease := ttl
	if isLonger(seen) {
		lease = seen.Longest
	}
	one := newGrant(Taking{Terms: Terms{Tokens: []string{token}, TTL: lease, Holder: holder}}, 0, out.Attempt, out.Since, r.n)
	one.version = out.Version
	r.grants.put(key, one, out.Since)
	return isLonger(seen), nil
}
