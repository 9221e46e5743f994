package register

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"redlock-proxy/quorum/cell"
)

// repairs holds the keys to repair, because masters were seen to differ. Repairing waits until the
// present command has finished, so that masters which are well agree soon after the last command.
type repairs struct {
	mu sync.Mutex
	// keys maps each key to the incarnation that held it when a master was last seen to lack it, or
	// to nothing.
	keys map[string]cell.Attempt
}

const (
	// repairPause is how long a key is left alone before it is repaired.
	repairPause = 200 * time.Millisecond
	// repairTime limits one repair.
	repairTime = 2 * time.Second
)

// repairLater schedules the repair of a key, unless it is already scheduled.
func (r *Register) repairLater(key string) { r.repairMissing(key, "") }

// repairMissing is repairLater for a key that masters lack. held, unless it is empty, is the
// incarnation that holds the key.
func (r *Register) repairMissing(key string, held cell.Attempt) {
	r.repairs.mu.Lock()
	before, known := r.repairs.keys[key]
	r.repairs.keys[key] = cmp.Or(held, before)
	r.repairs.mu.Unlock()
	if !known {
		r.masters.After(repairPause, func() { r.repair(key) })
	}
}

// repairUnlessDone schedules the repair of keys unless the master did the operation. If some master
// is down, it waits until all masters are well.
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

// repairEachUnlessDone calls repairUnlessDone with each reply of a round, including later ones.
func (r *Register) repairEachUnlessDone(asked Round, keys ...string) {
	for _, reply := range asked.Replies() {
		r.repairUnlessDone(reply, keys...)
	}
	asked.Later(func(_ int, reply Reply) { r.repairUnlessDone(reply, keys...) })
}

// RepairsPending returns how many keys are to be repaired.
func (r *Register) RepairsPending() int {
	r.repairs.mu.Lock()
	defer r.repairs.mu.Unlock()
	return len(r.repairs.keys)
}

// Compare schedules the repair of the keys that differ on the masters. If beyond is set, it skips
// the keys that the first master holds.
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

// absentOn returns the keys that a master does not hold, or did not report.
func absentOn(reply Reply, keys []string) (absent []string) {
	for i, key := range keys {
		if reply.State != Counted || reply.Found[i].Form == cell.Absent {
			absent = append(absent, key)
		}
	}
	return absent
}

// differ reports whether the masters that answered hold different cells under key number i, whose
// tally is t.
func differ(replies []Reply, i int, t tally) bool {
	lacks := func(r Reply) bool {
		return r.State == Counted && i < len(r.Found) &&
			(r.Found[i].Form == cell.Absent || t.missedExtension(r.Found[i]))
	}
	return t.mixed || len(leftovers(replies, i, t)) > 0 || t.isConsistent() && slices.ContainsFunc(replies, lacks)
}

// repair makes all masters agree with the majority. Holders accept the value that the highest
// ballot chose, or may have chosen. Leftovers are removed, and masters that lack the key receive
// it.
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
	if len(left) > 0 && !r.opts.Unlimited { // an attempt without a limit may still be granted
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

// readAll reads a key on all masters, and returns its leftovers, too.
func (r *Register) readAll(ctx context.Context, key string) (replies []Reply, t tally, left []leftover, err error) {
	asked, err := r.masters.Ask(ctx, r.toAll(cell.Read{Names: []string{key}}), waitForAll)
	if err != nil {
		return nil, tally{}, nil, err
	}
	t = resolve(asked.Replies(), 0)
	return asked.Replies(), t, leftovers(asked.Replies(), 0, t), nil
}

// leftover is a cell on one master whose incarnation can have no majority, a blocking copy, or a
// mark that does not expire in time, with the ballot that the cell accepted.
type leftover struct {
	master   int
	attempt  cell.Attempt
	accepted cell.Ballot
}

// leftovers returns the leftovers under key number i, whose tally is t. These are all cells except
// those of the incarnation that is held, once no other incarnation can be. Marks count if they do
// not expire as they should.
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

// leftoverPause is how long a cell must have been a leftover before it is removed. It is longer
// than the attempt that creates the cell may take to be granted, by the clock of any proxy.
const leftoverPause = Limit + Limit/10

// removeLeftovers removes cells that were leftovers before and still are. Their attempts ended, or
// were not granted and never will be.
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
