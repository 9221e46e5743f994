package master

import "redlock-proxy/quorum/cell"

// maxPending and maxPendingBytes limit the removals kept for a master that is down, by their number
// and by the bytes of their keys. Without its removal a key expires by its TTL.
const maxPending, maxPendingBytes = 1 << 18, 64 << 20

// pendingRemovals is the set of removals for a master that is down.
type pendingRemovals struct {
	removals map[pendingRemoval]struct{}
	bytes    int // total length of their keys
}

type pendingRemoval struct {
	db     int
	remove cell.Remove
}

// add stores a removal, and reports whether there was room.
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
