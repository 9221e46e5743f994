package program

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/lockkeys/keyspace"
	"redlock-proxy/commands/rights"
)

// effects are what a run has the upstream do.
type effects struct {
	prepared rights.Prepared // nil: nothing is
	commands [][]string
	// wanted is set where a run by ballot came to other commands than were prepared.
	wanted [][]string
}

// errOtherEffects ends an update whose program turned out to leave other commands for
// the upstream than were prepared.
var errOtherEffects = errors.New("the program leaves other commands for the upstream")

// fits reports whether just these commands are prepared.
func (e *effects) fits(commands [][]string) bool {
	return slices.EqualFunc(e.commands, commands, slices.Equal[[]string])
}

// drop has the upstream forget what it was not to do.
func (e *effects) drop() {
	if e.prepared != nil {
		e.prepared.Drop()
	}
	e.prepared, e.commands = nil, nil
}

// prepare has the upstream take the commands. It returns an outcome where that refuses:
// its error is the reply, and nothing is committed.
func (r *run) prepare(ctx context.Context, commands [][]string) (refused *Outcome, err error) {
	if r.effects.fits(commands) {
		return nil, nil
	}
	r.effects.drop()
	if len(commands) == 0 {
		return nil, nil
	}
	prepared, err := r.Rights.Prepare(ctx, commands)
	var no *rights.RefusedError
	switch {
	case errors.As(err, &no):
		return &Outcome{Reply: keyspace.Fail(no.Text), touched: true}, nil
	case err != nil:
		return nil, err
	}
	r.effects.prepared, r.effects.commands = prepared, commands
	return nil, nil
}

// finish has done what a run leaves for the upstream. What was committed
// stays so, also for a client that has left meanwhile.
func (r *run) finish(ctx context.Context, done *Outcome) (*Outcome, error) {
	if refused, err := r.prepare(ctx, done.effects); err != nil || refused != nil {
		return refused, err
	}
	if r.effects.prepared == nil {
		return done, nil
	}
	prepared := r.effects.prepared
	r.effects = effects{}
	if err := prepared.Do(); err != nil {
		r.Lost(done.effects[0][0], err)
		done.Reply = keyspace.Fail(lostEffects(done.Edits, err))
	}
	return done, nil
}

// lostEffects is the error reply where the masters have what was committed, and the
// upstream has not, or perhaps not, what belongs to it.
func lostEffects(edits []keyspace.Edit, cause error) string {
	const what = "what the script does beside its lock keys was not, or not as a whole, carried out"
	for _, e := range edits {
		if e.Changes() {
			return fmt.Sprintf("ERR lock key '%s' is changed, but %s: %v", syntax.Shown(e.Key), what, cause)
		}
	}
	return fmt.Sprintf("ERR %s: %v", what, cause)
}
