package guard

import (
	"context"
	"time"

	"redlock-proxy/quorum/guard/marker"
)

// handleUnmarked handles a master without known history: it has no marker, and either no record or
// a record with the reason Empty.
func (g *Guard) handleUnmarked(ctx context.Context, v Report) (time.Duration, error) {
	isEmpty := v.Empty && v.LongestTTL == 0
	switch g.set.freshStart.decide(g.index, v.RunID, isEmpty, time.Now()) {
	case freshWait:
		g.denyVote(&QuarantineError{Cause: AwaitsFreshStart})
		return freshPause, nil
	case freshAdmit:
		g.set.maxTTLInUse.NoteNoRecords()
		result, err := g.admit(ctx, v, marker.ProofFresh)
		if err == nil && result >= 0 {
			g.set.freshStart.noteMarked(g.index)
		}
		if err != nil || result >= 0 {
			return 0, err
		}
	}
	return 0, g.refuseFreshStart(ctx, v, isEmpty)
}

// refuseFreshStart puts a master that the fresh start does not admit into quarantine.
func (g *Guard) refuseFreshStart(ctx context.Context, v Report, isEmpty bool) error {
	switch {
	case v.Record.Text != "": // the record has put the master into quarantine already
		g.set.freshStart.end()
		return nil
	case isEmpty:
		return g.quarantine(ctx, v, Empty, marker.NoClaim)
	default:
		return g.quarantine(ctx, v, Restarted, marker.NoClaim)
	}
}
