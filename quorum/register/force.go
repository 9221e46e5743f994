package register

import (
	"context"

	"redlock-proxy/quorum/cell"
)

// ForceRemove removes the cells of a key on all masters that reply, even if the holder of the key
// is undetermined. It leaves a cell that another attempt or ballot puts meanwhile. It reports
// whether it found a cell to remove.
//
// Errors: ErrForeign, *NoQuorum, or the cause of ctx.
func (r *Register) ForceRemove(ctx context.Context, key string) (removed bool, err error) {
	replies, t, _, err := r.readAll(ctx, key)
	switch {
	case err != nil:
		return false, err
	case t.status == TallyForeign:
		return false, ErrForeign
	}
	ops := make([]cell.Op, r.n)
	for m, reply := range replies {
		if reply.State == Counted && reply.KeyStates[0].Attempt != "" {
			found := reply.KeyStates[0]
			ops[m], removed = cell.Remove{Name: key, Attempt: found.Attempt, Mode: cell.IfAccepted, AcceptedBallot: found.Accepted}, true
		}
	}
	if removed {
		if _, err = r.masters.Ask(ctx, ops, neverDecided); err != nil {
			return false, err
		}
	}
	replies, after, _, err := r.readAll(ctx, key)
	if err == nil && after.status == TallyUndetermined {
		err = &NoQuorum{Replies: replies}
	}
	return removed, err
}
