package register

import (
	"context"
	"errors"
	"slices"

	"redlock-proxy/quorum/cell"
)

// headSize is how many bytes of each cell a read asks of all masters: a lock's is far below, and
// what is behind that comes from one of them.
const headSize = 8 << 10

// Read returns the current values of keys, at one moment at each master. A key that is in the
// course of being replaced is settled first.
//
// Of what is long, all masters are asked for the heads, which say which value it is, and one of
// those that hold it for the whole: every copy of one incarnation with one last change is the same.
// Where that master does not give it, all are asked for the whole.
//
// Errors: *NoQuorum, ErrContended, or the cause of ctx.
func (r *Register) Read(ctx context.Context, keys []string) ([]Look, error) {
	until := r.masters.Now().Add(removedFor + Limit)
	heads := r.opts.Heads
	for failures := 1; ; failures++ {
		looks, err := r.read(ctx, keys, heads)
		if errors.Is(err, errRest) {
			heads = 0
			looks, err = r.read(ctx, keys, heads)
		}
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

// errRest is returned where no master gave the rest of what all of them have the heads of.
var errRest = errors.New("a master does not hold any more what is to be read")

// read is Read that looks once, at so many bytes of each key, or all. A *splitError asks for
// another look, errRest for the whole.
func (r *Register) read(ctx context.Context, keys []string, heads int) ([]Look, error) {
	asked, err := r.masters.Ask(ctx, r.toAll(cell.Read{Names: keys, Heads: heads}), func(replies []Reply) bool {
		return readDecided(replies, len(keys))
	})
	if err != nil {
		return nil, err
	}
	looks, long := make([]Look, len(keys)), []int(nil)
	for i, key := range keys {
		f := resolve(asked.Replies(), i)
		if differ(asked.Replies(), i, f) {
			r.mendLater(key)
		}
		switch {
		case f.standing == Open && endsSoon(asked.Replies()):
			return nil, &splitError{replies: asked.Replies()}
		case f.standing == Open, f.isUnsure(asked.Replies(), i):
			return nil, &NoQuorum{Replies: asked.Replies()}
		case f.standing == Held && !f.chosen:
			if looks[i], err = r.settleKey(ctx, key); err != nil {
				return nil, err
			}
		default:
			looks[i] = f.look()
			if f.value.Rest > 0 {
				long = append(long, i)
			}
		}
	}
	if len(long) > 0 {
		return looks, r.readRest(ctx, keys, looks, long, asked.Replies())
	}
	return looks, nil
}

// readRest completes the looks at some keys, of which only the heads were read, by one master that
// holds all of these. It is the first such one, for every proxy: where it is busy with that, a
// majority of the others still answers at once.
func (r *Register) readRest(ctx context.Context, keys []string, looks []Look, long []int, replies []Reply) error {
	holder := slices.IndexFunc(replies, func(reply Reply) bool {
		return !slices.ContainsFunc(long, func(i int) bool { return !looks[i].isOf(reply, i) })
	})
	if holder < 0 {
		return errRest
	}
	names := make([]string, len(long))
	for n, i := range long {
		names[n] = keys[i]
	}
	ops := make([]cell.Op, r.n)
	ops[holder] = cell.Read{Names: names}
	asked, err := r.masters.Ask(ctx, ops, allIn)
	if err != nil {
		return err
	}
	whole := asked.Replies()[holder]
	for n, i := range long {
		if !looks[i].isOf(whole, n) {
			return errRest
		}
		looks[i].Value = whole.Found[n].Value.Text
	}
	return nil
}

// isOf reports whether a master holds under key number i of a reply, as far as it was read, what
// was looked at. What no proxy wrote has no name by which to know.
func (l Look) isOf(reply Reply, i int) bool {
	if reply.State != Counted || i >= len(reply.Found) {
		return false
	}
	f := reply.Found[i]
	return (f.Form == cell.Plain || f.Form == cell.Register) && f.Value.Present && l.Version == version(f.Attempt, f.Value)
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

// Settle has a majority accept what a key holds, with the longest end that any of them reports.
//
// Errors: those of Update.
func (r *Register) Settle(ctx context.Context, key string) error {
	_, err := r.Update(ctx, Change{Key: key, settle: true, Run: leave})
	return err
}

// leave is the Run of a Change that changes nothing, and notes the current value.
func leave(l Look) (Decision, error) {
	return Decision{Note: l}, nil
}
