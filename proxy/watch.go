package proxy

import (
	"context"
	"errors"
	"os"
	"runtime/debug"

	"redlock-proxy/commands"
)

// watch flushes the replies so far, then reads ahead while a command waits. It keeps the bytes that
// it reads for later commands, and ends the context immediately if the client leaves. stop ends the
// watch. For a half-closed client, watch does not flush, because other clients may wait for the end
// of that client's turn (halfClosedQueue).
func (s *session) watch(ctx context.Context) (context.Context, func()) {
	watchCtx, cancel := context.WithCancelCause(ctx)
	if !s.in.conn.HasEnded() {
		if err := s.flush(); err != nil {
			s.clientDisconnected = true
			cancel(err)
			return watchCtx, func() {}
		}
	}
	s.setWatching(true)
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if problem := recover(); problem != nil {
				s.serverState.opts.Logger.Error("internal error in a session; report this line", "client", s.client.Addr,
					"panic", problem, "stack", string(debug.Stack()))
				s.clientDisconnected = true
				cancel(errBroken)
			}
		}()
		s.readAhead(cancel)
	}()
	stop := func() {
		s.interrupt()
		<-done
		s.setWatching(false)
		cancel(nil)
	}
	return watchCtx, stop
}

// watchWait watches, like watch, while a command waits for other clients. The wait also ends when
// the proxy shuts down, and when the client leaves after it has sent more than watch reads. If there
// is no memory for the wait, it ends immediately.
func (s *session) watchWait(ctx context.Context) (context.Context, func()) {
	budgetErr := s.in.updateBudget() // before the watch reads
	watchCtx, stop := s.watch(ctx)
	waitCtx, cancelWait := context.WithCancelCause(watchCtx)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch s.cancelWait = cancelWait; {
	case s.noMoreWaits:
		cancelWait(commands.ErrShuttingDown)
	case budgetErr != nil:
		cancelWait(budgetErr)
	case s.in.conn.HasEnded():
		cancelWait(errClientDisconnected)
	}
	return waitCtx, func() {
		cancelWait(nil)
		stop()
		s.clientDisconnected = s.clientDisconnected || context.Cause(waitCtx) == errClientDisconnected
	}
}

// endWait makes a wait for other clients fail, because the client has left. The poller notices that,
// but not over TLS, nor if the client has sent more bytes than fit into the system's buffer.
func (s *session) endWait() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cancelWait != nil {
		s.cancelWait(errClientDisconnected)
	}
}

// refuseWaits makes all waits for other clients fail from now on, because the proxy shuts down.
func (s *session) refuseWaits() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.noMoreWaits = true; s.cancelWait != nil {
		s.cancelWait(commands.ErrShuttingDown)
	}
}

func (s *session) setWatching(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watching, s.parkRequested = on, false
	s.activity.Record()
	s.setReadDeadline()
}

// interrupt ends a waiting read, and makes all reads fail until the next deadline is set.
func (s *session) interrupt() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watching = false
	_ = s.conn.SetReadDeadline(pastDeadline)
}

// readAhead reads until the client leaves, the buffer is full, or the read deadline passes.
func (s *session) readAhead(cancel context.CancelCauseFunc) {
	for {
		err := s.in.readAhead()
		switch {
		case err == nil:
		case errors.Is(err, errBufferFull), errors.Is(err, os.ErrDeadlineExceeded):
			return
		default:
			s.clientDisconnected = true // read by the session's goroutine once the watch has ended
			cancel(errClientDisconnected)
			return
		}
	}
}
