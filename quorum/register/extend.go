package register

import (
	"context"
	"errors"
	"time"

	"redlock-proxy/quorum/cell"
	"redlock-proxy/quorum/vote"
)

// Extend gives a lock that is held a lease of ttl from now, unless the one that it has is longer.
// It returns what it gives, as Lock does.
//
// One round extends what this proxy knows to be granted, if no ballot may be under way. Otherwise a
// ballot decides: another proxy may owe what this one does not know its removal, so it extends
// that, and gives it a version of its own.
//
// Errors: ErrNotHeld (as *InsteadError where the current value is known), ErrTooShort, *NoQuorum,
// ErrContended, or the cause of ctx.
func (r *Register) Extend(ctx context.Context, key, token string, ttl time.Duration) (Granted, error) {
	if ttl >= 0 && ttl < vote.Shortest {
		return Granted{}, ErrTooShort
	}
	start := r.masters.Now()
	one := r.grants.toExtend(key, token)
	if one == nil {
		return r.extendByBallot(ctx, key, token, ttl, start, nil)
	}
	asked, err := r.masters.Ask(ctx, r.toAll(cell.Extend{Name: key, Token: token, Attempt: one.attempt, TTL: ttl}), func(replies []Reply) bool {
		return extended(replies, one.made()) || Answered(replies) && tally(replies, (*Reply).yes) == vote.Lost
	})
	switch replies := asked.Replies(); {
	case err != nil:
		return Granted{}, err
	case extended(replies, one.made()):
		r.noteLease(key, one.attempt, start, ttl)
		r.mendRest(asked, key)
		if late := r.masters.Now().Sub(start); r.late(late) {
			return Granted{}, &NoQuorum{Replies: replies, Late: late}
		}
		return r.leaseFrom(start, ttl, longer(replies, ttl))
	case !Answered(replies):
		return Granted{}, &NoQuorum{Replies: replies}
	}
	got, err := r.extendByBallot(ctx, key, token, ttl, start, one.holder)
	if errors.Is(err, ErrNotHeld) {
		r.grants.take(key, ofVersion(one.made()))
	}
	return got, err
}

// leaseFrom is what an EXTEND gives that was begun at start.
func (r *Register) leaseFrom(start time.Time, ttl time.Duration, longer bool) (Granted, error) {
	elapsed := r.masters.Now().Sub(start)
	given := Granted{Since: start, Longer: longer, Validity: vote.Validity(ttl, elapsed)}
	if ttl >= 0 && given.Validity < time.Millisecond {
		return Granted{}, &NoQuorum{Late: elapsed}
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

// extended reports whether a majority extended a version, by the same ballot.
func extended(replies []Reply, made string) bool {
	votes := map[cell.Ballot]int{}
	for _, reply := range replies {
		if !reply.yes() {
			continue
		}
		f := reply.Found[0]
		if votes[f.Accepted]++; votes[f.Accepted] >= vote.Majority(len(replies)) {
			return version(f.Attempt, f.Value) == made
		}
	}
	return false
}

// extendByBallot extends where a ballot may be under way, or the lock was granted by another proxy.
// The longest lease that a promise reports may be that of a granted EXTEND: where it is longer than
// what is asked for it stays, and longer is returned. From then on this proxy knows the lock.
func (r *Register) extendByBallot(ctx context.Context, key, token string, ttl time.Duration, start time.Time, holder any) (Granted, error) {
	isLonger := func(l Look) bool { return compareLeft(l.Longest, ttl) > 0 }
	seen, out, err := r.ifHeld(ctx, Change{Key: key, Expect: &token, unpromised: true, Run: func(l Look) (Decision, error) {
		if l.Longest == cell.NotReported {
			return Decision{}, ErrNeedsLeft
		}
		return Decision{Do: Put, Value: token, TTL: ttl, KeepTTL: isLonger(l)}, nil
	}}, func(l Look) bool { return l.Present && l.Value == token })
	switch {
	case errors.Is(err, ErrForeign):
		return Granted{}, ErrNotHeld
	case err != nil:
		return Granted{}, err
	}
	lease := ttl
	if isLonger(seen) {
		lease = seen.Longest
	}
	one := newGrant(Terms{Tokens: []string{token}, TTL: lease, Holder: holder}, 0, out.Attempt, out.Since, r.n)
	one.version = out.Version
	r.grants.put(key, one, out.Since)
	return r.leaseFrom(start, ttl, isLonger(seen))
}
