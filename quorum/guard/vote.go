package guard

import (
	"context"
	"maps"
	"slices"
	"time"

	"redlock-proxy/quorum/guard/marker"
	"redlock-proxy/quorum/guard/script"
)

// vote lets the master vote, unless one of its databases was flushed, or there is a doubt.
func (g *Guard) vote(ctx context.Context, v Report) (time.Duration, error) {
	m := v.Marker.Value
	for _, db := range g.doubts() {
		lost := g.newRecord(v, Flushed, marker.NoClaim)
		if did, err := amend(ctx, g.Conn, script.Enrol, m.String(), db, lost.String()); err != nil || did != 1 {
			return 0, err
		}
	}
	g.set.fresh.noteMarked(g.index)
	if g.set.eras.position(g.index) == positionOwn {
		switch cause, err := g.agree(ctx, v); {
		case err != nil:
			return 0, err
		case cause != nil:
			g.denyVote(cause)
			return lookAgain(cause), nil
		}
		if cause := g.set.misplaced.Load(); cause != nil {
			g.denyVote(cause)
			return Heartbeat, nil
		}
	}
	if cause := g.objection(m); cause != nil {
		g.denyVote(cause)
		return Heartbeat, nil
	}
	g.mu.Lock()
	over := g.set.eras.position(g.index) != positionOwn
	if !over && g.trust.Nonce == "" && (g.cause.Why != Unproven || g.last.Nonce != m.Nonce) {
		g.log.Info("master votes", "master", g.Name, "proof", m.Proof)
	}
	g.give(m, over)
	g.blamed = false
	g.mu.Unlock()
	if err := g.renewCanaries(ctx, v.Marker.Text, m.Nonce); err != nil {
		return 0, err
	}
	return g.afterRenewal(), nil
}

// afterRenewal has another look taken at once if a canary was missed, or a sequence went
// back.
func (g *Guard) afterRenewal() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.canaryMissed || g.older {
		g.withdraw(Unproven)
		return 0
	}
	return g.set.eras.pause(time.Now())
}

// objection is why this proxy alone does not count the votes of a master with that marker.
func (g *Guard) objection(m marker.Marker) *QuarantineError {
	g.mu.Lock()
	defer g.mu.Unlock()
	longest := g.set.longest.InUse()
	if g.doubt.isOver(m.Nonce, g.proxies, longest, time.Now()) {
		g.doubt = doubt{}
		return nil
	}
	return &QuarantineError{Why: ClockStepped, Ready: g.doubt.until(longest)}
}

// doubts are the databases that seemed to have lost their marker, once.
func (g *Guard) doubts() []int {
	g.mu.Lock()
	defer g.mu.Unlock()
	dbs := slices.Collect(maps.Keys(g.doubtful))
	clear(g.doubtful)
	return dbs
}
