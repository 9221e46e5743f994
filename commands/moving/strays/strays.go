package strays

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"redlock-proxy/commands/catalog/keys"
	"redlock-proxy/quorum"
	"redlock-proxy/quorum/feed"
	"redlock-proxy/quorum/place"
)

const (
	// patience is how long the upstream may take for an answer.
	patience = 2 * time.Second
	// placePause is the wait between two looks where the locks are, if nothing is heard of that.
	placePause = time.Second
	// complaintPause is the least time between two complaints in the log.
	complaintPause = 10 * time.Second
	// maxGone bounds how many keys are remembered of those that were seen to be gone.
	maxGone = 4096
)

// Places says where the locks are: a *quorum.Cluster, whose methods document the rest.
type Places interface {
	Placed() (at quorum.Placed, known bool)
	Turned() <-chan struct{}
}

// Options are what is needed to watch an upstream. All must be set.
type Options struct {
	// Upstream makes connections of the proxy's own.
	Upstream feed.Server
	// LockKeys are the globs of the keys that are locks.
	LockKeys []string
	Places   Places
	// Own are this proxy's ends of its connections to the upstream.
	Own    func() []string
	Logger *slog.Logger
}

// Strays are the lock keys that were noticed at the upstream. They are safe for concurrent use.
type Strays struct {
	opts     Options
	lockKeys keys.Patterns
	// prefixes are what lock keys begin with, of which none begins with another one; unwatched are the globs that begin with a wildcard.
	prefixes, unwatched []string

	count atomic.Int64

	mu    sync.Mutex
	watch Watch
	last  *Sighting
	// logged are the causes for which something is not watched, complained is when the last complaint of a sighting was.
	logged     map[string]bool
	complained time.Time
}

// Watch is how the upstream is watched.
type Watch string

// The ways.
const (
	// Off: it is not, since the locks are not at the masters, or it does not answer.
	Off Watch = "off"
	// Tracking: it reports changes.
	Tracking Watch = "tracking"
	// Looking: it is looked through every 5 s.
	Looking Watch = "looking"
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

// New makes Strays. They notice nothing before Run.
func New(opts Options) *Strays {
	s := &Strays{opts: opts, lockKeys: keys.NewPatterns(opts.LockKeys...), watch: Off, logged: map[string]bool{}}
	for _, glob := range opts.LockKeys {
		if prefix := keys.Prefix(glob); prefix == "" {
			s.unwatched = append(s.unwatched, glob)
		} else {
			s.prefixes = append(s.prefixes, prefix)
		}
	}
	slices.Sort(s.prefixes)
	s.prefixes = slices.CompactFunc(s.prefixes, func(next, kept string) bool { return strings.HasPrefix(next, kept) })
	return s
}

// Count is how often a lock key was noticed at the upstream. Where there are none it is called of nil.
func (s *Strays) Count() int64 {
	if s == nil {
		return 0
	}
	return s.count.Load()
}

// State is how the upstream is watched now, and the last complaint, or nil.
func (s *Strays) State() (Watch, *Sighting) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.watch, s.last
}

// Run watches the upstream whenever the locks are at the masters, until ctx ends.
func (s *Strays) Run(ctx context.Context) {
	for ctx.Err() == nil {
		turned := s.opts.Places.Turned()
		if !s.atMasters() {
			s.rest(ctx, turned)
			continue
		}
		if len(s.unwatched) > 0 {
			s.cannot(`lock-keys that begin with a wildcard cannot be watched for at the upstream: `+strings.Join(s.unwatched, " "), nil)
		}
		if len(s.prefixes) == 0 {
			s.set(Impossible)
			s.rest(ctx, turned)
			continue
		}
		s.stay(ctx)
		s.set(Off)
	}
}

// stay watches the upstream for as long as the locks are at the masters.
func (s *Strays) stay(ctx context.Context) {
	here, leave := context.WithCancel(ctx)
	var waits sync.WaitGroup
	waits.Go(func() {
		defer leave()
		for here.Err() == nil {
			turned := s.opts.Places.Turned()
			if !s.atMasters() {
				return
			}
			s.rest(here, turned)
		}
	})
	defer waits.Wait()
	defer leave()
	feed.Keeper{
		Server: s.opts.Upstream, Rand: rand.Float64,
		Wanted: func() bool { return here.Err() == nil },
		Once:   func() error { return s.once(here) },
		Ended: func(err error) {
			switch {
			case here.Err() != nil:
			case feed.IsRefusal(err):
				s.set(Impossible)
				s.cannot("lock keys at the upstream are not watched for: it refuses what that needs", err)
			default:
				s.set(Off)
			}
		},
	}.Keep(here)
}

// atMasters reports whether the locks are there.
func (s *Strays) atMasters() bool {
	at, known := s.opts.Places.Placed()
	return known && at.Place == place.Masters
}

// isLock reports whether a key is a lock key, and not the record of where the locks are.
func (s *Strays) isLock(name string) bool {
	return name != place.RecordKey && s.lockKeys.Match([]byte(name))
}

// rest waits until the locks may be elsewhere.
func (s *Strays) rest(ctx context.Context, turned <-chan struct{}) {
	select {
	case <-ctx.Done():
	case <-turned:
	case <-time.After(placePause): // the first masters tell without a turn
	}
}

func (s *Strays) set(w Watch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watch = w
}

// cannot logs, once, what is not watched for.
func (s *Strays) cannot(what string, cause error) {
	s.mu.Lock()
	logged := s.logged[what]
	s.logged[what] = true
	s.mu.Unlock()
	switch {
	case logged:
	case cause != nil:
		s.opts.Logger.Warn(what, "cause", cause)
	default:
		s.opts.Logger.Warn(what)
	}
}

// found counts lock keys that somebody put there, and complains, but not too often.
func (s *Strays) found(names []string, who func() []string) {
	if len(names) == 0 || !s.atMasters() {
		return
	}
	total := s.count.Add(int64(len(names)))
	now := time.Now()
	s.mu.Lock()
	quiet := now.Sub(s.complained) < complaintPause
	if !quiet {
		s.complained = now
	}
	s.mu.Unlock()
	if quiet {
		return
	}
	one := &Sighting{At: now, Clients: who()}
	for _, glob := range s.opts.LockKeys {
		if keys.NewPatterns(glob).Match([]byte(names[0])) {
			one.Glob = glob
			break
		}
	}
	s.mu.Lock()
	s.last = one
	s.mu.Unlock()
	s.opts.Logger.Warn("lock keys are used at the upstream directly: the locks are at the masters, and nobody there knows of these",
		"lock_keys", one.Glob, "key", names[0], "seen", total, "clients", strings.Join(one.Clients, ", "))
}
