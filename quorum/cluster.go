package quorum

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	mathrand "math/rand/v2"
	"net/url"
	"slices"
	"sync"
	"time"
)

// DefaultMasterTimeout is how long a master may take to answer when Options
// does not say.
const DefaultMasterTimeout = 100 * time.Millisecond

// Options describe a cluster. Only Masters must be set.
type Options struct {
	// Masters are the URLs of the independent masters (redis, rediss or unix),
	// without a database number.
	Masters []string
	// Legacy is the URL of the single Redis that held the locks until now, if some
	// clients still lock there: every lock then needs its agreement, too. It is not
	// counted among the masters.
	Legacy string
	// MasterTimeout bounds one batch to one master, dialling included. The default
	// is DefaultMasterTimeout.
	MasterTimeout time.Duration
	// MaxTTL is what is taken for the longest TTL in use where no record of it is known,
	// and for locks without expiry. The default is DefaultMaxTTL.
	MaxTTL time.Duration
	// FreshStart lets masters vote at once if, at the start, all of them are reached,
	// empty, and unmarked. Otherwise they wait until the longest TTL is over.
	FreshStart bool
	// Unguarded lets masters vote whatever they may have forgotten, as all Redlock
	// libraries do.
	Unguarded bool
	// SeveralKeys says that there will be edits of several keys. Then all operations
	// reach a master in one order; otherwise only those of the same key do, and on a
	// long way more of them can be under way.
	SeveralKeys bool
	// Logger is told when a master goes down or comes up. The default is silence.
	Logger *slog.Logger
	// Rand gives numbers in [0, 1) for the jitter of pauses. The default is
	// math/rand/v2.
	Rand func() float64
}

// Cluster is N independent Redis masters that vote. It works while Run runs.
type Cluster struct {
	masters []*master
	// electors are the masters and, behind them, the legacy server if there is one.
	electors  []*master
	rand      func() float64
	unguarded bool
	longest   *longestTTL
	fresh     *freshStart
	// id is this cluster's alone, and so is every nonce.
	id    string
	nonce func() string
	// offers are those of locks to masters that lost them, in the order of their times,
	// and settling how long each waits.
	offers   chan offered
	settling time.Duration
	// freed is told of keys that an Apply has freed.
	freed func(Key)
}

// NewCluster makes a cluster. It connects to nothing before Run.
func NewCluster(opts Options) (*Cluster, error) {
	if len(opts.Masters) == 0 {
		return nil, errors.New("quorum: no masters")
	}
	opts.setDefaults()
	var transports []transport
	for _, u := range opts.electors() {
		t, err := newRedisTransport(u, opts.MasterTimeout)
		if err != nil {
			return nil, fmt.Errorf("quorum: master %s: %w", masterName(u), err)
		}
		if !opts.Unguarded && len(transports) < len(opts.Masters) {
			t.pin()
		}
		transports = append(transports, t)
	}
	return newCluster(opts, transports), nil
}

// newCluster takes one transport for each of opts.electors().
func newCluster(opts Options, transports []transport) *Cluster {
	n := len(opts.Masters)
	c := &Cluster{
		rand: opts.Rand, unguarded: opts.Unguarded, id: rand.Text(), nonce: rand.Text,
		offers: make(chan offered, maxOffered), settling: settling(opts.MasterTimeout),
		freed: func(Key) {}, longest: newLongestTTL(n, opts.MaxTTL), fresh: newFreshStart(n, opts.FreshStart),
	}
	for i, u := range opts.electors() {
		m := newMaster(masterName(u), transports[i], opts.Logger, opts.Rand)
		m.oneLane = opts.SeveralKeys
		c.electors = append(c.electors, m)
	}
	c.masters = c.electors[:n]
	if !opts.Unguarded {
		for i, m := range c.masters {
			m.guard = newGuard(c, i, m, transports[i])
		}
	}
	return c
}

// electors are the URLs of the masters and of the legacy server.
func (o *Options) electors() []string {
	if o.Legacy == "" {
		return o.Masters
	}
	return append(slices.Clip(o.Masters), o.Legacy)
}

func (o *Options) setDefaults() {
	if o.MasterTimeout == 0 {
		o.MasterTimeout = DefaultMasterTimeout
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Rand == nil {
		o.Rand = mathrand.Float64
	}
	if o.MaxTTL == 0 {
		o.MaxTTL = DefaultMaxTTL
	}
}

// masterName is the address in a URL: host:port, or the path of a socket.
func masterName(raw string) string {
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return "(unreadable URL)"
	case u.Host != "":
		return u.Host
	default:
		return u.Path
	}
}

// Run connects to the masters and works until ctx ends; then it sends what is
// queued, undos included, and returns nil.
func (c *Cluster) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	for _, m := range c.electors {
		wg.Go(func() { m.run(ctx) })
	}
	wg.Go(func() { c.watchOffers(ctx) })
	wg.Wait()
	return nil
}

// Ready waits until all masters vote, or ctx ends, so that the first locks stand on
// all of them. It reports whether a majority votes.
func (c *Cluster) Ready(ctx context.Context) bool {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for ctx.Err() == nil && up(c.electors) < len(c.electors) {
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
	return up(c.masters) >= Majority(len(c.masters)) && up(c.electors) >= 1+len(c.electors)-len(c.masters)
}

func up(masters []*master) int {
	n := 0
	for _, m := range masters {
		if !m.isDown() && m.guard.standing() == nil {
			n++
		}
	}
	return n
}

// Status tells the state of each master, in the order of Options.Masters, and
// behind them that of the legacy server if there is one.
func (c *Cluster) Status() []MasterStatus {
	all := make([]MasterStatus, len(c.electors))
	for i, m := range c.electors {
		all[i] = m.status()
		all[i].Legacy = i >= len(c.masters)
	}
	return all
}

// Commit makes a change on all masters and returns with the majority. For an
// Acquire and an Extend it returns how long the lock is valid from now, which may be
// Endless.
//
// Errors: ErrHeld (an Acquire of a key that another holds), ErrNotHeld (a
// Release or Extend with a token that does not hold the key), *NoQuorumError, or
// the cause of ctx if that ended first. After any error an Acquire is undone
// wherever it was applied, in the background; a Release goes on to the masters
// that did not answer.
func (c *Cluster) Commit(ctx context.Context, change Change) (time.Duration, error) {
	if err := c.record(ctx, change); err != nil {
		return 0, err
	}
	return c.begin(change).commit(ctx)
}

// commit waits for the verdict and says what it means for the caller.
func (r *round) commit(ctx context.Context) (time.Duration, error) {
	verdict, err := r.wait(ctx)
	elapsed := time.Since(r.start)
	validity := r.change.validity(elapsed)
	late := r.isLate(elapsed)
	if err == nil && verdict == Won && !late && (!r.change.isGrant() || validity > 0 || validity == Endless) {
		return validity, nil
	}
	if verdict == NoQuorum {
		r.waitForAll(ctx) // so that the error counts and names all of them
	}
	if r.change.undoes() {
		r.abandon()
	}
	switch {
	case err != nil:
		return 0, err
	case verdict == NoQuorum:
		return 0, r.noQuorum()
	case r.change.kind == kindAcquire:
		return 0, ErrHeld
	case verdict == Won && late:
		return 0, r.tooLate(elapsed)
	default:
		return 0, ErrNotHeld
	}
}
