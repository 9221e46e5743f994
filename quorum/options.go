package quorum

import (
	"cmp"
	"log/slog"
	mathrand "math/rand/v2"
	"time"

	"redlock-proxy/quorum/location"
	"redlock-proxy/quorum/master"
	"redlock-proxy/quorum/vote"
)

// DefaultMasterTimeout is the time limit for a master's reply if Options sets none.
const DefaultMasterTimeout = 250 * time.Millisecond

// Options describes a cluster. Only Masters must be set.
type Options struct {
	// Masters holds the URLs of the independent masters (redis, rediss or unix), without a database
	// number.
	Masters []string
	// Access holds the settings for the connections to each master. The default of its Timeout is
	// DefaultMasterTimeout.
	Access master.Access
	// MaxTTL is the TTL that the cluster assumes for locks without expiry, and as the longest TTL
	// in use if it finds no record of that TTL. The default is DefaultMaxTTL.
	MaxTTL time.Duration
	// FreshStart lets masters vote if all of them are connected, empty, and unmarked at the start,
	// and stay so for FreshStartTime. Otherwise empty masters wait until the longest TTL has
	// passed.
	FreshStart bool
	// Override, unless it is nil, is an operator's statement of the longest TTL of any lock that
	// masters in quarantine may have lost; see StoreOverride.
	Override *time.Duration
	// Forced gives the override precedence over a longer TTL that a master or a proxy knows.
	Forced bool
	// Name returns the operators' name for this proxy. The default is empty.
	Name func() string
	// Tagged is set if keys may have a Tag.
	Tagged bool
	// Settings holds the settings that decide which keys are locks, as lines of a name and a value.
	// A proxy has no votes if proxies with different settings use a majority of the masters; see
	// inspect.ReplaceSettings. Empty means that this proxy grants no locks: then all settings fit.
	Settings string
	// FromUpstream is set if the locks are at the upstream until the masters decide on their
	// location.
	FromUpstream bool
	// Record is the upstream's record of the location of the locks; nil if the locks cannot be
	// moved.
	Record location.Record
	// Unguarded lets masters vote whatever data they may have lost, as all Redlock libraries do.
	Unguarded bool
	// OnMastersChanged gets the new masters' addresses, as far as this proxy knows them, when other
	// proxies have changed the masters. The cluster calls OnMastersChanged again until
	// ChangeMasters has followed. OnMastersChanged may wait.
	OnMastersChanged func(masters []string)
	// Logger receives the log messages of the cluster, for example when a master goes down or comes
	// up. The default discards them.
	Logger *slog.Logger
	// Rand returns numbers in [0, 1) for the jitter of pauses. The default is math/rand/v2.
	Rand func() float64

	// timeSinceBoot sets guard.Options.TimeSinceBoot.
	timeSinceBoot func() time.Duration
}

func (o *Options) setDefaults() {
	o.Access.Timeout = cmp.Or(o.Access.Timeout, DefaultMasterTimeout)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if o.Rand == nil {
		o.Rand = mathrand.Float64
	}
	o.MaxTTL = cmp.Or(o.MaxTTL, DefaultMaxTTL)
}

// Majority returns the least number of n masters such that any two sets of this size share a
// master: ⌊n/2⌋+1.
func Majority(n int) int { return vote.Majority(n) }

// DefaultMaxTTL is the assumed longest TTL if Options sets none.
const DefaultMaxTTL = 24 * time.Hour
