package proxy

import (
	"cmp"
	"log/slog"
	"sync/atomic"

	"redlock-proxy/internal/limitedlog"
)

const defaultMaxClients = 10000

// traffic counts the bytes and commands relayed. Each counter has its own processor cache line.
type traffic struct {
	bytesToUpstream atomic.Int64
	_               [56]byte
	bytesToClients  atomic.Int64
	_               [56]byte
	commands        atomic.Int64
}

// ProxyState is the state that the servers of one proxy share: settings, limits and counters.
type ProxyState struct {
	settings      atomic.Pointer[Settings]
	input         budget
	unreadReplies unreadReplies
	halfClosed    halfClosedQueue

	clients        atomic.Int64 // number of connected clients
	acceptErrs     acceptErrors
	refusedClients atomic.Int64 // counts the clients refused because of MaxClients

	lastID        atomic.Int64
	parkedClients atomic.Int64 // number of parked clients
	// redirects counts the redirects of the upstream that were withheld.
	redirects              atomic.Int64
	redirectLog, clientLog limitedlog.Log
	traffic                traffic
}

// newProxyState returns the state for servers with these settings. sharedBytes returns the memory
// of the data that clients share, in bytes.
func newProxyState(settings Settings, sharedBytes func() int64, log *slog.Logger) *ProxyState {
	c := &ProxyState{}
	c.halfClosed.turn = make(chan struct{}, 1)
	c.input.sharedBytes = sharedBytes
	c.acceptErrs.log, c.clientLog.Logger, c.redirectLog.Logger = log, log, log
	c.apply(settings)
	return c
}

func (c *ProxyState) apply(settings Settings) {
	settings.MaxClients = cmp.Or(settings.MaxClients, defaultMaxClients)
	c.input.limit.Store(cmp.Or(settings.MaxInputMemory, defaultMaxInput))
	c.unreadReplies.setLimit(cmp.Or(settings.MaxUnreadMemory, defaultMaxUnread))
	c.settings.Store(&settings)
}
