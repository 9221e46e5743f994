package proxy

import (
	"container/list"
	"sync"
)

// defaultUnread is what all clients together may leave unread, in bytes.
const defaultUnread = 256 << 20

// unread is what clients have not taken of their replies, all together. Where that is too much, the
// client is cut off that has waited longest. It is safe for concurrent use, and takes no other
// lock.
type unread struct {
	mu         sync.Mutex
	limit      int64
	held, cuts int64
	oldest     list.List // of *waiting
}

// waiting is what one client has not taken. It belongs to the unread's mu.
type waiting struct {
	bytes int64
	place *list.Element // nil: nothing, or it was cut off
	cut   func()        // ends the connection. It does not wait
}

// add notes that a client leaves so many more bytes unread.
func (u *unread) add(w *waiting, n int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if w.place == nil {
		w.place, w.bytes = u.oldest.PushBack(w), 0
	}
	w.bytes += int64(n)
	u.held += int64(n)
	u.bound()
}

// done notes that it has taken so many, or that they are thrown away.
func (u *unread) done(w *waiting, n int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if w.place == nil {
		return
	}
	w.bytes -= int64(n)
	if u.held -= int64(n); w.bytes == 0 {
		u.oldest.Remove(w.place)
		w.place = nil
	}
}

// bound cuts clients off until no more is held than may be. It is called with mu held.
func (u *unread) bound() {
	for u.held > u.limit && u.oldest.Len() > 0 {
		w := u.oldest.Remove(u.oldest.Front()).(*waiting)
		u.held -= w.bytes
		w.place = nil
		u.cuts++
		w.cut()
	}
}

// setLimit has another limit hold.
func (u *unread) setLimit(n int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.limit = n
	u.bound()
}

// now is how much is held, and how many clients were cut off for it.
func (u *unread) now() (held, cuts int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.held, u.cuts
}
