package proxy

import (
	"redlock-proxy/proxy/track"
	"sync/atomic"
	"time"
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

// traffic counts the bytes and commands relayed. Each counter has its own processor cache line.
type traffic struct {
	toUpstream atomic.Int64
	_          [56]byte
	toClients  atomic.Int64
	_          [56]byte
	commands   atomic.Int64
}

// shared holds the state that all clients of a server share.
type shared struct {
	// These fields are set once.
	opts  Options
	times relayTimes
	now   func() time.Time // time.Now, except in tests
	// handshakeTimeout holds the constant of this name, except in tests.
	handshakeTimeout time.Duration

	current    atomic.Pointer[Settings]
	input      budget
	unread     unreadReplies
	halfClosed halfClosedQueue

	// untracked is the tracker that all clients of a lock server use. It is set once.
	untracked track.Tracker

	lastID atomic.Int64
	parked atomic.Int64 // number of parked clients
	// redirects counts the redirects of the upstream that were withheld.
	redirects              atomic.Int64
	redirectLog, clientLog limitedLog
	traffic                traffic
}

// settings returns the current settings, which are immutable.
func (s *shared) settings() *Settings { return s.current.Load() }

// countRedirect counts and logs a redirect to another server that was withheld from the client.
func (s *shared) countRedirect(kind string) {
	s.redirects.Add(1)
	s.redirectLog.warn(time.Now(),
		"upstream redirect withheld: lock keys are not kept on the other server; the client got TRYAGAIN, or no message",
		"upstream", s.opts.Upstream.Name(), "what", kind)
}
