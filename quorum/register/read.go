package register

import (
	"context"
	"errors"
	"slices"

	"redlock-proxy/quorum/cell"
)

// defaultHeadSize is the default of Options.HeadSize. The cell of a lock is far smaller.
const defaultHeadSize = 8 << 10

// Read returns the current values of keys. Each master reads all keys at one moment. Read settles a
// key that another command is replacing.
//
// Read requests the head of each cell, which identifies the value, from all masters. If a value is
// longer, it requests the whole cell from one master that holds the value, because copies with the
// same incarnation and last change are equal. If that master does not return the value, Read
// requests whole cells from all masters.
//
// Errors: *NoQuorum, ErrContended, or the cause of ctx.
func (r *Register) Read(ctx context.Context, keys []string) ([]Snapshot, error) {
	start := r.masters.Now()
	headSize := r.opts.HeadSize
	var blocked blockedTries
	for failures := 1; ; failures++ {
		snapshots, err := r.read(ctx, keys, headSize)
		if errors.Is(err, errHeadOnly) {
			headSize = 0
			snapshots, err = r.read(ctx, keys, headSize)
		}
		var split *splitError
		switch {
		case !errors.As(err, &split):
			return snapshots, err
		case blocked.areTooMany(split, r.masters.Now().After(start.Add(r.opts.ContentionTimeout))),
			r.masters.Now().After(start.Add(removalTTL + Limit)):
			return nil, &NoQuorum{Replies: split.replies}
		}
		if err := r.masters.Pause(ctx, failures); err != nil {
			return nil, err
		}
	}
}

var errHeadOnly = errors.New("no master returned the rest of a value")

// read reads at most headSize bytes of each cell, or the whole cell if headSize is 0. A *splitError
// requests another read, errHeadOnly a read of whole cells.
func (r *Register) read(ctx context.Context, keys []string, headSize int) ([]Snapshot, error) {
	round, err := r.masters.Ask(ctx, r.repeatOp(cell.Read{Names: keys, HeadBytes: headSize}), func(replies []Reply) bool {
		return readDecided(replies, len(keys))
	})
	if err != nil {
		return nil, err
	}
	snapshots, longKeys := make([]Snapshot, len(keys)), []int(nil)
	for i, key := range keys {
		t := resolve(round.Replies(), i)
		if cellsDiffer(round.Replies(), i, t) {
			r.scheduleRepair(key)
		}
		switch {
		case t.status == TallyUndetermined:
			return nil, undeterminedError(round.Replies(), i)
		case t.isTTLUnclear(round.Replies(), i):
			return nil, &NoQuorum{Replies: round.Replies()}
		case t.status == TallyHeld && !t.chosen:
			if snapshots[i], err = r.readByBallot(ctx, key); err != nil {
				return nil, err
			}
		default:
			snapshots[i] = t.snapshot()
			if t.value.UnreadBytes > 0 {
				longKeys = append(longKeys, i)
			}
		}
	}
	if len(longKeys) > 0 {
		return snapshots, r.readWholeValues(ctx, keys, snapshots, longKeys, round.Replies())
	}
	return snapshots, nil
}

// readWholeValues completes the values of which only the heads were read, from the first master
// that holds all of them. Every proxy asks the first such master: while that master is busy with
// long values, a majority of the other masters still replies at once.
func (r *Register) readWholeValues(ctx context.Context, keys []string, snapshots []Snapshot, longIndexes []int, replies []Reply) error {
	holder := slices.IndexFunc(replies, func(reply Reply) bool {
		return !slices.ContainsFunc(longIndexes, func(i int) bool { return !snapshots[i].isHeldBy(reply, i) })
	})
	if holder < 0 {
		return errHeadOnly
	}
	names := make([]string, len(longIndexes))
	for n, i := range longIndexes {
		names[n] = keys[i]
	}
	ops := make([]cell.Op, r.n)
	ops[holder] = cell.Read{Names: names}
	round, err := r.masters.Ask(ctx, ops, neverDecided)
	if err != nil {
		return err
	}
	wholeReply := round.Replies()[holder]
	for n, i := range longIndexes {
		if !snapshots[i].isHeldBy(wholeReply, n) {
			return errHeadOnly
		}
		snapshots[i].Value = wholeReply.KeyStates[n].Value.Text
	}
	return nil
}

// isHeldBy reports whether a master holds the value under key number i of a reply, as the head of
// the cell shows. It returns false for a foreign value, which has no version.
func (l Snapshot) isHeldBy(reply Reply, i int) bool {
	if reply.State != Counted || i >= len(reply.KeyStates) {
		return false
	}
	f := reply.KeyStates[i]
	return (f.Form == cell.Plain || f.Form == cell.Register) && f.Value.Present &&
		l.Version == version(f.Attempt, f.Value)
}

// readDecided reports whether replies determine the value and remaining time of each key.
func readDecided(replies []Reply, keys int) bool {
	for i := range keys {
		if t := resolve(replies, i); t.status == TallyUndetermined || t.status == TallyHeld && !t.chosen || t.leasesDiffer() {
			return false
		}
	}
	return true
}

// readByBallot lets a majority agree on a value, and returns it.
func (r *Register) readByBallot(ctx context.Context, key string) (Snapshot, error) {
	out, err := r.Update(ctx, Change{Key: key, Run: keepUnchanged})
	current, _ := out.Decision.Note.(Snapshot)
	return current, err
}

// AcceptCurrent lets a majority accept the value of a key, with the longest lease that a promise
// reports.
//
// Errors: as for Update.
func (r *Register) AcceptCurrent(ctx context.Context, key string) error {
	_, err := r.Update(ctx, Change{Key: key, alwaysAccept: true, Run: keepUnchanged})
	return err
}

// keepUnchanged is a Change.Run that changes nothing, and notes the current value.
func keepUnchanged(l Snapshot) (Decision, error) {
	return Decision{Note: l}, nil
}
