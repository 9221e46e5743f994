package proxy

import (
	"context"
	"time"
)

// pause has the other goroutine end for the time that the client is parked, and
// reports whether nothing stands against that. It does not wait for the client to
// take a reply: what it sends meanwhile must be read.
func (r *relay) pause() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.wire == nil || r.gone:
		return true
	case r.writing:
		r.session.stir.happened() // try again
		return false
	case !r.wire.told:
		return false
	}
	r.pausing = true
	_ = r.wire.conn.SetReadDeadline(longAgo)
	r.waiting++
	for r.pausing && !r.gone {
		r.changed.Wait()
	}
	r.waiting--
	r.pausing = false
	return r.paused
}

// stay has a pause fail: a reply has come. It is called with mu held.
func (r *relay) stay() {
	if r.pausing {
		r.pausing = false
		r.session.stir.happened() // try again
		r.signal()
	}
}

// pauseNow is the other goroutine's part, once it reads no more: it ends, unless the
// pause has failed.
func (r *relay) pauseNow() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_ = r.wire.conn.SetReadDeadline(time.Time{})
	if !r.pausing {
		return false
	}
	r.loan.rest()
	r.wire.forget()
	r.pausing, r.paused = false, true
	r.signal()
	return true
}

// resume starts it again.
func (r *relay) resume(ctx context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.paused {
		r.paused = false
		r.bringReplies(ctx)
	}
}

// watchFor has the poller tell something of the connection, if there is one.
func (r *relay) watchFor(what interest) error {
	if !r.paused {
		return nil
	}
	return r.session.poller.change(r.wire.raw, r.tag(), what)
}

// tag names the connection to the poller.
func (r *relay) tag() tag { return tagOf(r.session.client.ID, r.dial) }

// streamEnded is told by the poller that the upstream sends no more on the
// connection of that number.
func (r *relay) streamEnded(dial uint16) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.dial == dial {
		r.wire.end()
	}
}
