package proxy

import (
	"context"
	"errors"
	"io"
	"os"
	"time"

	"redlock-proxy/commands/pubsub/subscribers"
)

// A client that is quiet is parked: its goroutines end, and the poller waits in
// their place for bytes from the client or from its upstream, or for the end of
// either stream. Then they are started again. Parked is a session that rests between
// two frames; what the upstream still owes it, and what has come of a reply, is kept
// in its relay.

// quietTime is for how long nothing may happen on a client's connections before it
// is parked, give or take the same time.
const quietTime = time.Second

// errAtRest ends a session's goroutine, or would: the session may be parked.
var errAtRest = errors.New("the client is quiet")

// askToRest has the session's goroutine try to park it, unless something has
// happened since it was found to be quiet.
func (s *session) askToRest() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.parked && s.activity.StillQuiet() {
		s.asked = true
		s.setReadDeadline()
	}
}

// endOfInput takes the deadline by which a session is told to end for the end of
// the client's bytes. One by which it is asked to rest is none where it is not
// between two frames.
func (s *session) endOfInput(err error) error {
	switch {
	case !errors.Is(err, os.ErrDeadlineExceeded):
		return err
	case s.ending.Load():
		return io.EOF
	}
	s.heard()
	if s.in.atRest() && len(s.out.Bytes) == 0 {
		return errAtRest
	}
	return nil
}

// heard takes the question to rest for answered. That is done before the answer is
// found, or one that is asked meanwhile would be lost.
func (s *session) heard() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = false
	s.setReadDeadline()
}

// park leaves the session to the poller, and reports whether that was possible: from
// then on it belongs to the goroutine that wakes it.
func (s *session) park(ctx context.Context) bool {
	if !s.in.wire.CanPark() || !s.relay.pause() {
		return false
	}
	s.shrink()
	if s.leave() {
		return true
	}
	s.resume(ctx)
	return false
}

// leave has the poller wait. What has arrived meanwhile it tells at once.
func (s *session) leave() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ending.Load() || s.parkConns() != nil {
		return false
	}
	s.asked, s.parked = false, true
	s.parkedCount.Add(1)
	s.setReadDeadline()
	return true
}

// shrink lets go of what can be made again.
func (s *session) shrink() {
	s.line.forget()
	s.out.Bytes, s.excerpt = nil, nil
	s.client.Watch, s.client.Wait, s.client.Track, s.client.Ask, s.client.Upstream, s.client.Subscribe = nil, nil, nil, nil, nil, nil
	s.who.Rights.Forget()
	s.in.shrink()
}

// parkConns has the poller wait for the session's connections. It is called with mu held.
func (s *session) parkConns() error {
	return errors.Join(s.in.wire.Park(), s.relay.parkConn())
}

// unpark reports whether the session was parked; then its goroutine must be started.
func (s *session) unpark() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.parked
	if s.parked = false; was {
		s.parkedCount.Add(-1)
	}
	return was
}

// resume takes up what park has put down.
func (s *session) resume(ctx context.Context) {
	s.activity.Happened()
	s.client.Watch, s.client.Wait = s.watch, s.awaitOthers
	if s.table.Tracking() != nil {
		s.client.Track = s.track
	}
	if s.client.Hub = s.table.Messages(); s.client.Hub != nil {
		s.client.Subscribe = func() *subscribers.Subscriber { return s.subscribe(ctx) }
	}
	s.in.wire.Wake()
	s.relay.resume(ctx)
}

// streamEnded is told by the poller of the end of what the client sends, or of what
// the upstream does on the connection of that number.
func (s *session) streamEnded(dial uint16) {
	if dial == 0 {
		s.in.wire.End()
	} else {
		s.relay.streamEnded(dial)
	}
}

// pause has the courier end for the time that the client is parked, and
// reports whether nothing stands against that. It does not wait for the client to
// take a reply: what it sends meanwhile must be read.
func (r *relay) pause() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.writing:
		r.session.activity.Happened() // try again
		return false
	case r.wire == nil || r.gone:
		return true
	case !r.wire.CanPark():
		return false
	}
	r.pausing = true
	_ = r.wire.SetReadDeadline(longAgo)
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
		r.session.activity.Happened() // try again
		r.signal()
	}
}

// pauseNow is the courier's part, once it reads no more: it ends, unless the
// pause has failed.
func (r *relay) pauseNow() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_ = r.wire.SetReadDeadline(time.Time{})
	if !r.pausing {
		return false
	}
	r.loan.Rest()
	r.wire.Forget()
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
		r.wire.Wake()
		r.bringReplies(ctx)
	}
}

// parkConn has the poller wait for the connection, if the courier did.
func (r *relay) parkConn() error {
	if !r.paused {
		return nil
	}
	return r.wire.Park()
}

// streamEnded is told by the poller that the upstream sends no more on the
// connection of that number.
func (r *relay) streamEnded(dial uint16) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.dial == dial && r.wire != nil {
		r.wire.End()
	}
}
