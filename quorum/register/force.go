package register

import (
	"context"

	"redlock-proxy/quorum/cell"
)

// Force removes whatever the masters that answer hold under a key, as an operator wishes: also
// where it stays open who holds it. What is put there meanwhile stays, by whichever attempt or
// ballot. It reports whether anything was removed.
//
// Errors: ErrForeign, *NoQuorum, or the cause of ctx.
func (r *Register) Force(ctx context.Context, key string) (removed bool, err error) {
	replies, f, _, err := r.inspect(ctx, key)
	switch {
	case err != nil:
		return false, err
	case f.standing == Foreign:
		return false, ErrForeign
	}
	ops := make([]cell.Op, r.n)
	for m, reply := range replies {
		if reply.State == Counted && reply.Found[0].Attempt != "" {
			there := reply.Found[0]
			ops[m], removed = cell.Remove{Name: key, Attempt: there.Attempt, How: cell.Dead, Seen: there.Accepted}, true
		}
	}
	if removed {
		if _, err = r.masters.Ask(ctx, ops, allIn); err != nil {
			return false, err
		}
	}
	replies, now, _, err := r.inspect(ctx, key)
	if err == nil && now.standing == Open {
		err = &NoQuorum{Replies: replies}
	}
	return removed, err
}
