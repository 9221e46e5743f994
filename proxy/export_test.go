package proxy

import (
	"sync"
	"time"

	"redlock-proxy/commands"
	"redlock-proxy/proxy/track"
)

// SetPatience shortens how long a subscriber may leave what it gets unread, and how
// long a client that sends no more is waited for.
func (s *Server) SetPatience(stall, farewell time.Duration) {
	s.shared.times = relayTimes{stall, farewell}
}

// SetEntry changes how long a client may take until TLS is spoken. It is called before Serve.
func (s *Server) SetEntry(d time.Duration) { s.shared.entry = d }

// SetNow changes the clock by which a validity is measured from its grant until it leaves. It is
// called before Serve.
func (s *Server) SetNow(now func() time.Time) { s.shared.now = now }

// SetQuiet changes for how long nothing may happen before a client is parked. It is
// called before Serve.
func (s *Server) SetQuiet(d time.Duration) { s.quiet = d }

// Silence has all clients count as silenced by CLIENT REPLY OFF. It is called while the proxy waits
// for their next commands.
func (s *Server) Silence() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, session := range s.sessions {
		session.relay.silence = track.SilentFromNow
	}
}

// Parked is the number of clients without a goroutine.
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

// LeftAlone is the number of clients that were asked to rest and did not.
func (s *Server) LeftAlone() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, session := range s.sessions {
		session.mu.Lock()
		if !session.parked && !session.asked && session.activity.StillQuiet() {
			n++
		}
		session.mu.Unlock()
	}
	return n
}

// Table is that of the options.
func (s *Server) Table() *commands.Table { return s.shared.opts.Table }

// Locks are all that a client's socket could be waited for with.
func (s *Server) Locks() (all []sync.Locker) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all = append(all, &s.mu)
	for _, session := range s.sessions {
		all = append(all, &session.mu, &session.line.mu)
	}
	return all
}
