package master

import "redlock-proxy/quorum/cell"

// maxPending and maxPendingBytes limit the number, and the bytes of the keys, of the removals that
// the proxy keeps for a master that is down. A key without its removal expires by its TTL.
const maxPending, maxPendingBytes = 1 << 18, 64 << 20

// pendingRemovals holds the removals for a master that is down.
type pendingRemovals struct {
	removals map[pendingRemoval]struct{}
	bytes    int // total length of the keys
}

type pendingRemoval struct {
	db     int
	remove cell.Remove
}

// add stores the removal of an op, and reports whether there was room. It ignores other ops.
func (w *pendingRemovals) add(o *op) bool {
	remove, ok := o.cellOp.(cell.Remove)
	if !ok {
		return true
	}
	removal := pendingRemoval{o.db, remove}
	if _, stored := w.removals[removal]; stored {
		return true
	}
	size := len(remove.Name)
	if len(w.removals) >= maxPending || w.bytes+size > maxPendingBytes {
		return false
	}
	w.removals[removal] = struct{}{}
	w.bytes += size
	return true
}

// take removes up to n removals, and returns them as ops.
func (w *pendingRemovals) take(n int) []*op {
	var ops []*op
	for removal := range w.removals {
		if len(ops) == n {
			break
		}
		delete(w.removals, removal)
		w.bytes -= len(removal.remove.Name)
		ops = append(ops, noReplyOp(removal.db, removal.remove, true))
	}
	return ops
}
