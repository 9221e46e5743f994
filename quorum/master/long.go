package master

import (
	"errors"
	"fmt"
	"hash/maphash"
	"math"

	"redlock-proxy/quorum/cell"
	"redlock-proxy/quorum/register"
)

const (
	// longOp is from how many bytes on an operation is long, counted with what is known to be under
	// its keys.
	longOp = 32 << 10
	// longBatch is how many bytes of long operations leave in one batch, unless it is one
	// operation: what is short waits for no more than one of these.
	longBatch = 1 << 20
	// longest is what may be known to be under the keys of one operation on several.
	longest = 16 << 20
	// maxSizes is how many keys are known by how much is under them.
	maxSizes = 1 << 14
)

// ErrTooLong is returned where there was no room for a master's answer.
var ErrTooLong = errors.New("what is under these keys is too long to be read at once, or beside what others read")

// tooLongError is ErrTooLong with how many bytes the answer had.
type tooLongError struct{ size int }

func (e *tooLongError) Error() string { return fmt.Sprintf("%v: %d bytes", ErrTooLong, e.size) }

// Unwrap makes it an ErrTooLong.
func (e *tooLongError) Unwrap() error { return ErrTooLong }

// sizes are how much is under the keys of a database that hold much, in bytes, as far as it was
// seen in what was sent and answered. What is not known counts as nothing; that costs time alone,
// once.
type sizes struct {
	seed maphash.Seed
	of   map[uint64]int // by the hash of the key's name
}

func newSizes() sizes { return sizes{maphash.MakeSeed(), map[uint64]int{}} }

// around is the size of an operation and of what is known to be under its keys.
func (s *sizes) around(o *op) int {
	n := len(o.words)
	if len(s.of) == 0 {
		return n
	}
	most := math.MaxInt
	if read, is := o.do.(cell.Read); is && read.Heads > 0 {
		most = read.Heads
	}
	for _, key := range o.do.Keys() {
		n += min(s.of[maphash.String(s.seed, key)], most)
	}
	return n
}

// learn takes what a master answered to an operation, and, with forget set, what is no longer so.
func (s *sizes) learn(o *op, got *reply, forget bool) {
	var tooLong *tooLongError
	switch {
	case got.State == register.Counted:
		if len(s.of) > 0 || len(o.words) > longOp || anyLong(got.Found) {
			s.learnEach(o, got.Found, forget)
		}
	case errors.As(got.Err, &tooLong):
		keys := o.do.Keys()
		for _, key := range keys {
			s.note(key, tooLong.size/len(keys), forget)
		}
	}
}

// learnEach takes what was found under each key of an operation, and what that wrote there.
func (s *sizes) learnEach(o *op, found []cell.Found, forget bool) {
	wrote := 0
	if o.do.Writes() {
		wrote = len(o.words)
	}
	for i, key := range o.do.Keys() {
		n, seen := wrote, i < len(found)
		if seen {
			n = max(n, sizeOf(&found[i]))
		}
		switch {
		case n > longOp:
			s.note(key, n, forget)
		case seen && forget:
			delete(s.of, maphash.String(s.seed, key))
		}
	}
}

// note makes room for a key by forgetting all others, if it may.
func (s *sizes) note(key string, n int, forget bool) {
	if len(s.of) >= maxSizes {
		if !forget {
			return
		}
		clear(s.of)
	}
	s.of[maphash.String(s.seed, key)] = n
}

func anyLong(found []cell.Found) bool {
	for i := range found {
		if sizeOf(&found[i]) > longOp {
			return true
		}
	}
	return false
}

// sizeOf is how long a value is, whether it was read to its end or not.
func sizeOf(found *cell.Found) int { return len(found.Value.Text) + found.Value.Rest }
