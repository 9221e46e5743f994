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
	// decisionTime is how long a proxy tries to have the masters agree, at a time.
	decisionTime = 5 * time.Second
	// followPause is the wait between two looks whether another proxy changed the masters; askPause
	// that between two questions for a configuration that follows.
	followPause = 20 * time.Millisecond
	askPause    = time.Second
	// keepBefore is for how long the masters of before are still reached, for what is undone there,
	// and copied from there.
	keepBefore = 10 * time.Second
)

// ChangeMasters has other masters follow those of now, of which one was added, removed, or replaced
// by another: decided among the masters, so that of several proxies which want different ones all
// come to the same. It returns when it is decided; commands wait until a majority of the new
// masters votes. Where another proxy has changed the masters to these, it follows.
//
// After an error the masters are as they were, unless the error is that this is not known.
func (c *Cluster) ChangeMasters(ctx context.Context, urls []string) error {
	c.changing.Lock()
	defer c.changing.Unlock()
	g := c.now()
	names := namesIn(urls)
	if s := g.guards.SuccessionTo(names); s != nil {
		return c.followTo(ctx, g, *s, urls)
	}
	if err := reconfig.Step(g.names(), names); err != nil {
		return err
	}
	era, err := g.guards.MayChange(func(name string) bool { return slices.Contains(names, name) })
	if err != nil {
		return err
	}
	if err := c.mayCome(ctx, g, urls); err != nil {
		return err
	}
	if era.Place.Moves() {
		return errors.New("the locks are being moved")
	}
	decided, err := c.decide(ctx, g, era, reconfig.Change{Before: len(g.masters), Names: names, Place: era.Place}, urls)
	switch {
	case errors.Is(err, errFollowed):
		return nil
	case errors.Is(err, errOvertaken):
		return fmt.Errorf("another proxy changes the masters at the same time, to %s", strings.Join(decided.Names, ", "))
	}
	return err
}

// errFollowed is returned where another proxy decided first, and this one follows.
var errFollowed = errors.New("another proxy was first")

// errOvertaken is returned where something else was decided than was wanted.
var errOvertaken = errors.New("another proxy decided otherwise at the same time")

// decide has the masters agree on what follows an era, and has it followed here if it is what was
// wanted.
func (c *Cluster) decide(ctx context.Context, g *generation, era reconfig.Era, wanted reconfig.Change, urls []string) (reconfig.Change, error) {
	transports, err := transportsTo(c.opts, urls)
	if err != nil {
		return reconfig.Change{}, err
	}
	u := c.begin(wanted.Names)
	ctx, cancel := context.WithTimeout(ctx, decisionTime)
	defer cancel()
	decided, err := g.guards.Decide(ctx, era, wanted, c.ballot)
	s := g.guards.Succession()
	switch {
	case err != nil && s == nil:
		c.end(u)
		return decided, fmt.Errorf("whether the masters will be changed is not known yet: %w", err)
	case err != nil && s.Begun:
		return decided, cmp.Or(c.followTo(ctx, g, *s, urls), errFollowed)
	case err != nil:
		return decided, fmt.Errorf("the change of the masters was begun, and goes on by itself, but it is not decided yet: %w", err)
	case !decided.Is(wanted):
		return decided, errOvertaken
	}
	next := decided.After(era)
	c.swap(g, newGeneration(c, c.optionsOf(urls), transports, &next, g.guards), u)
	return decided, nil
}

// mayCome is why masters cannot be used, or nil.
func (c *Cluster) mayCome(ctx context.Context, g *generation, urls []string) error {
	known := g.names()
	for _, f := range inspect.Masters(ctx, urls, c.opts.MasterTimeout, c.opts.TLS, inspect.Feeds{}) {
		switch {
		case f.Err != nil:
			return fmt.Errorf("master %s cannot be used: %w", f.Name, f.Err)
		case len(f.Unsafe) > 0:
			return fmt.Errorf("master %s: %s", f.Name, strings.Join(f.Unsafe, ", "))
		case f.Votes && !slices.Contains(known, f.Name):
			return fmt.Errorf("master %s votes already, among others: empty it first (FLUSHALL)", f.Name)
		}
	}
	return nil
}

// followTo has this proxy use the masters that follow, if these are they.
func (c *Cluster) followTo(ctx context.Context, g *generation, s guard.Succession, urls []string) error {
	names, next := namesIn(urls), s.Change.After(s.Era)
	if !s.Begun {
		decided, err := g.guards.Decide(ctx, s.Era, s.Change, c.ballot)          // it may be known to this proxy alone by now
		if now := g.guards.Succession(); err != nil && now != nil && now.Begun { // others were first
			return c.followTo(ctx, g, *now, urls)
		}
		if err != nil {
			return fmt.Errorf("the masters are being changed, which is not decided yet: %w", err)
		}
		s.Change, next = decided, decided.After(s.Era)
	}
	if s.Begun && !s.Era.Is(names) || !s.Begun && !next.Is(names) {
		if len(s.Change.Names) == 0 {
			return errors.New("other proxies changed the masters, not to these")
		}
		return fmt.Errorf("other proxies changed the masters to %s, not to %s", strings.Join(s.Change.Names, ", "), strings.Join(names, ", "))
	}
	transports, err := transportsTo(c.opts, urls)
	if err != nil {
		return err
	}
	joins := &next
	if s.Begun {
		joins = &s.Era
	}
	c.swap(g, newGeneration(c, c.optionsOf(urls), transports, joins, g.guards), c.begin(names))
	return nil
}

// urlsOf are those of a generation, with the passwords of now.
func (c *Cluster) urlsOf(g *generation) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if reconfig.Hash(namesIn(c.latest)) == reconfig.Hash(g.names()) {
		return c.latest
	}
	return g.urls
}

func (c *Cluster) optionsOf(urls []string) Options {
	opts := c.opts
	opts.Masters, opts.FreshStart, opts.Vouched = urls, false, nil
	opts.MaxTTL = max(opts.MaxTTL, c.now().guards.MaxTTL())
	return opts
}

// ballot is one of this process above a round, never used before.
func (c *Cluster) ballot(above uint64) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rounds = max(c.rounds, above) + 1
	return string(c.source.Ballot(c.rounds))
}

// begin has commands wait from now on.
func (c *Cluster) begin(to []string) *change {
	u := &change{to: to, began: time.Now(), done: make(chan struct{})}
	if before := c.underway.Load(); before != nil {
		u.began, u.done = before.began, before.done
	}
	c.underway.Store(u)
	c.turn()
	return u
}

// end has commands go on.
func (c *Cluster) end(u *change) {
	c.underway.Store(nil)
	close(u.done)
	c.turn()
}

// swap has other masters be used, and commands go on once a majority of them votes.
func (c *Cluster) swap(old, next *generation, u *change) {
	next.observe(c.roundTrips)
	old.keyspaces.Range(func(db, known any) bool {
		next.keyspace(db.(int)).Inherit(known.(*keyspace).Register)
		return true
	})
	c.current.Store(next)
	c.start(next)
	c.tasks.Go(func() { old.listener().Close() }) // what is published on the new ones, the old ones do not bring
	old.hushed.Store(true)
	s := stepOf(old, next)
	if s.begin != "" {
		c.log.Info(s.begin, s.about...)
	}
	c.tasks.Go(func() { c.untilOpen(old, next, u, s) })
}

// step is a planned one in words: what is logged at its beginning and at its end, unless that is
// empty, and what of it.
type step struct {
	begin, end string
	about      []any
}

// stepOf returns the step from one generation to the next. A move is two of them.
func stepOf(old, next *generation) step {
	was, _ := old.guards.OwnEra()
	switch era, _ := next.guards.OwnEra(); {
	case !slices.Equal(old.names(), next.names()):
		return step{"the masters are being changed", "the masters are changed", []any{"from", strings.Join(old.names(), " "), "to", strings.Join(next.names(), " ")}}
	case era.Place == was.Place: // it is only decided once more
		return step{}
	case era.Place.Moves():
		return step{begin: "the locks are being moved", about: []any{"to", era.Place.Target(), "era", era.Number}}
	default:
		return step{end: "the move of the locks is over", about: []any{"place", era.Place, "era", era.Number}}
	}
}

// untilOpen waits until a majority of new masters votes, and those are heard that were up before; a
// while later it lets go of the old ones.
func (c *Cluster) untilOpen(old, next *generation, u *change, s step) {
	defer c.halt(old)
	began := time.Now()
	for !next.HasQuorum() || next.isUnheard(old) && time.Since(began) < guard.Heartbeat {
		if c.isStopped(followPause/2) || c.now() != next {
			return
		}
	}
	if c.underway.Load() == u {
		c.end(u)
	}
	took := time.Since(began).Round(time.Millisecond)
	for voting(next.masters) < len(next.masters) && time.Since(began) < changePatience && !c.isStopped(followPause) {
		if c.now() != next {
			return
		}
	}
	next.unhush(old)
	if s.end != "" {
		c.log.Info(s.end, append(s.about, "voting", voting(next.masters), "masters", len(next.masters), "took", took)...)
	}
	c.isStopped(keepBefore)
}

// unhush logs from now on what masters do; which were lost during the step, too.
func (g *generation) unhush(before *generation) {
	g.hushed.Store(false)
	names := before.names()
	for _, m := range g.Status() {
		if was := slices.Index(names, m.Name); m.Err != nil && (was < 0 || !before.masters[was].IsDown()) {
			g.log.Warn("master down", "master", m.Name, "cause", m.Cause())
		}
	}
}

// isUnheard reports whether nothing is known yet of one of the masters that was up in the
// generation before. What a bare majority wrote there, a majority without that one may hold open.
func (g *generation) isUnheard(before *generation) bool {
	names := before.names()
	for i, name := range g.names() {
		if was := slices.Index(names, name); was >= 0 && !before.masters[was].IsDown() && g.masters[i].IsUnheard() {
			return true
		}
	}
	return false
}
