package quorum

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"redlock-proxy/internal/pacing"
	"redlock-proxy/quorum/guard"
	"redlock-proxy/quorum/guard/reconfig"
	"redlock-proxy/quorum/place"
	"redlock-proxy/quorum/removals"
)

// movePatience is how long a command waits while the locks are moved.
const movePatience = 30 * time.Second

// ErrMoving is returned where the locks have been on their way for long.
var ErrMoving = errors.New("the locks are still being moved: try again")

// Resting is where the locks are once they are not being moved, and that is known.
//
// Errors: ErrMoving, *NoQuorumError where it is not known in time, or the cause of ctx.
func (c *Cluster) Resting(ctx context.Context) (Placed, error) {
	began := time.Now()
	limit := time.NewTimer(changePatience)
	defer limit.Stop()
	look := time.Tick(followPause) // the first masters answer without a turn
	for {
		turned := c.Turned()
		if at, known := c.Placed(); known && !at.Moves() && !c.Departing() {
			return at, nil
		}
		select {
		case <-turned:
		case <-look:
		case <-ctx.Done():
			return Placed{}, context.Cause(ctx)
		case <-limit.C:
			switch at, _ := c.Placed(); {
			case !at.Moves() && !c.Departing():
				return Placed{}, c.absence()
			case time.Since(began) >= movePatience:
				return Placed{}, ErrMoving
			}
			limit.Reset(changePatience)
		}
	}
}

// Confirm is where the locks are, by what a majority of the masters answered after it was called.
// Calls at the same time share a look.
//
// Errors: *NoQuorumError, or the cause of ctx.
func (c *Cluster) Confirm(ctx context.Context) (Placed, error) {
	one := c.confirmations.join(&c.tasks, c.confirm)
	select {
	case <-one.done:
		return one.at, one.err
	case <-ctx.Done():
		return Placed{}, context.Cause(ctx)
	}
}

// confirm looks again where it turns out that something was decided of which this proxy has not
// heard yet: a majority of the masters votes as far as it knows, and does not confirm it. It hears
// of that soon, for each master that does not is looked at.
func (c *Cluster) confirm() (Placed, error) {
	until := time.Now().Add(changePatience)
	return confirmed(
		func() (Placed, error) { return onWhich(context.Background(), c, c.confirmOnce) },
		func() bool { return time.Now().After(until) || c.isStopped(followPause) },
	)
}

// confirmed tries until that is not just unconfirmed, or over, which pauses, reports that it is not
// to be tried again.
func confirmed(try func() (Placed, error), over func() bool) (Placed, error) {
	for {
		at, err := try()
		var none *NoQuorumError
		if !errors.As(err, &none) || !none.Unconfirmed || over() {
			return at, err
		}
	}
}

func (c *Cluster) confirmOnce(g *generation) (Placed, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*c.opts.MasterTimeout)
	defer cancel()
	at, known := c.Placed()
	if !known || g.guards.Confirm(ctx) != nil || c.now() != g {
		none := g.absence()
		none.Unconfirmed = none.HasMajority()
		return Placed{}, none
	}
	return at, nil
}

// MayMove is why the locks cannot be moved now, or nil.
func (c *Cluster) MayMove() error {
	if !c.HasQuorum() {
		return c.absence()
	}
	return c.now().guards.MayMove()
}

// MayHold is why the masters have no room for so many more bytes, or nil.
func (c *Cluster) MayHold(ctx context.Context, bytes int64) error {
	return c.now().guards.MayHold(ctx, bytes)
}

// Proxies are the IDs of those that are heard of on the masters, this one's own first.
func (c *Cluster) Proxies() []string {
	guards := c.now().guards
	return append([]string{guards.ID()}, guards.Peers()...)
}

// ErrNotThere is returned where the place that was to be followed by another is not the current
// one: others decide at the same time.
var ErrNotThere = errors.New("where the locks are was decided anew meanwhile")

// MoveOn has the masters decide where the locks are after one era: that is the next one. It returns
// that when a majority of the masters votes in it, also if another proxy had the same decided; if
// the locks are being moved there, this proxy renews that lease until ctx ends. After an error it
// may be decided all the same.
func (c *Cluster) MoveOn(ctx context.Context, from Placed, to place.Place) (Placed, error) {
	g, err := c.mayMoveOn(from, to)
	if err != nil {
		return Placed{}, err
	}
	if !from.Moves() {
		if err := c.announce(ctx, g, from, to); err != nil {
			return Placed{}, err
		}
	}
	err = c.decidePlace(ctx, from, to)
	if err != nil && !errors.Is(err, ErrNotThere) {
		return Placed{}, err
	}
	if to.Moves() {
		c.moves.Store(int64(from.Era + 1))
		context.AfterFunc(ctx, func() { c.moves.CompareAndSwap(int64(from.Era+1), 0) })
	}
	if err != nil {
		var cancel func()
		ctx, cancel = context.WithTimeoutCause(ctx, decisionTime, err)
		defer cancel()
	}
	return c.reached(ctx, Placed{Place: to, Era: from.Era + 1})
}

// endLapsed has it decided that the locks stay where they are, since no proxy moves them any more.
// Each proxy does so a different while later: the first need not compete.
func (c *Cluster) endLapsed(ctx context.Context, g *generation) {
	if pacing.Sleep(ctx, time.Duration(c.opts.Rand()*float64(askPause))) != nil || !g.guards.Lapsed() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, askPause)
	defer cancel()
	at, _ := c.Placed()
	if err := c.decidePlace(ctx, at, at.Source()); err == nil {
		c.log.Warn("the move is ended: no proxy continues it; the locks stay where they are", "place", at.Source())
	}
}

// mayMoveOn returns the masters of an era, unless another one is the current one, or the locks
// cannot be moved to a place. They can always stay.
func (c *Cluster) mayMoveOn(from Placed, to place.Place) (*generation, error) {
	g := c.now()
	if era, known := g.guards.Era(); !known || c.placedIn(era) != from {
		return nil, ErrNotThere
	}
	if to == from.Source() {
		return g, nil
	}
	return g, g.guards.MayMove()
}

// decidePlace has it decided where the locks are after an era. Nothing else is decided here
// meanwhile, so it waits for nobody.
func (c *Cluster) decidePlace(ctx context.Context, from Placed, to place.Place) error {
	c.changing.Lock()
	defer c.changing.Unlock()
	g, err := c.mayMoveOn(from, to) // by now this proxy has heard of another that began a moment ago
	if err != nil {
		return err
	}
	era, _ := g.guards.OwnEra()
	wanted := reconfig.Change{Before: len(g.masters), Names: g.names(), Place: to}
	_, err = c.decide(ctx, g, era, wanted, c.urlsOf(g))
	if errors.Is(err, errFollowed) || errors.Is(err, errOvertaken) {
		return ErrNotThere
	}
	return err
}

// announce informs other proxies at once of what is decided next. Where the locks leave the
// masters, it has them hold back before: what is under way when an era of the masters ends may be
// done or not.
func (c *Cluster) announce(ctx context.Context, g *generation, from Placed, to place.Place) error {
	era, _ := g.guards.OwnEra()
	g.guards.Stir(ctx, era, c.ballot(0))
	if err := pacing.Sleep(ctx, guard.Heartbeat+guard.Heartbeat/10); err != nil || to != place.ToUpstream {
		return err
	}
	g.guards.Bind(ctx, era, c.ballot(0), to)
	for until := time.Now().Add(2 * guard.Heartbeat); time.Now().Before(until); {
		held := c.Holding(ctx, from.Era)
		if !slices.ContainsFunc(c.Proxies(), func(id string) bool {
			return !slices.ContainsFunc(held, func(h Held) bool { return h.Proxy == id })
		}) {
			break
		}
		if err := pacing.Sleep(ctx, followPause); err != nil {
			return err
		}
	}
	return nil
}

// reached waits until a majority votes in an era, or another proxy has decided otherwise, or what
// follows it.
func (c *Cluster) reached(ctx context.Context, wanted Placed) (Placed, error) {
	for {
		turned := c.Turned()
		switch at, known := c.Placed(); {
		case known && at == wanted:
			return at, nil
		case at.Era >= wanted.Era && (at != wanted || c.now().guards.Succession() != nil):
			return Placed{}, ErrNotThere
		}
		select {
		case <-turned:
		case <-time.After(followPause): // what follows is seen without a turn
		case <-ctx.Done():
			return Placed{}, context.Cause(ctx)
		}
	}
}

// Held is what a proxy said that holds back commands on lock keys: all that it had sent to the
// upstream is answered.
type Held struct {
	// Proxy is its ID, Server the run_id of its upstream; empty: not known.
	Proxy, Server string
	// Resting are the proxy's ends of its connections to the upstream, as host:port, over which
	// nothing of lock keys is under way; Restless those over which something may be still.
	Resting, Restless []string
}

// SayHeld informs all proxies that this one holds back commands on lock keys, in an era. Of what is
// held the ID is the proxy's own.
func (c *Cluster) SayHeld(ctx context.Context, era int, held Held) error {
	if c.holding.Load() != int64(era)+1 { // what is owed a removal is not copied
		paying, cancel := context.WithTimeout(ctx, removals.PaymentTime)
		defer cancel()
		if err := c.removals.Settle(paying); err != nil {
			return fmt.Errorf("%d locks that nobody holds are still to be removed: %w; the move waits for that", c.RemovalsPending(), err)
		}
		c.holding.Store(int64(era) + 1)
	}
	return c.now().guards.SayHeld(ctx, strings.Join([]string{strconv.Itoa(era), strings.Join(held.Resting, ","), strings.Join(held.Restless, ","), held.Server}, " "))
}

// Holding returns which proxies reported in an era that they hold back.
func (c *Cluster) Holding(ctx context.Context, era int) (all []Held) {
	for id, text := range c.now().guards.Held(ctx) {
		parts := strings.Split(text, " ")
		if n, err := strconv.Atoi(parts[0]); err == nil && n == era && len(parts) == 4 {
			all = append(all, Held{id, parts[3], addresses(parts[1]), addresses(parts[2])})
		}
	}
	return all
}

func addresses(text string) []string {
	return slices.DeleteFunc(strings.Split(text, ","), func(one string) bool { return one == "" })
}
