package quorum

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"redlock-proxy/quorum/guard"
	"redlock-proxy/quorum/guard/reconfig"
	"redlock-proxy/quorum/inspect"
)

const (
	// decisionTimeout limits one try to get a decision of the masters.
	decisionTimeout = 5 * time.Second
	// followPause is the wait between two checks whether another proxy changed the masters,
	// askPause between two requests for a new configuration.
	followPause = 20 * time.Millisecond
	askPause    = time.Second
	// oldSetTime is the time for which the former masters stay connected. Meanwhile undos reach the
	// former masters, and this proxy can copy their locks.
	oldSetTime = 10 * time.Second
)

// ChangeMasters replaces the current masters with a set in which one master is added, removed, or
// replaced. The masters decide, so that all proxies get the same set even if they request different
// sets. ChangeMasters returns once the masters have decided on the set. Commands wait until a
// majority of the new masters votes. If another proxy has changed the masters to this set, this
// proxy follows.
//
// check returns an error if a server that must not become a master, such as the upstream, is among
// the new masters. ChangeMasters calls check before the change begins. masterName returns the name
// of the new master with this run_id or address.
//
// After an error the masters do not change to this set, unless the error is ErrUndecided.
func (c *Cluster) ChangeMasters(
	ctx context.Context, urls []string, check func(masterName func(runID, addr string) string) error,
) error {
	ctx, release, err := c.acquireChange(ctx)
	if err != nil {
		return err
	}
	defer release()
	set := c.masterSet()
	names := masterNames(urls)
	if s := set.guards.ReconfigurationTo(names); s != nil {
		return c.adoptMasters(ctx, set, *s, urls)
	}
	if err := reconfig.CheckStep(set.names(), names); err != nil {
		return err
	}
	era, err := set.guards.CheckChange(func(name string) bool { return slices.Contains(names, name) })
	if err != nil {
		return err
	}
	if err := c.checkNewMasters(ctx, set, urls, check); err != nil {
		return err
	}
	if era.Place.Moves() {
		return errors.New("the locks are being moved")
	}
	wanted := reconfig.Change{PreviousMasterCount: len(set.masters), Names: names, Place: era.Place}
	decided, err := c.decide(ctx, set, era, wanted, urls)
	switch {
	case errors.Is(err, errFollowed):
		return nil
	case errors.Is(err, errOvertaken):
		return fmt.Errorf("another proxy is changing the masters to %s",
			strings.Join(decided.Names, ", "))
	}
	return err
}

// ErrUndecided means that the masters have not decided on a change yet. If the change has begun, it
// continues without another command.
var ErrUndecided = errors.New("the masters have not decided on the change yet, and may still do so without another command")

// errFollowed means that another proxy decided first, and this proxy has followed that decision.
var errFollowed = errors.New("another proxy decided first")

// errOvertaken means that the masters decided on a different change, which another proxy wanted.
var errOvertaken = errors.New("another proxy decided otherwise at the same time")

// decide gets a decision of the masters on the next era. If it is the wanted decision, this proxy
// switches to that era.
func (c *Cluster) decide(
	ctx context.Context, set *masterSet, era reconfig.Era, wantedChange reconfig.Change, urls []string,
) (reconfig.Change, error) {
	transports, err := newTransports(c.opts, urls)
	if err != nil {
		return reconfig.Change{}, err
	}
	u := c.beginChange(set, wantedChange.Names)
	ctx, cancel := context.WithTimeout(ctx, decisionTimeout)
	defer cancel()
	decided, err := set.guards.Decide(ctx, era, wantedChange, c.newBallot)
	s := set.guards.Reconfiguration()
	switch {
	case err != nil && s == nil:
		c.endChange(u)
		return decided, fmt.Errorf("%w: %w", ErrUndecided, err)
	case err != nil && s.Begun:
		return decided, cmp.Or(c.adoptMasters(ctx, set, *s, urls), errFollowed)
	case err != nil:
		return decided, fmt.Errorf("%w: %w", ErrUndecided, err)
	case !decided.Equals(wantedChange):
		return decided, errOvertaken
	}
	next := decided.NextEra(era)
	c.switchTo(set, newMasterSet(c, c.optionsOf(urls), transports, &next, set.guards), u)
	return decided, nil
}

// checkNewMasters returns the reason why a new master cannot be used, or nil. check is as for
// ChangeMasters.
func (c *Cluster) checkNewMasters(
	ctx context.Context, set *masterSet, urls []string, check func(masterName func(runID, addr string) string) error,
) error {
	current := set.names()
	findings := inspect.ExamineMasters(ctx, urls, c.opts.Access, inspect.PushConnections{})
	servers := make([]*inspect.Finding, len(findings))
	for i := range findings {
		servers[i] = &findings[i]
	}
	for _, f := range findings {
		isNew, shortage := !slices.Contains(current, f.Name), f.DatabaseShortage(servers...)
		switch {
		case f.Err != nil:
			return fmt.Errorf("master %s cannot be used: %w", f.Name, f.Err)
		case len(f.SafetyProblems) > 0:
			return fmt.Errorf("master %s: %s", f.Name, strings.Join(f.SafetyProblems, ", "))
		case isNew && f.Votes:
			return fmt.Errorf("master %s already votes in another set of masters; empty it first (FLUSHALL)", f.Name)
		case isNew && shortage != "": // it could never catch up in the missing ones
			return fmt.Errorf("master %s %s; raise its databases", f.Name, shortage)
		}
	}
	return check(func(runID, addr string) string { return inspect.NameOf(findings, runID, addr) })
}

// adoptMasters switches this proxy to the masters that another proxy chose, if the URLs name the
// same masters.
func (c *Cluster) adoptMasters(ctx context.Context, set *masterSet, s guard.Reconfiguration, urls []string) error {
	names, next := masterNames(urls), s.Change.NextEra(s.Era)
	if !s.Begun {
		// Perhaps only this proxy knows of the change.
		decided, err := set.guards.Decide(ctx, s.Era, s.Change, c.newBallot)
		succession := set.guards.Reconfiguration()
		if err != nil && succession != nil && succession.Begun { // another proxy decided first
			return c.adoptMasters(ctx, set, *succession, urls)
		}
		if err != nil {
			return fmt.Errorf("%w: %w", ErrUndecided, err)
		}
		s.Change, next = decided, decided.NextEra(s.Era)
	}
	if s.Begun && !s.Era.HasMasters(names) || !s.Begun && !next.HasMasters(names) {
		if len(s.Change.Names) == 0 {
			return errors.New("other proxies changed the masters to a different set; " +
				"name the same masters in this proxy's configuration")
		}
		return fmt.Errorf("other proxies changed the masters to %s; "+
			"name the same masters in this proxy's configuration", strings.Join(s.Change.Names, ", "))
	}
	transports, err := newTransports(c.opts, urls)
	if err != nil {
		return err
	}
	era := &next
	if s.Begun {
		era = &s.Era
	}
	c.switchTo(set, newMasterSet(c, c.optionsOf(urls), transports, era, set.guards), c.beginChange(set, names))
	return nil
}

// urlsOf returns the URLs of a set's masters, with the current passwords.
func (c *Cluster) urlsOf(set *masterSet) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if reconfig.Hash(masterNames(c.latestURLs)) == reconfig.Hash(set.names()) {
		return c.latestURLs
	}
	return set.urls
}

func (c *Cluster) optionsOf(urls []string) Options {
	opts := c.opts
	opts.Masters, opts.FreshStart, opts.Override = urls, false, nil
	opts.MaxTTL = max(opts.MaxTTL, c.masterSet().guards.MaxTTL())
	return opts
}

// newBallot returns a new ballot of this process, with a round above the given round.
func (c *Cluster) newBallot(minRound uint64) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ballotRound = max(c.ballotRound, minRound) + 1
	return string(c.source.Ballot(c.ballotRound))
}

// beginChange makes commands wait from now on. oldSet is the set before the change.
func (c *Cluster) beginChange(oldSet *masterSet, newMasters []string) *change {
	u := &change{newMasters: newMasters, start: time.Now(), done: make(chan struct{}),
		sameMasters: reconfig.Hash(newMasters) == reconfig.Hash(oldSet.names())}
	if previous := c.currentChange.Load(); previous != nil {
		u.start, u.done = previous.start, previous.done
	}
	c.currentChange.Store(u)
	c.notifyLocation()
	return u
}

// endChange lets commands continue.
func (c *Cluster) endChange(u *change) {
	c.currentChange.Store(nil)
	close(u.done)
	c.notifyLocation()
}

// switchTo replaces the active set, and lets commands continue once a majority of the new set's
// masters votes.
func (c *Cluster) switchTo(oldSet, newSet *masterSet, u *change) {
	newSet.observe(c.observeRoundTrips)
	oldSet.databases.Range(func(db, oldDatabase any) bool {
		newSet.database(db.(int)).CopyGrants(oldDatabase.(*database).Register)
		return true
	})
	c.activeSet.Store(newSet)
	c.start(newSet)
	// From now on clients publish on the new masters, so the old listener would miss messages.
	c.tasks.Go(func() { oldSet.listener().Close() })
	oldSet.quiet.Store(true)
	s := newStep(oldSet, newSet)
	if s.begin != "" {
		c.log.Info(s.begin, s.attrs...)
	}
	c.tasks.Go(func() { c.awaitQuorum(oldSet, newSet, u, s) })
}

// step describes a planned step for the log: the messages at its beginning and end (empty: none),
// and their attributes.
type step struct {
	begin, end string
	attrs      []any
}

// newStep returns the step from one set to the next. A move of the locks consists of two steps: its
// beginning and its end.
func newStep(old, next *masterSet) step {
	oldEra, _ := old.guards.OwnEra()
	switch newEra, _ := next.guards.OwnEra(); {
	case !slices.Equal(old.names(), next.names()):
		return step{
			"the masters are being changed", "the masters were changed",
			[]any{"from", strings.Join(old.names(), " "), "to", strings.Join(next.names(), " ")},
		}
	case newEra.Place == oldEra.Place: // the masters decided on the same location once more
		return step{}
	case newEra.Place.Moves():
		return step{begin: "the locks are being moved", attrs: []any{"to", newEra.Place.Target(), "era", newEra.Number}}
	default:
		return step{end: "the move of the locks has ended", attrs: []any{"place", newEra.Place, "era", newEra.Number}}
	}
}

// awaitQuorum lets commands continue once a majority of the new masters votes, and each master that
// was up before has answered. It waits at most a heartbeat for these answers. Then it waits at most
// changeTimeout until all masters vote, and after oldSetTime it disconnects the old masters.
func (c *Cluster) awaitQuorum(old, next *masterSet, u *change, s step) {
	defer c.halt(old)
	start := time.Now()
	for !next.HasQuorum() || next.awaitsAnswer(old) && time.Since(start) < guard.Heartbeat {
		if c.stoppedDuring(followPause/2) || c.masterSet() != next {
			return
		}
	}
	if c.currentChange.Load() == u {
		c.endChange(u)
	}
	elapsed := time.Since(start).Round(time.Millisecond)
	for countVoting(next.masters) < len(next.masters) && time.Since(start) < changeTimeout &&
		!c.stoppedDuring(followPause) {
		if c.masterSet() != next {
			return
		}
	}
	next.restoreLogLevel(old)
	if s.end != "" {
		c.log.Info(s.end, append(s.attrs,
			"voting", countVoting(next.masters), "masters", len(next.masters), "took", elapsed)...)
	}
	c.stoppedDuring(oldSetTime)
}

// restoreLogLevel lets the set log at the normal levels again. It logs the masters that went down
// during the step.
func (set *masterSet) restoreLogLevel(previous *masterSet) {
	set.quiet.Store(false)
	names := previous.names()
	for _, m := range set.Status() {
		if index := slices.Index(names, m.Name); m.Err != nil && (index < 0 || !previous.masters[index].IsDown()) {
			set.log.Warn("master down", "master", m.Name, "cause", m.Cause())
		}
	}
}

// awaitsAnswer reports whether a master that was up in the former set has not answered yet. Without
// the answer of that master, a value that only a bare majority stored may look undetermined.
func (set *masterSet) awaitsAnswer(previous *masterSet) bool {
	names := previous.names()
	for i, name := range set.names() {
		if index := slices.Index(names, name); index >= 0 && !previous.masters[index].IsDown() && set.masters[i].IsStateUnknown() {
			return true
		}
	}
	return false
}
