package proxy

import (
	"context"
	"errors"
	"redlock-proxy/commands/command"
	"time"
)

// An idle client is parked: its goroutines end, and the poller waits for bytes from the client or
// its upstream, or for the end of either stream. Any of these events starts the goroutines again. A
// session can be parked between two frames. Its relay keeps the list of pending replies, and the
// part of a reply that has arrived.

// idleTime is the time for which a client's connections must be idle before the client is parked.
// Parking may take up to twice as long.
const idleTime = time.Second

// requestPark asks the session's goroutine to park the session, unless there was activity since the
// session was found to be idle.
func (s *session) requestPark() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.parked && s.activity.IsStillIdle() {
		s.parkRequested = true
		s.setReadDeadline()
	}
}

// park hands the session to the poller, and reports whether that succeeded. If so, the session
// belongs to the goroutine that wakes it.
func (s *session) park(ctx context.Context) bool {
	if !s.in.conn.CanPark() || !s.relay.pause() {
		return false
	}
	s.shrink()
	if s.handToPoller() {
		return true
	}
	s.resume(ctx)
	return false
}

// handToPoller makes the poller wait for the session's connections, and reports whether that
// succeeded. If bytes have already arrived, the poller reports them immediately.
func (s *session) handToPoller() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ending.Load() || s.parkConns() != nil {
		return false
	}
	s.parkRequested, s.parked = false, true
	s.serverState.proxyState.parkedClients.Add(1)
	s.setReadDeadline()
	return true
}

// shrink frees memory that resume, or the session's next command, allocates again.
func (s *session) shrink() {
	s.writer.releaseMemory()
	s.out.Bytes, s.excerpt = nil, nil
	s.client.Watch, s.client.Wait, s.client.NewTracking, s.client.Ask, s.client.Upstream = nil, nil, nil, nil, nil
	s.client.Publisher, s.client.NewSubscriptions, s.client.NewKeptLocks, s.client.ReserveMemory = nil, nil, nil, nil
	s.login.Rights.DropRefusals()
	s.in.shrink()
}

// parkConns makes the poller wait for the session's connections. The caller must hold mu.
func (s *session) parkConns() error {
	return errors.Join(s.in.conn.Park(), s.relay.parkConn())
}

// unpark marks the session as not parked, and reports whether it was parked. If so, the caller must
// start the session's goroutine.
func (s *session) unpark() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	wasParked := s.parked
	if s.parked = false; wasParked {
		s.serverState.proxyState.parkedClients.Add(-1)
	}
	return wasParked
}

// resume restores the state that park has dropped.
func (s *session) resume(ctx context.Context) {
	s.activity.Record()
	s.client.Watch, s.client.Wait = s.watch, s.watchWait
	s.client.HasDisconnected = s.in.conn.HasEnded
	s.client.NewKeptLocks, s.client.ReserveMemory = s.keptLocks, s.in.updateBudget
	if s.serverState.opts.Table.Tracking() != nil {
		s.client.NewTracking = s.clientTracking
	}
	if hub := s.serverState.opts.Table.Messages(); hub != nil {
		s.client.Publisher = hub.NewOutlet(&s.client.LastMessage)
		s.client.NewSubscriptions = func() command.Subscriptions { return s.subscriptions(ctx) }
	}
	s.in.conn.Unpark()
	s.relay.resume(ctx)
}

// handleStreamEnd handles the end of a stream that the poller reports. The stream is the client's
// if connID is 0, otherwise that of the upstream's connection with this number.
func (s *session) handleStreamEnd(connID uint16) {
	if connID != 0 {
		s.relay.handleStreamEnd(connID)
		return
	}
	s.in.conn.End()
	s.endWait()
}
