package quorum

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// guard stands at one master and lets a vote count only if the master proves, with the
// very batch, that it is the one which was admitted: that its marker stands and its
// clock went as ours did. Whether and when a master is admitted is found out by the
// prober (checkup).
type guard struct {
	cluster *Cluster
	// index is the master's number in the cluster.
	index int
	name  string
	ward  ward
	log   *slog.Logger
	// alarm wakes the prober.
	alarm func()

	mu    sync.Mutex
	clock clock
	// known is the marker under which the master votes; empty: it does not. trusted is
	// the last one that was known.
	known, trusted string
	// cause is why the master does not vote; it means nothing while it does.
	cause *QuarantineError
	// enrolled are the databases that have the known marker, beside database 0. doubtful
	// are those that seemed to have lost it.
	enrolled, doubtful map[int]bool
	// runID is the server's, as of the last checkup.
	runID string
	// fitted is the last sighting of its clock that fitted, misfit the last that did not.
	fitted time.Time
	misfit misfit
	// watched is the quarantine record seen last, and since when by our clock.
	watched      string
	watchedSince time.Time
}

func newGuard(c *Cluster, index int, m *master, w ward) *guard {
	return &guard{
		cluster: c, index: index, name: m.name, ward: w, log: m.log, alarm: m.wake,
		cause:    &QuarantineError{reason: reasonUnproven},
		enrolled: map[int]bool{}, doubtful: map[int]bool{},
	}
}

// witness is for a batch that is about to leave. Without a guard there is none.
func (g *guard) witness(ctx context.Context, ops []*op) *witness {
	if g == nil {
		return nil
	}
	w := &witness{expect: g.marker()}
	for _, o := range ops {
		if db := o.change.key.DB; db != 0 && w.expect != "" && !g.isEnrolled(db) {
			g.enrol(ctx, db, w.expect)
		}
	}
	return w
}

// marker is the one under which the master votes.
func (g *guard) marker() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.known
}

func (g *guard) isEnrolled(db int) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.enrolled[db]
}

// enrol makes sure that a database has the marker before a vote is asked of it. Where it
// had one and lost it, the master is in quarantine from then on.
func (g *guard) enrol(ctx context.Context, db int, marker string) {
	m, _ := parseMarker(marker)
	now := time.Duration(time.Now().UnixNano())
	lost := record{runID: m.runID, nonce: g.cluster.nonce(), since: g.told(now).Milliseconds(), reason: reasonFlushed}
	did, err := g.ward.amend(ctx, enrolScript, marker, db, lost.String())
	g.mu.Lock()
	defer g.mu.Unlock()
	if err == nil && did == 1 && g.known == marker {
		g.enrolled[db] = true
		return
	}
	g.suspend(reasonUnproven)
}

// told is what the master's clock would tell now, as far as is known, or else fallback.
func (g *guard) told(fallback time.Duration) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.clock.epoch.IsZero() {
		return fallback
	}
	return g.clock.high + time.Since(g.clock.epoch)
}

// weigh turns the votes of a batch that do not count into none, and remembers what the
// master said: what it did is undone or repaired as any other.
func (g *guard) weigh(w *witness, replies []reply) {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, s := range w.seen {
		if g.counts(w.expect, s) {
			continue
		}
		for i := range replies[s.from:s.to] {
			replies[s.from+i].discount(g.cause)
		}
	}
}

// counts reports whether the votes of a part of a batch count. What it sees amiss
// suspends the master until the prober has had a look.
func (g *guard) counts(expect string, s seen) bool {
	fits := true
	if !s.sighting.isZero() {
		fits = g.sees(s.sighting)
	}
	switch {
	case expect == "" || g.known != expect:
		return false
	case s.sighting.isZero() || !fits:
		g.suspend(reasonUnproven)
		return false
	case s.marker != inDatabase(expect, s.db):
		if s.db != 0 {
			g.doubtful[s.db] = true
		}
		g.suspend(reasonUnproven)
		return false
	default:
		return true
	}
}

// misfit is a sighting that did not fit: when it was, and by how much the clock had moved.
type misfit struct {
	at    time.Time
	moved time.Duration
	// judged is set once it is known whose clock it was.
	judged bool
}

// sees takes a sighting of the master's clock.
func (g *guard) sees(s sighting) bool {
	moved, fits := g.clock.see(s)
	if fits {
		g.fitted = s.got
	} else {
		g.misfit = misfit{at: s.got, moved: moved}
	}
	return fits
}

// suspend takes the vote away until the prober has had a look.
func (g *guard) suspend(why reason) {
	if g.known != "" {
		g.known, g.cause = "", &QuarantineError{reason: why}
		g.alarm()
	}
}

// discount makes a vote none, for a cause.
func (r *reply) discount(cause error) {
	if r.vote != voteFailed {
		r.uncounted, r.vote, r.err = r.vote, voteFailed, cause
	}
}

// asSaid is the reply with what the master said as its vote, whether or not that counts.
func (r reply) asSaid() reply {
	if r.uncounted != voteFailed {
		r.vote = r.uncounted
	}
	return r
}
