package guard

import (
	"context"
	"errors"
	"time"

	"redlock-proxy/quorum/guard/marker"
	"redlock-proxy/quorum/guard/script"
)

// maxLooks limits the checks within one checkup: after a change, the master is checked again.
const maxLooks = 4

// Checkup checks a master that answers, and takes the next step: it lets the master vote, puts it
// into quarantine, or ends its quarantine. It returns the time until the next checkup. After an
// error, possibly an *UnfitError, the master counts as down.
func (g *Guard) Checkup(ctx context.Context) (time.Duration, error) {
	if g == nil {
		return Heartbeat, nil
	}
	if g.set.off {
		return g.checkUnguarded(ctx)
	}
	pause, err := g.checkGuarded(ctx)
	if err != nil && ctx.Err() == nil { // when the proxy stops, it still sends queued operations
		g.Withdraw()
	}
	return pause, err
}

func (g *Guard) checkGuarded(ctx context.Context) (time.Duration, error) {
	for n := range maxLooks {
		v, err := g.Conn.Examine(ctx)
		if err == nil {
			err = g.set.fitness(g.index, v)
		}
		if err != nil {
			return 0, err
		}
		g.mu.Lock()
		g.observeClock(v.Sighting)
		g.mu.Unlock()
		if n == 0 {
			if err := g.announce(ctx); err != nil {
				return 0, err
			}
		}
		pause, err := g.proceed(ctx, v)
		if cause, is := errors.AsType[*QuarantineError](err); is {
			g.denyVote(cause)
			return reservedPause, nil
		}
		if pause > 0 || err != nil {
			return pause, err
		}
	}
	return 0, errUndecided
}

// checkUnguarded announces this proxy if there is no guard, and checks that no other proxies have
// different rules.
func (g *Guard) checkUnguarded(ctx context.Context) (time.Duration, error) {
	if err := g.announce(ctx); err != nil {
		return 0, err
	}
	v, err := g.Conn.Examine(ctx)
	switch {
	case err == nil && v.isNewer():
		return 0, &UnfitError{Why: whyNewer}
	case err == nil && v.Refusal != nil:
		return 0, v.Refusal
	case err != nil || g.set.rules.settings == "":
		return Heartbeat, nil
	}
	g.isTwin(v.RunID, true)
	g.set.rules.observe(g.index, v)
	refused, err := g.adoptRules(ctx, v)
	if err != nil {
		return Heartbeat, nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if refused != nil && refused.Why != Unverified && (g.refused == nil || g.refused.Why != refused.Why) {
		g.log.Warn("master has no vote", "master", g.Name, "cause", refused.Error())
	}
	g.refused = refused
	return nextLook(refused), nil
}

// fitness returns an error, usually an *UnfitError, if the master may not vote, whatever data it
// has.
func (s *Set) fitness(i int, v Report) error {
	switch why := v.Unfit(); {
	case why != "":
		return &UnfitError{Why: why}
	case v.Refusal != nil:
		return v.Refusal
	}
	for j, g := range s.guards {
		switch twin := g.isTwin(v.RunID, i == j); {
		case twin && j < i:
			return &UnfitError{Why: DuplicateServer + g.Name}
		case twin && j > i:
			g.Wake() // let that guard find the duplicate itself
		}
	}
	return nil
}

// Is reports whether the master is the server with this run_id.
func (g *Guard) Is(runID string) bool { return runID != "" && g.isTwin(runID, false) }

// isTwin reports whether the master has the run_id of another master. If own is set, isTwin stores
// the run_id as the master's own.
func (g *Guard) isTwin(runID string, own bool) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if own {
		g.runID = runID
		return false
	}
	return runID != NotReported && g.runID == runID
}

// observe stores a master's report of its rules and its era. If the report is new, it wakes the
// other guards. It returns the position of the master's marker.
func (g *Guard) observe(v Report) eraPosition {
	g.set.rules.observe(g.index, v)
	if g.set.eras.observe(g.index, v, time.Now()) {
		for _, other := range g.set.guards {
			if other != g {
				other.Wake()
			}
		}
	}
	return g.set.eras.position(g.index)
}

// proceed takes the next step for a master with this report. A pause of zero requests another check
// at once.
func (g *Guard) proceed(ctx context.Context, v Report) (pause time.Duration, err error) {
	at := g.observe(v)
	if at == positionUnknown {
		g.denyVote(&QuarantineError{Why: Unverified})
		return Heartbeat, nil
	}
	if cause := g.rulesRefusal(); cause != nil && at != positionEnded {
		g.denyVote(cause) // change nothing: this proxy's majority may not be a majority of their masters
		return Heartbeat, nil
	}
	g.set.override.reached(g.index, v.RunID, time.Now())
	past := g.gatherHistory(ctx, v)
	if v.Marker.Valid {
		past.position = at
	}
	verdict, why := judge(v, past)
	if g.set.eras.isRefuted(g.index) {
		why = Replicated
		g.set.warnOnce(g.Name, "ignored a master's claim that the masters were changed: a majority contradicts it")
	}
	if verdict == actionEnded || verdict != actionTrust && verdict != actionUpdateMarker && g.set.eras.isOver() {
		return g.leaveEnded(ctx, v, past)
	}
	if verdict == actionEmpty && g.set.fresh.isOver() {
		verdict = actionWait
	}
	if g.set.maxTTLInUse.Saw(g.index, v.Longest, verdict == actionTrust) {
		g.set.warnOnce(g.Name,
			"ignored a record of the longest TTL: it is longer than max-ttl and than every other master's",
			"record", v.Longest)
	}
	if longest := g.set.maxTTLInUse.Seen(); v.Longest < longest && !verdict.isNew() {
		if _, err := runInt(ctx, g.Conn, script.RaiseLongest, marker.Millis(longest)); err != nil {
			return 0, err
		}
	}
	if !verdict.isNew() && verdict != actionTrust {
		g.set.fresh.end()
	}
	if identity := v.RunID + v.Marker.Text + v.Record.Text; g.identity != identity {
		g.identity = identity
		clear(g.published) // the master may have lost the published numbers, too
	}
	if !verdict.isNew() { // a new master must stay empty
		if err := g.publishSeqs(ctx); err != nil {
			return 0, err
		}
	}
	switch verdict {
	case actionTrust:
		return g.vote(ctx, v)
	case actionUpdateMarker:
		return 0, g.updateMarker(ctx, v)
	case actionUnmarked, actionEmpty:
		return g.handleUnmarked(ctx, v)
	case actionWait:
		// The master has the disk of another cluster: it votes for no proxy.
		if c := g.set.rules.consentFor(g.index); c.differs != "" && c.settled {
			if did, err := g.writeRules(ctx, v); did || err != nil {
				return 0, err
			}
		}
		return g.quarantineStep(ctx, v)
	case actionJoin:
		return g.join(ctx, v)
	default:
		return 0, g.quarantine(ctx, v, why, claimOf(v, past))
	}
}

// gatherHistory collects the guard's knowledge of the master's past. It decides whether the
// master's clock or ours stepped. If it cannot tell, it records a suspicion.
func (g *Guard) gatherHistory(ctx context.Context, v Report) history {
	g.mu.Lock()
	past := history{name: g.Name, suffix: g.set.eras.recordSuffix(), nonce: g.last.Nonce, runID: g.last.RunID}
	past.lives = !g.voted.IsZero() && time.Since(g.voted) < leaseWait(g.set.maxTTLInUse.InUse())
	moved, missed, standing := g.step, g.canaryMissed, g.suspicion
	past.older = g.older
	g.canaryMissed, g.older = false, false
	g.mu.Unlock()
	unjudged := !moved.At.IsZero() && !moved.Judged
	// Another proxy has had the master in quarantine meanwhile.
	if nonce := v.Marker.Value.Nonce; nonce == "" || nonce != past.nonce {
		missed = false
		if unjudged && g.isStepJudged(v) {
			unjudged = false
			g.resetClock(v.Sighting)
		}
	}
	if !unjudged && !missed {
		past.stepped = standing.nonce != "" && standing.nonce == v.Marker.Value.Nonce &&
			g.set.mayQuarantineForClock(g, standing.step)
		return past
	}
	owner := ownerMaster
	if unjudged {
		owner = g.set.clockOwner(ctx, g.index, moved)
	}
	if owner == ownerMaster && !g.set.mayQuarantine(g) {
		owner = ownerUnclear
	}
	past.stepped = owner == ownerMaster
	if unjudged {
		g.resetClock(v.Sighting)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	switch owner {
	case ownerOurs:
		g.log.Warn("this machine was suspended", "by", moved.Moved)
	case ownerUnclear:
		g.suspicion = clockSuspicion{nonce: v.Marker.Value.Nonce, serverTime: v.Sighting.ServerTime, since: time.Now()}
		if unjudged {
			g.suspicion.step = moved
		}
	}
	return past
}

// isStepJudged reports whether the step in this report came before the master's present marker or
// record was written. Then another proxy has judged the step.
func (g *Guard) isStepJudged(v Report) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	moved, fits := g.clock.See(v.Sighting)
	return !fits && v.Sighting.SteppedBefore(v.markedSince(), moved, g.fitted)
}

// resetClock forgets the known range of the master's clock, because the step has been judged.
func (g *Guard) resetClock(s Sighting) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.step.Judged = true
	g.clock.Anchor(s)
	g.canaries = map[int]canary{}
}
