package quorum

import (
	"context"
	"errors"
	"time"

	"redlock-proxy/quorum/keygroup"
	"redlock-proxy/quorum/vote"
)

// This file handles locks that several clients may hold, each under its token; see
// keygroup.Holders. A client takes, releases and extends such a lock like an exclusive one while it
// is the only holder. Otherwise a ballot decides.

// Unlimited is the number of slots of a shared lock, which any number of clients may hold.
const Unlimited = keygroup.Unlimited

// SlotsError means that a client requested a lock with a different number of slots than its
// holders.
type SlotsError = keygroup.SlotsError

// ErrEarlierProxy means that a client requested a lock that several clients may hold, while a proxy
// runs whose version cannot keep such locks on the masters.
var ErrEarlierProxy = errors.New(
	"SHARED and SLOTS need all proxies of this version: another proxy on the masters has an earlier version; " +
		"upgrade or stop it")

// isHeldByHolders reports whether the masters refused an operation on a key because of a lock that
// several clients may hold.
func isHeldByHolders(err error) bool {
	refusal, ok := errors.AsType[*RefusedError](err)
	return ok && !refusal.CurrentSnapshot.Foreign && keygroup.IsHolders(refusal.CurrentSnapshot.Value)
}

// isHeldExclusively reports whether the masters refused an operation on a holder of a key because
// one client holds the key exclusively.
func isHeldExclusively(err error) bool {
	refusal, ok := errors.AsType[*RefusedError](err)
	return ok && refusal.CurrentSnapshot.Present &&
		(refusal.CurrentSnapshot.Foreign || !keygroup.IsHolders(refusal.CurrentSnapshot.Value))
}

// tryBothKinds runs exclusive for a lock that one client holds, or holder for a lock that several
// clients may hold. isHolder is the kind that this proxy remembers, and is tried first. If another
// proxy has changed the kind since, tryBothKinds also runs the other function.
func tryBothKinds[T any](isHolder bool, exclusive, holder func() (T, error)) (T, error) {
	first, second, isOtherKind := exclusive, holder, isHeldByHolders
	if isHolder {
		first, second, isOtherKind = holder, exclusive, isHeldExclusively
	}
	got, err := first()
	if isOtherKind(err) {
		return second()
	}
	return got, err
}

// needsHolderBallot reports whether a ballot decides about the holders of a key, after the masters
// refused with err an operation on the value of a lone holder. The key may have further holders, or
// its cell further keys.
func (set *masterSet) needsHolderBallot(err error) bool {
	return isHeldByHolders(err) || set.hasKeygroup(err)
}

// takeHolder takes a lock that several clients may hold.
func (set *masterSet) takeHolder(ctx context.Context, t TakeRequest) (GrantedLock, error) {
	key, token := t.Keys[0], t.Tokens[0]
	switch {
	case !t.AllowShortTTL && t.TTL >= 0 && t.TTL < vote.MinTTL:
		return GrantedLock{}, ErrTooShort
	case t.Fence && key.Tag != "":
		return GrantedLock{}, ErrFenceInKeygroup
	case set.guards.HasEarlierProxy():
		return GrantedLock{}, ErrEarlierProxy
	}
	t.Keys = []Key{key.OfHolder(token)}
	t.OnRemovalDue = set.removalScheduler(t)
	if key.Tag == "" && !set.holderChanges.isBallotRunning(key) {
		lone := t.TakeOptions
		lone.Tokens = []string{keygroup.LoneHolder(token, t.Slots)}
		got, err := set.database(key.DB).Lock(ctx, []string{key.Name}, lone)
		switch {
		case err == nil:
			set.recordHolder(key, token, t.Slots, got.Version, t.TTL, t.Holder, got.LeaseStart)
			got.OfHolder, got.FreeSlots = true, max(t.Slots-1, Unlimited)
			return got, nil
		case !set.needsHolderBallot(err):
			return GrantedLock{}, set.translate(err)
		}
	}
	return set.join(ctx, key, t)
}

// takeFromHolders takes an exclusive lock of a key that has holders, if all of them have expired.
func (set *masterSet) takeFromHolders(ctx context.Context, t TakeRequest) (GrantedLock, error) {
	switch snapshots, err := set.Read(ctx, t.Keys); {
	case err != nil:
		return GrantedLock{}, err
	case snapshots[0].Present:
		return GrantedLock{}, &RefusedError{Err: ErrHeld, CurrentSnapshot: snapshots[0]}
	}
	mayTakeOver := t.MayTakeOver
	t.MayTakeOver = func(l Snapshot) bool { return haveExpired(l) || mayTakeOver(l) }
	got, err := set.database(t.Keys[0].DB).LockByBallot(ctx, t.Keys[0].Name, t.TakeOptions)
	return got, set.translate(err)
}

// takeSeveralFromHolders takes several keys of which key number i has holders, if all of them have
// expired. It removes the key first, because a ballot replaces one key only.
func (set *masterSet) takeSeveralFromHolders(ctx context.Context, t TakeRequest, i int) (GrantedLock, error) {
	snapshots, err := set.Read(ctx, t.Keys[i:i+1])
	if err == nil && !snapshots[0].Present {
		_, err = set.Update(ctx, t.Keys[i], nil, func(l Snapshot) (Decision, error) {
			snapshots[0] = l
			if l.Present {
				return Decision{Action: NoChange}, nil
			}
			return Decision{Action: Remove}, nil
		})
	}
	switch {
	case err != nil:
		return GrantedLock{}, err
	case snapshots[0].Present:
		return GrantedLock{}, &RefusedError{Err: ErrHeld, CurrentSnapshot: snapshots[0], Key: i}
	}
	return set.Take(ctx, t)
}

// haveExpired reports whether a value consists of holders that have expired.
func haveExpired(l Snapshot) bool {
	if l.TimeLeftUnknown || l.Foreign || !keygroup.IsHolders(l.Value) {
		return false
	}
	holders, err := keygroup.OpenHolders(l)
	return err == nil && !holders.Whole().Present
}

// join adds a holder to a lock by ballot.
func (set *masterSet) join(ctx context.Context, key Key, t TakeRequest) (GrantedLock, error) {
	token := t.Tokens[0]
	changed, err := set.changeHolders(ctx, key, &holderChange{
		apply:   func(h *keygroup.Holders) error { return h.Join(token, t.Slots, t.TTL) },
		joining: &removable{key.OfHolder(token), t.TTL},
	})
	if err != nil {
		return GrantedLock{}, err
	}
	set.recordHolder(key, token, t.Slots, changed.version, t.TTL, t.Holder, changed.since)
	got, err := set.newLease(changed.since, t.TTL, t.AllowShortTTL, changed.grant.EndsEarlyBy(changed.since, t.TTL))
	got.Version, got.Attempt, got.OfHolder, got.FreeSlots = changed.version, changed.attempt, true, changed.freeSlots
	got.HeldUntil, got.Early = changed.grant.HeldUntil, changed.grant.Early
	if err != nil {
		if t.OnRemovalDue != nil {
			t.OnRemovalDue(got.Version, nil)
		}
		return GrantedLock{}, err
	}
	got, err = set.database(key.DB).AddFence(ctx, []string{key.Name}, t.TakeOptions, got)
	return got, set.translate(err)
}

// recordHolder records the grant of this proxy to a holder. heldSince has the same meaning as for
// register.Register.RecordGrant.
func (set *masterSet) recordHolder(
	key Key, token string, slots int, version string, ttl time.Duration, client any, heldSince time.Time,
) {
	lone := keygroup.LoneHolder(token, slots)
	set.database(key.DB).RecordGrant(key.grantName(token), lone, version, ttl, client, heldSince)
}

// knownHolder returns the value of the key while the client with this token is the only holder.
// isKnown reports whether this proxy granted the lock to that client. isAlone reports whether the
// key has this value, as far as this proxy knows.
func (set *masterSet) knownHolder(key Key, token string) (lone string, isKnown, isAlone bool) {
	lone, isKnown = set.database(key.DB).Guess(key.grantName(token))
	if !isKnown || !keygroup.IsHolders(lone) {
		return "", false, false
	}
	current, _ := set.database(key.DB).Guess(key.Name)
	return lone, true, key.Tag == "" && current == lone
}

// takeHolderGrant removes the record of what this proxy granted to a holder, and returns the
// version and the remaining lease.
func (set *masterSet) takeHolderGrant(key Key, token string) (version string, left time.Duration) {
	lone, isKnown, _ := set.knownHolder(key, token)
	if !isKnown {
		return "", 0
	}
	return set.database(key.DB).TakeGrant(key.grantName(token), lone)
}

// releaseHolder releases a lock that several clients may hold.
func (set *masterSet) releaseHolder(ctx context.Context, key Key, token string) error {
	lone, _, isAlone := set.knownHolder(key, token)
	version, left := set.takeHolderGrant(key, token)
	scheduleRemoval := func(version string, left time.Duration) {
		set.cluster.scheduleRemoval(key.OfHolder(token), version, left, nil)
	}
	if isAlone {
		err := set.database(key.DB).Unlock(ctx, key.Name, lone, scheduleRemoval)
		if !set.needsHolderBallot(err) {
			return set.translate(err)
		}
	}
	var seen Snapshot
	_, err := set.changeHolders(ctx, key, &holderChange{leaves: true, apply: func(h *keygroup.Holders) error {
		if l := h.Holder(token); l.Present {
			seen = l
		}
		return h.Leave(token)
	}})
	if seen.Present {
		version, left = seen.Version, seen.LongestTimeLeft
	}
	if version != "" && errors.As(err, new(*NoQuorumError)) {
		scheduleRemoval(version, left)
	}
	return err
}

// extendHolder extends a lock that several clients may hold.
func (set *masterSet) extendHolder(ctx context.Context, key Key, token string, ttl time.Duration) (GrantedLock, error) {
	if ttl >= 0 && ttl < vote.MinTTL {
		return GrantedLock{}, ErrTooShort
	}
	lone, _, isAlone := set.knownHolder(key, token)
	heldSince := set.holderSince(key, token, lone)
	if isAlone {
		got, err := set.extendCell(ctx, key, lone, ttl)
		if !set.needsHolderBallot(err) {
			got.OfHolder = true
			return got, set.translate(err)
		}
	}
	var left time.Duration
	var slots int
	var before string
	changed, err := set.changeHolders(ctx, key, &holderChange{apply: func(h *keygroup.Holders) (err error) {
		slots, before = h.Slots(), h.Holder(token).Version
		left, err = h.Extend(token, ttl)
		return err
	}})
	if err != nil {
		return GrantedLock{}, err
	}
	client, _ := set.database(key.DB).GrantedTo(key.grantName(token), before)
	set.recordHolder(key, token, slots, changed.version, left, client, heldSince)
	got, err := set.newLease(changed.since, ttl, false, changed.grant.EndsEarlyBy(changed.since, ttl))
	got.HadLongerLease, got.OfHolder = left != ttl, true
	return got, err
}

// removeHolder removes a holder if it still has this version.
func (set *masterSet) removeHolder(ctx context.Context, key Key, version string) error {
	_, err := set.changeHolders(ctx, key.withoutHolder(), &holderChange{leaves: true, apply: func(h *keygroup.Holders) error {
		if l := h.Holder(key.Holder); !l.Present || l.Version != version {
			return ErrNotHeld
		}
		return h.Leave(key.Holder)
	}})
	if errors.Is(err, ErrNotHeld) {
		return nil
	}
	return err
}

// removeToken takes a lock, exclusive or not, from the holder with the token in key.Holder. It
// reports whether there was such a holder.
func (set *masterSet) removeToken(ctx context.Context, key Key) (bool, error) {
	lock := key.withoutHolder()
	err := set.releaseHolder(ctx, lock, key.Holder)
	if errors.Is(err, ErrNotHeld) {
		_, _, err = set.updateIfHeld(ctx, lock, key.Holder, func(Snapshot) Decision { return Decision{Action: Remove} })
	}
	if errors.Is(err, ErrNotHeld) {
		return false, nil
	}
	return err == nil, err
}
