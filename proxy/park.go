package proxy

import (
	"context"
	"errors"
	"io"
	"os"
	"sync/atomic"
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

// errAtRest ends a session's goroutine, or would: the session may be parked.
var errAtRest = errors.New("the client is quiet")

// stir tells clients that are quiet from those on whose connections something
// happens, without a clock.
type stir struct{ level atomic.Int32 }

const (
	tried   int32 = iota // it was tried to park the client
	quiet                // nothing since the last look
	stirred              // something since the last look
)

// happened is called for whatever happens. It must cost nothing.
func (s *stir) happened() {
	if s.level.Load() != stirred {
		s.level.Store(stirred)
	}
}

// looked reports whether nothing has happened since the last look but one, and that
// only once.
func (s *stir) looked() bool {
	level := s.level.Load()
	return level != tried && s.level.CompareAndSwap(level, level-1) && level == quiet
}

// askToRest has the session's goroutine try to park it, unless something has
// happened since it was found to be quiet.
func (s *session) askToRest() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.parked && s.stir.level.Load() == tried {
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
	if s.poller == nil || !s.in.wire.told || s.relay != nil && !s.relay.pause() {
		return false
	}
	s.shrink()
	if s.leaveTo(s.poller) {
		return true
	}
	s.resume(ctx)
	return false
}

// leaveTo arms the poller. What has arrived meanwhile it tells at once.
func (s *session) leaveTo(p *poller) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ending.Load() || s.watchFor(anything) != nil {
		return false
	}
	s.asked, s.parked = false, true
	s.setReadDeadline()
	return true
}

// shrink lets go of what can be made again.
func (s *session) shrink() {
	s.in.shrink()
	s.out.Bytes, s.excerpt = nil, nil
	s.client.Watch, s.client.Ask = nil, nil
}

// watchFor has the poller tell something of the session's connections.
func (s *session) watchFor(what interest) error {
	err := s.poller.change(s.in.wire.raw, tagOf(s.client.ID, 0), what)
	if s.relay != nil {
		err = errors.Join(err, s.relay.watchFor(what))
	}
	return err
}

// unpark reports whether the session was parked; then its goroutine must be started.
func (s *session) unpark() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.parked
	s.parked = false
	return was
}

// resume takes up what park has put down.
func (s *session) resume(ctx context.Context) {
	s.stir.happened()
	s.client.Watch = s.watch
	if s.poller != nil && s.in.wire.told {
		_ = s.watchFor(theEnd) // of a connection in the set: it cannot fail
	}
	if s.relay != nil {
		s.relay.resume(ctx)
	}
}

// streamEnded is told by the poller of the end of what the client sends, or of what
// the upstream does on the connection of that number.
func (s *session) streamEnded(dial uint16) {
	if dial == 0 {
		s.in.wire.end()
	} else if s.relay != nil {
		s.relay.streamEnded(dial)
	}
}
