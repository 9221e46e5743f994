package quorum

import (
	"context"
	"errors"
	"time"

	"redlock-proxy/quorum/keygroup"
	"redlock-proxy/quorum/register"
	"redlock-proxy/quorum/vote"
)

// NoExpiry is the remaining time of a key without expiry.
const NoExpiry time.Duration = -1

// These types describe updates and takes of keys; see package register.
type (
	// Snapshot is the current value of a key.
	Snapshot = register.Snapshot
	// Decision states how a change alters the key.
	Decision = register.Decision
	// Outcome is the result of an Update.
	Outcome = register.Outcome
	// GrantedLock is a lease that a majority granted.
	GrantedLock = register.GrantedLock
	// TakeOptions holds the conditions on which keys are taken.
	TakeOptions = register.TakeOptions
)

// The actions of a Decision.
const (
	NoChange = register.NoChange
	Put      = register.Put
	Remove   = register.Remove
)

// ErrTTLUnknown is the error that a run returns if it needs the remaining time and
// Snapshot.TimeLeftUnknown is set.
var ErrTTLUnknown = register.ErrTTLUnknown

// TakeRequest requests keys of one database, all or none.
type TakeRequest struct {
	Keys []Key
	// Slots is the number of clients that may hold the only key at the same time, Unlimited, or 0
	// for an exclusive lock.
	Slots int
	TakeOptions
}

// Take takes keys that no client holds, and returns once a majority has answered.
//
// Errors: *OwnKeyError, as for all methods, ErrHeld (as *RefusedError if the key that is held is
// known), ErrTooShort, ErrContended, *NoQuorumError, or the cause of ctx; with a fence also
// ErrFences and ErrFenceInKeygroup, with Slots also *SlotsError, ErrEarlierProxy and
// keygroup.ErrHoldersTooLarge. After an error the caller holds nothing: in the background, Take
// removes a key that it may have taken. With KeepOnNoQuorum the key stays.
func (c *Cluster) Take(ctx context.Context, t TakeRequest) (GrantedLock, error) {
	return withSetRepeated(ctx, c, func(set *masterSet) (GrantedLock, error) { return set.Take(ctx, t) })
}

// Take implements Cluster.Take.
func (set *masterSet) Take(ctx context.Context, t TakeRequest) (GrantedLock, error) {
	if err := set.checkAccess(t.Keys...); err != nil {
		return GrantedLock{}, err
	}
	if err := set.recordMaxTTL(ctx, t.TTL); err != nil {
		return GrantedLock{}, err
	}
	switch {
	case t.Slots != 0:
		return set.takeHolder(ctx, t)
	case hasTaggedKey(t.Keys):
		return set.takeInKeygroup(ctx, t)
	}
	t.OnRemovalDue = set.removalScheduler(t)
	t.MayTakeOver = func(l Snapshot) bool {
		return !keygroup.IsGroup(l.Value) && !keygroup.IsHolders(l.Value) && set.cluster.isRemovalPending(t.Keys[0], l.Version)
	}
	got, err := set.database(t.Keys[0].DB).Lock(ctx, namesOf(t.Keys), t.TakeOptions)
	switch {
	case isHeldByHolders(err) && len(t.Keys) == 1:
		return set.takeFromHolders(ctx, t)
	case isHeldByHolders(err):
		return set.takeSeveralFromHolders(ctx, t, refusingKey(err))
	case !set.hasKeygroup(err):
		return got, set.translate(err)
	case len(t.Keys) > 1:
		return GrantedLock{}, errDifferentTags
	}
	return set.takeInKeygroup(ctx, t)
}

// Release removes the key if it holds the token.
//
// Errors: ErrNotHeld (as *RefusedError if the current value is known), ErrContended, *NoQuorumError
// if the result is unknown, or the cause of ctx. A release that has begun continues after ctx has
// ended.
func (c *Cluster) Release(ctx context.Context, key Key, token string) error {
	attempted := false
	_, err := withSet(ctx, c, func(set *masterSet) (struct{}, error) {
		attempted = true
		return struct{}{}, set.Release(ctx, key, token)
	})
	if !attempted { // the masters are being changed
		if version, left := c.masterSet().database(key.DB).TakeGrant(key.Name, token); version != "" {
			c.scheduleRemoval(key, version, left, nil)
		}
		if version, timeLeft := c.masterSet().takeHolderGrant(key, token); version != "" {
			c.scheduleRemoval(key.OfHolder(token), version, timeLeft, nil)
		}
	}
	return err
}

// Release implements Cluster.Release.
func (set *masterSet) Release(ctx context.Context, key Key, token string) error {
	if err := set.checkAccess(key); err != nil {
		return err
	}
	heldSince := set.heldSince(key, token)
	err := set.release(ctx, key, token)
	if err == nil && !heldSince.IsZero() {
		set.cluster.observeRelease(key, time.Since(heldSince))
	}
	return err
}

// release releases a lock that one or several clients may hold.
func (set *masterSet) release(ctx context.Context, key Key, token string) error {
	_, isHolder, _ := set.knownHolder(key, token)
	_, err := tryBothKinds(isHolder,
		func() (struct{}, error) { return struct{}{}, set.releaseExclusive(ctx, key, token) },
		func() (struct{}, error) { return struct{}{}, set.releaseHolder(ctx, key, token) })
	return err
}

// releaseExclusive releases a lock that one client holds.
func (set *masterSet) releaseExclusive(ctx context.Context, key Key, token string) error {
	if key.Tag != "" {
		return set.releaseInKeygroup(ctx, key, token)
	}
	err := set.database(key.DB).Unlock(ctx, key.Name, token, func(version string, left time.Duration) {
		set.cluster.scheduleRemoval(key, version, left, nil)
	})
	if set.hasKeygroup(err) {
		return set.releaseInKeygroup(ctx, key, token)
	}
	return set.translate(err)
}

// Extend gives a key that holds the token a lease of ttl (whole milliseconds, or NoExpiry) from
// now, unless its present lease is longer.
//
// Errors: ErrNotHeld (as *RefusedError if the current value is known), ErrTooShort, ErrContended,
// *NoQuorumError if the result is unknown, or the cause of ctx.
func (c *Cluster) Extend(ctx context.Context, key Key, token string, ttl time.Duration) (GrantedLock, error) {
	return withSetRepeated(ctx, c, func(set *masterSet) (GrantedLock, error) { return set.Extend(ctx, key, token, ttl) })
}

// Extend implements Cluster.Extend.
func (set *masterSet) Extend(ctx context.Context, key Key, token string, ttl time.Duration) (GrantedLock, error) {
	if err := set.checkAccess(key); err != nil {
		return GrantedLock{}, err
	}
	if err := set.recordMaxTTL(ctx, ttl); err != nil {
		return GrantedLock{}, err
	}
	lock := key.withoutHolder()
	extendHolder := func() (GrantedLock, error) { return set.extendHolder(ctx, lock, token, ttl) }
	if key.Holder != "" {
		return extendHolder()
	}
	_, isHolder, _ := set.knownHolder(lock, token)
	return tryBothKinds(isHolder,
		func() (GrantedLock, error) { return set.extendExclusive(ctx, lock, token, ttl) }, extendHolder)
}

// extendExclusive extends a lock that one client holds.
func (set *masterSet) extendExclusive(ctx context.Context, key Key, token string, ttl time.Duration) (GrantedLock, error) {
	if key.Tag != "" {
		return set.extendInKeygroup(ctx, key, token, ttl)
	}
	got, err := set.extendCell(ctx, key, token, ttl)
	if set.hasKeygroup(err) {
		return set.extendInKeygroup(ctx, key, token, ttl)
	}
	return got, set.translate(err)
}

// extendCell extends the cell of a key without a tag if its value is value. After NOQUORUM, the
// remaining time may differ between the masters, so extendCell schedules a ballot that lets them
// agree.
func (set *masterSet) extendCell(ctx context.Context, key Key, value string, ttl time.Duration) (GrantedLock, error) {
	got, err := set.database(key.DB).Extend(ctx, key.Name, value, ttl)
	if errors.As(err, new(*register.NoQuorum)) {
		set.cluster.scheduleRemoval(key, "", ttl, nil)
	}
	return got, err
}

// ExtendRequest requests a lease of TTL (whole milliseconds) from now for a key that holds the
// token.
type ExtendRequest struct {
	Key   Key
	Token string
	TTL   time.Duration
}

// ExtendTogether extends locks of one database in one round, each as Extend does if no other client
// has changed the lock meanwhile. It returns a lease for each request, without a LeaseStart if the
// round did not extend the lock. Then the caller must call Extend.
func (c *Cluster) ExtendTogether(ctx context.Context, requests []ExtendRequest) []GrantedLock {
	leases := make([]GrantedLock, len(requests))
	if len(requests) == 0 || c.currentChange.Load() != nil {
		return leases // Extend waits for the end of a change of the masters
	}
	set, db := c.masterSet(), requests[0].Key.DB
	var locks []register.Extension
	var indexes []int // the request of each lock
	var maxTTL time.Duration
	for i, request := range requests {
		if lock, ok := set.extension(request); ok && request.Key.DB == db {
			locks, indexes, maxTTL = append(locks, lock), append(indexes, i), max(maxTTL, lock.TTL)
		}
	}
	if len(locks) == 0 || set.recordMaxTTL(ctx, maxTTL) != nil {
		return leases
	}
	for n, lease := range set.database(db).ExtendTogether(ctx, locks) {
		lease.OfHolder = requests[indexes[n]].Key.Holder != ""
		leases[indexes[n]] = lease
	}
	return leases
}

// extension returns the Extension for a request. ok is false if a ballot must extend the lock, or
// if the request is invalid.
func (set *masterSet) extension(request ExtendRequest) (lock register.Extension, ok bool) {
	key := request.Key.withoutHolder()
	lock = register.Extension{Key: key.Name, Token: request.Token, TTL: request.TTL}
	switch {
	case key.Tag != "", request.TTL < vote.MinTTL, set.checkAccess(key) != nil:
		return lock, false
	case request.Key.Holder == "":
		return lock, true
	}
	lock.Token, _, ok = set.knownHolder(key, request.Token) // ok while the client is the only holder
	return lock, ok
}

// Fence returns a number that is at least the fence of every lock of the key granted in the last
// seven days. It returns 0 if no fence was granted in that time, or if the key has a Tag.
//
// Errors: *OwnKeyError, *NoQuorumError, or the cause of ctx.
func (c *Cluster) Fence(ctx context.Context, key Key) (int64, error) {
	return withSet(ctx, c, func(set *masterSet) (int64, error) {
		if err := set.checkAccess(key); err != nil || key.Tag != "" {
			return 0, err
		}
		fence, err := set.database(key.DB).Fence(ctx, key.Name)
		return fence, set.translate(err)
	})
}

// Guess returns the token under which this proxy has taken the key, or the value that this proxy
// stored last. ok is false if there is no such value, or if this proxy knows a newer value.
func (c *Cluster) Guess(key Key) (token string, ok bool) {
	if key.Tag != "" {
		return "", false
	}
	token, ok = c.masterSet().database(key.DB).Guess(key.Name)
	return token, ok && !keygroup.IsGroup(token) && !keygroup.IsHolders(token)
}

// Update changes one key depending on its current value. It may call run several times;
// Outcome.Decision is the decision that took effect. If expectedValue is not nil, run must not
// change any value other than *expectedValue.
//
// Errors: the errors of run, ErrForeign, ErrContended, *NoQuorumError, or the cause of ctx. After
// the last two the change may or may not take effect, possibly later, at most once.
func (c *Cluster) Update(
	ctx context.Context, key Key, expectedValue *string, run func(Snapshot) (Decision, error),
) (Outcome, error) {
	return withSet(ctx, c, func(set *masterSet) (Outcome, error) { return set.Update(ctx, key, expectedValue, run) })
}
