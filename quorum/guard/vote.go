package guard

import (
	"context"
	"maps"
	"slices"
	"time"

	"redlock-proxy/quorum/guard/marker"
	"redlock-proxy/quorum/guard/script"
)

// vote lets the master vote, unless one of its databases was flushed, its clock is suspected, or
// the rules or the location of the locks conflict.
func (g *Guard) vote(ctx context.Context, v Report) (time.Duration, error) {
	m := v.Marker.Value
	for _, db := range g.takeSuspectDBs() {
		record := g.newRecord(v, Flushed, marker.NoClaim)
		if result, err := runInt(ctx, g.Conn, script.Enrol, m.String(), db, record.String()); err != nil || result != 1 {
			return 0, err
		}
	}
	g.set.freshStart.noteMarked(g.index)
	if g.set.eras.position(g.index) == positionOwn {
		switch cause, err := g.adoptRules(ctx, v); {
		case err != nil:
			return 0, err
		case cause != nil:
			g.denyVote(cause)
			return pauseAfterRules(cause), nil
		}
		if cause := g.set.locationConflict.Load(); cause != nil {
			g.denyVote(cause)
			return Heartbeat, nil
		}
	}
	if cause := g.suspicionOf(m); cause != nil {
		g.denyVote(cause)
		return Heartbeat, nil
	}
	g.mu.Lock()
	eraEnded := g.set.eras.position(g.index) != positionOwn
	if !eraEnded && g.trust.Nonce == "" && (g.cause.Cause != Unverified || g.lastTrust.Nonce != m.Nonce) {
		g.log.Info("master votes", "master", g.Name, "because", marker.ProofText(m.Proof))
	}
	g.grantVote(m, eraEnded)
	g.clockBlamed = false
	g.mu.Unlock()
	g.set.noteVotes()
	if err := g.renewCanaries(ctx, v.Marker.Text, m.Nonce); err != nil {
		return 0, err
	}
	return g.delayAfterRenewal(), nil
}

// delayAfterRenewal returns the time until the next check. If a canary was missed, or a sequence
// went back, it takes the vote away and returns zero.
func (g *Guard) delayAfterRenewal() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.canaryMissed || g.seqWentBack {
		g.withdraw(Unverified)
		return 0
	}
	return g.set.eras.nextCheckDelay(time.Now())
}

// suspicionOf returns why this proxy alone does not count the votes of a master with this marker,
// or nil.
func (g *Guard) suspicionOf(m marker.Marker) *QuarantineError {
	g.mu.Lock()
	defer g.mu.Unlock()
	longestTTL := g.set.maxTTLInUse.TTLInUse()
	if g.suspicion.hasExpired(m.Nonce, g.otherProxies, longestTTL, time.Now()) {
		g.suspicion = clockSuspicion{}
		return nil
	}
	return &QuarantineError{Cause: ClockStepped, ReadyAt: g.suspicion.expiresAt(longestTTL)}
}

// takeSuspectDBs returns the databases that seem to have lost their marker, and clears the list.
func (g *Guard) takeSuspectDBs() []int {
	g.mu.Lock()
	defer g.mu.Unlock()
	dbs := slices.Collect(maps.Keys(g.suspectDBs))
	clear(g.suspectDBs)
	return dbs
}
