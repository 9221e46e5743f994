package register

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"redlock-proxy/quorum/cell"
)

// menders are the keys that are to be mended, because masters were seen to differ. They are looked
// at again once the command that was at work has finished, so that masters which are well agree
// soon after the last command.
type menders struct {
	mu sync.Mutex
	// keys have what held each when masters were last seen to lack it, or nothing.
	keys map[string]cell.Attempt
}

const (
	// mendPause is how long a key is left alone before it is mended.
	mendPause = 200 * time.Millisecond
	// mendTime bounds one mending.
	mendTime = 2 * time.Second
)

// mendLater has a key mended, once, unless it already is to be.
func (r *Register) mendLater(key string) { r.mendLacking(key, "") }

// mendLacking is mendLater of a key that masters lack, and an incarnation holds, if one is named.
func (r *Register) mendLacking(key string, held cell.Attempt) {
	r.menders.mu.Lock()
	before, known := r.menders.keys[key]
	r.menders.keys[key] = cmp.Or(held, before)
	r.menders.mu.Unlock()
	if !known {
		r.masters.After(mendPause, func() { r.mend(key) })
	}
}

// mendUnless has keys mended unless the master did what it was asked: soon, or once all masters are
// well.
func (r *Register) mendUnless(reply Reply, keys ...string) {
	switch {
	case reply.State == Waiting, reply.yes():
	case !r.masters.Well():
		r.masters.Missed()
	default:
		for _, key := range keys {
			r.mendLater(key)
		}
	}
}

// mendRest is mendUnless for each reply of a round, also those to come.
func (r *Register) mendRest(asked Asked, keys ...string) {
	for _, reply := range asked.Replies() {
		r.mendUnless(reply, keys...)
	}
	asked.Later(func(_ int, reply Reply) { r.mendUnless(reply, keys...) })
}

// Mending is how many keys are to be mended.
func (r *Register) Mending() int {
	r.menders.mu.Lock()
	defer r.menders.mu.Unlock()
	return len(r.menders.keys)
}

// Compare has those of some keys mended of which the masters differ. Those that the first master
// holds are passed over, if beyond says so.
//
// Errors: the cause of ctx.
func (r *Register) Compare(ctx context.Context, keys []string, beyond bool) error {
	if beyond {
		ops := make([]cell.Op, r.n)
		ops[0] = cell.Read{Names: keys, Heads: r.opts.Heads}
		asked, err := r.masters.Ask(ctx, ops, allIn)
		if err != nil {
			return err
		}
		keys = absentOn(asked.Replies()[0], keys)
	}
	if len(keys) == 0 {
		return nil
	}
	asked, err := r.masters.Ask(ctx, r.toAll(cell.Read{Names: keys, Heads: r.opts.Heads}), allIn)
	if err != nil {
		return err
	}
	for i, key := range keys {
		if differ(asked.Replies(), i, resolve(asked.Replies(), i)) {
			r.mendLater(key)
		}
	}
	for _, reply := range asked.Replies() {
		r.mendUnless(reply, keys...)
	}
	return nil
}

// absentOn are the keys that a master does not hold, or does not tell.
func absentOn(reply Reply, keys []string) (absent []string) {
	for i, key := range keys {
		if reply.State != Counted || reply.Found[i].Form == cell.Absent {
			absent = append(absent, key)
		}
	}
	return absent
}

// differ reports whether the masters that answered do not all hold the same under key number i, of
// which f is what they hold.
func differ(replies []Reply, i int, f finding) bool {
	return f.mixed || len(leftovers(replies, i, f)) > 0 || f.isWhole() && slices.ContainsFunc(replies, func(r Reply) bool {
		return r.State == Counted && i < len(r.Found) && (r.Found[i].Form == cell.Absent || f.isShort(r.Found[i]))
	})
}

// mend has all masters hold what a majority does: holders accept what the highest ballot has chosen
// or may have, cells that are nobody's are removed, and masters that lack the key are given it.
func (r *Register) mend(key string) {
	ctx, cancel := context.WithTimeout(context.Background(), mendTime)
	defer cancel()
	r.menders.mu.Lock()
	held := r.menders.keys[key]
	delete(r.menders.keys, key)
	r.menders.mu.Unlock()
	replies, f, left, err := r.inspect(ctx, key)
	if err != nil {
		r.mendUnless(Reply{State: Unknown}, key)
		return
	}
	for _, reply := range replies {
		r.mendUnless(reply, key)
	}
	if len(left) > 0 && !r.opts.Unlimited { // an attempt without a limit may still be granted
		r.masters.After(sweepPause, func() { r.sweep(key, left) })
	}
	switch {
	case f.mixed, f.isWhole() && !r.extendMissed(key, f, replies):
		_, _ = r.Update(ctx, Change{Key: key, settle: true, Run: leave})
		r.mendLater(key)
	case f.isWhole():
		r.refill(ctx, key, f, replies, held)
	}
}

// inspect has all masters tell what they hold, and what of it is nobody's.
func (r *Register) inspect(ctx context.Context, key string) (replies []Reply, f finding, left []leftover, err error) {
	asked, err := r.masters.Ask(ctx, r.toAll(cell.Read{Names: []string{key}}), allIn)
	if err != nil {
		return nil, finding{}, nil, err
	}
	f = resolve(asked.Replies(), 0)
	return asked.Replies(), f, leftovers(asked.Replies(), 0, f), nil
}

// leftover is a cell on one master of an incarnation that can have no majority, or keeps the place
// of one that has, and the ballot that was accepted there.
type leftover struct {
	master   int
	attempt  cell.Attempt
	accepted cell.Ballot
}

// leftovers are those under key number i, of which f is what the masters hold: all cells but those
// of the incarnation that is held, once it is sure that no other one is, and of the marks those
// that do not end as they should.
func leftovers(replies []Reply, i int, f finding) (all []leftover) {
	if f.standing == Open {
		return nil
	}
	for m, r := range replies {
		if r.State != Counted || i >= len(r.Found) {
			continue
		}
		switch c := r.Found[i]; c.Form {
		case cell.Plain, cell.Register, cell.Blocking:
			if f.standing != Held || !c.Holds(f.attempt) {
				all = append(all, leftover{m, c.Attempt, c.Accepted})
			}
		case cell.Mark:
			if c.Left < 0 || c.Left > markFor { // the master's clock was set back
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
			r.mendLater(key)
		}
	}
}
