package register

import (
	"context"
	"errors"
	"slices"

	"redlock-proxy/quorum/cell"
)

// ForceRemove removes the cells of a key on all masters that reply, even if the holder of the key
// is undetermined. If another command changes the key meanwhile, ForceRemove tries again. removed
// reports whether a master removed a cell, or may have removed one.
//
// Errors: ErrForeign, ErrContended, *NoQuorum, or the cause of ctx.
func (r *Register) ForceRemove(ctx context.Context, key string) (removed bool, err error) {
	contentionDeadline := r.masters.Now().Add(r.opts.ContentionTimeout)
	for failures := 1; ; failures++ {
		removed, err = r.forceRemove(ctx, key)
		if !errors.Is(err, ErrContended) || r.masters.Now().After(contentionDeadline) {
			return removed, err
		}
		if err := r.masters.Pause(ctx, failures); err != nil {
			return false, err
		}
	}
}

// forceRemove tries once. It returns ErrContended if a majority still holds a value because its
// masters refused the removal.
func (r *Register) forceRemove(ctx context.Context, key string) (removed bool, err error) {
	replies, t, _, err := r.readAll(ctx, key)
	switch {
	case err != nil:
		return false, err
	case t.status == TallyForeign:
		return false, ErrForeign
	}
	removal, err := r.removeCells(ctx, key, replies)
	if err != nil {
		return false, err
	}
	replies, t, _, err = r.readAll(ctx, key)
	switch {
	case err != nil:
		return removal.mayBeDone, err
	case t.status == TallyUndetermined:
		return removal.mayBeDone, &NoQuorum{Replies: replies}
	case t.status != TallyHeld, !t.value.Present:
		return removal.mayBeDone, nil
	case removal.mayBeDone && !slices.Contains(removal.attempts, t.attempt): // taken again since
		return true, nil
	case removal.mayArrive:
		return true, &NoQuorum{Replies: replies}
	}
	return false, ErrContended
}

// cellRemoval is the result of removing the cells that masters reported.
type cellRemoval struct {
	attempts []cell.Attempt
	// mayBeDone is set if a master removed a cell, or may have. mayArrive is set if a master may
	// still remove a cell.
	mayBeDone, mayArrive bool
}

// removeCells removes the cells that replies to a read show, unless they have changed since.
func (r *Register) removeCells(ctx context.Context, key string, replies []Reply) (cellRemoval, error) {
	ops := make([]cell.Op, r.n)
	removal := cellRemoval{attempts: make([]cell.Attempt, r.n)}
	for m, reply := range replies {
		if reply.State == Counted && reply.KeyStates[0].Attempt != "" {
			found := reply.KeyStates[0]
			ops[m], removal.attempts[m] = cell.RemoveSeen(key, found.Cell), found.Attempt
		}
	}
	if !slices.ContainsFunc(ops, func(op cell.Op) bool { return op != nil }) {
		return removal, nil
	}
	round, err := r.masters.Ask(ctx, ops, neverDecided)
	if err != nil {
		return removal, err
	}
	for m, reply := range round.Replies() {
		removal.mayArrive = removal.mayArrive || reply.State == Unknown
		if op, isSent := ops[m].(cell.Remove); isSent {
			removal.mayBeDone = removal.mayBeDone || mayHaveRemoved(reply, op)
		}
	}
	return removal, nil
}

// mayHaveRemoved reports whether a Remove may have removed a cell. A master does not report a blocking
// cell or a mark as removed.
func mayHaveRemoved(reply Reply, op cell.Remove) bool {
	return reply.mayBeDone() ||
		slices.ContainsFunc(reply.KeyStates, func(f cell.KeyState) bool { return op.Removes(f.Cell) })
}
