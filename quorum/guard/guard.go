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
	"redlock-proxy/quorum/location"
)

// Guard guards one master. It lets a vote count only if the same batch proves that the master is
// the admitted one: its sequence continued, its canary lives, and its clock ran like ours. Checkup
// finds out whether and when the master is admitted. A nil Guard lets all votes count.
type Guard struct {
	set *Set
	// index is the index of the master in the set.
	index int
	Master
	log *slog.Logger
	// published holds the numbers of other masters that were published on this master while its
	// identity (run_id, marker and record) was the same. Only Checkup uses published and identity.
	published publishedSeqs
	identity  string

	mu    sync.Mutex
	clock masterClock
	// trust is the trust under which the master's votes count. last is the latest trust, present or
	// former. term counts how often the trust was given or taken.
	trust, last trust
	term        uint64
	// changed is when the trust was last given or taken.
	changed time.Time
	// catchUps is the number of catch-ups that this proxy did for the master.
	catchUps int64
	// voted is when a vote last counted. proved is when the master last showed that it is the
	// server that votes.
	voted, proved time.Time
	// announced is when the master will vote again, according to the last log message.
	announced time.Time
	// cause is the reason why the master does not vote. It is meaningless while the master votes.
	cause *QuarantineError
	// enrolled holds the databases with the marker, suspectDBs the databases that seem to have lost
	// it.
	enrolled, suspectDBs map[int]bool
	// seqs holds the highest numbers seen of the master's sequences, canaries the canaries by
	// database.
	seqs     writeSeqs
	canaries map[int]canary
	// canaryMissed is set if a canary was missed, older if a sequence went back.
	canaryMissed, older bool
	// runID is the server's run_id at the last checkup.
	runID string
	// fitted is the last sighting of the master's clock that fitted, fittedNo its number, and
	// fittedBoot its time by the machine's clock. step is the last step that did not fit.
	fitted     Sighting
	fittedNo   uint64
	fittedBoot time.Duration
	step       clockStep
	// suspicion is why this proxy alone does not count the master's votes. blamed is set from when
	// this proxy puts the master into quarantine for its clock until it votes again.
	suspicion clockSuspicion
	blamed    bool
	// proxies holds the other proxies that announced themselves on the master.
	proxies []Proxy
	// differs holds the differences to other proxies, and since when each exists.
	differs map[string]time.Time
	// refused is why a master has no vote although its guard is off, or nil.
	refused *QuarantineError
	// watched is the nonce of the last quarantine record. watchedSince is when the record was first
	// seen, by our clock.
	watched      string
	watchedSince time.Time
}

// trust is a marker under which a master votes. Without a nonce the master does not vote.
type trust struct {
	marker.Marker
	term uint64
	// eraEnded is set if the master does not vote because its era has ended. It is known to have
	// kept its data of that era.
	eraEnded bool
}

// trusted returns the trust under which the master's votes count; empty if they do not count.
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

// enrol ensures that a database has the marker before a vote in it counts. If the database had a
// marker and lost it, the master goes into quarantine.
func (g *Guard) enrol(ctx context.Context, db int, under trust) {
	lost := marker.Record{
		RunID: under.RunID, Nonce: g.set.nonce(), Since: g.serverTime().Milliseconds(),
		Claim: marker.NoClaim, Reason: string(Flushed),
	}
	did, err := runInt(ctx, g.Conn, script.Enrol, under.String(), db, lost.String())
	g.mu.Lock()
	defer g.mu.Unlock()
	if err == nil && did == 1 && g.trust.term == under.term {
		g.enrolled[db] = true
		g.seqs.raise(marker.InDatabase(under.Nonce, db), script.FirstSeq)
		return
	}
	g.suspend()
}

// serverTime returns the latest time that the master's clock can show now.
func (g *Guard) serverTime() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.clock.ServerTime(time.Now())
}

// Evaluate returns the reason why the votes of a batch do not count, or nil. The master may have
// executed the batch nevertheless. Evaluate must be called once for each batch that was sent.
func (g *Guard) Evaluate(w *Check) error {
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
	if !g.voteCounts(w.trust, &w.look) || w.trust.eraEnded {
		return g.cause
	}
	g.voted = w.sighting.Got
	return nil
}

// voteCounts reports whether votes count, according to the check after them. If it notices an
// irregularity, it suspends the master until the next checkup.
func (g *Guard) voteCounts(under trust, p *look) bool {
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
		g.suspectDBs[p.db] = true
		g.older = g.older || p.sequence >= script.FirstSeq
		g.suspend()
		return false
	case g.expectedCanary(p).isMissed(p.canary, p.sighting.Got):
		g.canaryMissed = true
		g.suspend()
		return false
	}
	g.seqs.raise(p.field, p.sequence)
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

// suspend withdraws the vote until the next checkup.
func (g *Guard) suspend() {
	if g.withdraw(Unverified) {
		g.Wake()
	}
}

// withdraw takes the vote away, also from batches in progress. It reports whether the master had
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

// Withdraw takes the vote away until the next Checkup: a connection that is about to be used, or
// the next one, reaches a different server. Outstanding replies do not count.
func (g *Guard) Withdraw() {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.withdraw(Unverified)
}

// grantVote makes the master's votes count from now on, under a marker. If the master's era has
// ended, it only records the marker.
func (g *Guard) grantVote(under marker.Marker, eraEnded bool) {
	if g.trust.Nonce == under.Nonce {
		g.trust.Marker, g.last.Marker = under, under
		return
	}
	if g.last.Nonce != under.Nonce {
		g.enrolled, g.canaries = map[int]bool{}, map[int]canary{}
		for field := range g.seqs {
			if strings.HasPrefix(field, g.last.Nonce+"@") {
				delete(g.seqs, field)
			}
		}
	}
	g.term++
	g.changed = time.Now()
	g.trust = trust{Marker: under, term: g.term, eraEnded: eraEnded}
	g.last = g.trust
	g.seqs.raise(marker.InDatabase(under.Nonce, 0), script.FirstSeq)
}

// Conn is the guard's access to a master, outside of batches.
type Conn interface {
	// Examine returns the master's report.
	Examine(ctx context.Context) (Report, error)
	// Run runs one of the guard's scripts in database 0, and returns its reply.
	Run(ctx context.Context, s luascript.Script, args ...any) (any, error)
}

// Master is a master as a Set sees it.
type Master struct {
	// Name is the master's address, as errors and logs show it.
	Name string
	// Conn is the access to the master.
	Conn Conn
	// IsDown reports whether the master is known not to answer.
	IsDown func() bool
	// Wake requests a checkup (Guard.Checkup) at once.
	Wake func()
}

// Set guards the masters of a cluster. It holds the parts that concern several masters: the fresh
// start, the longest TTL, and the decision whose clock stepped.
type Set struct {
	guards      []*Guard
	maxTTLInUse *maxTTLTracker
	fresh       *freshStart
	override    *override
	eras        *eraTracker
	rules       *rulesTracker
	record      location.Record
	// placeConflict is the reason why the upstream's record lets no master vote, or nil.
	placeConflict atomic.Pointer[QuarantineError]
	formerGuards  []*Guard
	log           *slog.Logger
	off           bool
	boot          func() time.Duration
	moves         func() int
	// id and name identify this proxy. nonce returns a unique nonce.
	id          string
	name, nonce func() string

	sightings atomic.Uint64
	// blame is held while one master's clock is being blamed.
	blame sync.Mutex

	mu sync.Mutex
	// warned holds the warnings that were logged.
	warned map[string]bool
}

// look is the check of a master after a batch, or after another request.
type look struct {
	db     int
	writes bool
	// field is the field of the sequence. If it is empty, no vote counts, and only the clock is
	// read.
	field string
	// floor is the highest number of the sequence that the proxy had seen before this look.
	floor int64
	// known is the canary that the proxy had seen before this look.
	known canary
	// sequence, canary and sighting are from the master's replies. number is set if it returned a
	// number.
	sequence int64
	number   bool
	canary   string
	sighting Sighting
}

// Quarantine returns the reason why the master does not vote, or nil.
func (g *Guard) Quarantine() *QuarantineError {
	if g == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.set.off:
		return g.refused
	case g.trust.Nonce != "" && !g.trust.eraEnded:
		return nil
	}
	return g.cause
}
