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
// One round extends a lock if this proxy has its grant, and no ballot may be under way. Otherwise a
// ballot extends it, under a new version: another proxy may have a pending removal of a version
// that this proxy does not know.
//
// Errors: ErrNotHeld (as *RefusedError if the current value is known), ErrTooShort, *NoQuorum,
// ErrContended, or the cause of ctx.
func (r *Register) Extend(ctx context.Context, key, token string, ttl time.Duration) (GrantedLock, error) {
	if ttl >= 0 && ttl < vote.MinTTL {
		return GrantedLock{}, ErrTooShort
	}
	start := r.masters.Now()
	entry := r.grants.findToExtend(key, token)
	if entry == nil {
		return r.extendByBallot(ctx, key, token, ttl, start, nil)
	}
	op := cell.Extend{Name: key, Token: token, Attempt: entry.attempt, TTL: ttl}
	round, err := r.masters.Ask(ctx, r.repeatOp(op), func(replies []Reply) bool {
		return isExtended(replies, entry.currentVersion()) ||
			HasAnswerQuorum(replies) && countVotes(replies, (*Reply).isYes) == vote.Lost
	})
	switch replies := round.Replies(); {
	case err != nil:
		return GrantedLock{}, err
	case isExtended(replies, entry.currentVersion()):
		r.noteLease(key, entry.attempt, start, ttl)
		r.repairEachUnlessDone(round, key)
		if elapsed := r.masters.Now().Sub(start); r.isLate(elapsed) {
			return GrantedLock{}, &NoQuorum{Replies: replies, AgreementTime: elapsed}
		}
		longer := hasLongerLease(replies, ttl)
		round.Release()
		return r.newLease(start, ttl, longer, 0)
	case !HasAnswerQuorum(replies):
		return GrantedLock{}, &NoQuorum{Replies: replies}
	}
	got, err := r.extendByBallot(ctx, key, token, ttl, start, entry.holder)
	if errors.Is(err, ErrNotHeld) {
		r.grants.take(key, hasVersion(entry.currentVersion()))
	}
	return got, err
}

// Extension requests a lease of TTL from now for a lock.
type Extension struct {
	Key, Token string
	// TTL is in whole milliseconds, at least vote.MinTTL.
	TTL time.Duration
}

// ExtendTogether extends locks in one round, which decides about each lock as the round of Extend
// does. It returns a lease for each lock, without a LeaseStart if the round did not extend the
// lock. Then the caller must call Extend, which also lets masters with different remaining times
// agree. ExtendTogether waits for a majority only, so that no lock has to wait because of another
// lock.
func (r *Register) ExtendTogether(ctx context.Context, locks []Extension) []GrantedLock {
	start, leases := r.masters.Now(), make([]GrantedLock, len(locks))
	var ops cell.Extends
	var entries []*grant
	var indexes []int // the lock of each op
	for i, l := range locks {
		if entry := r.grants.findToExtend(l.Key, l.Token); entry != nil {
			ops = append(ops, cell.Extend{Name: l.Key, Token: l.Token, Attempt: entry.attempt, TTL: l.TTL})
			entries, indexes = append(entries, entry), append(indexes, i)
		}
	}
	if len(ops) == 0 {
		return leases
	}
	round, err := r.masters.Ask(ctx, r.repeatOp(ops), HasAnswerQuorum)
	if err != nil || r.isLate(r.masters.Now().Sub(start)) {
		return leases
	}
	var extended []int
	replies := make([]Reply, r.n)
	for n, op := range ops {
		for i, reply := range round.Replies() {
			replies[i] = reply.ofKey(n)
		}
		if !isExtended(replies, entries[n].currentVersion()) {
			continue
		}
		r.noteLease(op.Name, op.Attempt, start, op.TTL)
		extended = append(extended, n)
		if lease, err := r.newLease(start, op.TTL, hasLongerLease(replies, op.TTL), 0); err == nil {
			leases[indexes[n]] = lease
		}
	}
	repair := func(_ int, reply Reply) {
		for _, n := range extended {
			r.repairUnlessDone(reply.ofKey(n), ops[n].Name)
		}
	}
	for i, reply := range round.Replies() {
		repair(i, reply)
	}
	round.OnLaterReply(repair)
	round.Release()
	return leases
}

// ofKey returns the part of a reply to a cell.Extends that concerns key number i.
func (r *Reply) ofKey(i int) Reply {
	one := Reply{State: r.State, Err: r.Err}
	switch {
	case r.State != Counted:
	case i < len(r.AppliedKeys):
		one.Applied, one.KeyStates = r.AppliedKeys[i], r.KeyStates[i:i+1]
	default: // the master refused the command
		one.State = Failed
	}
	return one
}

// newLease returns the result of an EXTEND that began at start. A master may hold the lock for less
// than ttl, by early.
func (r *Register) newLease(start time.Time, ttl time.Duration, longer bool, early time.Duration) (GrantedLock, error) {
	elapsed := r.masters.Now().Sub(start) + early
	granted := GrantedLock{LeaseStart: start, HadLongerLease: longer, Validity: vote.Validity(ttl, elapsed)}
	if ttl >= 0 && granted.Validity < time.Millisecond {
		return GrantedLock{}, &NoQuorum{AgreementTime: elapsed}
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
	return count(replies, func(r *Reply) bool { return r.isYes() && CompareTimeLeft(r.KeyStates[0].TimeLeft, ttl) > 0 }) > 0
}

// isExtended reports whether a majority extended the granted version, all with the same accepted
// ballot.
func isExtended(replies []Reply, grantedVersion string) bool {
	votes := map[cell.Ballot]int{}
	for _, reply := range replies {
		if !reply.isYes() {
			continue
		}
		f := reply.KeyStates[0]
		if votes[f.Accepted]++; votes[f.Accepted] >= vote.Majority(len(replies)) {
			return version(f.Attempt, f.Value) == grantedVersion
		}
	}
	return false
}

// extendByBallot extends a lock that one round does not extend, because a ballot may be under way
// or another proxy granted the lock. It keeps a longer lease that a promise reports, which may come
// from a granted EXTEND. A lease that is longer by less than the time of a ballot begins anew: a
// master may keep it for less than the TTL (REGISTER.md, Expiry). Afterwards this proxy knows the
// lock.
func (r *Register) extendByBallot(
	ctx context.Context, key, token string, ttl time.Duration, start time.Time, holder any,
) (GrantedLock, error) {
	heldSince := r.HeldSince(key, token)
	isLonger := func(l Snapshot) bool { return CompareTimeLeft(l.LongestTimeLeft, ttl) > 0 }
	run := func(l Snapshot) (Decision, error) {
		if l.LongestTimeLeft == cell.NotReported {
			return Decision{}, ErrTTLUnknown
		}
		lease := ttl
		if isLonger(l) {
			lease = l.LongestTimeLeft
		}
		return Decision{Action: Put, Value: token, TTL: lease, KeepTTL: CompareTimeLeft(lease, ttl+Limit) > 0 && ttl >= 0}, nil
	}
	hasThisToken := func(l Snapshot) bool { return l.Present && l.Value == token }
	previous, out, err := r.updateIf(ctx, Change{Key: key, ExpectedValue: &token, noNextPromise: true, Run: run}, hasThisToken)
	switch {
	case errors.Is(err, ErrForeign):
		return GrantedLock{}, ErrNotHeld
	case err != nil:
		return GrantedLock{}, err
	}
	lease := ttl
	if isLonger(previous) {
		lease = previous.LongestTimeLeft
	}
	entry := newGrant(TakeOptions{Tokens: []string{token}, TTL: lease, Holder: holder}, 0, out.Attempt, out.LeaseStart, r.n)
	entry.ballotVersion, entry.heldSince = out.Version, heldSince
	r.grants.put(key, entry, out.LeaseStart)
	return r.newLease(start, ttl, isLonger(previous), out.EndsEarlyBy(start, ttl))
}
