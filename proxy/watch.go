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
	return s.startWatch(ctx, false)
}

// startWatch implements watch. With untilEnd, it also notices the end of a client that has sent more
// than is read ahead. Without untilEnd, such a client may half-close its connection, and still gets its
// replies.
func (s *session) startWatch(ctx context.Context, untilEnd bool) (context.Context, func()) {
	watchCtx, cancel := context.WithCancelCause(ctx)
	if !s.in.conn.HasEnded() {
		if err := s.flush(); err != nil {
			s.clientDisconnected = true
			cancel(err)
			return watchCtx, func() {}
		}
	}
	s.setWatching(true)
	done, stopped := make(chan struct{}), make(chan struct{})
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
		if s.readAhead() || untilEnd && s.awaitEnd(stopped) {
			s.clientDisconnected = true // read by the session's goroutine once the watch has ended
			cancel(errClientDisconnected)
		}
	}()
	stop := func() {
		close(stopped)
		s.interrupt()
		<-done
		s.setWatching(false)
		cancel(nil)
	}
	return watchCtx, stop
}

// watchWait watches, like watch, while a command waits for other clients. The wait also ends when
// the proxy shuts down. If there is no memory for the wait, it ends immediately.
func (s *session) watchWait(ctx context.Context) (context.Context, func()) {
	budgetErr := s.in.updateBudget() // before the watch reads
	watchCtx, stop := s.startWatch(ctx, true)
	waitCtx, cancelWait := context.WithCancelCause(watchCtx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cancelWait = cancelWait; s.noMoreWaits {
		cancelWait(commands.ErrShuttingDown)
	}
	if budgetErr != nil {
		cancelWait(budgetErr)
	}
	return waitCtx, func() {
		cancelWait(nil)
		stop()
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

// readAhead reads until the client leaves, the buffer is full, or the read deadline passes. It reports
// whether the client has left.
func (s *session) readAhead() (hasLeft bool) {
	for {
		err := s.in.readAhead()
		if err != nil {
			return !errors.Is(err, errBufferFull) && !errors.Is(err, os.ErrDeadlineExceeded)
		}
	}
}

// awaitEnd waits, without reading, until the client leaves or the watch stops, and reports whether
// the client has left. It relies on the poller, which does not report the end of a TLS client, nor an
// end behind more bytes than fit into the system's buffer.
func (s *session) awaitEnd(stopped <-chan struct{}) (hasLeft bool) {
	ended := make(chan struct{})
	s.setEnded(ended)
	defer s.setEnded(nil)
	if s.in.conn.HasEnded() {
		return true
	}
	select {
	case <-ended:
		return true
	case <-stopped:
		return false
	}
}

// setEnded sets the channel that is closed when the poller reports the end of the client's stream.
func (s *session) setEnded(ended chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = ended
}
