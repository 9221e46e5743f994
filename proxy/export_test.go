package proxy

import (
	"sync"
	"time"

	"redlock-proxy/commands"
	"redlock-proxy/proxy/track"
)

// SetPatience sets how long a subscriber may leave messages unread, and how long the proxy waits
// for a client that sends no more.
func (s *Server) SetPatience(stall, linger time.Duration) {
	s.shared.times = relayTimes{stall, linger}
}

// SetEntry sets how long the TLS handshake may take. It is called before Serve.
func (s *Server) SetEntry(d time.Duration) { s.shared.entry = d }

// SetNow sets the clock that measures a validity from its grant until its reply is sent. It is
// called before Serve.
func (s *Server) SetNow(now func() time.Time) { s.shared.now = now }

// SetQuiet sets how long a client must be idle before it is parked. It is called before Serve.
func (s *Server) SetQuiet(d time.Duration) { s.quiet = d }

// Silence treats all clients as if they had sent CLIENT REPLY OFF. It is called while the proxy
// waits for their next commands.
func (s *Server) Silence() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, session := range s.sessions {
		session.relay.replyMode = track.SilentFromNow
	}
}

// Parked returns the number of clients without a goroutine.
func (s *Server) Parked() (n int) {
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

// LeftAlone returns the number of clients that were asked to park and did not.
func (s *Server) LeftAlone() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, session := range s.sessions {
		session.mu.Lock()
		if !session.parked && !session.parkRequested && session.activity.StillQuiet() {
			n++
		}
		session.mu.Unlock()
	}
	return n
}

// Table returns the table of the options.
func (s *Server) Table() *commands.Table { return s.shared.opts.Table }

// Locks returns all locks that a goroutine could hold while it waits for a client's socket.
func (s *Server) Locks() (all []sync.Locker) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all = append(all, &s.mu)
	for _, session := range s.sessions {
		all = append(all, &session.mu, &session.line.mu)
	}
	return all
}
