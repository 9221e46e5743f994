package proxy

import (
	"context"
	"errors"
	"os"
	"runtime/debug"

	"redlock-proxy/commands"
)

// watch flushes the replies so far, then reads ahead while a command waits: what
// the client sends is kept for later, and its leaving ends the context at once.
// stop ends the watch. Nothing is flushed of a client that sends no more: others may
// wait for its turn (leavers), and the wait of its command is over at once.
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
				s.shared.opts.Logger.Error("a session failed", "client", s.client.Addr, "panic", problem, "stack", string(debug.Stack()))
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

// awaitOthers is watch for a command that waits for what others do: its wait is over, too, when the
// proxy stops.
func (s *session) awaitOthers(ctx context.Context) (context.Context, func()) {
	watched, stop := s.watch(ctx)
	waits, refuse := context.WithCancelCause(watched)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refuse = refuse; s.refusing {
		refuse(commands.ErrShuttingDown)
	}
	return waits, func() {
		refuse(nil)
		stop()
	}
}

// refuseWaits has a command that waits for what others do be answered with an error, now or when
// one begins: the proxy stops.
func (s *session) refuseWaits() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refusing = true; s.refuse != nil {
		s.refuse(commands.ErrShuttingDown)
	}
}

func (s *session) watchReads(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watching, s.asked = on, false
	s.activity.Happened()
	s.setReadDeadline()
}

// interrupt ends the read that waits, and every other until the next deadline.
func (s *session) interrupt() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watching = false
	_ = s.conn.SetReadDeadline(longAgo)
}

// readAhead reads until the client leaves, the buffer is full, or the read
// deadline passes.
func (s *session) readAhead(leave context.CancelCauseFunc) {
	for {
		err := s.in.lookahead()
		switch {
		case err == nil:
		case errors.Is(err, errFull), errors.Is(err, os.ErrDeadlineExceeded):
			return
		default:
			s.left = true // read once the watch has ended
			leave(errClientLeft)
			return
		}
	}
}
