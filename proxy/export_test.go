package proxy

import (
	"sync"
	"time"

	"redlock-proxy/commands"
	"redlock-proxy/proxy/track"
)

// SetTimeouts sets the longest time that a subscriber may leave messages unread, and the time for
// which the proxy keeps a half-closed client.
func (s *Server) SetTimeouts(stall, linger time.Duration) {
	s.serverState.times = relayTimes{stall, linger}
}

// SetHandshakeTimeout sets the time limit for a load balancer's header, and for the TLS handshake.
// It must be called before Serve.
func (s *Server) SetHandshakeTimeout(d time.Duration) { s.serverState.handshakeTimeout = d }

// SetNow sets the clock that measures a validity from its grant until its reply is sent. It must be
// called before Serve.
func (s *Server) SetNow(now func() time.Time) { s.serverState.now = now }

// SetIdleTime sets the time for which a client must be idle before it is parked. It must be called
// before Serve.
func (s *Server) SetIdleTime(d time.Duration) { s.idleTime = d }

// DisableReplies treats all clients as if they had sent CLIENT REPLY OFF. It must be called while
// the proxy waits for the clients' next commands.
func (s *Server) DisableReplies() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, session := range s.sessions {
		session.relay.replyMode = track.ReplyOff
	}
}

// ParkedCount returns the number of clients without a goroutine.
func (s *Server) ParkedCount() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, session := range s.sessions {
		session.mu.Lock()
		if session.parked {
			n++
		}
		session.mu.Unlock()
	}
	return n
}

// UnparkableCount returns the number of clients that were asked to park and did not.
func (s *Server) UnparkableCount() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, session := range s.sessions {
		session.mu.Lock()
		if !session.parked && !session.parkRequested && session.activity.IsStillIdle() {
			n++
		}
		session.mu.Unlock()
	}
	return n
}

// MaxAwaited is the limit of the entries for pending replies to state commands of a client.
const MaxAwaited = maxAwaited

// AwaitedEntries returns the number of entries for pending replies of all clients. waiting reports
// whether a client must wait for pending replies.
func (s *Server) AwaitedEntries() (entries int, waiting bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, session := range s.sessions {
		session.relay.writer.mu.Lock()
		entries += session.relay.tracker.AwaitedReplies.EntryCount()
		waiting = waiting || session.relay.writer.waiters > 0
		session.relay.writer.mu.Unlock()
	}
	return entries, waiting
}

// Table returns the server's command table.
func (s *Server) Table() *commands.Table { return s.serverState.opts.Table }

// Mutexes returns all locks that a goroutine could hold while it writes to a client.
func (s *Server) Mutexes() (locks []sync.Locker) {
	s.mu.Lock()
	defer s.mu.Unlock()
	locks = append(locks, &s.mu)
	for _, session := range s.sessions {
		locks = append(locks, &session.mu, &session.writer.mu)
	}
	return locks
}
