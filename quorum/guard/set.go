package guard

import (
	"cmp"
	"log/slog"
	"slices"
	"time"

	"redlock-proxy/quorum/guard/marker"
	"redlock-proxy/quorum/guard/reconfig"
	"redlock-proxy/quorum/guard/script"
	"redlock-proxy/quorum/place"
	"redlock-proxy/quorum/vote"
)

// Options say how masters are guarded.
type Options struct {
	// MaxTTL is what is taken for the longest TTL in use where no record of it is known,
	// and for locks without expiry.
	MaxTTL time.Duration
	// FreshStart lets masters vote if, at the start, all of them are reached, empty, and
	// unmarked.
	FreshStart bool
	// Vouched is an operator's override of the longest TTL of any lock that these masters may have
	// forgotten, or nil. It is left on the masters in quarantine once all masters have been
	// reached for FreshStartTime, unless one of them knows of a longer one.
	Vouched *time.Duration
	// Forced has it count at once, whatever masters or proxies know of.
	Forced bool
	// Off lets all votes count: the set only makes itself known to other proxies.
	Off bool
	// Settings are what decides which key is which lock: lines, each of a name and a value. A proxy
	// whose settings are not those of the first one on the masters has no votes. Empty: it grants
	// no locks, so any will do, of the same masters.
	Settings string
	// Joins is the set of masters that these are, where it was decided that they follow others;
	// nil: their markers show. Follows is that of this proxy's which they follow; nil: none.
	Joins   *reconfig.Era
	Follows *Set
	// Record is what the upstream keeps of where the locks are; nil: they cannot be moved.
	Record place.Record
	// ID is the proxy's, of which NewID makes one.
	ID string
	// Name is what operators call it. The default is nothing.
	Name func() string
	// Moves returns the era of the masters in which this proxy moves the locks; zero: in none.
	Moves func() int
	// SinceBoot is how long the machine has been up, with the time that it was suspended.
	// The default asks the system; zero: not known.
	SinceBoot func() time.Duration
	Logger    *slog.Logger
}

// NewID makes an ID by which a proxy makes itself known on its masters.
func NewID() string { return newID(proxyProtocol) }

// NewSet guards these masters.
func NewSet(opts Options, masters []Master) *Set {
	s := &Set{
		longest: newLongest(len(masters), opts.MaxTTL), fresh: newFreshStart(len(masters), opts.FreshStart),
		override: newOverride(len(masters), opts.Vouched, opts.Forced),
		log:      opts.Logger, off: opts.Off, boot: opts.SinceBoot, moves: opts.Moves, id: cmp.Or(opts.ID, NewID()), name: opts.Name, nonce: marker.NewNonce,
		eras:   newEras(masters, opts.Joins, time.Now()),
		warned: map[string]bool{},
	}
	if s.record = opts.Record; s.record != nil && opts.Joins == nil {
		s.misplaced.Store(&QuarantineError{Why: Unproven}) // until it was compared
	}
	if s.boot == nil {
		s.boot = sinceBoot
	}
	if s.name == nil {
		s.name = func() string { return "" }
	}
	if s.moves == nil {
		s.moves = func() int { return 0 }
	}
	if opts.Follows != nil {
		s.before = opts.Follows.Except(s.eras.names)
		s.eras.follow(opts.Follows.eras)
	}
	s.rules = newAgreement(opts.Settings, s.eras.names, s.eras.isNumbered, s.eras.isPlaced)
	for i, m := range masters {
		s.guards = append(s.guards, newGuard(s, i, m))
	}
	return s
}

// Guard is that of master number i.
func (s *Set) Guard(i int) *Guard { return s.guards[i] }

// MaxTTL is what is taken for the longest TTL in use where no record of it is known.
func (s *Set) MaxTTL() time.Duration { return s.longest.Limit() }

// RaiseMaxTTL has a longer one be taken for it from now on. It is never lowered: what was granted
// before may still be held.
func (s *Set) RaiseMaxTTL(ttl time.Duration) { s.longest.RaiseLimit(ttl) }

// Clock is the median of the masters' clocks now, since 1970, or this machine's wall
// clock where those of a majority are not known.
func (s *Set) Clock(now time.Time) time.Duration {
	clocks := make([]time.Duration, 0, len(s.guards))
	for _, g := range s.guards {
		g.mu.Lock()
		offset, known := g.clock.Offset(now)
		g.mu.Unlock()
		if known {
			clocks = append(clocks, time.Duration(now.UnixNano())+offset)
		}
	}
	if len(clocks) < vote.Majority(len(s.guards)) {
		return time.Duration(now.UnixNano())
	}
	slices.Sort(clocks)
	return clocks[(len(clocks)-1)/2]
}

// FenceAhead names, once, a master of which the fence counter of a key is so far ahead that it is
// ignored.
func (s *Set) FenceAhead(master, key string) {
	s.warnOf(master, "a fence counter far ahead of the other masters' and of their clocks is ignored", "key", key)
}

// warnOf logs something about a master, once.
func (s *Set) warnOf(master, text string, more ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if what := text + master; !s.warned[what] {
		s.warned[what] = true
		s.log.Warn(text, append([]any{"master", master}, more...)...)
	}
}

// IsRecorded reports whether a TTL, as the longest in use, is recorded on a majority already.
// Before one that does not is first used it must be recorded: see Recording and Recorded.
func (s *Set) IsRecorded(ttl time.Duration) bool {
	return s.longest.IsRecorded(ttl)
}

// Recording is what has a master record a TTL, and the TTL that is recorded: it is rounded
// up, so that this is rare.
func (s *Set) Recording(ttl time.Duration) (command []any, recorded time.Duration) {
	recorded = s.longest.RoundedUp(ttl)
	return []any{"EVAL", script.RaiseLongest.Source, 0, marker.Millis(recorded)}, recorded
}

// Recorded notes that a TTL is now recorded on a majority.
func (s *Set) Recorded(ttl time.Duration) { s.longest.Made(ttl) }

func newGuard(s *Set, index int, m Master) *Guard {
	return &Guard{
		set: s, index: index, Master: m, log: s.log, left: agesLeft{},
		cause:    &QuarantineError{Why: Unproven},
		enrolled: map[int]bool{}, doubtful: map[int]bool{}, ages: ages{}, canaries: map[int]canary{},
	}
}
