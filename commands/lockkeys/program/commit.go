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
func splitEdits(edits []keyspace.Edit) (changing, conditions []keyspace.Edit) {
	for _, e := range edits {
		if e.Changes() {
			changing = append(changing, e)
		} else {
			conditions = append(conditions, e)
		}
	}
	return changing, conditions
}

func isCreation(e keyspace.Edit) bool { return !e.Before.Present && e.After.Present }
func isRemoval(e keyspace.Edit) bool  { return e.Before.Present && !e.After.Present }

// isExtension reports whether an edit keeps the value and sets another remaining time.
func isExtension(e keyspace.Edit) bool {
	return e.Before.Present && e.After.Present && e.Before.Value == e.After.Value && !e.KeepTTL
}

func all(edits []keyspace.Edit, is func(keyspace.Edit) bool) bool {
	return !slices.ContainsFunc(edits, func(e keyspace.Edit) bool { return !is(e) })
}

// commit commits the result of a run. It returns nil if a key holds another value by now.
func (r *run) commit(ctx context.Context, a Outcome) (*Outcome, error) {
	changing, refusal := r.committable(a)
	switch {
	case refusal != "":
		return &Outcome{Reply: keyspace.ErrorReply(refusal), touched: true}, nil
	case len(changing) == 0:
		return &a, nil
	}
	if refused, err := r.prepare(ctx, a.effects); err != nil || refused != nil {
		return refused, err
	}
	switch tag, inOneCell := r.sameCell(a); {
	case inOneCell:
		return r.update(ctx, r.keysOf(tag), nil)
	case all(changing, isRemoval):
		return r.remove(ctx, a, changing)
	case len(r.Watched) > 0 && len(changing) == 1:
		return r.update(ctx, []string{changing[0].Key}, nil)
	case all(changing, isCreation) && sameTTL(changing):
		return r.create(ctx, a, changing)
	case r.onlyExtends(changing):
		return r.extend(ctx, a, changing)
	default:
		return r.update(ctx, []string{changing[0].Key}, expectedValue(changing[0]))
	}
}

// committable returns the edits of a run that are still to be made, or the error reply that refuses
// them. Edits of several cells are possible only if they are independent.
func (r *run) committable(a Outcome) (changing []keyspace.Edit, refusal string) {
	changing, conditions := splitEdits(a.Edits)
	if rewritten := r.writesRemoved(changing); len(rewritten) > 0 {
		return nil, CrossCellError(rewritten[0].Key, r.anotherKey(rewritten[0].Key))
	}
	changing = slices.DeleteFunc(changing, func(e keyspace.Edit) bool { _, done := r.removed[e.Key]; return done })
	if _, inOneCell := r.sameCell(a); inOneCell {
		return changing, ""
	}
	others := r.otherKeys(changing, conditions)
	switch {
	case all(changing, isCreation) && r.needsBallot(changing):
		return nil, r.crossCellError(changing, others)
	case len(changing) == 0, all(changing, isRemoval) && len(r.Watched) == 0:
	case len(others) > 0:
		return nil, r.crossCellError(changing, others)
	case len(changing) > 1 && !(all(changing, isCreation) && sameTTL(changing)) && !r.onlyExtends(changing):
		return nil, r.crossCellError(changing, others)
	}
	return changing, ""
}

// onlyExtends reports whether raising remaining times, which checks no version, is enough for
// edits.
func (r *run) onlyExtends(edits []keyspace.Edit) bool {
	return len(r.Watched) == 0 && all(edits, isExtension) && all(edits, isLonger)
}

// writesRemoved returns the edits that write a key that this program has already removed. Another
// client may have taken the key since.
func (r *run) writesRemoved(changing []keyspace.Edit) []keyspace.Edit {
	return slices.DeleteFunc(slices.Clone(changing), func(e keyspace.Edit) bool {
		_, done := r.removed[e.Key]
		return !done || isRemoval(e)
	})
}

// anotherKey returns a different key of the program.
func (r *run) anotherKey(key string) string {
	for _, other := range r.Keys {
		if other != key {
			return other
		}
	}
	return key
}

// otherKeys returns the keys that are not changed, but on which the change depends.
func (r *run) otherKeys(changing, conditions []keyspace.Edit) (others []string) {
	for _, e := range conditions {
		others = append(others, e.Key)
	}
	for key := range r.Watched {
		if !slices.ContainsFunc(changing, func(e keyspace.Edit) bool { return e.Key == key }) {
			others = append(others, key)
		}
	}
	return others
}

// crossCellError refuses to change keys of several cells. It names two keys of different cells,
// because keys of one cell can be changed together.
func (r *run) crossCellError(changing []keyspace.Edit, others []string) string {
	first := changing[0].Key
	for _, e := range changing[1:] {
		others = append(others, e.Key)
	}
	otherCell := slices.IndexFunc(others, func(key string) bool { return r.cell(key) != r.cell(first) })
	return CrossCellError(first, others[max(otherCell, 0)])
}

// CrossCellError returns the error for a change of one key that depends on another. Each key has
// its own vote, and no vote covers both.
func CrossCellError(one, other string) string {
	return fmt.Sprintf("ERR lock keys '%s' and '%s' cannot be changed together: "+
		"one command can only take, extend or remove several lock keys; give them the same hash tag (lock-tags)",
		syntax.Shown(one), syntax.Shown(other))
}

func sameTTL(edits []keyspace.Edit) bool {
	return all(edits, func(e keyspace.Edit) bool { return e.After.Left == edits[0].After.Left })
}

// isLonger reports whether raising the remaining time is enough for an extension. If the remaining
// time is unknown, raising it is worth a try. Only a ballot can remove a remaining time from a key
// known to have one.
func isLonger(e keyspace.Edit) bool {
	switch {
	case e.Before.Left == keyspace.Unknown:
		return true
	case e.After.Left < 0:
		return e.Before.Left < 0
	default:
		return e.Before.Left >= 0 && e.After.Left >= e.Before.Left
	}
}

// expectedValue returns the value that an edit requires, or nil if it accepts any value.
func expectedValue(e keyspace.Edit) *string {
	if !e.ReplyDependsOn || !e.Before.Present || e.Before.Left != keyspace.Unknown {
		return nil
	}
	return &e.Before.Value
}

func (r *run) create(ctx context.Context, a Outcome, edits []keyspace.Edit) (*Outcome, error) {
	t := quorum.TakeRequest{Terms: quorum.Terms{TTL: ttlOf(edits[0]), AllowShortTTL: true, Holder: r.Holder}}
	for _, e := range edits {
		t.Keys, t.Tokens = append(t.Keys, r.Place(r.DB, e.Key)), append(t.Tokens, e.After.Value)
	}
	// A program that required absent keys, and gives them a TTL, takes a lock, which can be
	// withdrawn. Any other write is kept, because other clients may already rely on it.
	taken := a.Acquired()
	t.KeepOnNoQuorum = len(taken) == 0 || t.TTL < 0
	got, err := r.Register.Take(ctx, t)
	switch {
	case errors.Is(err, quorum.ErrHeld):
		r.noteRefusal(edits[0].Key, err)
		return nil, nil
	case err != nil:
		return nil, err
	}
	a.Granted = got
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
		r.removed[e.Key] = e.Before
	}
	return &a, nil
}

// noteRefusal keeps the value that made the masters refuse to take, release or extend a program's
// only key.
func (r *run) noteRefusal(key string, err error) {
	var found *quorum.RefusedError
	if len(r.Keys) == 1 && r.Keys[0] == key && errors.As(err, &found) {
		r.fromRefusal = view{key: found.Current}
	}
}

// removeOne removes a key. A watched key is removed on condition of its version.
func (r *run) removeOne(ctx context.Context, e keyspace.Edit) error {
	place := r.Place(r.DB, e.Key)
	version, watched := r.Watched[e.Key]
	if !watched {
		return r.Register.Release(ctx, place, e.Before.Value)
	}
	out, err := r.Register.Update(ctx, place, nil, func(l quorum.Look) (quorum.Decision, error) {
		if l.Version == version {
			return quorum.Decision{Do: quorum.Remove}, nil
		}
		return quorum.Decision{}, nil
	})
	if err == nil && out.Decision.Do == quorum.Leave {
		return quorum.ErrNotHeld
	}
	return err
}

func (r *run) extend(ctx context.Context, a Outcome, edits []keyspace.Edit) (*Outcome, error) {
	for _, e := range edits {
		got, err := r.Register.Extend(ctx, r.Place(r.DB, e.Key), e.Before.Value, ttlOf(e))
		switch {
		case errors.Is(err, quorum.ErrNotHeld):
			r.noteRefusal(e.Key, err)
			return nil, nil
		case errors.Is(err, quorum.ErrTooShort),
			e.Before.Left == keyspace.Unknown && (err == nil && got.Longer || isLate(err)):
			if len(edits) > 1 {
				return &Outcome{Reply: keyspace.ErrorReply(CrossCellError(edits[0].Key, edits[1].Key)), touched: true}, nil
			}
			return r.update(ctx, []string{e.Key}, &e.Before.Value) // the new time is shorter
		case err != nil:
			return nil, err
		}
	}
	return &a, nil
}

// isLate reports whether an operation failed only because too little of the requested time was
// left. A program that did not read the remaining time need not fail then: it relies on no lease,
// and sets the same time however often it runs.
func isLate(err error) bool {
	var none *quorum.NoQuorumError
	return errors.As(err, &none) && none.Late > 0
}

// errOtherKeys ends an update if its program turns out to depend on other keys.
var errOtherKeys = errors.New("the program depends on other keys")

// update makes a change by ballot: of one key, or of several keys of one cell, on their values at
// that moment. Other keys are as they were read last; the program must not depend on them.
func (r *run) update(ctx context.Context, keys []string, expect *string) (*Outcome, error) {
	out, err := r.ballot(ctx, r.Places(r.DB, keys), expect, func(looks []quorum.Look) ([]quorum.Decision, error) {
		seen := maps.Clone(r.seen)
		for i, key := range keys {
			seen[key] = looks[i]
		}
		a, err := r.runOn(ctx, seen)
		switch {
		case errors.Is(err, keyspace.ErrNeedsRead):
			err = quorum.ErrNeedsLeft
		case err == nil && r.dependsOnOthers(a, keys):
			err = errOtherKeys
		case err == nil && !r.effects.fits(a.effects):
			r.effects.wanted, err = a.effects, errOtherEffects
		}
		made := decisions(a, keys)
		made[0].Note = &a
		return made, err
	})
	var unread *keyspace.UnreadError
	switch {
	case errors.As(err, &unread):
		r.Replaces = false
		return r.addKeys(append(keys, unread.Key)), nil
	case errors.Is(err, errOtherKeys):
		r.Replaces = false
		return nil, nil
	case errors.Is(err, errOtherEffects):
		return r.prepare(ctx, r.effects.wanted)
	case errors.Is(err, errRightsUnknown):
		return nil, r.Rights.Ask(ctx)
	case err != nil:
		return nil, err
	}
	done := out.Decision.Note.(*Outcome)
	done.Granted.Version = out.Version
	return done, nil
}

// ballot runs an update of one key, or of several.
func (r *run) ballot(
	ctx context.Context, keys []quorum.Key, expect *string, run func([]quorum.Look) ([]quorum.Decision, error),
) (quorum.Outcome, error) {
	if len(keys) > 1 {
		return r.Register.UpdateAll(ctx, keys, expect, run)
	}
	return r.Register.Update(ctx, keys[0], expect, func(l quorum.Look) (quorum.Decision, error) {
		made, err := run([]quorum.Look{l})
		return made[0], err
	})
}

// dependsOnOthers reports whether the result of a run may depend on other keys than keys.
func (r *run) dependsOnOthers(a Outcome, keys []string) bool {
	if len(a.Edits) == 0 {
		return len(r.seen) > len(keys)
	}
	return !all(a.Edits, func(e keyspace.Edit) bool { return slices.Contains(keys, e.Key) })
}

// decisions returns the decisions of a run about some keys, in their order.
func decisions(a Outcome, keys []string) []quorum.Decision {
	made := make([]quorum.Decision, len(keys))
	taken := a.Acquired()
	for _, e := range a.Edits {
		i := slices.Index(keys, e.Key)
		switch {
		case i < 0 || !e.Changes():
		case !e.After.Present:
			made[i] = quorum.Decision{Do: quorum.Remove}
		default:
			made[i] = quorum.Decision{
				Do: quorum.Put, Value: e.After.Value, KeepTTL: e.KeepTTL, TTL: ttlOf(e),
				RemoveOnError: !e.KeepTTL && ttlOf(e) >= 0 && slices.Contains(taken, e.Key),
			}
		}
	}
	return made
}
