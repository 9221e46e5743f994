// Package directwrites detects lock keys that clients set at the upstream while the locks are at
// the masters. Clients of the proxies do not see such locks.
//
// While the locks are at the masters, the upstream reports changes of all keys that begin like lock
// keys. It reports them on one connection of the proxy's own (CLIENT TRACKING with BCAST, and a
// PREFIX for each glob). A report has names without a database. The globs decide which of the names
// are lock keys. If a reported key exists, a client has set it. Otherwise it has expired or was
// removed, as at the end of a move (link.go). CLIENT LIST suggests which client has set it
// (suspects.go).
//
// The proxy cannot watch an upstream that does not report changes: a Redis before version 6, or a
// Redis that denies the proxy a permission. The proxy also watches no glob that begins with a
// wildcard, because the upstream would report all changes of all keys. The log reports both cases.
package directwrites

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"redlock-proxy/commands/catalog/keys"
	"redlock-proxy/internal/pacing"
	"redlock-proxy/quorum/pushconn"
)

// locationCheckInterval is the time between two checks whether the locks are at the masters.
const locationCheckInterval = time.Second

// Options configures a Watcher. All fields are required.
type Options struct {
	// Upstream makes the proxy's own connections to the upstream.
	Upstream pushconn.Server
	// LockKeys holds the globs of the lock keys.
	LockKeys []string
	// IsAtMasters reports whether the locks are at the masters.
	IsAtMasters func() bool
	// OwnAddrs returns the local addresses of this proxy's connections to the upstream.
	OwnAddrs func() []string
	Logger   *slog.Logger
}

// Watcher detects lock keys at the upstream. It is safe for concurrent use.
type Watcher struct {
	opts     Options
	lockKeys keys.Patterns
	// prefixes holds the prefixes of lock keys. No prefix is a prefix of another prefix.
	prefixes    []string
	count       atomic.Int64
	state       atomic.Value // a WatchState
	lastWarning atomic.Pointer[Detection]
}

// WatchState names the state of the watch on the upstream.
type WatchState string

// The states.
const (
	// Off means that the Watcher does not watch the upstream, because the locks are not at the
	// masters, or because the upstream does not reply.
	Off WatchState = "off"
	// Tracking means that the upstream reports changes.
	Tracking WatchState = "tracking"
	// Impossible means that the Watcher cannot watch the upstream. The log has the reason.
	Impossible WatchState = "impossible"
)

// Detection describes a warning about lock keys at the upstream.
type Detection struct {
	At time.Time
	// Glob is the glob of lock-keys that matches the first of these keys.
	Glob string
	// Clients names the clients that may have set these keys.
	Clients []string
}

// New returns a Watcher. It detects nothing before Run.
func New(opts Options) *Watcher {
	s := &Watcher{opts: opts, lockKeys: keys.NewPatterns(opts.LockKeys...)}
	s.state.Store(Off)
	for _, glob := range opts.LockKeys {
		if prefix := keys.Prefix(glob); prefix != "" {
			s.prefixes = append(s.prefixes, prefix)
		} else {
			opts.Logger.Warn("a glob of lock-keys that begins with a wildcard cannot be watched at the upstream",
				"glob", glob)
		}
	}
	slices.Sort(s.prefixes)
	s.prefixes = slices.CompactFunc(s.prefixes, func(next, kept string) bool { return strings.HasPrefix(next, kept) })
	return s
}

// Count returns the number of detections of lock keys at the upstream; 0 for a nil Watcher.
func (s *Watcher) Count() int64 {
	if s == nil {
		return 0
	}
	return s.count.Load()
}

// State returns the state of the watch, and the last warning, or nil.
func (s *Watcher) State() (WatchState, *Detection) {
	return s.state.Load().(WatchState), s.lastWarning.Load()
}

// Run watches the upstream whenever the locks are at the masters, until ctx ends.
func (s *Watcher) Run(ctx context.Context) {
	wanted := func() bool { return ctx.Err() == nil && s.opts.IsAtMasters() }
	for ; ctx.Err() == nil; _ = pacing.Sleep(ctx, locationCheckInterval) {
		switch {
		case !wanted():
			s.state.Store(Off)
		case len(s.prefixes) == 0:
			s.state.Store(Impossible)
		default:
			pushconn.Reconnector{
				Server: s.opts.Upstream, Rand: rand.Float64, Wanted: wanted,
				Connect: func() error { return s.watchOnce(ctx) }, OnEnd: s.handleConnectionEnd,
			}.Run(ctx)
		}
	}
}

// handleConnectionEnd updates the state after a connection. It logs once if the upstream refuses a
// required command.
func (s *Watcher) handleConnectionEnd(cause error) {
	if !pushconn.IsRefusal(cause) {
		s.state.Store(Off)
	} else if s.state.Swap(Impossible) != Impossible {
		s.opts.Logger.Warn("lock keys at the upstream are not watched: the upstream refuses a required command",
			"cause", cause)
	}
}
