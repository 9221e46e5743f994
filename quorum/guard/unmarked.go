package guard

import (
	"context"
	"time"

	"redlock-proxy/quorum/guard/marker"
)

// handleUnmarked handles a master of which nothing is known: it has no marker, and no record or one
// with the reason Empty.
func (g *Guard) handleUnmarked(ctx context.Context, v Report) (time.Duration, error) {
	empty := v.Empty && v.Longest == 0
	switch g.set.fresh.decide(g.index, v.RunID, empty, time.Now()) {
	case freshWait:
		g.denyVote(&QuarantineError{Why: AwaitsFreshStart})
		return freshPause, nil
	case freshAdmit:
		g.set.maxTTLInUse.None()
		did, err := g.admit(ctx, v, marker.ProofFresh)
		if err == nil && did >= 0 {
			g.set.fresh.noteMarked(g.index)
		}
		if err != nil || did >= 0 {
			return 0, err
		}
	}
	return 0, g.refuseFresh(ctx, v, empty)
}

// refuseFresh makes a master wait that the fresh start does not admit.
func (g *Guard) refuseFresh(ctx context.Context, v Report, empty bool) error {
	switch {
	case v.Record.Text != "": // the record states that already
		g.set.fresh.end()
		return nil
	case empty:
		return g.quarantine(ctx, v, Empty, marker.NoClaim)
	default:
		return g.quarantine(ctx, v, Restarted, marker.NoClaim)
	}
}
