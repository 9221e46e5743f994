package guard

import (
	"context"
	"time"

	"redlock-proxy/quorum/guard/marker"
	"redlock-proxy/quorum/guard/reconfig"
	"redlock-proxy/quorum/guard/script"
	"redlock-proxy/quorum/vote"
)

// leave has a master alone whose set is over. One that was sealed in this proxy's sight is known as
// what it was then: others may copy from it, and it takes part in deciding what follows.
func (g *Guard) leave(ctx context.Context, v Report, past memory) (time.Duration, error) {
	m := v.Marker.Value
	intact := v.Marker.Valid && !m.Seal.IsNone() && m.RunID == v.RunID
	if intact {
		past.position = positionBefore
		verdict, _ := judgeMarked(v, past)
		intact = verdict == onJoin
	}
	if !intact {
		g.denyVote(&QuarantineError{Why: Succeeded})
		return stirPause, nil
	}
	pause, err := g.vote(ctx, v)
	g.explain(&QuarantineError{Why: Succeeded})
	return min(pause, stirPause), err
}

// explain notes why a master whose set is over has no vote.
func (g *Guard) explain(cause *QuarantineError) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.trust.over || g.trust.Nonce == "" {
		g.cause = cause
	}
}

// join has a master that voted in the set before vote in this one: as soon as it holds what every
// majority of that one held. It forgot nothing, so it is one of those that are copied from.
func (g *Guard) join(ctx context.Context, v Report) (time.Duration, error) {
	if pause, err := g.vote(ctx, v); pause == 0 || err != nil {
		return pause, err
	}
	own, _ := g.set.eras.stated()
	if m := v.Marker.Value; m.Seal.Keeps(m.Era) && m.Seal.After(m.Era) == own { // it holds what it held, and is asked by the same majorities
		next := m
		next.Nonce, next.Proof, next.Era, next.Seal = g.set.nonce(), marker.ProofJoined, m.Seal.After(m.Era), reconfig.Seal{}
		g.introduce(ctx, next.Nonce)
		if g.objection(m) != nil {
			return stirPause, nil
		}
		switch did, err := amend(ctx, g.Conn, script.Rejoin, v.Marker.Text, next.String(), marker.Millis(rejoinTime)); {
		case err != nil || did == 0:
			return 0, err
		case did == 1:
			g.retire(ctx, v, next.Nonce)
			return 0, nil
		} // it was sealed long ago: what it may have forgotten since is copied
	}
	g.explain(&QuarantineError{Why: Joins})
	from := g.set.originFor(g)
	switch {
	case !from.before && len(from.sources) >= vote.Majority(len(g.set.guards)): // it catches up from these, as any
		return 0, g.quarantine(ctx, v, Joins, marker.NoClaim)
	case !from.before || !from.enough() || from.member(g) < 0,
		len(from.sources) < from.masters && g.set.eras.lasted(time.Now()) < moreOrigins:
		return joinPause, nil
	case v.Record.Text == "":
		_, err := amend(ctx, g.Conn, script.Await, v.Marker.Text, g.newRecord(v, Joins, marker.NoClaim).String())
		return 0, err
	}
	return g.gaveUp(g.catchUp(ctx, v, from)), nil
}

// rejoinTime is how long after it was sealed a master may vote in the next era without a copy.
// Until then nobody knows of its clock and its canaries what the proxies of the era before knew.
const rejoinTime = 2 * time.Second

const (
	// joinPause is the wait for others to be copied from.
	joinPause = 20 * time.Millisecond
	// moreOrigins is how much longer it is waited for all of the set before: who reads fewer can
	// distinguish fewer locks from leftovers.
	moreOrigins = 300 * time.Millisecond
)
