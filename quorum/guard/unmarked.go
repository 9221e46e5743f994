package guard

import (
	"context"
	"time"

	"redlock-proxy/quorum/guard/marker"
)

// meetUnmarked meets a master that has no marker, and no record from a time before this state, and
// of which nothing is known.
func (g *Guard) meetUnmarked(ctx context.Context, v Report) (time.Duration, error) {
	empty := v.Empty && v.Longest == 0
	switch g.set.fresh.ask(g.index, v.RunID, empty, time.Now()) {
	case freshWait:
		g.stand(&QuarantineError{Why: AwaitsFreshStart})
		return freshPause, nil
	case freshGo:
		g.set.longest.None()
		if did, err := g.admit(ctx, v, marker.ProofFresh); err != nil || did >= 0 {
			return 0, err
		}
	}
	return 0, g.refuseFresh(ctx, v, empty)
}

// refuseFresh has a master wait that is not let in by a fresh start.
func (g *Guard) refuseFresh(ctx context.Context, v Report, empty bool) error {
	switch {
	case v.Record != "": // which says that already
		g.set.fresh.end()
		return nil
	case empty:
		return g.quarantine(ctx, v, Blank, marker.NoClaim)
	default:
		return g.quarantine(ctx, v, Restarted, marker.NoClaim)
	}
}
