package register

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"redlock-proxy/quorum/cell"
)

// repairs holds the keys to repair. A repair waits until the present command has finished.
type repairs struct {
	mu sync.Mutex
	// keys maps each key to the incarnation that a master was last seen to lack, or to nothing.
	keys map[string]cell.Attempt
}

const (
	// RepairPause is the delay before a key is repaired.
	RepairPause = 200 * time.Millisecond
	// repairTime limits one repair.
	repairTime = 2 * time.Second
)

// repairLater schedules the repair of a key, unless it is already scheduled.
func (r *Register) repairLater(key string) { r.repairMissing(key, "") }

// repairMissing is repairLater for a key that masters lack; held is its incarnation, if known.
func (r *Register) repairMissing(key string, held cell.Attempt) {
	r.repairs.mu.Lock()
	before, known := r.repairs.keys[key]
	r.repairs.keys[key] = cmp.Or(held, before)
	r.repairs.mu.Unlock()
	if !known {
		r.masters.After(RepairPause, func() { r.repair(key) })
	}
}

// repairUnlessDone schedules the repair of keys unless the master did the operation. If a master is
// away, all keys are compared once all masters vote.
func (r *Register) repairUnlessDone(reply Reply, keys ...string) {
	switch {
	case reply.State == Waiting, reply.yes():
	case !r.masters.AllVote():
		r.masters.ScheduleCompare()
	default:
		for _, key := range keys {
			r.repairLater(key)
		}
	}
}

// repairEachUnlessDone calls repairUnlessDone with each reply of a round, including later replies.
func (r *Register) repairEachUnlessDone(asked Round, keys ...string) {
	for _, reply := range asked.Replies() {
		r.repairUnlessDone(reply, keys...)
	}
	asked.Later(func(_ int, reply Reply) { r.repairUnlessDone(reply, keys...) })
}

// RepairsPending returns the number of keys to repair.
func (r *Register) RepairsPending() int {
	r.repairs.mu.Lock()
	defer r.repairs.mu.Unlock()
	return len(r.repairs.keys)
}

// Compare schedules the repair of keys that differ; with beyond only of keys that the first master
// lacks.
//
// Errors: the cause of ctx.
func (r *Register) Compare(ctx context.Context, keys []string, beyond bool) error {
	if beyond {
		ops := make([]cell.Op, r.n)
		ops[0] = cell.Read{Names: keys, Heads: r.opts.HeadSize}
		asked, err := r.masters.Ask(ctx, ops, waitForAll)
		if err != nil {
			return err
		}
		keys = absentOn(asked.Replies()[0], keys)
	}
	if len(keys) == 0 {
		return nil
	}
	asked, err := r.masters.Ask(ctx, r.toAll(cell.Read{Names: keys, Heads: r.opts.HeadSize}), waitForAll)
	if err != nil {
		return err
	}
	for i, key := range keys {
		if differ(asked.Replies(), i, resolve(asked.Replies(), i)) {
			r.repairLater(key)
		}
	}
	for _, reply := range asked.Replies() {
		r.repairUnlessDone(reply, keys...)
	}
	return nil
}

// absentOn returns the keys that a master does not hold or did not report.
func absentOn(reply Reply, keys []string) (absent []string) {
	for i, key := range keys {
		if reply.State != Counted || reply.Found[i].Form == cell.Absent {
			absent = append(absent, key)
		}
	}
	return absent
}

// differ reports whether masters hold different cells under key number i with tally t.
func differ(replies []Reply, i int, t tally) bool {
	lacks := func(r Reply) bool {
		return r.State == Counted && i < len(r.Found) &&
			(r.Found[i].Form == cell.Absent || t.missedExtension(r.Found[i]))
	}
	return t.mixed || len(leftovers(replies, i, t)) > 0 || t.isConsistent() && slices.ContainsFunc(replies, lacks)
}

// repair makes all masters agree with the majority. Holders accept the value that the highest
// ballot chose or may have chosen, leftovers are removed, and masters that lack the key receive it.
func (r *Register) repair(key string) {
	ctx, cancel := context.WithTimeout(context.Background(), repairTime)
	defer cancel()
	r.repairs.mu.Lock()
	held := r.repairs.keys[key]
	delete(r.repairs.keys, key)
	r.repairs.mu.Unlock()
	replies, t, left, err := r.readAll(ctx, key)
	if err != nil {
		r.repairUnlessDone(Reply{State: Unknown}, key)
		return
	}
	for _, reply := range replies {
		r.repairUnlessDone(reply, key)
	}
	if len(left) > 0 && !r.opts.Unlimited { // without a limit, an attempt may still be granted
		r.masters.After(leftoverPause, func() { r.removeLeftovers(key, left) })
	}
	switch {
	case t.mixed, t.isConsistent() && !r.extendMissed(key, t, replies):
		_, _ = r.Update(ctx, Change{Key: key, settle: true, Run: leave})
		r.repairLater(key)
	case t.isConsistent():
		r.refill(ctx, key, t, replies, held)
	}
}

// readAll reads a key and its leftovers on all masters.
func (r *Register) readAll(ctx context.Context, key string) (replies []Reply, t tally, left []leftover, err error) {
	asked, err := r.masters.Ask(ctx, r.toAll(cell.Read{Names: []string{key}}), waitForAll)
	if err != nil {
		return nil, tally{}, nil, err
	}
	t = resolve(asked.Replies(), 0)
	return asked.Replies(), t, leftovers(asked.Replies(), 0, t), nil
}

// leftover is a cell whose incarnation can have no majority, a blocking copy, or a mark that does
// not expire in time. accepted is the last ballot that the cell accepted.
type leftover struct {
	master   int
	attempt  cell.Attempt
	accepted cell.Ballot
}

// leftovers returns the leftovers under key number i with tally t: all cells but cells of the held
// incarnation, once no other incarnation can be held, and marks that do not expire in time.
func leftovers(replies []Reply, i int, t tally) (all []leftover) {
	if t.standing == Undetermined {
		return nil
	}
	for m, r := range replies {
		if r.State != Counted || i >= len(r.Found) {
			continue
		}
		switch c := r.Found[i]; c.Form {
		case cell.Plain, cell.Register, cell.Blocking:
			if t.standing != Held || !c.Holds(t.attempt) {
				all = append(all, leftover{m, c.Attempt, c.Accepted})
			}
		case cell.Mark:
			if c.Left < 0 || c.Left > markTTL { // the master's clock was set back
				all = append(all, leftover{m, c.Attempt, c.Accepted})
			}
		}
	}
	return all
}

// leftoverPause is the time for which a cell must have been a leftover before it is removed. It
// exceeds the time in which its attempt can be granted, by the clock of any proxy.
const leftoverPause = Limit + Limit/10

// removeLeftovers removes cells that still are leftovers: their attempts will never be granted.
func (r *Register) removeLeftovers(key string, before []leftover) {
	ctx, cancel := context.WithTimeout(context.Background(), repairTime)
	defer cancel()
	_, _, now, err := r.readAll(ctx, key)
	if err != nil {
		return
	}
	for _, left := range now {
		if slices.Contains(before, left) {
			op := cell.Remove{Name: key, Attempt: left.attempt, How: cell.Exact, Seen: left.accepted}
			r.masters.Tell(left.master, op, false)
			r.repairLater(key)
		}
	}
}
