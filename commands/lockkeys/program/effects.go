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

// effects holds the commands that a run sends to the upstream.
type effects struct {
	preparedCommands rights.PreparedCommands // nil without prepared commands
	commands         [][]string
	// ballotCommands holds the commands of a run in a ballot, if they differ from the prepared
	// commands.
	ballotCommands [][]string
}

// errDifferentEffects ends an update whose commands for the upstream differ from the prepared
// commands.
var errDifferentEffects = errors.New("the side effects of the program differ from the prepared side effects")

// hasPrepared reports whether the prepared commands equal the given commands.
func (e *effects) hasPrepared(commands [][]string) bool {
	return slices.EqualFunc(e.commands, commands, slices.Equal[[]string])
}

// discard cancels the prepared commands at the upstream.
func (e *effects) discard() {
	if e.preparedCommands != nil {
		e.preparedCommands.Drop()
	}
	e.preparedCommands, e.commands = nil, nil
}

// prepare sends the commands to the upstream for acceptance. If the upstream refuses, its error is
// the reply, and the run commits nothing.
func (r *run) prepare(ctx context.Context, commands [][]string) (refusalOutcome *Outcome, err error) {
	if r.effects.hasPrepared(commands) {
		return nil, nil
	}
	r.effects.discard()
	if len(commands) == 0 {
		return nil, nil
	}
	prepared, err := r.Rights.Prepare(ctx, commands)
	var refusedErr *rights.RefusedError
	switch {
	case errors.As(err, &refusedErr):
		return &Outcome{Reply: keyspace.ErrorReply(refusedErr.Text), dependsOnKeys: true}, nil
	case err != nil:
		return nil, err
	}
	r.effects.preparedCommands, r.effects.commands = prepared, commands
	return nil, nil
}

// runEffects carries out the side effects of a run, even if the client has disconnected. If they
// fail, the commit stays.
func (r *run) runEffects(ctx context.Context, outcome *Outcome) (*Outcome, error) {
	if refused, err := r.prepare(ctx, outcome.effects); err != nil || refused != nil {
		return refused, err
	}
	if r.effects.preparedCommands == nil {
		return outcome, nil
	}
	prepared := r.effects.preparedCommands
	r.effects = effects{}
	if err := prepared.Do(); err != nil {
		r.OnLostEffects(outcome.effects[0][0], err)
		outcome.Reply = keyspace.ErrorReply(lostEffectsError(outcome.Edits, err))
	}
	return outcome, nil
}

// lostEffectsError returns the error reply if the masters have the commit, but the upstream may
// lack the side effects.
func lostEffectsError(edits []keyspace.Edit, cause error) string {
	const failure = "side effects of the command failed, at least in part"
	for _, e := range edits {
		if e.IsChange() {
			return fmt.Sprintf("ERR lock key '%s' was changed, but %s: %v", syntax.Excerpt(e.Key), failure, cause)
		}
	}
	return fmt.Sprintf("ERR %s: %v", failure, cause)
}
