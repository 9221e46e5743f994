package quorum

import (
	"context"
	"errors"
	"log/slog"
	"time"
)

// errUndecided is the cause of a master of which the state changes with every look.
var errUndecided = errors.New("its marker changes all the time")

// looks bounds how often one checkup looks again after it changed something.
const looks = 4

// checkup looks at a master that answers and does what is next: lets it vote, puts it
// into quarantine, or gets it out. It returns when to look again. An error takes the
// master down; an *UnfitError is one.
func (g *guard) checkup(ctx context.Context) (time.Duration, error) {
	if g == nil {
		return heartbeat, nil
	}
	for range looks {
		v, err := g.ward.examine(ctx)
		if err == nil {
			err = g.cluster.fitness(g.index, v)
		}
		if err != nil {
			if ctx.Err() == nil { // what is queued still goes out at the end
				g.withdraw()
			}
			return 0, err
		}
		pause, err := g.attend(ctx, v)
		if pause > 0 || err != nil {
			return pause, err
		}
	}
	return 0, errUndecided
}

// fitness returns an *UnfitError if the master may not vote whatever it holds.
func (c *Cluster) fitness(i int, v vitals) error {
	if why := v.unfit(); why != "" {
		return &UnfitError{Why: why}
	}
	for j, m := range c.masters {
		switch twin := m.guard.meets(v.runID, i == j); {
		case twin && j < i:
			return &UnfitError{Why: whyTwin + m.name}
		case twin && j > i:
			m.wake() // to find out for itself
		}
	}
	return nil
}

// meets reports whether the master has this run_id, too; or notes it, if it is its own.
func (g *guard) meets(runID string, own bool) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if own {
		g.runID = runID
		return false
	}
	return runID != untold && g.runID == runID
}

// withdraw takes the vote of a master away that is going down. It is no change to tell.
func (g *guard) withdraw() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.known != "" {
		g.known, g.cause = "", &QuarantineError{reason: reasonUnproven}
	}
}

// attend does the next thing for a master that told v of itself. A pause of zero asks
// for another look at once.
func (g *guard) attend(ctx context.Context, v vitals) (pause time.Duration, err error) {
	past := g.remember(ctx, v)
	verdict, why := judge(v, past)
	g.cluster.longest.saw(g.index, v.longest, verdict == onTrust)
	if longest := g.cluster.longest.seen(); v.longest < longest && verdict != onUnmarked {
		if _, err := g.ward.amend(ctx, longestScript, millis(longest)); err != nil {
			return 0, err
		}
	}
	switch verdict {
	case onTrust:
		return g.trust(ctx, v)
	case onRemark:
		_, err = g.admit(ctx, v, "remark")
	case onUnmarked:
		return g.greet(ctx, v)
	case onWait:
		return g.hold(ctx, v)
	default:
		err = g.condemn(ctx, v, why)
	}
	return 0, err
}

// remember is what the guard knows of the master's past. A clock that stepped is taken
// for ours if those of all masters did.
func (g *guard) remember(ctx context.Context, v vitals) memory {
	g.mu.Lock()
	g.sees(v.sighting)
	misfit := g.misfit
	past := memory{name: g.name, marker: g.trusted, stepped: !misfit.at.IsZero() && !misfit.judged}
	g.mu.Unlock()
	if !past.stepped {
		return past
	}
	past.stepped = !g.cluster.isOurClock(ctx, g.index, misfit)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.misfit.judged = true
	g.clock.anchor(v.sighting)
	if !past.stepped {
		g.log.Warn("the clock of this process stood still or ran wild beside those of all masters", "by", -misfit.moved)
	}
	return past
}

// trust lets the master vote, unless one of its databases was flushed.
func (g *guard) trust(ctx context.Context, v vitals) (time.Duration, error) {
	for _, db := range g.doubts() {
		lost := g.newRecord(v, reasonFlushed)
		if did, err := g.ward.amend(ctx, enrolScript, v.marker, db, lost.String()); err != nil || did != 1 {
			return 0, err
		}
	}
	g.cluster.fresh.meet(g.index)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.trusted != v.marker {
		g.enrolled = map[int]bool{}
	}
	if g.known == "" && (g.cause.reason != reasonUnproven || g.trusted != v.marker) {
		g.log.Info("master votes", "master", g.name)
	}
	g.known, g.trusted = v.marker, v.marker
	return heartbeat, nil
}

// doubts are the databases that seemed to have lost their marker, once.
func (g *guard) doubts() []int {
	g.mu.Lock()
	defer g.mu.Unlock()
	var dbs []int
	for db := range g.doubtful {
		dbs = append(dbs, db)
	}
	clear(g.doubtful)
	return dbs
}

// greet meets a master that has neither marker nor record, of which nothing is known.
func (g *guard) greet(ctx context.Context, v vitals) (time.Duration, error) {
	switch g.cluster.fresh.ask(g.index, v.runID, v.empty, time.Now()) {
	case freshWait:
		g.stand(&QuarantineError{reason: reasonFresh})
		return freshPause, nil
	case freshGo:
		g.cluster.longest.none()
		if did, err := g.admit(ctx, v, "fresh"); err != nil || did == 1 {
			return 0, err
		}
	}
	return 0, g.condemn(ctx, v, reasonRestarted)
}

// condemn puts the master into quarantine, for all proxies.
func (g *guard) condemn(ctx context.Context, v vitals, why reason) error {
	_, err := g.ward.amend(ctx, condemnScript, v.marker, v.record, g.newRecord(v, why).String())
	return err
}

func (g *guard) newRecord(v vitals, why reason) record {
	since := lostSince(v, why).Milliseconds()
	return record{runID: v.runID, nonce: g.cluster.nonce(), since: since, reason: why}
}

// admit lets the master vote, for all proxies. The proof is one of admitScript's.
func (g *guard) admit(ctx context.Context, v vitals, proof string) (int64, error) {
	m := marker{
		runID: v.runID, replID: v.replID, nonce: g.cluster.nonce(),
		durable: v.durable(), evicted: v.evicted, address: g.name,
	}
	longest := millis(g.cluster.longest.seen())
	did, err := g.ward.amend(ctx, admitScript, v.marker, v.record, m.String(), longest, proof)
	if err == nil && did == 1 {
		g.log.Info("master admitted", "master", g.name, "proof", proof)
	}
	return did, err
}

const (
	// grace is how long a master is in quarantine before it can catch up: longer than
	// a round may take that its vote counted in. The rest is for clocks that do not run
	// alike.
	grace = roundLimit + roundLimit/10
	// catchUpTime is what a catch-up is announced to take.
	catchUpTime = time.Second
	// catchUpPause is the wait after one that did not succeed.
	catchUpPause = 50 * time.Millisecond
	// leaseGrace is how long a quarantine that ends by lease lasts at least: until then
	// every proxy that lives has met the master again, and left there what it knows of
	// the longest TTL.
	leaseGrace = 2*heartbeat + grace
)

// hold keeps the master in quarantine until it caught up or the longest lease is over.
func (g *guard) hold(ctx context.Context, v vitals) (time.Duration, error) {
	r, _ := parseRecord(v.record)
	watched := g.watch(v)
	early := grace - watched
	sources := g.cluster.voters(g.index)
	lease := max(leaseLeft(r, v.sighting.told, g.cluster.longest.inUse()), leaseGrace-watched)
	if lease <= 0 {
		if err := g.cluster.askLongest(ctx, sources); err != nil {
			return catchUpPause, nil
		}
		lease = leaseLeft(r, v.sighting.told, g.cluster.longest.inUse())
	}
	if lease <= 0 {
		_, err := g.admit(ctx, v, "lease")
		return 0, err
	}
	enough := len(sources) >= sourcesNeeded(len(g.cluster.masters))
	ready := lease
	if enough {
		ready = min(lease, max(0, early)+catchUpTime)
	}
	g.stand(&QuarantineError{reason: r.reason, Ready: time.Now().Add(ready)})
	switch {
	case early > 0:
		return min(early, lease), nil
	case !enough:
		return min(heartbeat/4, lease), nil
	}
	if err := g.catchUp(ctx, v, sources); err != nil {
		g.log.Debug("catch-up given up for now", "master", g.name, "cause", causeText(err))
		return min(catchUpPause, lease), nil
	}
	return 0, nil
}

// askLongest has the sources tell the longest TTL in use as it is now.
func (c *Cluster) askLongest(ctx context.Context, sources []source) error {
	for _, s := range sources {
		r, err := s.guard.ward.databases(ctx)
		if err != nil || r.marker != s.marker {
			return errors.Join(errSourceLost, err)
		}
		c.longest.saw(s.guard.index, r.longest, true)
	}
	return nil
}

// watch is for how long this proxy has seen the record.
func (g *guard) watch(v vitals) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.watched != v.record {
		g.watched, g.watchedSince = v.record, v.sighting.got
	}
	return time.Since(g.watchedSince)
}

// stand notes that the master has no vote, and why.
func (g *guard) stand(cause *QuarantineError) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.known != "" || g.cause.reason != cause.reason {
		level := slog.LevelWarn
		if cause.reason == reasonFresh {
			level = slog.LevelDebug
		}
		g.log.Log(context.Background(), level, "master in quarantine", "master", g.name, "cause", cause.Error())
	}
	g.known, g.cause = "", cause
}

// standing is why the master does not vote, or nil.
func (g *guard) standing() *QuarantineError {
	if g == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.known != "" {
		return nil
	}
	return g.cause
}

// ourClockPatience bounds the wait for the other masters' clocks.
const ourClockPatience = 250 * time.Millisecond

// isOurClock reports whether the clocks of all masters that answer moved alike: then it
// was ours. It has them looked at.
func (c *Cluster) isOurClock(ctx context.Context, i int, seen misfit) bool {
	var others []*master
	for j, m := range c.masters {
		if j != i && !m.isDown() {
			others = append(others, m)
			m.wake()
		}
	}
	end := time.NewTimer(ourClockPatience)
	defer end.Stop()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		alike, asked := 0, 0
		for _, m := range others {
			switch m.guard.steppedWith(seen) {
			case stepAlike:
				alike++
			case stepUnknown:
				asked++
			case stepNone:
				return false
			}
		}
		if asked == 0 {
			return alike > 0
		}
		select {
		case <-tick.C:
		case <-end.C:
			return false
		case <-ctx.Done():
			return false
		}
	}
}

// What a master's clock did beside another that stepped.
type stepBeside int

const (
	stepUnknown stepBeside = iota
	stepAlike
	stepNone
)

const (
	// alikeTime and alikeMoved are how far apart in time, and in size, two steps may be
	// to have one cause.
	alikeTime  = 2 * heartbeat
	alikeMoved = 100 * time.Millisecond
)

func (g *guard) steppedWith(other misfit) stepBeside {
	g.mu.Lock()
	defer g.mu.Unlock()
	apart := (g.misfit.moved - other.moved).Abs()
	switch {
	case !g.misfit.at.IsZero() && g.misfit.at.Sub(other.at).Abs() < alikeTime && apart < alikeMoved:
		return stepAlike
	case g.fitted.After(other.at):
		return stepNone
	default:
		return stepUnknown
	}
}
