package guard

import (
	"context"
	"time"

	"redlock-proxy/quorum/guard/marker"
	"redlock-proxy/quorum/guard/reconfig"
	"redlock-proxy/quorum/guard/script"
)

// handleEndedEra handles a master whose era has ended. If the master has kept its data since it was
// sealed, other masters may copy from it, and it takes part in deciding the successor.
func (g *Guard) handleEndedEra(ctx context.Context, v Report, past history) (time.Duration, error) {
	m := v.Marker.Value
	intact := v.Marker.Valid && !m.Seal.IsNone() && m.RunID == v.RunID
	if intact {
		past.position = positionFormer
		action, _ := judgeMarked(v, past)
		intact = action == actionJoin
	}
	if !intact {
		g.denyVote(&QuarantineError{Cause: Replaced})
		return shortPause, nil
	}
	pause, err := g.vote(ctx, v)
	g.noteEndedCause(&QuarantineError{Cause: Replaced})
	return min(pause, shortPause), err
}

// noteEndedCause records why a master whose era has ended has no vote.
func (g *Guard) noteEndedCause(cause *QuarantineError) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.trust.eraEnded || g.trust.Nonce == "" {
		g.cause = cause
	}
}

// join lets a master that voted in the former era vote in this era. First the master must have all
// locks that a majority of the former set may have granted. The master has lost nothing, so it is
// one of the sources.
func (g *Guard) join(ctx context.Context, v Report) (time.Duration, error) {
	if pause, err := g.vote(ctx, v); pause == 0 || err != nil {
		return pause, err
	}
	own, _ := g.set.eras.statedEra()
	// If the change keeps the masters, the same majorities decide in both eras, and this master has
	// kept its data. So it needs no copy.
	if m := v.Marker.Value; m.Seal.KeepsMasters(m.Era) && m.Seal.NextEra(m.Era) == own {
		next := m
		next.Nonce, next.Proof = marker.NewNonce(), marker.ProofJoined
		next.Era, next.Seal = m.Seal.NextEra(m.Era), reconfig.Seal{}
		g.publishFirstSeq(ctx, next.Nonce)
		if g.suspicionOf(m) != nil {
			return shortPause, nil
		}
		result, err := runInt(ctx, g.Conn, script.Rejoin, v.Marker.Text, next.String(), marker.FormatMillis(rejoinTime))
		switch {
		case err != nil || result == 0:
			return 0, err
		case result == 1:
			g.publishRetiredSeqs(ctx, v, next.Nonce)
			return 0, nil
		} // the master was sealed long ago: copy the data that it may have lost since
	}
	g.noteEndedCause(&QuarantineError{Cause: Joining})
	from := g.set.sourcesFor(g)
	from.targetUnused = true
	switch {
	case !from.isFormer && g.set.awaitsReports():
		return shortPause, nil
	case !from.isFormer && from.hasReadQuorum():
		// The master catches up from these sources, and keeps its own cells of possible locks.
		return 0, g.quarantine(ctx, v, Joining, marker.NoClaim)
	case !from.isFormer || from.indexOf(g) < 0,
		len(from.sources) < from.masters && g.set.eras.age(time.Now()) < formerSourcesTime:
		return shortPause, nil
	case v.Record.Text == "":
		_, err := runInt(ctx, g.Conn, script.AddRecord, v.Marker.Text, g.newRecord(v, Joining, marker.NoClaim).String())
		return 0, err
	}
	return g.pauseAfter(g.catchUp(ctx, v, from)), nil
}

// rejoinTime limits the time between a master's seal and its first vote in the next era without a
// copy. Between the seal and that vote, no proxy can compare the master's clock and canaries with
// the clock and canaries of the former era.
const rejoinTime = 2 * time.Second

// formerSourcesTime is the additional wait for all masters of the former set. With fewer sources,
// the copier can distinguish fewer leftovers from locks.
const formerSourcesTime = 300 * time.Millisecond
