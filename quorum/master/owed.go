package master

import "redlock-proxy/quorum/cell"

// maxOwed and maxOwedBytes bound what is remembered for a master that is away, the latter of
// its keys. Beyond them the TTL of the keys has to do.
const maxOwed, maxOwedBytes = 1 << 18, 64 << 20

// owed are the removals for a master that is away, each once.
type owed struct {
	all   map[owedRemoval]struct{}
	bytes int // of their keys
}

type owedRemoval struct {
	db     int
	remove cell.Remove
}

// add remembers a removal, and reports whether there was room.
func (w *owed) add(o *op) bool {
	remove, ok := o.do.(cell.Remove)
	if !ok {
		return true
	}
	one := owedRemoval{o.db, remove}
	if _, known := w.all[one]; known {
		return true
	}
	size := len(remove.Name)
	if len(w.all) >= maxOwed || w.bytes+size > maxOwedBytes {
		return false
	}
	w.all[one] = struct{}{}
	w.bytes += size
	return true
}

// take removes up to n of them, as ops.
func (w *owed) take(n int) []*op {
	var ops []*op
	for one := range w.all {
		if len(ops) == n {
			break
		}
		delete(w.all, one)
		w.bytes -= len(one.remove.Name)
		ops = append(ops, tellOp(one.db, one.remove, true))
	}
	return ops
}
