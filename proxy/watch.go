package proxy

import (
	"context"
	"errors"
	"os"
	"time"
)

// watch flushes the replies so far, then reads ahead while a command waits: what
// the client sends is kept for later, and its leaving ends the context at once.
// stop ends the watch.
func (s *session) watch(ctx context.Context) (context.Context, func()) {
	watched, leave := context.WithCancelCause(ctx)
	if err := s.flush(); err != nil {
		s.left = true
		leave(err)
		return watched, func() {}
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.readAhead(leave)
	}()
	stop := func() {
		_ = s.conn.SetReadDeadline(time.Unix(1, 0))
		<-ended
		_ = s.conn.SetReadDeadline(time.Time{})
		if s.ending.Load() {
			_ = s.conn.SetReadDeadline(time.Unix(1, 0)) // as end did, perhaps just before
		}
		leave(nil)
	}
	return watched, stop
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
