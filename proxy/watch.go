package proxy

import (
	"context"
	"errors"
	"os"
	"runtime/debug"

	"redlock-proxy/commands"
)

// watch flushes the replies so far, then reads ahead while a command waits. It keeps the bytes that
// the client sends for later, and ends the context at once if the client leaves. stop ends the
// watch. If the client sends no more, watch does not flush: other clients may wait for its turn
// (halfClosedQueue), and the wait of its command ends at once.
func (s *session) watch(ctx context.Context) (context.Context, func()) {
	watched, leave := context.WithCancelCause(ctx)
	if !s.in.wire.HasEnded() {
		if err := s.flush(); err != nil {
			s.left = true
			leave(err)
			return watched, func() {}
		}
	}
	s.watchReads(true)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer func() {
			if problem := recover(); problem != nil {
				s.shared.opts.Logger.Error("session failed", "client", s.client.Addr,
					"panic", problem, "stack", string(debug.Stack()))
				s.left = true
				leave(errBroken)
			}
		}()
		s.readAhead(leave)
	}()
	stop := func() {
		s.interrupt()
		<-ended
		s.watchReads(false)
		leave(nil)
	}
	return watched, stop
}

// awaitOthers is watch for a command that waits for other clients. Its wait also ends when the
// proxy stops.
func (s *session) awaitOthers(ctx context.Context) (context.Context, func()) {
	watched, stop := s.watch(ctx)
	waits, refuse := context.WithCancelCause(watched)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cancelWait = refuse; s.noMoreWaits {
		refuse(commands.ErrShuttingDown)
	}
	return waits, func() {
		refuse(nil)
		stop()
	}
}

// refuseWaits makes all waits for other clients fail from now on, because the proxy stops.
func (s *session) refuseWaits() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.noMoreWaits = true; s.cancelWait != nil {
		s.cancelWait(commands.ErrShuttingDown)
	}
}

func (s *session) watchReads(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watching, s.parkRequested = on, false
	s.activity.Happened()
	s.setReadDeadline()
}

// interrupt ends a waiting read, and makes all reads fail until the next deadline is set.
func (s *session) interrupt() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watching = false
	_ = s.conn.SetReadDeadline(longAgo)
}

// readAhead reads until the client leaves, the buffer is full, or the read deadline passes.
func (s *session) readAhead(leave context.CancelCauseFunc) {
	for {
		err := s.in.lookahead()
		switch {
		case err == nil:
		case errors.Is(err, errFull), errors.Is(err, os.ErrDeadlineExceeded):
			return
		default:
			s.left = true // read by the session's goroutine once the watch has ended
			leave(errClientLeft)
			return
		}
	}
}
