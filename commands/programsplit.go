package commands

import (
	"context"
	"reflect"
	"slices"

	"redlock-proxy/commands/register"
)

// step is what to do next for a program.
type step int

const (
	stepAnswer step = iota // give the reply
	stepCommit             // make the edits
	stepClear              // remove what no majority holds from where it stands
	stepWait               // look again later
)

// move is a step with what it is about.
type move struct {
	step    step
	attempt attempt
	// leftovers are the edits of a stepClear, and attempt what the program would have
	// done had they held the keys.
	leftovers []register.Edit
}

// plan runs the program on what was seen and says what to do next, after so many
// failures. stuck: the same has been seen for so long that nobody is at work on it.
func (t *Table) plan(ctx context.Context, p *program, seen view, failures int, stuck bool) (move, error) {
	now := t.opts.Now()
	free, err := t.run(ctx, p, seen.space(now, false))
	if err != nil {
		return move{}, err
	}
	if seen.clear() && !seen.leftover() {
		return settle(free), nil
	}
	held, err := t.run(ctx, p, seen.space(now, true))
	if err != nil {
		return move{}, err
	}
	switch {
	case seen.clear():
		return decideLeftover(free, held, seen, stuck), nil
	case seen.unsure():
		whatever, err := t.removesWhatever(ctx, p, held, seen)
		return decideUnsure(free, held, whatever, failures), err
	default:
		return decideContested(free, held, seen, stuck), nil
	}
}

// settle commits what is to be committed.
func settle(a attempt) move {
	if len(a.edits) > 0 {
		return move{step: stepCommit, attempt: a}
	}
	return move{step: stepAnswer, attempt: a}
}

// In the following, free is the run as if the values that have no majority were not
// there, held as if they held their keys.

// decideContested says what to do where somebody is changing a key at this moment.
// What comes of that is known within the time that a master may take, and is waited
// for: a value of which fewer than a majority is left, for now, may have been
// granted. Where nothing moves any more, those who did it are gone: then nobody holds
// the key, but it cannot be taken before what they left is removed, and only who
// would have overwritten or removed that on a single Redis removes it; but not who is
// told what it was.
func decideContested(free, held attempt, seen view, stuck bool) move {
	rest := overwritten(held.edits, seen)
	switch {
	case !stuck:
		return move{step: stepWait}
	case len(free.edits) > 0 && len(held.edits) == 0:
		return move{step: stepAnswer, attempt: held}
	case len(rest) == 0:
		return settle(free)
	case sameReply(free, held) || isRemoval(held):
		return move{step: stepClear, leftovers: rest, attempt: held}
	default: // it would tell what nobody can know
		return move{step: stepWait}
	}
}

func sameReply(a, b attempt) bool { return reflect.DeepEqual(a.reply, b.reply) }

// isRemoval is true of an attempt that only removes, and counts what it removed.
func isRemoval(a attempt) bool {
	for _, e := range a.edits {
		if e.Changes() && e.Now.Present {
			return false
		}
	}
	return a.reply.Kind == register.Int
}

// removesAgain reports whether an attempt removes some value that another one removed.
func (a attempt) removesAgain(other *attempt) bool {
	for _, e := range a.edits {
		again := func(o register.Edit) bool {
			return o.Key == e.Key && o.Was.Value == e.Was.Value && e.Changes() && o.Changes()
		}
		if slices.ContainsFunc(other.edits, again) {
			return true
		}
	}
	return false
}

// unsureRetries is how often a program looks again before it says that too few
// masters answer.
const unsureRetries = 4

// tooFewAnswer is the reply where nothing can be said.
const tooFewAnswer = "NOQUORUM too few masters answer to tell who holds the key"

// removesWhatever reports whether a removal is one of whatever is there, as DEL is, where
// that may be one value or another.
func (t *Table) removesWhatever(ctx context.Context, p *program, held attempt, seen view) (bool, error) {
	if !seen.mixed() || !isRemoval(held) {
		return false, nil
	}
	other, err := t.run(ctx, p, seen.strangers(t.opts.Now()))
	return len(other.edits) > 0, err
}

// decideUnsure says what to do where masters that do not answer may hold what makes a
// majority. What may be held is not taken; a change of it is for the masters to judge.
// A removal of whatever is there must not guess.
func decideUnsure(free, held attempt, whatever bool, failures int) move {
	switch {
	case len(held.edits) > 0 && !whatever:
		return move{step: stepCommit, attempt: held}
	case failures < unsureRetries:
		return move{step: stepWait}
	case len(free.edits) > 0 && !whatever:
		return move{step: stepAnswer, attempt: held}
	default:
		return move{step: stepAnswer, attempt: attempt{reply: register.Fail(tooFewAnswer)}}
	}
}

// decideLeftover says what to do where nobody holds the key, but some masters keep a
// value without an end. Who would remove that removes it, once it is no try that is
// still going on.
func decideLeftover(free, held attempt, seen view, stuck bool) move {
	rest := overwritten(held.edits, seen)
	switch {
	case len(free.edits) > 0 || len(rest) == 0:
		return settle(free)
	case !stuck:
		return move{step: stepWait}
	default:
		return move{step: stepClear, leftovers: rest}
	}
}

// overwritten are the removals of values without a majority that a program overwrites
// or removes.
func overwritten(edits []register.Edit, seen view) []register.Edit {
	var rest []register.Edit
	for _, e := range edits {
		if seen[e.Key].Split && e.Was.Present && (!e.Now.Present || e.Now.Value != e.Was.Value) {
			rest = append(rest, register.Edit{Key: e.Key, Was: e.Was})
		}
	}
	return rest
}
