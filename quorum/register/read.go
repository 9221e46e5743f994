package register

import (
	"context"
	"errors"

	"redlock-proxy/quorum/cell"
)

// Read returns the current values of keys, at one moment at each master. A key that is in the
// course of being replaced is settled first.
//
// Errors: *NoQuorum, ErrContended, or the cause of ctx.
func (r *Register) Read(ctx context.Context, keys []string) ([]Look, error) {
	until := r.masters.Now().Add(removedFor + Limit)
	for failures := 1; ; failures++ {
		looks, err := r.read(ctx, keys)
		var again *splitError
		switch {
		case !errors.As(err, &again):
			return looks, err
		case r.masters.Now().After(until):
			return nil, &NoQuorum{Replies: again.replies}
		}
		if err := r.masters.Pause(ctx, failures); err != nil {
			return nil, err
		}
	}
}

// read is Read that looks once. A *splitError asks for another look.
func (r *Register) read(ctx context.Context, keys []string) ([]Look, error) {
	asked, err := r.askAll(ctx, cell.Read{Names: keys}, func(replies []Reply) bool {
		return readDecided(replies, len(keys))
	})
	if err != nil {
		return nil, err
	}
	looks := make([]Look, len(keys))
	for i, key := range keys {
		f := resolve(asked.Replies(), i)
		if differ(asked.Replies(), i, f) {
			r.mendLater(key)
		}
		switch {
		case f.standing == Open && endsSoon(asked.Replies()):
			return nil, &splitError{replies: asked.Replies()}
		case f.standing == Open:
			return nil, &NoQuorum{Replies: asked.Replies()}
		case f.standing == Held && !f.chosen:
			if looks[i], err = r.settleKey(ctx, key); err != nil {
				return nil, err
			}
		default:
			looks[i] = f.look()
		}
	}
	return looks, nil
}

func readDecided(replies []Reply, keys int) bool {
	for i := range keys {
		if f := resolve(replies, i); f.standing == Open || f.standing == Held && !f.chosen || f.uneven() {
			return false
		}
	}
	return true
}

// settleKey has a majority agree on what a key holds, and returns it.
func (r *Register) settleKey(ctx context.Context, key string) (Look, error) {
	out, err := r.Update(ctx, Change{Key: key, Run: leave})
	seen, _ := out.Decision.Note.(Look)
	return seen, err
}

// leave is the Run of a Change that changes nothing, and notes the current value.
func leave(l Look) (Decision, error) {
	return Decision{Note: l}, nil
}
