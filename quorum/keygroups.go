package quorum

import (
	"context"
	"errors"
	"slices"
	"time"

	"redlock-proxy/quorum/keygroup"
	"redlock-proxy/quorum/register"
	"redlock-proxy/quorum/vote"
)

// This file handles keys that share a cell; see package keygroup. A key without a tag is taken,
// released and extended like any other key while it is alone in its cell. If the cell has further
// keys, or the key has a tag, a ballot decides.

var (
	// ErrFenceInKeygroup means that a client requested a fence for a key that shares its cell.
	ErrFenceInKeygroup = errors.New("a key that shares its hash tag with other existing keys cannot have a fence")

	// errDifferentTags means that a client requested several keys together with different tags, or
	// only some with a tag.
	errDifferentTags = errors.New("cannot take these keys together: with lock-tags, all keys of a hash tag share one cell; " +
		"give all keys the same tag, or none")
)

// UpdateAll changes several keys of one cell by one vote, as Update changes one key. run gets the
// values of the keys and returns the decisions, both in the order of the keys. If expectedValue is
// not nil, there must be only one key.
//
// Errors: the errors of Update, and keygroup.ErrTooLarge.
func (c *Cluster) UpdateAll(
	ctx context.Context, keys []Key, expectedValue *string, run func([]Snapshot) ([]Decision, error),
) (Outcome, error) {
	return withSet(ctx, c, func(set *masterSet) (Outcome, error) { return set.UpdateAll(ctx, keys, expectedValue, run) })
}

// UpdateAll implements Cluster.UpdateAll.
func (set *masterSet) UpdateAll(
	ctx context.Context, keys []Key, expect *string, run func([]Snapshot) ([]Decision, error),
) (Outcome, error) {
	return set.updateCell(ctx, keys, expect, keySnapshot, run)
}

// updateCell implements UpdateAll. snapshotOf returns the values that run gets.
func (set *masterSet) updateCell(
	ctx context.Context, keys []Key, expect *string, snapshotOf snapshotFunc, run func([]Snapshot) ([]Decision, error),
) (Outcome, error) {
	if err := set.checkAccess(keys...); err != nil {
		return Outcome{}, err
	}
	if cells, _ := cellsOf(keys); len(cells) != 1 {
		return Outcome{}, errDifferentTags
	}
	if hasTaggedKey(keys) {
		expect = nil // the value of the cell differs from the value of the key
	}
	var runs []*cellDecision
	change := register.Change{Key: keys[0].cellName(), ExpectedValue: expect, Run: func(l Snapshot) (Decision, error) {
		d, err := set.decide(ctx, l, keys, string(set.source.Change()), snapshotOf, run)
		if err == nil {
			runs = append(runs, d.Note.(*cellDecision))
		}
		return d, err
	}, OnRemovalDue: func(cell string, mayArrive func() bool) {
		for _, decided := range runs {
			for _, r := range decided.removable { // in a keygroup the key has the version of the run
				set.cluster.scheduleRemoval(r.key, decided.version, r.ttl, mayArrive)
				set.cluster.scheduleRemoval(r.key, cell, r.ttl, mayArrive)
			}
		}
	}}
	out, err := set.database(keys[0].DB).Update(ctx, change)
	if err != nil {
		return out, set.translate(err)
	}
	made := out.Decision.Note.(*cellDecision)
	for i, d := range made.decisions {
		if d.Action == Remove {
			set.cluster.onFreed(keys[i], Unlimited)
		}
	}
	if keygroup.HasExpiries(out.Decision.Value) {
		out.Version = made.version
	}
	out.Decision = made.decisions[0]
	return out, nil
}

// cellDecision is the Note of a decision about a cell: the decisions about its keys, and the
// version of the stored values.
type cellDecision struct {
	decisions []Decision
	version   string
	// removable holds the keys to remove if the update returns an error: after an error no client
	// holds them.
	removable []removable
}

// removable is a key to remove, and its TTL.
type removable struct {
	key Key
	ttl time.Duration
}

// snapshotFunc returns the value of a key in its cell.
type snapshotFunc func(b *keygroup.Group, cell Snapshot, key Key) (Snapshot, error)

// decide calls run with the values of some keys of a cell, and returns the resulting decision about
// the cell, with a new version.
func (set *masterSet) decide(
	ctx context.Context, l Snapshot, keys []Key, version string, snapshotOf snapshotFunc, run func([]Snapshot) ([]Decision, error),
) (Decision, error) {
	b, err := keygroup.Open(keys[0].cellName(), l)
	if err != nil {
		return Decision{}, err
	}
	snapshots := make([]Snapshot, len(keys))
	for i, key := range keys {
		if snapshots[i], err = snapshotOf(b, l, key); err != nil {
			return Decision{}, err
		}
	}
	all, err := run(snapshots)
	if err != nil {
		return Decision{}, err
	}
	made, ofHolders := &cellDecision{decisions: all, version: version}, false
	for i, decision := range all {
		change, changesHolders := decision.Note.(*holdersDecision)
		ofHolders = ofHolders || changesHolders
		switch {
		case changesHolders:
			made.version, made.removable = change.version, append(made.removable, change.joined...)
		case decision.RemoveOnError:
			made.removable = append(made.removable, removable{keys[i], decision.TTL})
		}
		switch name := keys[i].Name; {
		case decision.Action == Remove:
			b.Remove(name)
		case decision.Action == Put && decision.KeepTTL && decision.Shared:
			b.ReplaceShifted(name, decision.Value, decision.Shift)
		case decision.Action == Put && decision.KeepTTL && keygroup.IsHolders(snapshots[i].Value):
			b.Put(name, decision.Value, snapshots[i].TimeLeft) // the cell may outlast the holders
		case decision.Action == Put && decision.KeepTTL:
			b.Replace(name, decision.Value)
		case decision.Action == Put:
			b.Put(name, decision.Value, decision.TTL)
		}
	}
	d, err := b.Encode(made.version)
	if err != nil {
		return Decision{}, err
	}
	// The TTLs of holders are recorded when they join.
	if lease, exists := b.LongestNewTTL(); exists && !ofHolders {
		err = set.recordMaxTTL(ctx, lease)
	}
	d.RemoveOnError = !slices.ContainsFunc(all, func(decision Decision) bool { return decision.Action != NoChange && !decision.RemoveOnError })
	d.Note = made
	return d, err
}

// runForOneKey converts a run for one key to the form that UpdateAll needs.
func runForOneKey(run func(Snapshot) (Decision, error)) func([]Snapshot) ([]Decision, error) {
	return func(snapshots []Snapshot) ([]Decision, error) {
		d, err := run(snapshots[0])
		return []Decision{d}, err
	}
}

// hasKeygroup reports whether a cell may hold further keys, after the masters refused an operation
// on the cell's own key with err. Then a ballot decides.
func (set *masterSet) hasKeygroup(err error) bool {
	if !set.cluster.opts.Tagged || !errors.Is(err, ErrHeld) && !errors.Is(err, ErrNotHeld) {
		return false
	}
	var refusal *RefusedError
	return !errors.As(err, &refusal) || keygroup.IsGroup(refusal.CurrentSnapshot.Value)
}

// takeInKeygroup takes keys of one cell by ballot, all or none. A key whose removal is pending
// counts as free.
func (set *masterSet) takeInKeygroup(ctx context.Context, t TakeRequest) (GrantedLock, error) {
	if !t.AllowShortTTL && t.TTL >= 0 && t.TTL < vote.MinTTL {
		return GrantedLock{}, ErrTooShort
	}
	if cells, _ := cellsOf(t.Keys); len(cells) != 1 {
		return GrantedLock{}, errDifferentTags
	}
	holder := func(snapshots []Snapshot) int {
		for i, l := range snapshots {
			if l.Present && !set.cluster.isRemovalPending(t.Keys[i], l.Version) {
				return i
			}
		}
		return -1
	}
	snapshots, err := set.Read(ctx, t.Keys)
	if err != nil {
		return GrantedLock{}, err
	}
	switch i := holder(snapshots); { // the removal of a version may become due at any moment
	case i >= 0:
		return GrantedLock{}, &RefusedError{Err: ErrHeld, CurrentSnapshot: snapshots[i], Key: i}
	case t.Fence && !hasTaggedKey(t.Keys) && !snapshots[0].Shared:
		return set.Take(ctx, t) // the cell holds no other keys any more
	case t.Fence:
		return GrantedLock{}, ErrFenceInKeygroup
	}
	leaseStart, onRemovalDue := time.Now(), set.removalScheduler(t)
	out, err := set.UpdateAll(ctx, t.Keys, nil, func(snapshots []Snapshot) ([]Decision, error) {
		decisions := make([]Decision, len(snapshots))
		if holder(snapshots) >= 0 {
			return decisions, nil
		}
		for i := range decisions {
			decisions[i] = Decision{Action: Put, Value: t.Tokens[i], TTL: t.TTL, RemoveOnError: !t.KeepOnNoQuorum}
		}
		return decisions, nil
	})
	switch {
	case err != nil:
		return GrantedLock{}, err
	case out.Decision.Action != Put:
		return GrantedLock{}, ErrHeld
	}
	for i, key := range t.Keys {
		set.recordVersion(key, t.Tokens[i], out.Version, t.TTL, leaseStart)
	}
	got, err := set.newLease(leaseStart, t.TTL, t.AllowShortTTL, out.EndsEarlyBy(leaseStart, t.TTL))
	if got.Version = out.Version; err != nil {
		if onRemovalDue != nil {
			onRemovalDue(got.Version, nil)
		}
		return GrantedLock{}, err
	}
	return got, nil
}

// newLease returns the lease of a ballot that began at leaseStart, or a *NoQuorumError if less than
// 1 ms of validity is left. A master may hold the value for less than ttl, by early.
func (set *masterSet) newLease(leaseStart time.Time, ttl time.Duration, allowShortTTL bool, early time.Duration) (GrantedLock, error) {
	elapsed := time.Since(leaseStart) + early
	got := GrantedLock{Validity: vote.Validity(ttl, elapsed), LeaseStart: leaseStart}
	if !allowShortTTL && ttl >= 0 && got.Validity < time.Millisecond {
		noQuorum := newNoQuorum(len(set.masters))
		noQuorum.AgreementTime = elapsed
		return GrantedLock{}, noQuorum
	}
	return got, nil
}

// releaseInKeygroup removes a key by ballot if it holds the token.
func (set *masterSet) releaseInKeygroup(ctx context.Context, key Key, token string) error {
	var removedSnapshot Snapshot
	version, left := set.database(key.DB).TakeGrant(key.Name, token)
	_, _, err := set.updateIfHeld(ctx, key, token, func(l Snapshot) Decision { removedSnapshot = l; return Decision{Action: Remove} })
	if removedSnapshot.Present {
		version, left = removedSnapshot.Version, removedSnapshot.TimeLeft
	}
	if version != "" && errors.As(err, new(*NoQuorumError)) {
		set.cluster.scheduleRemoval(key, version, left, nil)
	}
	return err
}

// recordVersion stores the version of a tagged key that this proxy granted. So the proxy can
// schedule the removal of that version even if the masters do not reply to a release. heldSince has
// the same meaning as for register.Register.RecordGrant.
func (set *masterSet) recordVersion(key Key, token, version string, ttl time.Duration, heldSince time.Time) {
	if key.Tag != "" {
		set.database(key.DB).RecordGrant(key.Name, token, version, ttl, nil, heldSince)
	}
}

// extendInKeygroup extends the remaining time of a key by ballot if it holds the token.
func (set *masterSet) extendInKeygroup(ctx context.Context, key Key, token string, ttl time.Duration) (GrantedLock, error) {
	if ttl >= 0 && ttl < vote.MinTTL {
		return GrantedLock{}, ErrTooShort
	}
	isLonger := func(l Snapshot) bool { return l.TimeLeft < 0 || ttl >= 0 && l.TimeLeft >= ttl }
	since, heldSince := time.Now(), set.database(key.DB).HeldSince(key.Name, token)
	previousSnapshot, out, err := set.updateIfHeld(ctx, key, token, func(l Snapshot) Decision {
		if isLonger(l) { // a new version: the removal of the former version may be pending
			return Decision{Action: Put, Value: token, KeepTTL: true}
		}
		return Decision{Action: Put, Value: token, TTL: ttl}
	})
	if err != nil {
		return GrantedLock{}, err
	}
	lease := ttl
	if isLonger(previousSnapshot) {
		lease = previousSnapshot.TimeLeft
	}
	set.recordVersion(key, token, out.Version, lease, heldSince)
	got, err := set.newLease(since, ttl, false, out.EndsEarlyBy(since, ttl))
	got.HadLongerLease = isLonger(previousSnapshot)
	return got, err
}

// updateIfHeld changes a key by ballot if the key holds the token, and returns the previous value.
func (set *masterSet) updateIfHeld(
	ctx context.Context, key Key, token string, decide func(Snapshot) Decision,
) (previous Snapshot, out Outcome, err error) {
	out, err = set.UpdateAll(ctx, []Key{key}, nil, runForOneKey(func(l Snapshot) (d Decision, err error) {
		switch {
		case l.TimeLeftUnknown:
			return Decision{}, ErrTTLUnknown
		case l.Present && l.Value == token:
			d = decide(l)
		}
		d.Note = l
		return d, nil
	}))
	if err != nil {
		return Snapshot{}, out, err
	}
	if previous = out.Decision.Note.(Snapshot); !previous.Present || previous.Value != token {
		return Snapshot{}, out, &RefusedError{Err: ErrNotHeld, CurrentSnapshot: previous}
	}
	return previous, out, nil
}

// keyNames replaces names of cells by the names of the keys in them.
func (set *masterSet) keyNames(ctx context.Context, db int, names []string) (result []string, err error) {
	const namesPerRead = 50 // the values may be large
	for batch := range slices.Chunk(names, namesPerRead) {
		cellValues, err := set.database(db).Read(ctx, batch)
		if err != nil {
			return nil, set.translate(err)
		}
		for i, name := range batch {
			if l := cellValues[i]; l.Foreign || !keygroup.IsGroup(l.Value) {
				result = append(result, name)
				continue
			}
			b, err := keygroup.Open(name, cellValues[i])
			if err != nil { // a later version of the proxy wrote the cell
				result = append(result, name)
				continue
			}
			result = append(result, b.Names()...)
		}
	}
	return result, nil
}

// Update implements Cluster.Update.
func (set *masterSet) Update(
	ctx context.Context, key Key, expect *string, run func(Snapshot) (Decision, error),
) (Outcome, error) {
	return set.UpdateAll(ctx, []Key{key}, expect, runForOneKey(run))
}
