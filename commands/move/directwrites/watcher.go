// Package directwrites notices lock keys at the upstream while the locks are at the masters:
// somebody locks there directly, and whoever locks through a proxy knows nothing of it.
//
// As long as the locks are at the masters the upstream reports changes of all keys that begin as
// lock keys do (CLIENT TRACKING with BCAST and a PREFIX for each glob), on one connection of the
// proxy's own. What is reported are names, of no database: the globs decide which are lock keys.
// One that exists then was put there by somebody; one that does not was removed there, as a move
// does at its end, or is over (link.go). Who put it there is a guess by CLIENT LIST (who.go). Where
// the upstream does not report changes (before Redis 6, or for want of a right) it is not watched,
// nor is it for a glob that begins with a wildcard: all changes of all keys would be reported. The
// log says so.
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
	"redlock-proxy/quorum/feed"
)

// placePause is the wait between two looks where the locks are, while they are not at the masters.
const placePause = time.Second

// Options are what is needed to watch an upstream. All must be set.
type Options struct {
	// Upstream makes connections of the proxy's own.
	Upstream feed.Server
	// LockKeys are the globs of the keys that are locks.
	LockKeys []string
	// AtMasters reports whether the locks are there.
	AtMasters func() bool
	// Own are this proxy's ends of its connections to the upstream.
	Own    func() []string
	Logger *slog.Logger
}

// Watcher notices lock keys at the upstream. It is safe for concurrent use.
type Watcher struct {
	opts     Options
	lockKeys keys.Patterns
	// prefixes are what lock keys begin with, of which none begins with another one.
	prefixes []string
	count    atomic.Int64
	watch    atomic.Value // a Watch
	last     atomic.Pointer[Sighting]
}

// Watch is how the upstream is watched.
type Watch string

// The ways.
const (
	// Off: it is not, since the locks are not at the masters, or it does not answer.
	Off Watch = "off"
	// Tracking: it reports changes.
	Tracking Watch = "tracking"
	// Impossible: it is not; the log says why.
	Impossible Watch = "impossible"
)

// Sighting is the last complaint.
type Sighting struct {
	At time.Time
	// Glob is that of lock-keys which matches the key.
	Glob string
	// Clients may have been the ones.
	Clients []string
}

// New makes a Watcher. It notices nothing before Run.
func New(opts Options) *Watcher {
	s := &Watcher{opts: opts, lockKeys: keys.NewPatterns(opts.LockKeys...)}
	s.watch.Store(Off)
	for _, glob := range opts.LockKeys {
		if prefix := keys.Prefix(glob); prefix != "" {
			s.prefixes = append(s.prefixes, prefix)
		} else {
			opts.Logger.Warn("lock-keys that begin with a wildcard cannot be watched for at the upstream", "glob", glob)
		}
	}
	slices.Sort(s.prefixes)
	s.prefixes = slices.CompactFunc(s.prefixes, func(next, kept string) bool { return strings.HasPrefix(next, kept) })
	return s
}

// Count is how often a lock key was noticed at the upstream. Where there are none it is called of
// nil.
func (s *Watcher) Count() int64 {
	if s == nil {
		return 0
	}
	return s.count.Load()
}

// State is how the upstream is watched now, and the last complaint, or nil.
func (s *Watcher) State() (Watch, *Sighting) { return s.watch.Load().(Watch), s.last.Load() }

// Run watches the upstream whenever the locks are at the masters, until ctx ends.
func (s *Watcher) Run(ctx context.Context) {
	wanted := func() bool { return ctx.Err() == nil && s.opts.AtMasters() }
	for ; ctx.Err() == nil; _ = pacing.Sleep(ctx, placePause) {
		switch {
		case !wanted():
			s.watch.Store(Off)
		case len(s.prefixes) == 0:
			s.watch.Store(Impossible)
		default:
			feed.Keeper{Server: s.opts.Upstream, Rand: rand.Float64, Wanted: wanted, Once: func() error { return s.once(ctx) }, Ended: s.ended}.Keep(ctx)
		}
	}
}

// ended says why a connection has, and, once, that there will be none.
func (s *Watcher) ended(cause error) {
	if !feed.IsRefusal(cause) {
		s.watch.Store(Off)
	} else if s.watch.Swap(Impossible) != Impossible {
		s.opts.Logger.Warn("lock keys at the upstream are not watched for: it refuses what that needs", "cause", cause)
	}
}
