package quorum

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/url"
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
	// MasterTimeout bounds one batch to one master, dialling included. The default
	// is DefaultMasterTimeout.
	MasterTimeout time.Duration
	// Logger is told when a master goes down or comes up. The default is silence.
	Logger *slog.Logger
	// Rand gives numbers in [0, 1) for the jitter of pauses. The default is
	// math/rand/v2.
	Rand func() float64
}

// Cluster is N independent Redis masters that vote. It works while Run runs.
type Cluster struct {
	masters []*master
	rand    func() float64
}

// NewCluster makes a cluster. It connects to nothing before Run.
func NewCluster(opts Options) (*Cluster, error) {
	if len(opts.Masters) == 0 {
		return nil, errors.New("quorum: no masters")
	}
	opts.setDefaults()
	transports := make([]transport, len(opts.Masters))
	for i, u := range opts.Masters {
		t, err := newRedisTransport(u, opts.MasterTimeout)
		if err != nil {
			return nil, fmt.Errorf("quorum: master %s: %w", masterName(u), err)
		}
		transports[i] = t
	}
	return newCluster(opts, transports), nil
}

// newCluster takes one transport for each of opts.Masters.
func newCluster(opts Options, transports []transport) *Cluster {
	c := &Cluster{rand: opts.Rand}
	for i, t := range transports {
		name := masterName(opts.Masters[i])
		c.masters = append(c.masters, newMaster(name, t, opts.Logger, opts.Rand))
	}
	return c
}

func (o *Options) setDefaults() {
	if o.MasterTimeout == 0 {
		o.MasterTimeout = DefaultMasterTimeout
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Rand == nil {
		o.Rand = rand.Float64
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
	for _, m := range c.masters {
		wg.Go(func() { m.run(ctx) })
	}
	wg.Wait()
	return nil
}

// Ready waits until all masters are up, or ctx ends, so that the first locks
// stand on all of them. It reports whether a majority is up.
func (c *Cluster) Ready(ctx context.Context) bool {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for ctx.Err() == nil && c.up() < len(c.masters) {
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
	return c.up() >= Majority(len(c.masters))
}

func (c *Cluster) up() int {
	n := 0
	for _, m := range c.masters {
		if !m.isDown() {
			n++
		}
	}
	return n
}

// Status tells the state of each master, in the order of Options.Masters.
func (c *Cluster) Status() []MasterStatus {
	all := make([]MasterStatus, len(c.masters))
	for i, m := range c.masters {
		all[i] = m.status()
	}
	return all
}

// Commit makes a change on all masters and returns with the majority. For an
// Acquire and an Extend it returns how long the lock is valid from now.
//
// Errors: ErrHeld (an Acquire of a key that another holds), ErrNotHeld (a
// Release or Extend with a token that does not hold the key), *NoQuorumError, or
// the cause of ctx if that ended first. After any error an Acquire is undone
// wherever it was applied, in the background; a Release goes on to the masters
// that did not answer.
func (c *Cluster) Commit(ctx context.Context, change Change) (time.Duration, error) {
	return c.begin(change).commit(ctx)
}

// commit waits for the verdict and says what it means for the caller.
func (r *round) commit(ctx context.Context) (time.Duration, error) {
	verdict, err := r.wait(ctx)
	validity := Validity(r.change.ttl, time.Since(r.start))
	if err == nil && verdict == Won && (validity > 0 || r.change.kind == kindRelease) {
		return validity, nil
	}
	if verdict == NoQuorum {
		r.waitForAll(ctx) // so that the error counts and names all of them
	}
	if r.change.kind == kindAcquire {
		r.abandon()
	}
	switch {
	case err != nil:
		return 0, err
	case verdict == NoQuorum:
		return 0, r.noQuorum()
	case r.change.kind == kindAcquire:
		return 0, ErrHeld
	default:
		return 0, ErrNotHeld
	}
}
