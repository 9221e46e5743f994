package register

import (
	"context"
	"errors"
	"time"

	"redlock-proxy/quorum/cell"
	"redlock-proxy/quorum/vote"
)

// Extend gives a held lock a lease of ttl from now, unless its present lease is longer.
//
// One round extends a lock that this proxy knows to be granted, if no ballot may be under way.
// Otherwise a ballot extends it, under a new version: another proxy may owe the removal of a
// version that this proxy does not know.
//
// Errors: ErrNotHeld (as *RefusedError if the current value is known), ErrTooShort, *NoQuorum,
// ErrContended, or the cause of ctx.
func (r *Register) Extend(ctx context.Context, key, token string, ttl time.Duration) (Granted, error) {
	if ttl >= 0 && ttl < vote.MinTTL {
		return Granted{}, ErrTooShort
	}
	start := r.masters.Now()
	entry := r.grants.findToExtend(key, token)
	if entry == nil {
		return r.extendByBallot(ctx, key, token, ttl, start, nil)
	}
	op := cell.Extend{Name: key, Token: token, Attempt: entry.attempt, TTL: ttl}
	round, err := r.masters.Ask(ctx, r.toAll(op), func(replies []Reply) bool {
		return isExtended(replies, entry.currentVersion()) ||
			Answered(replies) && countVotes(replies, (*Reply).isYes) == vote.Lost
	})
	switch replies := round.Replies(); {
	case err != nil:
		return Granted{}, err
	case isExtended(replies, entry.currentVersion()):
		r.noteLease(key, entry.attempt, start, ttl)
		r.repairEachUnlessDone(round, key)
		if elapsed := r.masters.Now().Sub(start); r.isLate(elapsed) {
			return Granted{}, &NoQuorum{Replies: replies, Late: elapsed}
		}
		return r.leaseFrom(start, ttl, hasLongerLease(replies, ttl))
	case !Answered(replies):
		return Granted{}, &NoQuorum{Replies: replies}
	}
	got, err := r.extendByBallot(ctx, key, token, ttl, start, entry.holder)
	if errors.Is(err, ErrNotHeld) {
		r.grants.take(key, hasVersion(entry.currentVersion()))
	}
	return got, err
}

// leaseFrom returns the result of an EXTEND that began at start.
func (r *Register) leaseFrom(start time.Time, ttl time.Duration, longer bool) (Granted, error) {
	elapsed := r.masters.Now().Sub(start)
	granted := Granted{Since: start, Longer: longer, Validity: vote.Validity(ttl, elapsed)}
	if ttl >= 0 && granted.Validity < time.Millisecond {
		return Granted{}, &NoQuorum{Late: elapsed}
	}
	return granted, nil
}

func (r *Register) noteLease(key string, a cell.Attempt, start time.Time, ttl time.Duration) {
	ends := time.Time{}
	if ttl >= 0 {
		ends = start.Add(ttl)
	}
	r.grants.setLease(key, a, ends)
}

// hasLongerLease reports whether a master that extended had a lease longer than ttl before.
func hasLongerLease(replies []Reply, ttl time.Duration) bool {
	return count(replies, func(r *Reply) bool { return r.isYes() && compareLeft(r.Found[0].Left, ttl) > 0 }) > 0
}

// isExtended reports whether a majority extended a version of one ballot.
func isExtended(replies []Reply, granted string) bool {
	votes := map[cell.Ballot]int{}
	for _, reply := range replies {
		if !reply.isYes() {
			continue
		}
		f := reply.Found[0]
		if votes[f.Accepted]++; votes[f.Accepted] >= vote.Majority(len(replies)) {
			return version(f.Attempt, f.Value) == granted
		}
	}
	return false
}

// extendByBallot extends a lock if a ballot may be under way or another proxy granted it. It keeps
// a longer lease that a promise reports, which may come from a granted EXTEND. This proxy then
// knows the lock.
func (r *Register) extendByBallot(
	ctx context.Context, key, token string, ttl time.Duration, start time.Time, holder any,
) (Granted, error) {
	isLonger := func(l Look) bool { return compareLeft(l.Longest, ttl) > 0 }
	run := func(l Look) (Decision, error) {
		if l.Longest == cell.NotReported {
			return Decision{}, ErrNeedsLeft
		}
		return Decision{Do: Put, Value: token, TTL: ttl, KeepTTL: isLonger(l)}, nil
	}
	hasThisToken := func(l Look) bool { return l.Present && l.Value == token }
	previous, out, err := r.updateIf(ctx, Change{Key: key, Expect: &token, noNextPromise: true, Run: run}, hasThisToken)
	switch {
	case errors.Is(err, ErrForeign):
		return Granted{}, ErrNotHeld
	case err != nil:
		return Granted{}, err
	}
	lease := ttl
	if isLonger(previous) {
		lease = previous.Longest
	}
	entry := newGrant(Terms{Tokens: []string{token}, TTL: lease, Holder: holder}, 0, out.Attempt, out.Since, r.n)
	entry.ballotVersion = out.Version
	r.grants.put(key, entry, out.Since)
	return r.leaseFrom(start, ttl, isLonger(previous))
}
