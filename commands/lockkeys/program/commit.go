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

// edits that change their key, and those that only say what it must hold.
func changes(edits []keyspace.Edit) (changing, conditions []keyspace.Edit) {
	for _, e := range edits {
		if e.Changes() {
			changing = append(changing, e)
		} else {
			conditions = append(conditions, e)
		}
	}
	return changing, conditions
}

func isCreation(e keyspace.Edit) bool { return !e.Was.Present && e.Now.Present }
func isRemoval(e keyspace.Edit) bool  { return e.Was.Present && !e.Now.Present }

// isExtension is true of an edit that gives the same value another remaining time.
func isExtension(e keyspace.Edit) bool {
	return e.Was.Present && e.Now.Present && e.Was.Value == e.Now.Value && !e.KeepLeft
}

func all(edits []keyspace.Edit, is func(keyspace.Edit) bool) bool {
	return !slices.ContainsFunc(edits, func(e keyspace.Edit) bool { return !is(e) })
}

// commit makes what a run came to stand, or returns nothing where its keys hold
// something else by now.
func (r *run) commit(ctx context.Context, a Outcome) (*Outcome, error) {
	changing, why := r.committable(a)
	switch {
	case why != "":
		return &Outcome{Reply: keyspace.Fail(why), touched: true}, nil
	case len(changing) == 0:
		return &a, nil
	}
	if refused, err := r.prepare(ctx, a.effects); err != nil || refused != nil {
		return refused, err
	}
	switch tag, together := r.together(a); {
	case together:
		return r.update(ctx, r.keysOf(tag), nil)
	case all(changing, isRemoval):
		return r.remove(ctx, a, changing)
	case len(r.Watched) > 0 && len(changing) == 1:
		return r.update(ctx, []string{changing[0].Key}, nil)
	case all(changing, isCreation) && sameTTL(changing):
		return r.create(ctx, a, changing)
	case r.raises(changing):
		return r.extend(ctx, a, changing)
	default:
		return r.update(ctx, []string{changing[0].Key}, expected(changing[0]))
	}
}

// committable are the edits of a run that are still to be made, or why they cannot
// be: those of several keys are only made where each stands for itself.
func (r *run) committable(a Outcome) (changing []keyspace.Edit, why string) {
	changing, conditions := changes(a.Edits)
	if again := r.removedBefore(changing); len(again) > 0 {
		return nil, SeveralKeys(again[0].Key, r.otherThan(again[0].Key))
	}
	changing = slices.DeleteFunc(changing, func(e keyspace.Edit) bool { _, done := r.removed[e.Key]; return done })
	if _, together := r.together(a); together {
		return changing, ""
	}
	others := r.otherKeys(changing, conditions)
	switch {
	case all(changing, isCreation) && r.needsBallot(changing):
		return nil, r.apart(changing, others)
	case len(changing) == 0, all(changing, isRemoval) && len(r.Watched) == 0:
	case len(others) > 0:
		return nil, r.apart(changing, others)
	case len(changing) > 1 && !(all(changing, isCreation) && sameTTL(changing)) && !r.raises(changing):
		return nil, r.apart(changing, others)
	}
	return changing, ""
}

// raises reports whether edits can be made by raising remaining times. That does not look
// at versions.
func (r *run) raises(edits []keyspace.Edit) bool {
	return len(r.Watched) == 0 && all(edits, isExtension) && all(edits, isLonger)
}

// removedBefore are the edits that put something under a key which this program has
// removed already: it did so on a view that is over, and somebody else may hold the key.
func (r *run) removedBefore(changing []keyspace.Edit) []keyspace.Edit {
	return slices.DeleteFunc(slices.Clone(changing), func(e keyspace.Edit) bool {
		_, done := r.removed[e.Key]
		return !done || isRemoval(e)
	})
}

// otherThan is a key of the program that is not this one.
func (r *run) otherThan(key string) string {
	for _, other := range r.Keys {
		if other != key {
			return other
		}
	}
	return key
}

// otherKeys are those that are not changed, but on which the change depends.
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

// apart refuses to change keys that stand in several cells. It names two that do: keys of one cell
// could be changed together.
func (r *run) apart(changing []keyspace.Edit, others []string) string {
	first := changing[0].Key
	for _, e := range changing[1:] {
		others = append(others, e.Key)
	}
	elsewhere := slices.IndexFunc(others, func(key string) bool { return r.cell(key) != r.cell(first) })
	return SeveralKeys(first, others[max(elsewhere, 0)])
}

// SeveralKeys refuses to replace one key under the condition of another: each is kept by
// its own vote, and no vote is about both.
func SeveralKeys(one, other string) string {
	return fmt.Sprintf("ERR lock keys '%s' and '%s' cannot be changed together: only taking, extending or removing several is done by one command",
		syntax.Shown(one), syntax.Shown(other))
}

func sameTTL(edits []keyspace.Edit) bool {
	return all(edits, func(e keyspace.Edit) bool { return e.Now.Left == edits[0].Now.Left })
}

// isLonger is true of an extension that may be made by raising the remaining time. One that was
// guessed is tried as such. Only one can take a remaining time away, and is told so: that is for a
// ballot.
func isLonger(e keyspace.Edit) bool {
	switch {
	case e.Was.Left == keyspace.Unknown:
		return true
	case e.Now.Left < 0:
		return e.Was.Left < 0
	default:
		return e.Was.Left >= 0 && e.Now.Left >= e.Was.Left
	}
}

// expected is the only value of which an edit makes a change, where that is known.
func expected(e keyspace.Edit) *string {
	if !e.Asked || !e.Was.Present || e.Was.Left != keyspace.Unknown {
		return nil
	}
	return &e.Was.Value
}

func (r *run) create(ctx context.Context, a Outcome, edits []keyspace.Edit) (*Outcome, error) {
	t := quorum.Taking{Terms: quorum.Terms{TTL: ttlOf(edits[0]), Anyhow: true, Holder: r.Holder}}
	for _, e := range edits {
		t.Keys, t.Tokens = append(t.Keys, r.Place(r.DB, e.Key)), append(t.Tokens, e.Now.Value)
	}
	// What asked whether the keys are there, and gives them a time, takes a lock. All else others
	// may have seen, and go by it.
	taken := a.Acquired()
	t.Stays = len(taken) == 0 || t.TTL < 0
	got, err := r.Register.Take(ctx, t)
	switch {
	case errors.Is(err, quorum.ErrHeld):
		r.refused(edits[0].Key, err)
		return nil, nil
	case err != nil:
		return nil, err
	}
	a.Granted = got
	return &a, nil
}

// remove removes the keys one after another, each under the condition of its own value. A
// program that finds one changed runs again, and sees those that are gone as they were.
func (r *run) remove(ctx context.Context, a Outcome, edits []keyspace.Edit) (*Outcome, error) {
	for _, e := range edits {
		err := r.removeOne(ctx, e)
		switch {
		case errors.Is(err, quorum.ErrNotHeld):
			r.refused(e.Key, err)
			return nil, nil
		case err != nil:
			return nil, err
		}
		r.removed[e.Key] = e.Was
	}
	return &a, nil
}

// refused keeps what the only key holds, where the error says why it was not taken, released or
// extended.
func (r *run) refused(key string, err error) {
	var found *quorum.InsteadError
	if len(r.Keys) == 1 && r.Keys[0] == key && errors.As(err, &found) {
		r.instead = view{key: found.Instead}
	}
}

// removeOne removes a key. One that is watched is removed under the condition of its
// version.
func (r *run) removeOne(ctx context.Context, e keyspace.Edit) error {
	place := r.Place(r.DB, e.Key)
	version, watched := r.Watched[e.Key]
	if !watched {
		return r.Register.Release(ctx, place, e.Was.Value)
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
		got, err := r.Register.Extend(ctx, r.Place(r.DB, e.Key), e.Was.Value, ttlOf(e))
		switch {
		case errors.Is(err, quorum.ErrNotHeld):
			r.refused(e.Key, err)
			return nil, nil
		case errors.Is(err, quorum.ErrTooShort), e.Was.Left == keyspace.Unknown && (err == nil && got.Longer || isLate(err)):
			if len(edits) > 1 {
				return &Outcome{Reply: keyspace.Fail(SeveralKeys(edits[0].Key, edits[1].Key)), touched: true}, nil
			}
			return r.update(ctx, []string{e.Key}, &e.Was.Value) // it is to be shorter
		case err != nil:
			return nil, err
		}
	}
	return &a, nil
}

// isLate is true of an error that says that nothing, or too little, is left of the time which was
// asked for. That is no reason for a program that did not look at the time: it does not rely on a
// lease, and sets the same time however often it runs.
func isLate(err error) bool {
	var none *quorum.NoQuorumError
	return errors.As(err, &none) && none.Late > 0
}

// errOtherKeys ends an update whose program turned out to depend on other keys, too.
var errOtherKeys = errors.New("the program depends on other keys")

// update makes a change by ballot, of one key, or of several that stand together, on what they hold
// then. What else the program knows is as it was read last; it must not depend on that.
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
		return r.addAll(append(keys, unread.Key)), nil
	case errors.Is(err, errOtherKeys):
		r.Replaces = false
		return nil, nil
	case errors.Is(err, errOtherEffects):
		return r.prepare(ctx, r.effects.wanted)
	case errors.Is(err, errUnasked):
		return nil, r.Rights.Ask(ctx)
	case err != nil:
		return nil, err
	}
	done := out.Decision.Note.(*Outcome)
	done.Granted.Version = out.Version
	return done, nil
}

// ballot is an Update of one key, or of several.
func (r *run) ballot(ctx context.Context, keys []quorum.Key, expect *string, run func([]quorum.Look) ([]quorum.Decision, error)) (quorum.Outcome, error) {
	if len(keys) > 1 {
		return r.Register.UpdateAll(ctx, keys, expect, run)
	}
	return r.Register.Update(ctx, keys[0], expect, func(l quorum.Look) (quorum.Decision, error) {
		made, err := run([]quorum.Look{l})
		return made[0], err
	})
}

// dependsOnOthers reports whether what a run came to may depend on other keys than
// these.
func (r *run) dependsOnOthers(a Outcome, keys []string) bool {
	if len(a.Edits) == 0 {
		return len(r.seen) > len(keys)
	}
	return !all(a.Edits, func(e keyspace.Edit) bool { return slices.Contains(keys, e.Key) })
}

// decisions are what a run makes of some keys, in their order.
func decisions(a Outcome, keys []string) []quorum.Decision {
	made := make([]quorum.Decision, len(keys))
	taken := a.Acquired()
	for _, e := range a.Edits {
		i := slices.Index(keys, e.Key)
		switch {
		case i < 0 || !e.Changes():
		case !e.Now.Present:
			made[i] = quorum.Decision{Do: quorum.Remove}
		default:
			made[i] = quorum.Decision{Do: quorum.Put, Value: e.Now.Value, KeepTTL: e.KeepLeft, TTL: ttlOf(e), Takes: !e.KeepLeft && ttlOf(e) >= 0 && slices.Contains(taken, e.Key)}
		}
	}
	return made
}
