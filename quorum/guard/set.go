package guard

import (
	"cmp"
	"log/slog"
	"slices"
	"time"

	"redlock-proxy/quorum/guard/marker"
	"redlock-proxy/quorum/guard/reconfig"
	"redlock-proxy/quorum/guard/script"
	"redlock-proxy/quorum/location"
	"redlock-proxy/quorum/vote"
)

// Options configures a Set.
type Options struct {
	// MaxTTL is the TTL that the set assumes for locks without expiry, and as the longest TTL in
	// use if it knows no record.
	MaxTTL time.Duration
	// FreshStart lets masters vote if all of them are connected, empty, and unmarked at the start.
	FreshStart bool
	// Override is an operator's statement of the longest TTL of any lock that these masters may
	// have lost, or nil. Once all masters have been connected for FreshStartTime, the set writes a
	// bound to the record of each master in quarantine. The bound is the larger of Override and the
	// longest TTL that the masters know.
	Override *time.Duration
	// Forced gives the override precedence over the knowledge of masters and proxies, at once.
	Forced bool
	// Off disables the guard. Then the set only announces the proxy to other proxies, and compares
	// the rules on the masters with its own.
	Off bool
	// Settings holds the settings that decide which keys are locks, as lines of a name and a value.
	// A proxy has no votes if proxies with different settings use a majority of the masters.
	// Settings is empty if the proxy grants no locks; then all settings fit.
	Settings string
	// JoinedEra is the era of these masters if a former set decided that they follow; nil if only
	// their markers show the era. FormerSet is this proxy's former set; nil if there is none.
	JoinedEra *reconfig.Era
	FormerSet *Set
	// Record is the upstream's record of the location of the locks; nil if the locks cannot be
	// moved.
	Record location.Record
	// ID is the proxy's ID, made by NewID.
	ID string
	// Name returns the operators' name for the proxy. The default is empty.
	Name func() string
	// MoveEra returns the era in which this proxy moves the locks; zero if it moves none. It is
	// required.
	MoveEra func() int
	// InUse reports whether the proxy uses this set, and not a later one. It is required.
	InUse func() bool
	// TimeSinceBoot returns how long the machine has been up, including the time for which it was
	// suspended; zero if unknown. The default asks the system.
	TimeSinceBoot func() time.Duration
	Logger        *slog.Logger
}

// NewID returns a new ID by which a proxy announces itself on its masters.
func NewID() string { return newID(proxyProtocol) }

// NewSet returns a set that guards these masters.
func NewSet(opts Options, masters []Master) *Set {
	formerSet := opts.FormerSet
	opts.FormerSet = nil // otherwise all former sets would stay in memory
	opts.ID = cmp.Or(opts.ID, NewID())
	if opts.TimeSinceBoot == nil {
		opts.TimeSinceBoot = timeSinceBoot
	}
	if opts.Name == nil {
		opts.Name = func() string { return "" }
	}
	s := &Set{
		opts: opts, freshStart: newFreshStart(len(masters), opts.FreshStart),
		maxTTLInUse: newMaxTTLTracker(len(masters), opts.MaxTTL), override: newOverride(len(masters), opts.Override, opts.Forced),
		eras: newEraTracker(masters, opts.JoinedEra, time.Now()), loggedWarnings: map[string]bool{},
	}
	if opts.Record != nil && opts.JoinedEra == nil {
		// This is the cause until CompareRecord has compared the record.
		s.locationConflict.Store(&QuarantineError{Cause: Unverified})
	}
	if formerSet != nil {
		s.formerGuards = slices.DeleteFunc(slices.Clone(formerSet.guards), func(g *Guard) bool {
			return slices.Contains(s.eras.names, g.Name)
		})
		s.eras.setFormerTracker(formerSet.eras)
	}
	s.rules = newRulesTracker(opts.Settings, s.eras.names, s.eras.showsMasters, s.eras.showsLocation)
	for i, m := range masters {
		s.guards = append(s.guards, newGuard(s, i, m))
	}
	return s
}

// Guard returns the guard of a master.
func (s *Set) Guard(i int) *Guard { return s.guards[i] }

// MaxTTL returns the longest TTL that the set assumes to be in use if it knows no record.
func (s *Set) MaxTTL() time.Duration { return s.maxTTLInUse.Limit() }

// RaiseMaxTTL raises MaxTTL. MaxTTL never falls, because clients may still hold earlier locks.
func (s *Set) RaiseMaxTTL(ttl time.Duration) { s.maxTTLInUse.RaiseLimit(ttl) }

// Clock returns the median of the masters' clocks now, since 1970. If fewer than a majority of the
// clocks are known, it returns this machine's wall clock.
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

// WarnFenceAhead logs, once for each master, that this proxy ignores the master's fence counter of
// a key, because it is far ahead.
func (s *Set) WarnFenceAhead(master, key string) {
	s.warnOnce(master, "ignored a fence counter: it is far ahead of the other masters' counters and clocks",
		"master", master, "key", key)
}

// warnOnce logs a warning once for each subject, such as a master.
func (s *Set) warnOnce(subject, text string, attrs ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if warning := text + subject; !s.loggedWarnings[warning] {
		s.loggedWarnings[warning] = true
		s.opts.Logger.Warn(text, attrs...)
	}
}

// IsRecorded reports whether a majority has recorded a TTL already. A longer TTL must be recorded
// before its first use, with RecordTTLCommand and NoteTTLRecorded.
func (s *Set) IsRecorded(ttl time.Duration) bool {
	return s.maxTTLInUse.IsRecorded(ttl)
}

// RecordTTLCommand returns the command that records a TTL on a master, and the recorded TTL, which
// is rounded up so that records are rare.
func (s *Set) RecordTTLCommand(ttl time.Duration) (command []any, recordedTTL time.Duration) {
	recordedTTL = s.maxTTLInUse.RoundUp(ttl)
	return []any{"EVAL", script.RaiseLongestTTL.Source, 0, marker.FormatMillis(recordedTTL)}, recordedTTL
}

// NoteTTLRecorded notes that a majority has recorded a TTL.
func (s *Set) NoteTTLRecorded(ttl time.Duration) { s.maxTTLInUse.NoteRecorded(ttl) }

func newGuard(s *Set, index int, m Master) *Guard {
	return &Guard{
		set: s, index: index, Master: m, log: s.opts.Logger, published: publishedSeqs{},
		cause:       &QuarantineError{Cause: Unverified},
		enrolledDBs: map[int]bool{}, suspectDBs: map[int]bool{}, seqs: writeSeqs{}, canaries: map[int]canary{},
	}
}
