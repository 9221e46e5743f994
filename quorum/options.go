package quorum

import (
	"cmp"
	"crypto/tls"
	"log/slog"
	mathrand "math/rand/v2"
	"time"

	"redlock-proxy/quorum/place"
	"redlock-proxy/quorum/vote"
)

// DefaultMasterTimeout is how long a master may take to answer when Options
// does not say.
const DefaultMasterTimeout = 250 * time.Millisecond

// Options describe a cluster. Only Masters must be set.
type Options struct {
	// Masters are the URLs of the independent masters (redis, rediss or unix),
	// without a database number.
	Masters []string
	// TLS adds to the settings of each connection to a rediss:// server, before it is made: what to
	// show it, and whom to believe. The default adds nothing.
	TLS func(*tls.Config)
	// MasterTimeout bounds one batch to one master, dialling included. The default
	// is DefaultMasterTimeout.
	MasterTimeout time.Duration
	// MaxTTL is what is taken for the longest TTL in use where no record of it is known,
	// and for locks without expiry. The default is DefaultMaxTTL.
	MaxTTL time.Duration
	// FreshStart lets masters vote if, at the start, all of them are reached, empty, and
	// unmarked, and stay so for FreshStartTime. Otherwise they wait until the longest TTL is over.
	FreshStart bool
	// Vouched is an operator's override of the longest TTL of any lock that masters in
	// quarantine may have forgotten, or nil; see Vouch.
	Vouched *time.Duration
	// Forced has it count whatever masters or proxies know of.
	Forced bool
	// Name is what operators call this proxy. The default is nothing.
	Name func() string
	// Tagged is set where keys may have a Tag.
	Tagged bool
	// Settings are what decides which key is which lock, as lines of a name and a value. A proxy
	// has no votes where a majority of the masters is in use by proxies with other ones; see
	// Impose. Empty: it grants no locks, so any will do, of the same masters.
	Settings string
	// FromUpstream: the locks are at the upstream, as long as the masters never decided where they
	// are.
	FromUpstream bool
	// Record is kept at the upstream of where the locks are; nil: they cannot be moved.
	Record place.Record
	// Unguarded lets masters vote whatever they may have forgotten, as all Redlock
	// libraries do.
	Unguarded bool
	// OnMastersChanged is called when other proxies have changed the masters, to those with these
	// addresses, as far as is known, until ChangeMasters has this cluster follow. It may take its
	// time.
	OnMastersChanged func(masters []string)
	// Logger logs when a master goes down or comes up. The default is silence.
	Logger *slog.Logger
	// Rand gives numbers in [0, 1) for the jitter of pauses. The default is
	// math/rand/v2.
	Rand func() float64

	// sinceBoot is guard.Options.SinceBoot.
	sinceBoot func() time.Duration
}

func (o *Options) setDefaults() {
	o.MasterTimeout = cmp.Or(o.MasterTimeout, DefaultMasterTimeout)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if o.Rand == nil {
		o.Rand = mathrand.Float64
	}
	o.MaxTTL = cmp.Or(o.MaxTTL, DefaultMaxTTL)
}

// Majority is the least number of n masters of which any two such sets share one:
// ⌊n/2⌋+1.
func Majority(n int) int { return vote.Majority(n) }

// DefaultMaxTTL is the longest TTL that locks are taken to have where Options does not
// say.
const DefaultMaxTTL = 24 * time.Hour
