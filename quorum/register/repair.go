package register

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"redlock-proxy/quorum/cell"
	"redlock-proxy/quorum/vote"
)

// repairs holds the keys to repair. Each repair begins after a delay, so that the present command
// can finish first.
type repairs struct {
	mu sync.Mutex
	// keys maps each key to the incarnation that a master lacked at the last read, or to an empty
	// incarnation.
	keys map[string]cell.Attempt
}

const (
	// RepairPause is the delay before a key is repaired.
	RepairPause = 200 * time.Millisecond
	// repairTimeout limits one repair.
	repairTimeout = 2 * time.Second
)

// scheduleRepair schedules the repair of a key, unless it is already scheduled.
func (r *Register) scheduleRepair(key string) { r.scheduleRefill(key, "") }

// scheduleRefill schedules the repair of a key that masters lack. incarnation may be empty.
func (r *Register) scheduleRefill(key string, incarnation cell.Attempt) {
	r.repairs.mu.Lock()
	before, scheduled := r.repairs.keys[key]
	r.repairs.keys[key] = cmp.Or(incarnation, before)
	r.repairs.mu.Unlock()
	if !scheduled {
		r.masters.RunAfter(RepairPause, func() { r.repair(key) })
	}
}

// repairUnlessDone schedules the repair of keys unless the master did the operation. If a master is
// away, it schedules a comparison of all keys instead.
func (r *Register) repairUnlessDone(reply Reply, keys ...string) {
	switch {
	case reply.State == Waiting, reply.isYes():
	case !r.masters.HasAllVotes():
		r.masters.ScheduleCompare()
	default:
		for _, key := range keys {
			r.scheduleRepair(key)
		}
	}
}

// repairEachUnlessDone calls repairUnlessDone with each reply of a round, including later replies.
func (r *Register) repairEachUnlessDone(round Round, keys ...string) {
	onEachReply(round, func(_ int, reply Reply) { r.repairUnlessDone(reply, keys...) })
}

// RepairsPending returns the number of keys to repair.
func (r *Register) RepairsPending() int {
	r.repairs.mu.Lock()
	defer r.repairs.mu.Unlock()
	return len(r.repairs.keys)
}

// Compare schedules the repair of keys whose cells differ. With onlyMissingOnFirst it compares only
// keys that the first master lacks.
//
// Errors: the cause of ctx.
func (r *Register) Compare(ctx context.Context, keys []string, onlyMissingOnFirst bool) error {
	if onlyMissingOnFirst {
		ops := make([]cell.Op, r.n)
		ops[0] = cell.Read{Names: keys, HeadBytes: r.opts.HeadSize}
		round, err := r.masters.Ask(ctx, ops, neverDecided)
		if err != nil {
			return err
		}
		keys = absentKeys(round.Replies()[0], keys)
	}
	if len(keys) == 0 {
		return nil
	}
	round, err := r.masters.Ask(ctx, r.repeatOp(cell.Read{Names: keys, HeadBytes: r.opts.HeadSize}), neverDecided)
	if err != nil {
		return err
	}
	for i, key := range keys {
		if cellsDiffer(round.Replies(), i, resolve(round.Replies(), i)) {
			r.scheduleRepair(key)
		}
	}
	for _, reply := range round.Replies() {
		r.repairUnlessDone(reply, keys...)
	}
	return nil
}

// absentKeys returns the keys that a master does not hold or did not report.
func absentKeys(reply Reply, keys []string) (names []string) {
	for i, key := range keys {
		if reply.State != Counted || reply.KeyStates[i].Form == cell.Absent {
			names = append(names, key)
		}
	}
	return names
}

// cellsDiffer reports whether masters hold different cells under key number i with tally t.
func cellsDiffer(replies []Reply, i int, t tally) bool {
	lacks := func(r Reply) bool {
		return r.State == Counted && i < len(r.KeyStates) &&
			(r.KeyStates[i].Form == cell.Absent || t.hasMissedExtension(r.KeyStates[i]))
	}
	return t.ballotsDiffer || len(leftovers(replies, i, t)) > 0 || t.isConsistent() && slices.ContainsFunc(replies, lacks)
}

// repair makes all masters agree with the majority. The masters that hold the key accept the value
// that the highest ballot chose or may have chosen. repair removes leftovers, and gives the key to
// masters that lack it.
func (r *Register) repair(key string) {
	ctx, cancel := context.WithTimeout(context.Background(), repairTimeout)
	defer cancel()
	r.repairs.mu.Lock()
	incarnation := r.repairs.keys[key]
	delete(r.repairs.keys, key)
	r.repairs.mu.Unlock()
	replies, t, staleCells, err := r.readAll(ctx, key)
	if err != nil {
		r.repairUnlessDone(Reply{State: Unknown}, key)
		return
	}
	for _, reply := range replies {
		r.repairUnlessDone(reply, key)
	}
	// without a time limit, an attempt may still be granted
	if len(staleCells) > 0 && !r.opts.Unlimited {
		r.masters.RunAfter(leftoverPause, func() { r.removeLeftovers(key, staleCells) })
	}
	switch {
	case t.ballotsDiffer, t.isConsistent() && !r.repeatMissedExtension(key, t, replies):
		_, _ = r.Update(ctx, Change{Key: key, alwaysAccept: true, Run: keepUnchanged})
		r.scheduleRepair(key)
	case t.isConsistent():
		r.refill(ctx, key, t, replies, incarnation)
	}
}

// readAll reads a key and its leftovers on all masters.
func (r *Register) readAll(ctx context.Context, key string) (replies []Reply, t tally, staleLeftovers []leftover, err error) {
	round, err := r.masters.Ask(ctx, r.repeatOp(cell.Read{Names: []string{key}}), neverDecided)
	if err != nil {
		return nil, tally{}, nil, err
	}
	t = resolve(round.Replies(), 0)
	return round.Replies(), t, leftovers(round.Replies(), 0, t), nil
}

// leftover is a cell whose incarnation can have no majority, a blocking copy that is not needed, or
// a mark that does not expire in time. acceptedBallot is the last ballot that the cell accepted.
type leftover struct {
	master         int
	form           cell.Form
	attempt        cell.Attempt
	acceptedBallot cell.Ballot
}

// leftovers returns the leftovers under key number i with tally t. Marks that do not expire in time
// are leftovers. The cells of all incarnations but the held one are leftovers, once the state of
// the key is determined. A blocking copy is none while another value may be chosen, or a longer
// lease granted, with the vote of its master.
func leftovers(replies []Reply, i int, t tally) (result []leftover) {
	if t.status == TallyUndetermined {
		return nil
	}
	mayBeLonger := t.mayBeLonger(replies, i)
	for m, r := range replies {
		if r.State != Counted || i >= len(r.KeyStates) {
			continue
		}
		switch c := r.KeyStates[i]; c.Form {
		case cell.Plain, cell.Register, cell.Blocking:
			isNeeded := c.Holds(t.attempt) || (c.Attempt == t.attempt || c.IsUndecided()) &&
				(!t.chosen || mayBeLonger && expiresLongBefore(t.timeLeft, c.TimeLeft))
			if t.status != TallyHeld || !isNeeded {
				result = append(result, leftover{m, c.Form, c.Attempt, c.Accepted})
			}
		case cell.Mark:
			if c.TimeLeft < 0 || c.TimeLeft > refillMarkTTL { // the master's clock was set back
				result = append(result, leftover{m, c.Form, c.Attempt, c.Accepted})
			}
		}
	}
	return result
}

// mayBeLonger reports whether a majority may have granted a lease of the held incarnation that ends
// long after that of the masters that hold it.
func (t tally) mayBeLonger(replies []Reply, i int) bool {
	longer := count(replies, func(r *Reply) bool {
		if r.State != Counted || i >= len(r.KeyStates) {
			return true
		}
		c := r.KeyStates[i]
		return (c.Incarnation() == t.attempt || c.IsUndecided()) && expiresLongBefore(t.timeLeft, c.TimeLeft)
	})
	return longer >= vote.Majority(len(replies))
}

// leftoverPause is the time for which a cell must have been a leftover before it is removed. This
// time exceeds the time in which the attempt of the cell can be granted, by the clock of any proxy.
const leftoverPause = Limit + Limit/10

// removeLeftovers removes cells that still are leftovers: their attempts will never be granted.
func (r *Register) removeLeftovers(key string, previousLeftovers []leftover) {
	ctx, cancel := context.WithTimeout(context.Background(), repairTimeout)
	defer cancel()
	_, _, current, err := r.readAll(ctx, key)
	if err != nil {
		return
	}
	for _, stale := range current {
		if slices.Contains(previousLeftovers, stale) {
			op := cell.RemoveSeen(key, cell.Cell{Form: stale.form, Attempt: stale.attempt, Accepted: stale.acceptedBallot})
			r.masters.Tell(stale.master, op, false)
			r.scheduleRepair(key)
		}
	}
}
