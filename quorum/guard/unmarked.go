package guard

import (
	"context"
	"time"

	"redlock-proxy/quorum/guard/marker"
)

// handleUnmarked is for a master that has no marker, and no record from a time before this state,
// and of which nothing is known.
func (g *Guard) handleUnmarked(ctx context.Context, v Report) (time.Duration, error) {
	empty := v.Empty && v.Longest == 0
	switch g.set.fresh.ask(g.index, v.RunID, empty, time.Now()) {
	case freshWait:
		g.denyVote(&QuarantineError{Why: AwaitsFreshStart})
		return freshPause, nil
	case freshGo:
		g.set.longest.None()
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

// refuseFresh has a master wait that is not let in by a fresh start.
func (g *Guard) refuseFresh(ctx context.Context, v Report, empty bool) error {
	switch {
	case v.Record.Text != "": // which says that already
		g.set.fresh.end()
		return nil
	case empty:
		return g.quarantine(ctx, v, Blank, marker.NoClaim)
	default:
		return g.quarantine(ctx, v, Restarted, marker.NoClaim)
	}
}
