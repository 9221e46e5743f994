package guard

import (
	"context"
	"errors"
	"time"

	"redlock-proxy/quorum/guard/marker"
	"redlock-proxy/quorum/guard/script"
)

// maxChecks limits the checks within one checkup. After each change, the checkup checks the master
// again.
const maxChecks = 4

// Checkup checks a master that answers, and takes the next step: it lets the master vote, puts it
// into quarantine, or ends its quarantine. It returns the time until the next checkup. After an
// error, possibly an *UnfitError, the master counts as down.
func (g *Guard) Checkup(ctx context.Context) (time.Duration, error) {
	if g.set.opts.Off {
		return g.checkUnguarded(ctx)
	}
	pause, err := g.checkGuarded(ctx)
	// While this proxy shuts down, it still sends queued operations.
	if err != nil && ctx.Err() == nil {
		g.Withdraw()
	}
	return pause, err
}

// checkGuarded examines the master and takes the next step, until a step requests a pause.
func (g *Guard) checkGuarded(ctx context.Context) (time.Duration, error) {
	for n := range maxChecks {
		v, err := g.Conn.Examine(ctx)
		if err == nil {
			err = g.set.checkFitness(g.index, v)
		}
		if err != nil {
			return 0, err
		}
		g.mu.Lock()
		g.observeClock(v.ClockReading)
		g.mu.Unlock()
		if n == 0 {
			if err := g.announce(ctx); err != nil {
				return 0, err
			}
		}
		pause, err := g.takeNextStep(ctx, v)
		if cause, ok := errors.AsType[*QuarantineError](err); ok {
			g.denyVote(cause)
			return reservedPause, nil
		}
		if pause > 0 || err != nil {
			return pause, err
		}
	}
	return 0, errUnstableMarker
}

// checkUnguarded checks a master while the guard is off. It announces this proxy, and compares the
// master's rules with this proxy's.
func (g *Guard) checkUnguarded(ctx context.Context) (time.Duration, error) {
	if err := g.announce(ctx); err != nil {
		return 0, err
	}
	v, err := g.Conn.Examine(ctx)
	switch {
	case err == nil && v.isNewer():
		return 0, &UnfitError{Cause: unfitNewerProxies}
	case err == nil && v.Refusal != nil:
		return 0, v.Refusal
	case err != nil || g.set.rules.settings == "":
		return Heartbeat, nil
	}
	g.checkOrStoreRunID(v.RunID, true)
	g.set.rules.observe(g.index, v)
	conflict, err := g.adoptRules(ctx, v)
	if err != nil {
		return Heartbeat, nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if conflict != nil && conflict.Cause != Unverified && (g.rulesConflict == nil || g.rulesConflict.Cause != conflict.Cause) {
		g.log.Warn("master has no vote", "master", g.Name, "cause", conflict.Error())
	}
	g.rulesConflict = conflict
	return pauseAfterRules(conflict), nil
}

// checkFitness returns an error, usually an *UnfitError, if the master may not vote, regardless of
// its data.
func (s *Set) checkFitness(i int, v Report) error {
	switch reason := v.UnfitCause(); {
	case reason != "":
		return &UnfitError{Cause: reason}
	case v.Refusal != nil:
		return v.Refusal
	}
	for j, g := range s.guards {
		switch isSame := g.checkOrStoreRunID(v.RunID, i == j); {
		case isSame && j < i:
			return &UnfitError{Cause: DuplicateServer + g.Name}
		case isSame && j > i:
			g.Wake() // so that this guard finds the duplicate itself
		}
	}
	return nil
}

// HasServer reports whether the master is the server with this run_id.
func (g *Guard) HasServer(runID string) bool { return runID != "" && g.checkOrStoreRunID(runID, false) }

// checkOrStoreRunID reports whether the master's server has the run_id. If store is set, it stores
// the run_id instead.
func (g *Guard) checkOrStoreRunID(runID string, store bool) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if store {
		g.runID = runID
		return false
	}
	return runID != NotReported && g.runID == runID
}

// observe stores a master's report of its rules and its era. If the other masters must be checked
// at once, it wakes their guards. It returns the position of the master's marker.
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

// takeNextStep takes the next step for a master with this report. If pause is zero and err is nil,
// the caller checks the master again immediately.
func (g *Guard) takeNextStep(ctx context.Context, v Report) (pause time.Duration, err error) {
	position := g.observe(v)
	if position == positionUnknown {
		g.denyVote(&QuarantineError{Cause: Unverified})
		return Heartbeat, nil
	}
	if c := g.set.rules.check(g.index); c.majorityDiffers && position != positionEnded {
		// Change nothing: proxies with the majority's rules may have more masters.
		g.denyVote(&QuarantineError{Cause: ReasonDifferentRules, Differences: c.differences})
		return Heartbeat, nil
	}
	g.set.override.noteReached(g.index, v.RunID, time.Now())
	past := g.gatherHistory(ctx, v)
	past.position = position
	action, reason := judge(v, past)
	if g.set.eras.isRefuted(g.index) {
		reason = Replicated
		g.set.warnOnce(g.Name, "ignored a master's claim that the masters were changed: a majority contradicts it",
			"master", g.Name)
	}
	if action == actionEnded || action != actionTrust && action != actionUpdateMarker && g.set.Reconfiguration() != nil {
		return g.handleEndedEra(ctx, v, past)
	}
	if action == actionEmpty && g.set.freshStart.hasEnded() {
		action = actionWait
	}
	if g.set.maxTTLInUse.Observe(g.index, v.LongestTTL, action == actionTrust) {
		g.set.warnOnce(g.Name,
			"ignored a record of the longest TTL: it is longer than max-ttl and than every other master's",
			"master", g.Name, "record", v.LongestTTL)
	}
	if longestTTL := g.set.maxTTLInUse.LargestRecord(); v.LongestTTL < longestTTL && !action.isNew() {
		if _, err := runInt(ctx, g.Conn, script.RaiseLongestTTL, marker.FormatMillis(longestTTL)); err != nil {
			return 0, err
		}
	}
	if !action.isNew() && action != actionTrust {
		g.set.freshStart.end()
	}
	if identity := v.RunID + v.Marker.Text + v.Record.Text; g.identity != identity {
		g.identity = identity
		clear(g.published) // the master may have lost the published numbers, too
	}
	if !action.isNew() { // a new master must stay empty
		if err := g.publishSeqs(ctx); err != nil {
			return 0, err
		}
	}
	switch action {
	case actionTrust:
		return g.vote(ctx, v)
	case actionUpdateMarker:
		return 0, g.updateMarker(ctx, v)
	case actionUnmarked, actionEmpty:
		return g.handleUnmarked(ctx, v)
	case actionWait:
		// A master with the disk of another cluster votes for no proxy: replace its rules.
		if c := g.set.rules.check(g.index); c.differences != "" && c.majorityAgrees {
			if written, err := g.writeRules(ctx, v); written || err != nil {
				return 0, err
			}
		}
		return g.quarantineStep(ctx, v)
	case actionJoin:
		return g.join(ctx, v)
	default:
		return 0, g.quarantine(ctx, v, reason, claimOf(v, past))
	}
}

// gatherHistory collects the guard's knowledge of the master's past. It decides whether the
// master's clock stepped, or whether this machine was suspended. If it cannot tell, it records a
// suspicion.
func (g *Guard) gatherHistory(ctx context.Context, v Report) history {
	g.mu.Lock()
	past := history{name: g.Name, nonce: g.lastTrust.Nonce, runID: g.lastTrust.RunID}
	past.isRecordOwn = g.set.eras.isOwn(v.Record.Value)
	past.mayHoldLock = !g.lastVote.IsZero() && time.Since(g.lastVote) < leaseWait(g.set.maxTTLInUse.TTLInUse())
	step, canaryMissed, suspicion := g.lastStep, g.canaryMissed, g.suspicion
	past.seqWentBack = g.seqWentBack
	g.canaryMissed, g.seqWentBack = false, false
	g.mu.Unlock()
	unjudged := !step.At.IsZero() && !step.Judged
	// A missing or different marker means that another proxy put the master into quarantine
	// meanwhile.
	if nonce := v.Marker.Value.Nonce; nonce == "" || nonce != past.nonce {
		canaryMissed = false
		if unjudged && g.isStepJudged(v) {
			unjudged = false
			g.resetClock(v.ClockReading)
		}
	}
	if !unjudged && !canaryMissed {
		past.clockStepped = suspicion.nonce != "" && suspicion.nonce == v.Marker.Value.Nonce &&
			g.set.mayQuarantineForClock(g, suspicion.step)
		return past
	}
	owner := ownerMaster
	if unjudged {
		owner = g.set.clockOwner(ctx, g.index, step)
	}
	if owner == ownerMaster && !g.set.tryBlameClock(g) {
		owner = ownerUnknown
	}
	past.clockStepped = owner == ownerMaster
	if unjudged {
		g.resetClock(v.ClockReading)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	switch owner {
	case ownerThisMachine:
		g.log.Warn("this machine was suspended", "by", step.Size)
	case ownerUnknown:
		g.suspicion = clockSuspicion{nonce: v.Marker.Value.Nonce, serverTime: v.ClockReading.ServerTime, startedAt: time.Now()}
		if unjudged {
			g.suspicion.step = step
		}
	}
	return past
}

// isStepJudged reports whether the step in this report came before a proxy wrote the master's
// present marker or record. Then that proxy has judged the step.
func (g *Guard) isStepJudged(v Report) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	stepSize, fits := g.clock.Observe(v.ClockReading)
	return !fits && v.ClockReading.SteppedBefore(v.markedAt(), stepSize, g.lastFittingReading)
}

// resetClock discards the known range of the master's clock, because the step has been judged.
func (g *Guard) resetClock(s ClockReading) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.lastStep.Judged = true
	g.clock.Restart(s)
	g.canaries = map[int]canary{}
}
