package guard

import (
	"context"
	"log/slog"
	"time"

	"redlock-proxy/quorum/guard/marker"
	"redlock-proxy/quorum/guard/script"
)

// quarantine puts the master into quarantine, for all proxies.
func (g *Guard) quarantine(ctx context.Context, v Report, reason Reason, claim string) error {
	result, err := runInt(ctx, g.Conn, script.Quarantine,
		v.Marker.Text, v.Record.Text, g.newRecord(v, reason, claim).String())
	if result == 1 {
		g.publishRetiredSeqs(ctx, v, claim)
	}
	return err
}

// newRecord returns a quarantine record for a master with this report.
func (g *Guard) newRecord(v Report, reason Reason, claim string) marker.Record {
	r := marker.Record{
		RunID: v.RunID, Nonce: marker.NewNonce(),
		WrittenAt: v.ClockReading.ServerTime.Milliseconds(), Claim: claim, Reason: string(reason),
	}
	if claim != marker.NoClaim {
		r.ClaimAddress = g.Name
	}
	return g.set.eras.withEra(r, v.Record.Value)
}

// updateMarker writes the master's present master_replid to its marker, and clears Durable if the
// master is no longer durable.
func (g *Guard) updateMarker(ctx context.Context, v Report) error {
	m := v.Marker.Value
	m.Durable, m.ReplID = m.Durable && v.Durable(), v.ReplID
	_, err := runInt(ctx, g.Conn, script.UpdateMarker, v.Marker.Text, m.String())
	return err
}

// admit lets the master vote, for all proxies. proofArgs holds the additional arguments of a proof.
func (g *Guard) admit(ctx context.Context, v Report, proof string, proofArgs ...any) (int64, error) {
	era, err := g.set.startingEra(ctx, proof)
	if err != nil {
		return 0, err
	}
	m := marker.Marker{
		RunID: v.RunID, ReplID: v.ReplID, Nonce: marker.NewNonce(),
		Durable: v.Durable(), Evicted: v.Evicted, Proof: proof, Address: g.Name, Era: era,
	}
	if proof == marker.ProofJoined {
		proof = marker.ProofCaughtUp // the script checks both proofs alike
	}
	if proof != marker.ProofFresh { // fresh masters must stay empty
		g.publishFirstSeq(ctx, m.Nonce)
	}
	longestTTL := marker.FormatMillis(g.set.maxTTLInUse.LargestRecord())
	args := append([]any{v.Marker.Text, v.Record.Text, m.String(), longestTTL, proof}, proofArgs...)
	result, err := runInt(ctx, g.Conn, script.Admit, args...)
	if err == nil && result == 1 {
		g.publishRetiredSeqs(ctx, v, m.Nonce)
		g.log.Debug("master admitted", "master", g.Name, "because", marker.ProofText(proof))
	}
	return result, err
}

// denyVote records that the master has no vote, and why. It logs the reason once, and again if the
// remaining wait becomes much longer than the logged wait.
func (g *Guard) denyVote(cause *QuarantineError) {
	g.mu.Lock()
	defer g.mu.Unlock()
	hadVote := g.withdraw(cause.Cause)
	if hadVote || g.cause.Cause != cause.Cause || cause.isMuchLater(g.loggedReadyTime) {
		g.loggedReadyTime = cause.ReadyAt
		level := slog.LevelWarn
		if cause.Cause == AwaitsFreshStart || cause.Cause == Replaced {
			level = slog.LevelDebug
		}
		g.log.Log(context.Background(), level, "master in quarantine", "master", g.Name, "cause", cause.Error())
	}
	g.cause = cause
}

// VoteChangedAt returns the time at which the master last gained or lost its vote. It returns zero
// if no guard decides on the votes, or the master never had a vote.
func (g *Guard) VoteChangedAt() time.Time {
	if g.set.opts.Off {
		return time.Time{}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.voteChangedAt
}

// Stats holds the counts and measurements of a master that has a guard.
type Stats struct {
	// CatchUps is the number of catch-ups that this proxy did for the master.
	CatchUps int64
	// ClockOffset is the time by which the master's clock is ahead of this machine's wall clock.
	// ClockKnown is false if the offset is unknown.
	ClockOffset time.Duration
	ClockKnown  bool
}

// Stats returns the present counts and measurements of the guard's master.
func (g *Guard) Stats() Stats {
	g.mu.Lock()
	defer g.mu.Unlock()
	offset, known := g.clock.Offset(time.Now())
	return Stats{CatchUps: g.catchUps.Load(), ClockOffset: offset, ClockKnown: known}
}

// IsActive reports whether a guard decides on the master's votes.
func (g *Guard) IsActive() bool { return !g.set.opts.Off }
