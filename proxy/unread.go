package proxy

import (
	"container/list"
	"sync"
)

// defaultUnread limits the bytes that all clients together may leave unread.
const defaultUnread = 256 << 20

// unread accounts for the replies that all clients together have not read. If they exceed the
// limit, it cuts off the client that has waited longest. It is safe for concurrent use, and takes
// no other lock.
type unread struct {
	mu         sync.Mutex
	limit      int64
	held, cuts int64
	oldest     list.List // of *unreadClient
}

// unreadClient accounts for the unread replies of one client. The mu of unread guards it.
type unreadClient struct {
	bytes int64
	entry *list.Element // nil: nothing is unread, or the client was cut off
	cut   func()        // ends the connection, and must not wait
}

// add records that a client leaves n more bytes unread.
func (u *unread) add(w *unreadClient, n int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if w.entry == nil {
		w.entry, w.bytes = u.oldest.PushBack(w), 0
	}
	w.bytes += int64(n)
	u.held += int64(n)
	u.enforce()
}

// done records that a client has read n bytes, or that they are discarded.
func (u *unread) done(w *unreadClient, n int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if w.entry == nil {
		return
	}
	w.bytes -= int64(n)
	if u.held -= int64(n); w.bytes == 0 {
		u.oldest.Remove(w.entry)
		w.entry = nil
	}
}

// enforce cuts clients off until the total is within the limit. It is called with mu held.
func (u *unread) enforce() {
	for u.held > u.limit && u.oldest.Len() > 0 {
		w := u.oldest.Remove(u.oldest.Front()).(*unreadClient)
		u.held -= w.bytes
		w.entry = nil
		u.cuts++
		w.cut()
	}
}

// setLimit changes the limit.
func (u *unread) setLimit(n int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.limit = n
	u.enforce()
}

// stats returns how many bytes are unread, and how many clients were cut off for that.
func (u *unread) stats() (held, cuts int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.held, u.cuts
}
