package program

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/lockkeys/keyspace"
	"redlock-proxy/quorum"
)

// splitEdits separates edits that change their key from edits that are only conditions.
func splitEdits(edits []keyspace.Edit) (changes, conditions []keyspace.Edit) {
	for _, e := range edits {
		if e.IsChange() {
			changes = append(changes, e)
		} else {
			conditions = append(conditions, e)
		}
	}
	return changes, conditions
}

func isCreation(e keyspace.Edit) bool { return !e.Before.Present && e.After.Present }
func isRemoval(e keyspace.Edit) bool  { return e.Before.Present && !e.After.Present }

// isExtension reports whether an edit keeps the value and sets another remaining time.
func isExtension(e keyspace.Edit) bool {
	return e.Before.Present && e.After.Present && e.Before.Value == e.After.Value && !e.KeepTTL
}

func allEdits(edits []keyspace.Edit, is func(keyspace.Edit) bool) bool {
	return !slices.ContainsFunc(edits, func(e keyspace.Edit) bool { return !is(e) })
}

// commit commits the result of a run. It returns a nil outcome if the program must run again,
// usually because a key has changed.
func (r *run) commit(ctx context.Context, a Outcome) (*Outcome, error) {
	changes, refusal := r.editsToCommit(a)
	switch {
	case refusal != "":
		return &Outcome{Reply: keyspace.ErrorReply(refusal), dependsOnKeys: true}, nil
	case len(changes) == 0:
		return &a, nil
	}
	if refused, err := r.prepare(ctx, a.effects); err != nil || refused != nil {
		return refused, err
	}
	switch cell, inOneCell := r.sameCell(a); {
	case inOneCell:
		return r.update(ctx, r.keysInCell(cell), nil)
	case allEdits(changes, isRemoval):
		return r.remove(ctx, a, changes)
	case len(r.WatchedVersions) > 0 && len(changes) == 1:
		return r.update(ctx, []string{changes[0].Key}, nil)
	case allEdits(changes, isCreation) && sameTTL(changes):
		return r.create(ctx, a, changes)
	case r.onlyExtends(changes):
		return r.extend(ctx, a, changes)
	default:
		return r.update(ctx, []string{changes[0].Key}, expectedValue(changes[0]))
	}
}

// editsToCommit returns the edits that a run has not made yet, or the error reply that refuses
// them. Edits of several cells are possible only if they are independent.
func (r *run) editsToCommit(a Outcome) (changes []keyspace.Edit, refusal string) {
	changes, conditions := splitEdits(a.Edits)
	if rewrites := r.editsOfRemovedKeys(changes); len(rewrites) > 0 {
		return nil, CrossCellError(rewrites[0].Key, r.anotherKey(rewrites[0].Key))
	}
	changes = slices.DeleteFunc(changes, func(e keyspace.Edit) bool {
		_, removed := r.removedKeys[e.Key]
		return removed
	})
	if _, inOneCell := r.sameCell(a); inOneCell {
		return changes, ""
	}
	otherKeys := r.otherKeys(changes, conditions)
	switch {
	case allEdits(changes, isCreation) && r.needsBallot(changes):
		return nil, r.crossCellError(changes, otherKeys)
	case len(changes) == 0, allEdits(changes, isRemoval) && len(r.WatchedVersions) == 0:
	case len(otherKeys) > 0:
		return nil, r.crossCellError(changes, otherKeys)
	case len(changes) > 1 && !(allEdits(changes, isCreation) && sameTTL(changes)) && !r.onlyExtends(changes):
		return nil, r.crossCellError(changes, otherKeys)
	}
	return changes, ""
}

// onlyExtends reports whether edits only raise remaining times. It returns false if the client
// watches keys, because an extension checks no version.
func (r *run) onlyExtends(edits []keyspace.Edit) bool {
	return len(r.WatchedVersions) == 0 && allEdits(edits, isExtension) && allEdits(edits, isLonger)
}

// editsOfRemovedKeys returns the edits that write a key that this program has already removed.
// Another client may have taken the key since.
func (r *run) editsOfRemovedKeys(changes []keyspace.Edit) []keyspace.Edit {
	return slices.DeleteFunc(slices.Clone(changes), func(e keyspace.Edit) bool {
		_, removed := r.removedKeys[e.Key]
		return !removed || isRemoval(e)
	})
}

// anotherKey returns a different key of the program.
func (r *run) anotherKey(key string) string {
	for _, candidate := range r.Keys {
		if candidate != key {
			return candidate
		}
	}
	return key
}

// otherKeys returns the keys that a run does not change, but on which its changes depend.
func (r *run) otherKeys(changes, conditions []keyspace.Edit) (keys []string) {
	for _, e := range conditions {
		keys = append(keys, e.Key)
	}
	for key := range r.WatchedVersions {
		if !slices.ContainsFunc(changes, func(e keyspace.Edit) bool { return e.Key == key }) {
			keys = append(keys, key)
		}
	}
	return keys
}

// crossCellError refuses to change keys of several cells. It names two keys of different cells,
// because a program can change keys of one cell together.
func (r *run) crossCellError(changes []keyspace.Edit, otherKeys []string) string {
	first := changes[0].Key
	for _, e := range changes[1:] {
		otherKeys = append(otherKeys, e.Key)
	}
	otherCell := slices.IndexFunc(otherKeys, func(key string) bool { return r.cell(key) != r.cell(first) })
	return CrossCellError(first, otherKeys[max(otherCell, 0)])
}

// CrossCellError returns the error for changes that would need one vote on two keys. The keys are
// in different cells, each with its own vote.
func CrossCellError(key, otherKey string) string {
	return fmt.Sprintf("ERR lock keys '%s' and '%s' cannot be changed together: "+
		"one command can take, extend or remove several lock keys, but not change them otherwise; give them the same hash tag (lock-tags)",
		syntax.Excerpt(key), syntax.Excerpt(otherKey))
}

func sameTTL(edits []keyspace.Edit) bool {
	return allEdits(edits, func(e keyspace.Edit) bool { return e.After.RemainingTTL == edits[0].After.RemainingTTL })
}

// isLonger reports whether raising the remaining time is enough for an extension. If the remaining
// time is unknown, raising it is worth a try. Only a ballot can remove a known remaining time.
func isLonger(e keyspace.Edit) bool {
	switch {
	case e.Before.RemainingTTL == keyspace.UnknownExpiry:
		return true
	case e.After.RemainingTTL < 0:
		return e.Before.RemainingTTL < 0
	default:
		return e.Before.RemainingTTL >= 0 && e.After.RemainingTTL >= e.Before.RemainingTTL
	}
}

// expectedValue returns the guessed value on which an edit depends, or nil. If the key holds
// another value, the ballot first only reads the key.
func expectedValue(e keyspace.Edit) *string {
	if !e.ReplyDependsOn || !e.Before.Present || e.Before.RemainingTTL != keyspace.UnknownExpiry {
		return nil
	}
	return &e.Before.Value
}

func (r *run) create(ctx context.Context, a Outcome, edits []keyspace.Edit) (*Outcome, error) {
	t := quorum.TakeRequest{TakeOptions: quorum.TakeOptions{TTL: ttlOf(edits[0]), AllowShortTTL: true, Holder: r.Holder}}
	for _, e := range edits {
		t.Keys, t.Tokens = append(t.Keys, r.KeyOnMasters(r.DB, e.Key)), append(t.Tokens, e.After.Value)
	}
	// A program that required absent keys, and gives them a TTL, takes a lock, which can be
	// withdrawn. The masters keep any other write, because other clients may already rely on it.
	acquired := a.AcquiredKeys()
	t.KeepOnNoQuorum = len(acquired) == 0 || t.TTL < 0
	grant, err := r.Register.Take(ctx, t)
	switch {
	case errors.Is(err, quorum.ErrHeld):
		r.noteRefusal(edits[0].Key, err)
		return nil, nil
	case err != nil:
		return nil, err
	}
	a.Grant = grant
	return &a, nil
}

// remove removes the keys one after another, each on condition of its value. If a value has
// changed, the program runs again, and still sees the removed keys with their old values.
func (r *run) remove(ctx context.Context, a Outcome, edits []keyspace.Edit) (*Outcome, error) {
	for _, e := range edits {
		err := r.removeOne(ctx, e)
		switch {
		case errors.Is(err, quorum.ErrNotHeld):
			r.noteRefusal(e.Key, err)
			return nil, nil
		case err != nil:
			return nil, err
		}
		r.removedKeys[e.Key] = e.Before
	}
	return &a, nil
}

// noteRefusal keeps the value that made the masters refuse to take, release or extend a program's
// only key.
func (r *run) noteRefusal(key string, err error) {
	var refusedErr *quorum.RefusedError
	if len(r.Keys) == 1 && r.Keys[0] == key && errors.As(err, &refusedErr) {
		r.refusalView = view{key: refusedErr.CurrentSnapshot}
	}
}

// removeOne removes a key. It removes a watched key only if the key has the watched version.
func (r *run) removeOne(ctx context.Context, e keyspace.Edit) error {
	keyOnMasters := r.KeyOnMasters(r.DB, e.Key)
	version, watched := r.WatchedVersions[e.Key]
	if !watched {
		return r.Register.Release(ctx, keyOnMasters, e.Before.Value)
	}
	out, err := r.Register.Update(ctx, keyOnMasters, nil, func(l quorum.Snapshot) (quorum.Decision, error) {
		if l.Version == version {
			return quorum.Decision{Action: quorum.Remove}, nil
		}
		return quorum.Decision{}, nil
	})
	if err == nil && out.Decision.Action == quorum.NoChange {
		return quorum.ErrNotHeld
	}
	return err
}

func (r *run) extend(ctx context.Context, a Outcome, edits []keyspace.Edit) (*Outcome, error) {
	for _, e := range edits {
		grant, err := r.Register.Extend(ctx, r.KeyOnMasters(r.DB, e.Key), e.Before.Value, ttlOf(e))
		switch {
		case errors.Is(err, quorum.ErrNotHeld):
			r.noteRefusal(e.Key, err)
			return nil, nil
		case errors.Is(err, quorum.ErrTooShort),
			e.Before.RemainingTTL == keyspace.UnknownExpiry && (err == nil && grant.HadLongerLease || isLate(err)):
			if len(edits) > 1 {
				refusal := CrossCellError(edits[0].Key, edits[1].Key)
				return &Outcome{Reply: keyspace.ErrorReply(refusal), dependsOnKeys: true}, nil
			}
			return r.update(ctx, []string{e.Key}, &e.Before.Value) // the new time is shorter
		case err != nil:
			return nil, err
		}
	}
	return &a, nil
}

// isLate reports whether an operation failed only because too little of the requested time was
// left. A program that did not read the remaining time can then use a ballot. A ballot relies on no
// lease, and the program sets the same time in each run.
func isLate(err error) bool {
	var noQuorumErr *quorum.NoQuorumError
	return errors.As(err, &noQuorumErr) && noQuorumErr.AgreementTime > 0
}

// errDifferentKeys ends an update whose program turns out to depend on keys outside the ballot.
var errDifferentKeys = errors.New("the program depends on different keys")

// update changes one key, or several keys of one cell, by ballot. The program runs on the values of
// these keys in the ballot. Other keys have the values of the last read. If the program depends on
// another key, the update ends without a change.
func (r *run) update(ctx context.Context, keys []string, expect *string) (*Outcome, error) {
	out, err := r.ballot(ctx, r.KeysOnMasters(r.DB, keys), expect, func(snapshots []quorum.Snapshot) ([]quorum.Decision, error) {
		values := maps.Clone(r.lastRead)
		for i, key := range keys {
			values[key] = snapshots[i]
		}
		a, err := r.runOn(ctx, values)
		switch {
		case errors.Is(err, keyspace.ErrNeedsRead):
			err = quorum.ErrTTLUnknown
		case err == nil && r.dependsOnDifferentKeys(a, keys):
			err = errDifferentKeys
		case err == nil && !r.effects.hasPrepared(a.effects):
			r.effects.ballotCommands, err = a.effects, errDifferentEffects
		}
		keyDecisions := decisions(a, keys)
		keyDecisions[0].Note = &a
		return keyDecisions, err
	})
	var unreadErr *keyspace.UnreadError
	switch {
	case errors.As(err, &unreadErr):
		r.UsuallyWrites = false
		return r.addKeys(append(keys, unreadErr.Key)), nil
	case errors.Is(err, errDifferentKeys):
		r.UsuallyWrites = false
		return nil, nil
	case errors.Is(err, errDifferentEffects):
		return r.prepare(ctx, r.effects.ballotCommands)
	case errors.Is(err, errRightsUnknown):
		return nil, r.Rights.Ask(ctx)
	case err != nil:
		return nil, err
	}
	outcome := out.Decision.Note.(*Outcome)
	outcome.Grant.Version = out.Version
	return outcome, nil
}

// ballot runs an update of one key, or of several.
func (r *run) ballot(
	ctx context.Context, keys []quorum.Key, expect *string, run func([]quorum.Snapshot) ([]quorum.Decision, error),
) (quorum.Outcome, error) {
	if len(keys) > 1 {
		return r.Register.UpdateAll(ctx, keys, expect, run)
	}
	return r.Register.Update(ctx, keys[0], expect, func(l quorum.Snapshot) (quorum.Decision, error) {
		keyDecisions, err := run([]quorum.Snapshot{l})
		return keyDecisions[0], err
	})
}

// dependsOnDifferentKeys reports whether the result of a run may depend on other keys than keys.
func (r *run) dependsOnDifferentKeys(a Outcome, keys []string) bool {
	if len(a.Edits) == 0 {
		return len(r.lastRead) > len(keys)
	}
	return !allEdits(a.Edits, func(e keyspace.Edit) bool { return slices.Contains(keys, e.Key) })
}

// decisions returns the decisions of a run about some keys, in the order of keys.
func decisions(a Outcome, keys []string) []quorum.Decision {
	result := make([]quorum.Decision, len(keys))
	acquired := a.AcquiredKeys()
	for _, e := range a.Edits {
		i := slices.Index(keys, e.Key)
		switch {
		case i < 0 || !e.IsChange():
		case !e.After.Present:
			result[i] = quorum.Decision{Action: quorum.Remove}
		default:
			result[i] = quorum.Decision{
				Action: quorum.Put, Value: e.After.Value, KeepTTL: e.KeepTTL, TTL: ttlOf(e),
				RemoveOnError: !e.KeepTTL && ttlOf(e) >= 0 && slices.Contains(acquired, e.Key),
			}
		}
	}
	return result
}
