package keepalive

import (
	"slices"
	"time"

	"github.com/tidwall/redcon"

	"redlock-proxy/internal/resp"
)

// push is a message to a client about one of its locks.
type push struct {
	lock *Lock
	// reason is the reason for the loss. It is only valid if lost is set.
	lost   bool
	reason Reason
}

// announce tells a RESP3 client about a lock. A client that does not read gets only the latest
// renewal of each lock, so that its pushes stay few.
func (h *Holder) announce(p push) {
	if !h.client.TakesPushes() {
		return
	}
	h.keeper.mu.Lock()
	defer h.keeper.mu.Unlock()
	if !p.lost {
		if p.lock.dropped || p.lock.announced {
			return
		}
		p.lock.announced = true
	}
	h.queuePush(p)
}

// queuePush queues a push, and starts the goroutine that writes unless it runs already. The caller
// holds the Keeper's mu.
func (h *Holder) queuePush(p push) {
	if h.stopped {
		return
	}
	h.pushes = append(h.pushes, p)
	if !h.pushing {
		h.pushing = true
		h.tasks.Go(h.writePushes)
	}
}

// writePushes writes pushes until there are none.
func (h *Holder) writePushes() {
	for h.hasPushes() {
		taken := false
		h.client.Push(h.ctx, func() []byte {
			taken = true
			return h.takePushes()
		})
		if !taken { // the client cannot receive pushes
			_ = h.takePushes()
		}
	}
}

// hasPushes reports whether there are pushes to write. If not, the goroutine that writes must end.
func (h *Holder) hasPushes() bool {
	h.keeper.mu.Lock()
	defer h.keeper.mu.Unlock()
	h.pushing = len(h.pushes) > 0 && !h.stopped
	return h.pushing
}

// takePushes returns all pushes to write. It announces no renewal of a lock that is no longer kept:
// after the reply to an UNLOCK, no push says that the lock is kept.
func (h *Holder) takePushes() (out []byte) {
	h.keeper.mu.Lock()
	defer h.keeper.mu.Unlock()
	now := time.Now()
	for _, p := range h.pushes {
		p.lock.announced = false
		switch {
		case p.lost:
			out = appendPush(out, "lost", p.lock.name)
			out = redcon.AppendBulkString(out, p.reason.String())
		case !p.lock.dropped && p.lock.ValidUntil.After(now):
			out = appendPush(out, "kept", p.lock.name)
			out = redcon.AppendInt(out, p.lock.ValidUntil.Sub(now).Milliseconds())
		}
	}
	h.pushes = slices.Delete(h.pushes, 0, len(h.pushes))
	return out
}

// appendPush appends the beginning of a push. One more element must follow.
func appendPush(out []byte, event, key string) []byte {
	out = resp.AppendHeader(out, '>', 4)
	for _, word := range []string{"lock", event, key} {
		out = redcon.AppendBulkString(out, word)
	}
	return out
}
