package guard

import (
	"context"
	"errors"
	"time"

	"redlock-proxy/quorum/guard/marker"
	"redlock-proxy/quorum/guard/script"
)

// looks bounds how often one checkup looks again after it changed something.
const looks = 4

// Checkup looks at a master that answers and does what is next: lets it vote, puts it
// into quarantine, or gets it out. It returns when to look again. An error takes the
// master down; an *UnfitError is one.
func (g *Guard) Checkup(ctx context.Context) (time.Duration, error) {
	if g == nil {
		return Heartbeat, nil
	}
	if g.set.off {
		return g.lookUnguarded(ctx)
	}
	pause, err := g.look(ctx)
	if err != nil && ctx.Err() == nil { // what is queued still goes out at the end
		g.Withdraw()
	}
	return pause, err
}

func (g *Guard) look(ctx context.Context) (time.Duration, error) {
	for n := range looks {
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
			return claimedPause, nil
		}
		if pause > 0 || err != nil {
			return pause, err
		}
	}
	return 0, errUndecided
}

// lookUnguarded makes this proxy known where there is no guard, and checks that no others have
// other rules.
func (g *Guard) lookUnguarded(ctx context.Context) (time.Duration, error) {
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
	g.set.rules.saw(g.index, v)
	refused, err := g.agree(ctx, v)
	if err != nil {
		return Heartbeat, nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if refused != nil && refused.Why != Unproven && (g.refused == nil || g.refused.Why != refused.Why) {
		g.log.Warn("master has no vote", "master", g.Name, "cause", refused.Error())
	}
	g.refused = refused
	return lookAgain(refused), nil
}

// fitness returns an error, mostly an *UnfitError, if the master may not vote whatever it holds.
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
			return &UnfitError{Why: Twin + g.Name}
		case twin && j > i:
			g.Wake() // to find out for itself
		}
	}
	return nil
}

// Is reports whether the master is the server with this run_id.
func (g *Guard) Is(runID string) bool { return runID != "" && g.isTwin(runID, false) }

// isTwin reports whether the master has this run_id, too; or notes it, if it is its own.
func (g *Guard) isTwin(runID string, own bool) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if own {
		g.runID = runID
		return false
	}
	return runID != NotReported && g.runID == runID
}

// observe takes a master's report of the rules and of its set, and has others looked at where that
// is news. It returns the position of the master by that.
func (g *Guard) observe(v Report) position {
	g.set.rules.saw(g.index, v)
	if g.set.eras.take(g.index, v, time.Now()) {
		for _, other := range g.set.guards {
			if other != g {
				other.Wake()
			}
		}
	}
	return g.set.eras.position(g.index)
}

// proceed does the next thing for a master with this report. A pause of zero asks
// for another look at once.
func (g *Guard) proceed(ctx context.Context, v Report) (pause time.Duration, err error) {
	at := g.observe(v)
	if at == positionUnsettled {
		g.denyVote(&QuarantineError{Why: Unproven})
		return Heartbeat, nil
	}
	if cause := g.refusal(); cause != nil && at != positionOver {
		g.denyVote(cause) // and do nothing there: what is enough for us is not for them
		return Heartbeat, nil
	}
	g.set.override.reached(g.index, v.RunID, time.Now())
	past := g.remember(ctx, v)
	if v.Marker.Valid {
		past.position = at
	}
	verdict, why := judge(v, past)
	if g.set.eras.isRefuted(g.index) {
		why = Replicated
		g.set.warnOf(g.Name, "a master's claim that the masters were changed is ignored: a majority contradicts it")
	}
	if verdict == onOver || verdict != onTrust && verdict != onReword && g.set.eras.isOver() {
		return g.leave(ctx, v, past)
	}
	if verdict == onBlank && g.set.fresh.isOver() {
		verdict = onWait
	}
	if g.set.longest.Saw(g.index, v.Longest, verdict == onTrust) {
		g.set.warnOf(g.Name, "a record of the longest TTL that is longer than max-ttl and than any other master's is ignored", "record", v.Longest)
	}
	if longest := g.set.longest.Seen(); v.Longest < longest && !verdict.isNew() {
		if _, err := amend(ctx, g.Conn, script.RaiseLongest, marker.Millis(longest)); err != nil {
			return 0, err
		}
	}
	if !verdict.isNew() && verdict != onTrust {
		g.set.fresh.end()
	}
	if identity := v.RunID + v.Marker.Text + v.Record.Text; g.identity != identity {
		g.identity = identity
		clear(g.left) // it may have forgotten these, too
	}
	if !verdict.isNew() { // which is to stay empty
		if err := g.leaveAges(ctx); err != nil {
			return 0, err
		}
	}
	switch verdict {
	case onTrust:
		return g.vote(ctx, v)
	case onReword:
		return 0, g.reword(ctx, v)
	case onUnmarked, onBlank:
		return g.handleUnmarked(ctx, v)
	case onWait:
		if c := g.set.rules.on(g.index); c.differs != "" && c.settled { // as on the disk of another cluster: nobody has its vote
			if did, err := g.settle(ctx, v); did || err != nil {
				return 0, err
			}
		}
		return g.hold(ctx, v)
	case onJoin:
		return g.join(ctx, v)
	default:
		return 0, g.quarantine(ctx, v, why, claimOf(v, past))
	}
}

// remember is what the guard knows of the master's past. A clock that moved is the
// master's, or ours; where it is not known there is a doubt.
func (g *Guard) remember(ctx context.Context, v Report) memory {
	g.mu.Lock()
	past := memory{name: g.Name, suffix: g.set.eras.suffix(), nonce: g.last.Nonce, runID: g.last.RunID}
	past.lives = !g.voted.IsZero() && time.Since(g.voted) < leaseWait(g.set.longest.InUse())
	moved, missed, standing := g.step, g.canaryMissed, g.doubt
	past.older = g.older
	g.canaryMissed, g.older = false, false
	g.mu.Unlock()
	unjudged := !moved.At.IsZero() && !moved.Judged
	if nonce := v.Marker.Value.Nonce; nonce == "" || nonce != past.nonce { // others had it in quarantine since
		missed = false
		if unjudged && g.stepIsOver(v) {
			unjudged = false
			g.anchor(v.Sighting)
		}
	}
	if !unjudged && !missed {
		past.stepped = standing.nonce != "" && standing.nonce == v.Marker.Value.Nonce && g.set.canBlame(g, standing.step)
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
		g.anchor(v.Sighting)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	switch owner {
	case ownerOurs:
		g.log.Warn("the clock of this process stopped while that of the machine went on", "by", moved.Moved)
	case ownerUnclear:
		g.doubt = doubt{nonce: v.Marker.Value.Nonce, serverTime: v.Sighting.ServerTime, since: time.Now()}
		if unjudged {
			g.doubt.step = moved
		}
	}
	return past
}

// stepIsOver reports whether the step that a look at the master shows came before what stands there
// was written: others have judged it.
func (g *Guard) stepIsOver(v Report) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	moved, fits := g.clock.See(v.Sighting)
	return !fits && v.Sighting.SteppedBefore(v.stoodSince(), moved, g.fitted)
}

// anchor forgets what was known of the master's clock: its step is judged.
func (g *Guard) anchor(s Sighting) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.step.Judged = true
	g.clock.Anchor(s)
	g.canaries = map[int]canary{}
}
