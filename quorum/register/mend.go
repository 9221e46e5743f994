package register

import (
	"context"
	"slices"
	"sync"
	"time"

	"redlock-proxy/quorum/cell"
)

// menders are the keys of which holders were seen to differ. They are looked at again
// once the command that was at work has finished, so that masters which are well agree soon after
// the last command.
type menders struct {
	mu   sync.Mutex
	keys map[string]bool
}

const (
	// mendPause is how long a key is left alone before it is mended.
	mendPause = 200 * time.Millisecond
	// mendTime bounds one mending.
	mendTime = 2 * time.Second
)

// mendLater has a key mended, once, unless it already is to be.
func (r *Register) mendLater(key string) {
	r.menders.mu.Lock()
	known := r.menders.keys[key]
	r.menders.keys[key] = true
	r.menders.mu.Unlock()
	if !known {
		r.masters.After(mendPause, func() { r.mend(key) })
	}
}

// mend has all holders of a key accept what the highest ballot has chosen or may have, and
// has cells removed that are nobody's.
func (r *Register) mend(key string) {
	ctx, cancel := context.WithTimeout(context.Background(), mendTime)
	defer cancel()
	r.menders.mu.Lock()
	delete(r.menders.keys, key)
	r.menders.mu.Unlock()
	replies, f, left, err := r.inspect(ctx, key)
	if count(replies, answered) < r.n {
		r.mendWhenWell(key)
	}
	if err != nil {
		return
	}
	r.spread(key, f, replies)
	if len(left) > 0 && !r.opts.Unlimited { // an attempt without a limit may still be granted
		r.masters.After(sweepPause, func() { r.sweep(key, left) })
	}
	if f.mixed {
		_, _ = r.Update(ctx, Change{Key: key, settle: true, Run: func(Look) (Decision, error) { return Decision{}, nil }})
		r.mendLater(key)
	}
}

// inspect has all masters tell what they hold, and what of it is nobody's.
func (r *Register) inspect(ctx context.Context, key string) (replies []Reply, f finding, left []leftover, err error) {
	asked, err := r.masters.Ask(ctx, all(r.n, cell.Read{Names: []string{key}}), func([]Reply) bool { return false })
	if err != nil {
		return nil, finding{}, nil, err
	}
	f = resolve(r.n, asked.Replies(), 0)
	return asked.Replies(), f, leftovers(asked.Replies(), 0, f), nil
}

// spread offers a lock that this proxy granted to masters that hold nothing, and never did: they were away when it was granted.
func (r *Register) spread(key string, f finding, replies []Reply) {
	token, ok := r.grants.tokenOf(key, f.attempt)
	if !ok || !f.taken() {
		return
	}
	for m, reply := range replies {
		if reply.State == Counted && len(reply.Found) > 0 && reply.Found[0].Form == cell.Absent {
			r.offerLater(cell.Take{Names: []string{key}, Attempt: f.attempt, Tokens: []string{token}}, m, 0, cell.Found{})
		}
	}
}

// leftover is a cell on one master of an incarnation that can have no majority, and the ballot
// that was accepted there.
type leftover struct {
	master   int
	attempt  cell.Attempt
	accepted cell.Ballot
}

// leftovers are those under key number i, of which f is what the masters hold: all cells
// but those of the incarnation that is held, once it is sure that no other one is.
func leftovers(replies []Reply, i int, f finding) (all []leftover) {
	if f.standing == Open {
		return nil
	}
	for m, r := range replies {
		if r.State != Counted || i >= len(r.Found) {
			continue
		}
		switch c := r.Found[i]; c.Form {
		case cell.Plain, cell.Register:
			if f.standing != Held || c.Attempt != f.attempt {
				all = append(all, leftover{m, c.Attempt, c.Accepted})
			}
		}
	}
	return all
}

// sweepPause is how long a cell must have been nobody's before it is removed: longer than
// the attempt that creates it may take to be granted, by any proxy's clock.
const sweepPause = Limit + Limit/10

// sweep removes cells that were nobody's long ago and still are: their attempts were not
// granted, and will not be, or are over.
func (r *Register) sweep(key string, before []leftover) {
	ctx, cancel := context.WithTimeout(context.Background(), mendTime)
	defer cancel()
	_, _, now, err := r.inspect(ctx, key)
	if err != nil {
		return
	}
	for _, one := range now {
		if slices.Contains(before, one) {
			r.masters.Tell(one.master, cell.Remove{Name: key, Attempt: one.attempt, How: cell.Dead, Seen: one.accepted}, false)
		}
	}
}
