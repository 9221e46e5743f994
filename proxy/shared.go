package proxy

import (
	"time"

	"redlock-proxy/proxy/track"
)

const (
	// stallTime limits how long a subscriber may leave messages unread, and how long a half-closed
	// client may read none of its last replies. It also limits the wait for commands that get no
	// reply.
	stallTime = time.Minute
	// lingerTime is the longest time that the proxy keeps a half-closed client while the upstream
	// does not answer.
	lingerTime = 5 * time.Second
)

// relayTimes holds stallTime and lingerTime; tests use shorter times.
type relayTimes struct{ stall, linger time.Duration }

// serverState holds the state that all clients of a server share.
type serverState struct {
	// These fields are set once.
	opts       Options
	proxyState *ProxyState
	times      relayTimes
	now        func() time.Time // time.Now, except in tests
	// handshakeTimeout holds the constant of this name, except in tests.
	handshakeTimeout time.Duration

	// lockServerTracker is the tracker that all clients of a lock server use. It is set once.
	lockServerTracker track.Tracker
}

// settings returns the current settings, which are immutable.
func (s *serverState) settings() *Settings { return s.proxyState.settings.Load() }

// countRedirect counts and logs a redirect to another server that was withheld from the client.
func (s *serverState) countRedirect(kind string) {
	s.proxyState.redirects.Add(1)
	s.proxyState.redirectLog.Warn(time.Now(),
		"upstream redirect withheld: the target of the redirect does not know the lock keys; the client got TRYAGAIN, or no message",
		"upstream", s.opts.Upstream.Name(), "what", kind)
}
