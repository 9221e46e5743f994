package proxy

import (
	"context"
	"errors"
	"redlock-proxy/commands/command"
	"time"
)

// A client that is quiet is parked: its goroutines end, and the poller waits in
// their place for bytes from the client or from its upstream, or for the end of
// either stream. Then they are started again. Parked is a session that rests between
// two frames; what the upstream still owes it, and what has come of a reply, is kept
// in its relay.

// quietTime is for how long nothing may happen on a client's connections before it
// is parked, give or take the same time.
const quietTime = time.Second

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
	s.shared.parked.Add(1)
	s.setReadDeadline()
	return true
}

// shrink lets go of what can be made again.
func (s *session) shrink() {
	s.line.forget()
	s.out.Bytes, s.excerpt = nil, nil
	s.client.Watch, s.client.Wait, s.client.Track, s.client.Ask, s.client.Upstream = nil, nil, nil, nil, nil
	s.client.Outlet, s.client.Subscribe = nil, nil
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
		s.shared.parked.Add(-1)
	}
	return was
}

// resume takes up what park has put down.
func (s *session) resume(ctx context.Context) {
	s.activity.Happened()
	s.client.Watch, s.client.Wait = s.watch, s.awaitOthers
	if s.shared.opts.Table.Tracking() != nil {
		s.client.Track = s.track
	}
	if hub := s.shared.opts.Table.Messages(); hub != nil {
		s.client.Outlet = hub.Outlet(&s.client.Published)
		s.client.Subscribe = func() command.Subscriptions { return s.subscribe(ctx) }
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
