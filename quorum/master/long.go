package master

import (
	"errors"
	"fmt"
	"hash/maphash"
	"math"
	"slices"

	"redlock-proxy/quorum/cell"
	"redlock-proxy/quorum/register"
)

const (
	// longOpBytes is the size, in bytes, above which an operation is long. The known sizes of the
	// values of its keys count.
	longOpBytes = 32 << 10
	// longBatchBytes limits the bytes of long operations in one batch, unless the batch has only
	// one operation. A short operation waits for at most one of these batches.
	longBatchBytes = 1 << 20
	// keyWeight is the weight of each key of an operation, in bytes. It stands for the master's
	// work on the key, and for the elements of the reply.
	keyWeight = 256
	// minKnownSize is the size, in bytes, above which a lane remembers the size of a value.
	minKnownSize = 4 << 10
	// maxKnownSize limits the known size, in bytes, of the values of one operation on several keys.
	maxKnownSize = 16 << 20
	// maxSizes limits the number of keys whose sizes a lane remembers, except the keys of queued
	// operations.
	maxSizes = 1 << 16
)

// ErrTooLong means that a reply of a master exceeds the limits.
var ErrTooLong = errors.New("the values of the keys are too long for one read")

// tooLongError wraps ErrTooLong, and holds the size of the reply in bytes.
type tooLongError struct{ size int }

func (e *tooLongError) Error() string { return fmt.Sprintf("%v: %d bytes", ErrTooLong, e.size) }

// Unwrap returns ErrTooLong.
func (e *tooLongError) Unwrap() error { return ErrTooLong }

// sizes holds the sizes of long values in a database, in bytes, from requests and replies. A value
// of unknown size counts as empty. This only delays other operations, once.
type sizes struct {
	seed      maphash.Seed
	byKeyHash map[uint64]int // by the hash of the key's name
}

func newSizes() sizes { return sizes{maphash.MakeSeed(), map[uint64]int{}} }

// totalSize returns the size of an operation and of the known values of its keys.
func (s *sizes) totalSize(o *op) int {
	n := len(o.words)
	if len(s.byKeyHash) == 0 {
		return n
	}
	limit := math.MaxInt
	if read, ok := o.cellOp.(cell.Read); ok && read.HeadBytes > 0 {
		limit = read.HeadBytes
	}
	for _, key := range o.cellOp.Keys() {
		n += min(s.byKeyHash[maphash.String(s.seed, key)], limit)
	}
	return n
}

// keysWeight returns the weight of the keys of an operation. It avoids Keys, which allocates.
func keysWeight(o *op) int {
	switch cellOp := o.cellOp.(type) {
	case cell.Read:
		return keyWeight * len(cellOp.Names)
	case cell.Take:
		return keyWeight * len(cellOp.Names)
	case cell.Extends:
		return keyWeight * len(cellOp)
	case cell.SignalWaiter:
		return keyWeight * len(cellOp.Marks)
	case cell.ReadWaiters:
		return keyWeight * len(cellOp)
	default:
		return keyWeight
	}
}

// isLong reports whether an operation of this total size is long. An operation that is not a Read
// is long only if its command is long, or the value of one of its keys. If it writes, later
// operations on its keys must be long, too, because they must not overtake it.
func (s *sizes) isLong(o *op, size int) bool {
	if _, isRead := o.cellOp.(cell.Read); isRead {
		return size > longOpBytes || keysWeight(o) > longOpBytes
	}
	return len(o.words) > longOpBytes || size > longOpBytes && s.hasLongKey(o.cellOp.Keys())
}

func (s *sizes) hasLongKey(keys []string) bool {
	return slices.ContainsFunc(keys, func(key string) bool { return s.byKeyHash[maphash.String(s.seed, key)] > longOpBytes })
}

// noteQueued ensures that later operations on the keys of o are long, if o is a long operation that
// writes. So noteQueued stores the sizes even if there is no room.
func (s *sizes) noteQueued(o *op, size int, forget bool) {
	if !o.cellOp.Writes() {
		return
	}
	if forget {
		s.makeRoom()
	}
	for _, key := range o.cellOp.Keys() {
		s.byKeyHash[maphash.String(s.seed, key)] = max(size, longOpBytes+1)
	}
}

// learn updates the sizes from the reply to an operation. If forget is set, it also removes the
// sizes of values that have become short.
func (s *sizes) learn(o *op, rep *reply, forget bool) {
	var tooLongErr *tooLongError
	switch {
	case rep.State == register.Counted:
		if len(s.byKeyHash) > 0 || writtenSize(o) > minKnownSize || hasKnownSize(rep.KeyStates) {
			s.learnEach(o, rep.KeyStates, forget)
		}
	case errors.As(rep.Err, &tooLongErr):
		keys := o.cellOp.Keys()
		for _, key := range keys {
			s.record(key, tooLongErr.size/len(keys), forget)
		}
	}
}

// writtenSize returns the size of the longest value that an operation may write.
func writtenSize(o *op) int {
	if _, isExtends := o.cellOp.(cell.Extends); isExtends || !o.cellOp.Writes() {
		return 0
	}
	return len(o.words)
}

// learnEach updates the sizes of the keys of an operation by the values that it read and wrote.
func (s *sizes) learnEach(o *op, states []cell.KeyState, forget bool) {
	written := writtenSize(o)
	for i, key := range o.cellOp.Keys() {
		n, wasRead := written, i < len(states)
		if wasRead {
			n = max(n, sizeOf(&states[i]))
		}
		switch {
		case n > minKnownSize:
			s.record(key, n, forget)
		case wasRead && forget:
			delete(s.byKeyHash, maphash.String(s.seed, key))
		}
	}
}

// record stores the size of a key's value. If there is no room, record first makes room if forget
// is set, and otherwise stores nothing.
func (s *sizes) record(key string, n int, forget bool) {
	if forget {
		s.makeRoom()
	}
	if len(s.byKeyHash) < maxSizes {
		s.byKeyHash[maphash.String(s.seed, key)] = n
	}
}

// makeRoom removes all sizes if there is no room for another size. It must not run while a long
// operation is queued.
func (s *sizes) makeRoom() {
	if len(s.byKeyHash) >= maxSizes {
		clear(s.byKeyHash)
	}
}

// hasKnownSize reports whether any of the values is so long that a lane must remember its size.
func hasKnownSize(states []cell.KeyState) bool {
	for i := range states {
		if sizeOf(&states[i]) > minKnownSize {
			return true
		}
	}
	return false
}

// sizeOf returns the length of a value, including the part that was not read.
func sizeOf(state *cell.KeyState) int { return len(state.Value.Text) + state.Value.UnreadBytes }
