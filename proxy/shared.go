package proxy

import (
	"redlock-proxy/proxy/track"
	"sync/atomic"
	"time"
)

const (
	// stallTime is how long a subscriber may leave what it gets unread, and how long
	// the last replies for a client that sends no more may stop to flow.
	stallTime = time.Minute
	// farewellTime is how long a client that sends no more is taken to be still there
	// while the upstream does not answer.
	farewellTime = 5 * time.Second
)

// relayTimes are stallTime and farewellTime, but in tests.
type relayTimes struct{ stall, farewell time.Duration }

// traffic are the bytes and the commands relayed. Each count has a line of the processors' caches
// to itself.
type traffic struct {
	toUpstream atomic.Int64
	_          [56]byte
	toClients  atomic.Int64
	_          [56]byte
	commands   atomic.Int64
}

// shared is what all clients of a server share.
type shared struct {
	// Set once.
	opts  Options
	times relayTimes
	now   func() time.Time // time.Now, but in tests
	// entry bounds the time until a client is in, but in tests entryTime.
	entry time.Duration

	current atomic.Pointer[Settings]
	input   budget
	unread  unread
	leavers leavers

	// untracked is the state of connections that never are: those of clients without an upstream.
	// It is set once.
	untracked track.Tracker

	lastID atomic.Int64
	parked atomic.Int64 // the clients that are parked
	// detours are the replies that led elsewhere, and were turned.
	detours          atomic.Int64
	detoured, turned complaints
	traffic          traffic
}

// settings are those that hold now. They are not changed.
func (s *shared) settings() *Settings { return s.current.Load() }

// turn notes that the upstream has sent something that leads to another server, which its client
// does not get.
func (s *shared) turn(what string) {
	s.detours.Add(1)
	s.detoured.warn(time.Now(), "the upstream led a client to another server, where lock keys are not kept: its client got an error to try again, or no message",
		"upstream", s.opts.Upstream.Name(), "what", what)
}
