package proxy

import (
	"container/list"
	"sync"
)

// defaultMaxUnread limits the bytes that all clients together may leave unread.
const defaultMaxUnread = 256 << 20

// unreadReplies counts the bytes of replies that clients have not read. If these bytes exceed the
// limit, it disconnects the client whose replies have been unread for the longest time. It is safe
// for concurrent use, also by goroutines that hold clientWriter.mu.
type unreadReplies struct {
	mu                 sync.Mutex
	limit              int64
	total, disconnects int64
	clients            list.List // of *unreadClient, in the order in which they stopped reading
}

// unreadClient counts the unread bytes of one client. The mu of unreadReplies guards it.
type unreadClient struct {
	bytes      int64
	entry      *list.Element // nil if nothing is unread, or the client was disconnected
	disconnect func()        // must end the connection without waiting
}

// add records that a client leaves n more bytes unread.
func (u *unreadReplies) add(w *unreadClient, n int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if w.entry == nil {
		w.entry, w.bytes = u.clients.PushBack(w), 0
	}
	w.bytes += int64(n)
	u.total += int64(n)
	u.enforce()
}

// remove records that a client has read n bytes, or that n bytes were discarded.
func (u *unreadReplies) remove(w *unreadClient, n int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if w.entry == nil {
		return
	}
	w.bytes -= int64(n)
	if u.total -= int64(n); w.bytes == 0 {
		u.clients.Remove(w.entry)
		w.entry = nil
	}
}

// enforce disconnects clients until the total is within the limit. The caller must hold mu.
func (u *unreadReplies) enforce() {
	for u.total > u.limit && u.clients.Len() > 0 {
		w := u.clients.Remove(u.clients.Front()).(*unreadClient)
		u.total -= w.bytes
		w.entry = nil
		u.disconnects++
		w.disconnect()
	}
}

// setLimit changes the limit, and enforces it.
func (u *unreadReplies) setLimit(n int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.limit = n
	u.enforce()
}

// stats returns the number of unread bytes, and the number of clients disconnected because of
// unread bytes.
func (u *unreadReplies) stats() (total, disconnects int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.total, u.disconnects
}
