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
)

// Guard guards one master. It lets a vote count only if the same batch proves that the master is
// still the admitted server. The sequence must continue, the canary must exist, and the master's
// clock must run like this machine's. Checkup decides whether the master may vote.
type Guard struct {
	set *Set
	// index is the index of the master in the set.
	index int
	Master
	log *slog.Logger
	// published holds the sequence numbers of other masters that this proxy has published on this
	// master since the master's identity (run_id, marker and record) last changed. Only Checkup
	// uses published and identity.
	published publishedSeqs
	identity  string

	mu    sync.Mutex
	clock masterClock
	// trust is the trust under which the master's votes count. lastTrust is the latest trust,
	// present or former. term counts how often the trust was given or withdrawn.
	trust, lastTrust trust
	term             uint64
	// voteChangedAt is the time at which the trust was last given or withdrawn.
	voteChangedAt time.Time
	// catchUps is the number of catch-ups that this proxy did for the master.
	catchUps atomic.Int64
	// lastVote is the time at which a vote last counted. lastProof is the time at which the master
	// last proved that it is the server that votes.
	lastVote, lastProof time.Time
	// loggedReadyTime is the time at which the master votes again, according to the last log
	// message.
	loggedReadyTime time.Time
	// cause is the reason why the master does not vote. It is meaningless while the master votes.
	cause *QuarantineError
	// enrolledDBs holds the databases with the marker, suspectDBs the databases that seem to have
	// lost it.
	enrolledDBs, suspectDBs map[int]bool
	// seqs holds the highest numbers seen of the master's sequences, canaries the canaries by
	// database.
	seqs     writeSeqs
	canaries map[int]canary
	// canaryMissed is set if a canary was missed, seqWentBack if a sequence went back.
	canaryMissed, seqWentBack bool
	// runID is the server's run_id at the last checkup.
	runID string
	// lastFittingReading is the last reading of the master's clock that fitted. lastFitNumber is
	// its position among the clock readings of all masters, and lastFitUptime the machine's uptime
	// at that time. lastStep describes the last reading that did not fit.
	lastFittingReading ClockReading
	lastFitNumber      uint64
	lastFitUptime      time.Duration
	lastStep           clockStep
	// suspicion is the reason why this proxy alone does not count the master's votes. clockBlamed
	// is set when this proxy decides to put the master into quarantine for its clock, until the
	// master votes again.
	suspicion   clockSuspicion
	clockBlamed bool
	// otherProxies holds the other proxies that announced themselves on the master.
	otherProxies []Proxy
	// differencesSince holds the time at which this proxy first saw each difference to another
	// proxy.
	differencesSince map[string]time.Time
	// rulesConflict is the reason why the master has no vote although the guard is off, or nil.
	rulesConflict *QuarantineError
	// watchedNonce is the nonce of the last quarantine record. watchedSince is the time at which
	// this proxy first saw the record.
	watchedNonce string
	watchedSince time.Time
}

// trust holds the marker under which a master votes. Without a nonce the master does not vote.
type trust struct {
	marker.Marker
	term uint64
	// eraEnded is set if the master does not vote because its era has ended. Such a master has kept
	// its data of that era.
	eraEnded bool
}

// currentTrust returns the trust under which the master's votes count; empty if they do not count.
func (g *Guard) currentTrust() trust {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.trust
}

// enrol ensures that a database has the marker before a vote in it counts. If the database had a
// marker and lost it, the master goes into quarantine.
func (g *Guard) enrol(ctx context.Context, db int, t trust) {
	record := marker.Record{
		RunID: t.RunID, Nonce: marker.NewRecordNonce(t.Era), WrittenAt: g.serverTime().Milliseconds(),
		Claim: marker.NoClaim, Reason: string(Flushed),
	}
	result, err := runInt(ctx, g.Conn, script.Enrol, t.String(), db, record.String())
	g.mu.Lock()
	defer g.mu.Unlock()
	if err == nil && result == 1 && g.trust.term == t.term {
		g.enrolledDBs[db] = true
		g.seqs.raise(marker.AppendDatabase(t.Nonce, db), script.FirstSeq)
		return
	}
	g.suspend()
}

// serverTime returns the latest time that the master's clock can show now.
func (g *Guard) serverTime() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.clock.LatestServerTime(time.Now())
}

// Evaluate returns the reason why the votes of a batch do not count, or nil. The master may have
// executed the batch nevertheless. Evaluate must be called once for each batch that was sent.
func (g *Guard) Evaluate(w *Check) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.rulesConflict != nil:
		return g.rulesConflict
	case w.guard == nil:
		return nil
	}
	if !g.isVoteValid(w.trust, &w.probe) || w.trust.eraEnded {
		return g.cause
	}
	g.lastVote = w.clockReading.ReceivedAt
	return nil
}

// isVoteValid reports whether votes count, according to the check after them. If it notices an
// irregularity, it suspends the master until the next checkup.
func (g *Guard) isVoteValid(t trust, p *probe) bool {
	fits := true
	if !p.clockReading.IsZero() {
		fits = g.observeClock(p.clockReading)
	}
	switch {
	case t.Nonce == "" || g.trust.term != t.term:
		return false
	case p.clockReading.IsZero() || !fits || !p.hasSequence:
		g.suspend()
		return false
	case p.sequence < p.floor || p.writes && p.sequence == p.floor:
		g.suspectDBs[p.db] = true
		g.seqWentBack = g.seqWentBack || p.sequence >= script.FirstSeq
		g.suspend()
		return false
	case g.expectedCanary(p).isMissed(p.canary, p.clockReading.ReceivedAt):
		g.canaryMissed = true
		g.suspend()
		return false
	}
	g.seqs.raise(p.field, p.sequence)
	g.lastProof = p.clockReading.SentAt
	return true
}

// observeClock stores a reading of the master's clock, and reports whether it fits.
func (g *Guard) observeClock(s ClockReading) bool {
	stepSize, fits := g.clock.Observe(s)
	uptime, number := g.set.opts.TimeSinceBoot(), g.set.clockReadings.Add(1)
	switch {
	case fits:
		g.lastFittingReading, g.lastFitNumber, g.lastFitUptime = s, number, uptime
		return true
	case g.clock.MayPrecede(s):
		return false
	}
	suspended := time.Duration(0)
	if uptime > 0 && g.lastFitUptime > 0 {
		suspended = uptime - g.lastFitUptime - s.ReceivedAt.Sub(g.lastFittingReading.ReceivedAt)
	}
	g.lastStep = clockStep{At: s.ReceivedAt, Size: stepSize, Number: number, SuspendedFor: suspended}
	return false
}

// suspend withdraws the vote until the next checkup.
func (g *Guard) suspend() {
	if g.withdraw(Unverified) {
		g.Wake()
	}
}

// withdraw takes the vote away, including the votes of batches in progress. It reports whether the
// master had a vote.
func (g *Guard) withdraw(reason Reason) bool {
	if g.trust.Nonce == "" {
		return false
	}
	g.term++
	g.voteChangedAt = time.Now()
	g.trust, g.cause = trust{}, &QuarantineError{Cause: reason}
	return true
}

// Withdraw takes the vote away until the next Checkup, because the master's connections may reach a
// different server. Outstanding replies do not count.
func (g *Guard) Withdraw() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.withdraw(Unverified)
}

// grantVote makes the master's votes count from now on, under a marker. If the master's era has
// ended, grantVote only records the marker.
func (g *Guard) grantVote(m marker.Marker, eraEnded bool) {
	if g.trust.Nonce == m.Nonce {
		g.trust.Marker, g.lastTrust.Marker = m, m
		return
	}
	if g.lastTrust.Nonce != m.Nonce {
		g.enrolledDBs, g.canaries = map[int]bool{}, map[int]canary{}
		for field := range g.seqs {
			if strings.HasPrefix(field, g.lastTrust.Nonce+"@") {
				delete(g.seqs, field)
			}
		}
	}
	g.term++
	g.voteChangedAt = time.Now()
	g.trust = trust{Marker: m, term: g.term, eraEnded: eraEnded}
	g.lastTrust = g.trust
	g.seqs.raise(marker.AppendDatabase(m.Nonce, 0), script.FirstSeq)
}

// Conn gives a guard access to its master, outside of batches.
type Conn interface {
	// Examine returns the master's report.
	Examine(ctx context.Context) (Report, error)
	// Run runs one of the guard's scripts in database 0, and returns its reply.
	Run(ctx context.Context, s luascript.Script, args ...any) (any, error)
}

// Master describes a master to a Set.
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

// Set guards the masters of a cluster. It holds the state that concerns several masters, such as
// the fresh start, the longest TTL, and the eras.
type Set struct {
	// opts has no FormerSet.
	opts        Options
	guards      []*Guard
	maxTTLInUse *maxTTLTracker
	freshStart  *freshStart
	override    *override
	eras        *eraTracker
	rules       *rulesTracker
	// locationConflict is the reason why the upstream's record lets no master vote, or nil.
	locationConflict atomic.Pointer[QuarantineError]
	formerGuards     []*Guard
	clockReadings    atomic.Uint64
	// blameMu serializes the decisions to blame a master's clock.
	blameMu sync.Mutex

	mu sync.Mutex
	// loggedWarnings holds the warnings that were logged.
	loggedWarnings map[string]bool
}

// probe holds the proxy's knowledge before a check of a master, and the master's replies.
type probe struct {
	db     int
	writes bool
	// field is the field of the sequence. If it is empty, no vote counts, and only the clock is
	// read.
	field string
	// floor is the highest number of the sequence that the proxy had seen before the check.
	floor int64
	// knownCanary is the canary that the proxy had seen before the check.
	knownCanary canary
	// sequence, canary and clockReading are from the master's replies. hasSequence is set if the
	// master returned a number.
	sequence     int64
	hasSequence  bool
	canary       string
	clockReading ClockReading
}

// Quarantine returns the reason why the master does not vote, or nil.
func (g *Guard) Quarantine() *QuarantineError {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.set.opts.Off:
		return g.rulesConflict
	case g.trust.Nonce != "" && !g.trust.eraEnded:
		return nil
	}
	return g.cause
}
