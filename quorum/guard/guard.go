package guard

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"redlock-proxy/internal/luascript"
	"redlock-proxy/quorum/guard/marker"
	"redlock-proxy/quorum/guard/script"
	"redlock-proxy/quorum/place"
)

// Guard is that of one master, and lets a vote count only if the master proves, with the
// very batch, that it is the one which was admitted: that its sequence went on, its canary
// lives, and its clock went as ours did. Whether and when a master is admitted is found out
// by Checkup. A nil Guard lets all votes count.
type Guard struct {
	set *Set
	// index is the master's number in the set.
	index int
	Master
	log *slog.Logger
	// left are the ages of other masters that were left on this one while identity, its run_id,
	// marker and record, was the same. Only Checkup uses them.
	left     agesLeft
	identity string

	mu    sync.Mutex
	clock masterClock
	// trust is that under which the master's votes count; last is the one before, or the
	// same. term counts how often it was given or taken.
	trust, last trust
	term        uint64
	// changed is when it was given or taken last.
	changed time.Time
	// catchUps is how often this proxy had the master catch up.
	catchUps int64
	// voted is when a vote was counted last, proved when the master showed last that it is the one
	// that votes.
	voted, proved time.Time
	// announced is when the master votes again, as it was logged last.
	announced time.Time
	// cause is why the master does not vote; it means nothing while it does.
	cause *QuarantineError
	// enrolled are the databases that have the marker. doubtful are those that seemed to
	// have lost it.
	enrolled, doubtful map[int]bool
	// ages are the highest numbers seen of its sequences, canaries those by database.
	ages     ages
	canaries map[int]canary
	// canaryMissed is set where a canary was missed, older where a sequence went back.
	canaryMissed, older bool
	// runID is the server's, as of the last checkup.
	runID string
	// fitted is the last sighting of its clock that fitted, fittedNo its number, and fittedBoot
	// when it came by the machine's clock; step is the last that did not fit.
	fitted     Sighting
	fittedNo   uint64
	fittedBoot time.Duration
	step       clockStep
	// doubt is why this proxy alone does not count its votes. blamed is set where this
	// proxy put it into quarantine for its clock, until it votes again.
	doubt  doubt
	blamed bool
	// proxies are the others that were heard of there.
	proxies []Proxy
	// differs is what they have otherwise, and since when.
	differs map[string]time.Time
	// refused is why a master without a guard has no vote all the same, or nil.
	refused *QuarantineError
	// watched is the quarantine record seen last, and since when by our clock.
	watched      string
	watchedSince time.Time
}

// trust is a marker under which a master votes; without a nonce it does not.
type trust struct {
	marker.Marker
	term uint64
	// over is set where the master does not vote, because its set of masters is over: it is known
	// to hold still what it held then.
	over bool
}

// trusted is what the master's votes count under; empty: they do not.
func (g *Guard) trusted() trust {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.trust
}

func (g *Guard) isEnrolled(db int) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.enrolled[db]
}

// enrol makes sure that a database has the marker before a vote is asked of it. Where it
// had one and lost it, the master is in quarantine from then on.
func (g *Guard) enrol(ctx context.Context, db int, under trust) {
	lost := marker.Record{RunID: under.RunID, Nonce: g.set.nonce(), Since: g.serverTime().Milliseconds(), Claim: marker.NoClaim, Reason: string(Flushed)}
	did, err := amend(ctx, g.Conn, script.Enrol, under.String(), db, lost.String())
	g.mu.Lock()
	defer g.mu.Unlock()
	if err == nil && did == 1 && g.trust.term == under.term {
		g.enrolled[db] = true
		g.ages.saw(marker.InDatabase(under.Nonce, db), script.FirstAge)
		return
	}
	g.suspend()
}

// serverTime is the most that the master's clock can show now.
func (g *Guard) serverTime() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.clock.ServerTime(time.Now())
}

// Weigh is why the votes of a batch do not count, or nil. What the master answered may have
// been done all the same. It is called once for each batch that left.
func (g *Guard) Weigh(w *Check) error {
	if g == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.refused != nil:
		return g.refused
	case w.guard == nil:
		return nil
	}
	if !g.counts(w.trust, &w.look) || w.trust.over {
		return g.cause
	}
	g.voted = w.sighting.Got
	return nil
}

// counts reports whether votes count at the end of which the master was looked at. What it
// sees amiss suspends the master until the prober has had a look.
func (g *Guard) counts(under trust, p *look) bool {
	fits := true
	if !p.sighting.IsZero() {
		fits = g.observeClock(p.sighting)
	}
	switch {
	case under.Nonce == "" || g.trust.term != under.term:
		return false
	case p.sighting.IsZero() || !fits || !p.number:
		g.suspend()
		return false
	case p.sequence < p.floor || p.writes && p.sequence == p.floor:
		g.doubtful[p.db] = true
		g.older = g.older || p.sequence >= script.FirstAge
		g.suspend()
		return false
	case g.knownTo(p).isMissed(p.canary, p.sighting.Got):
		g.canaryMissed = true
		g.suspend()
		return false
	}
	g.ages.saw(p.field, p.sequence)
	g.proved = p.sighting.Sent
	return true
}

// observeClock takes a sighting of the master's clock, and reports whether it fits.
func (g *Guard) observeClock(s Sighting) bool {
	moved, fits := g.clock.See(s)
	boot, no := g.set.boot(), g.set.sightings.Add(1)
	switch {
	case fits:
		g.fitted, g.fittedNo, g.fittedBoot = s, no, boot
		return true
	case g.clock.MayPrecede(s):
		return false
	}
	missed := time.Duration(0)
	if boot > 0 && g.fittedBoot > 0 {
		missed = boot - g.fittedBoot - s.Got.Sub(g.fitted.Got)
	}
	g.step = clockStep{At: s.Got, Moved: moved, Number: no, Missed: missed}
	return false
}

// suspend takes the vote away until the prober has had a look.
func (g *Guard) suspend() {
	if g.withdraw(Unproven) {
		g.Wake()
	}
}

// withdraw takes the vote away, also from what is under way, and reports whether there was
// one.
func (g *Guard) withdraw(why Reason) bool {
	if g.trust.Nonce == "" {
		return false
	}
	g.term++
	g.changed = time.Now()
	g.trust, g.cause = trust{}, &QuarantineError{Why: why}
	return true
}

// Withdraw takes the vote away until the next Checkup: a connection that is about to be
// used, or the next one, reaches another server than those before. No answer that is under
// way counts any more.
func (g *Guard) Withdraw() {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.withdraw(Unproven)
}

// give has the master's votes count from now on, under a marker; or, if its set of
// masters is over, has it only be known as what it was then.
func (g *Guard) give(under marker.Marker, over bool) {
	if g.trust.Nonce == under.Nonce {
		g.trust.Marker, g.last.Marker = under, under
		return
	}
	if g.last.Nonce != under.Nonce {
		g.enrolled, g.canaries = map[int]bool{}, map[int]canary{}
		for field := range g.ages {
			if strings.HasPrefix(field, g.last.Nonce+"@") {
				delete(g.ages, field)
			}
		}
	}
	g.term++
	g.changed = time.Now()
	g.trust = trust{Marker: under, term: g.term, over: over}
	g.last = g.trust
	g.ages.saw(marker.InDatabase(under.Nonce, 0), script.FirstAge)
}

// Conn is what the guard asks of a master and does there, outside of batches.
type Conn interface {
	// Examine asks the master for its report.
	Examine(ctx context.Context) (Report, error)
	// Run runs one of the guard's scripts, in database 0, and returns its answer.
	Run(ctx context.Context, s luascript.Script, args ...any) (any, error)
}

// Master is one master as a Set sees it.
type Master struct {
	// Name is its address, as errors and logs show it.
	Name string
	// Conn reaches it.
	Conn Conn
	// IsDown reports whether it is known not to answer.
	IsDown func() bool
	// Wake has it looked at (Guard.Checkup) at once.
	Wake func()
}

// Set guards the masters of a cluster. What concerns more than one of them is here: the
// fresh start, the longest TTL, whose clock it was that stepped.
type Set struct {
	guards   []*Guard
	longest  *longestTTL
	fresh    *freshStart
	override *override
	eras     *eras
	rules    *agreement
	record   place.Record
	// misplaced is why no master votes because of the record, or nil.
	misplaced atomic.Pointer[QuarantineError]
	before    []*Guard
	log       *slog.Logger
	off       bool
	boot      func() time.Duration
	moves     func() int
	// id and name are the proxy's. Every nonce is this set's alone.
	id          string
	name, nonce func() string

	// sightings counts those of all masters.
	sightings atomic.Uint64
	// blame has one clock at a time blamed.
	blame sync.Mutex

	mu sync.Mutex
	// warned are the warnings that were given.
	warned map[string]bool
}

// look is a look at a master at the end of what was done there.
type look struct {
	db     int
	writes bool
	// field is that of the sequence; empty: no vote would count, only the clock is looked
	// at.
	field string
	// floor is the highest number of the sequence that was known before that.
	floor int64
	// known is the canary that was known before that.
	known canary
	// sequence, canary and sighting are what the master answered; number is set where it
	// gave a number.
	sequence int64
	number   bool
	canary   string
	sighting Sighting
}

// Quarantine is why the master does not vote, or nil.
func (g *Guard) Quarantine() *QuarantineError {
	if g == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.set.off:
		return g.refused
	case g.trust.Nonce != "" && !g.trust.over:
		return nil
	}
	return g.cause
}
