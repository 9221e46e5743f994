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
	"redlock-proxy/quorum/location"
	"redlock-proxy/quorum/removals"
)

// moveTimeout is the longest time that a command waits while the locks are moved.
const moveTimeout = 30 * time.Second

// ErrMoving means that a move of the locks takes too long.
var ErrMoving = errors.New("the locks are still being moved; try again")

// AwaitLocation waits until this proxy knows the location of the locks and no move is in progress,
// and returns the location.
//
// Errors: ErrMoving, *NoQuorumError if this proxy does not learn the location in time, or the cause
// of ctx.
func (c *Cluster) AwaitLocation(ctx context.Context) (Location, error) {
	return awaitLocation(ctx, c.LocationChanged, func() (at Location, known, moving bool) {
		at, known = c.CurrentLocation()
		return at, known, at.Moves() || c.IsLeavingMasters()
	}, c.noQuorum)
}

// awaitLocation implements AwaitLocation. look returns the location of the locks, and whether a move
// is in progress. When a move has just ended, look may not know the location for a moment.
func awaitLocation(
	ctx context.Context, locationChanged func() <-chan struct{}, look func() (at Location, known, moving bool),
	noQuorum func() error,
) (Location, error) {
	start := time.Now()
	lastMoving := start               // the last time at which a move was in progress
	recheck := time.Tick(followPause) // the masters' first replies come without a signal
	for {
		changed := locationChanged()
		at, known, moving := look()
		if moving {
			lastMoving = time.Now()
		}
		switch {
		case known && !moving:
			return at, nil
		case time.Since(lastMoving) >= changeTimeout:
			return Location{}, noQuorum()
		case time.Since(start) >= moveTimeout:
			return Location{}, ErrMoving
		}
		select {
		case <-changed:
		case <-recheck:
		case <-ctx.Done():
			return Location{}, context.Cause(ctx)
		}
	}
}

// Confirm returns the location of the locks that a majority of the masters has confirmed since the
// call. Calls at the same time share one check.
//
// Errors: *NoQuorumError, or the cause of ctx.
func (c *Cluster) Confirm(ctx context.Context) (Location, error) {
	check := c.confirmations.join(&c.tasks, c.confirm)
	select {
	case <-check.done:
		return check.location, check.err
	case <-ctx.Done():
		return Location{}, context.Cause(ctx)
	}
}

// confirm checks the location, and checks it again while a majority of the masters votes but does
// not confirm it. Then the masters have made a decision that this proxy does not know yet. This
// proxy learns of the decision soon, because it examines each master that does not confirm.
func (c *Cluster) confirm() (Location, error) {
	until := time.Now().Add(changeTimeout)
	return repeatUntilConfirmed(
		func() (Location, error) { return withSetRepeated(context.Background(), c, c.confirmOnce) },
		func() bool { return time.Now().After(until) || c.stoppedDuring(followPause) },
	)
}

// repeatUntilConfirmed repeats try while the location is unconfirmed and shouldStop returns false.
// shouldStop pauses before it returns.
func repeatUntilConfirmed(try func() (Location, error), shouldStop func() bool) (Location, error) {
	for {
		at, err := try()
		var noQuorum *NoQuorumError
		if !errors.As(err, &noQuorum) || !noQuorum.Unconfirmed || shouldStop() {
			return at, err
		}
	}
}

func (c *Cluster) confirmOnce(set *masterSet) (Location, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*c.opts.Access.Timeout)
	defer cancel()
	at, known := c.CurrentLocation()
	if !known || set.guards.Confirm(ctx) != nil || c.masterSet() != set {
		noQuorum := set.missingVotes()
		noQuorum.Unconfirmed = noQuorum.HasMajority()
		return Location{}, noQuorum
	}
	return at, nil
}

// CheckMove returns the reason why the locks cannot be moved now, or nil.
func (c *Cluster) CheckMove() error {
	if !c.HasQuorum() {
		return c.noQuorum()
	}
	return c.masterSet().guards.CheckMove()
}

// CheckFreeMemory returns the reason why the masters have no room for this number of bytes, or nil.
func (c *Cluster) CheckFreeMemory(ctx context.Context, bytes int64) error {
	return c.masterSet().guards.CheckFreeMemory(ctx, bytes)
}

// ErrLocationChanged means that another proxy decided at the same time, so that the location to be
// replaced is no longer the current location.
var ErrLocationChanged = errors.New("another proxy has changed the location of the locks meanwhile")

// DecideLocation gets a decision of the masters on the location of the locks in the next era. It
// returns the location once a majority of the masters votes in that era. It also succeeds if
// another proxy caused the same decision. If the locks are being moved in that era, this proxy
// renews the lease of the move until ctx ends. After an error the location may still be decided.
func (c *Cluster) DecideLocation(ctx context.Context, from Location, to location.Place) (Location, error) {
	set, err := c.checkMove(from, to)
	if err != nil {
		return Location{}, err
	}
	if !from.Moves() {
		if err := c.announce(ctx, set, from, to); err != nil {
			return Location{}, err
		}
	}
	err = c.decideLocation(ctx, from, to)
	if err != nil && !errors.Is(err, ErrLocationChanged) {
		return Location{}, err
	}
	if to.Moves() {
		c.movingEra.Store(int64(from.Era + 1))
		context.AfterFunc(ctx, func() { c.movingEra.CompareAndSwap(int64(from.Era+1), 0) })
	}
	if err != nil {
		var cancel func()
		ctx, cancel = context.WithTimeoutCause(ctx, decisionTimeout, err)
		defer cancel()
	}
	return c.awaitEra(ctx, Location{Place: to, Era: from.Era + 1})
}

// abortExpiredMove gets a decision of the masters that the locks stay at their source, because the
// lease of the move has expired: no proxy continues the move. Each proxy waits for a random time
// first, so that the proxies do not compete.
func (c *Cluster) abortExpiredMove(ctx context.Context, set *masterSet) {
	if pacing.Sleep(ctx, time.Duration(c.opts.Rand()*float64(askPause))) != nil || !set.guards.IsMoveLeaseExpired() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, askPause)
	defer cancel()
	at, _ := c.CurrentLocation()
	if err := c.decideLocation(ctx, at, at.Source()); err == nil {
		c.log.Warn("the move was aborted, and the locks stay at their source: no proxy continued the move", "place", at.Source())
	}
}

// checkMove returns the current masters. It fails if from is not the current location, or if the
// locks cannot be moved to the given place. The locks can always stay at their source.
func (c *Cluster) checkMove(from Location, to location.Place) (*masterSet, error) {
	set := c.masterSet()
	if era, known := set.guards.Era(); !known || c.locationIn(era) != from {
		return nil, ErrLocationChanged
	}
	if to == from.Source() {
		return set, nil
	}
	return set, set.guards.CheckMove()
}

// decideLocation gets a decision of the masters on the location of the locks in the next era. It
// lets no other decision of this process interfere.
func (c *Cluster) decideLocation(ctx context.Context, from Location, to location.Place) error {
	ctx, release, err := c.acquireChange(ctx)
	if err != nil {
		return err
	}
	defer release()
	// This proxy checks again: by now it knows of decisions that other proxies began a moment ago.
	set, err := c.checkMove(from, to)
	if err != nil {
		return err
	}
	era, _ := set.guards.OwnEra()
	wanted := reconfig.Change{PreviousMasterCount: len(set.masters), Names: set.names(), Place: to}
	_, err = c.decide(ctx, set, era, wanted, c.urlsOf(set))
	if errors.Is(err, errFollowed) || errors.Is(err, errOvertaken) {
		return ErrLocationChanged
	}
	return err
}

// announce informs the other proxies of the next decision, and waits a little longer than a
// heartbeat, until they know of it. If the locks leave the masters, announce then waits until the
// proxies have paused commands on lock keys, at most two heartbeats. The pause matters because a
// command that runs when an era ends may or may not take effect.
func (c *Cluster) announce(ctx context.Context, set *masterSet, from Location, to location.Place) error {
	era, _ := set.guards.OwnEra()
	set.guards.AnnounceChange(ctx, era, c.newBallot(0))
	if err := pacing.Sleep(ctx, guard.Heartbeat+guard.Heartbeat/10); err != nil || to != location.MovingToUpstream {
		return err
	}
	set.guards.AnnounceMove(ctx, era, c.newBallot(0), to)
	for until := time.Now().Add(2 * guard.Heartbeat); time.Now().Before(until); {
		if _, missing := c.PauseReports(ctx, from.Era); len(missing) == 0 {
			break
		}
		if err := pacing.Sleep(ctx, followPause); err != nil {
			return err
		}
	}
	return nil
}

// awaitEra waits until a majority votes in an era, or until another proxy has decided a different
// location or a later era.
func (c *Cluster) awaitEra(ctx context.Context, wantedLocation Location) (Location, error) {
	for {
		changed := c.LocationChanged()
		switch at, known := c.CurrentLocation(); {
		case known && at == wantedLocation:
			return at, nil
		case at.Era >= wantedLocation.Era && (at != wantedLocation || c.masterSet().guards.Reconfiguration() != nil):
			return Location{}, ErrLocationChanged
		}
		select {
		case <-changed:
		case <-time.After(followPause): // the guards learn of a later decision without a signal
		case <-ctx.Done():
			return Location{}, context.Cause(ctx)
		}
	}
}

// PauseReport is a proxy's report that it has paused commands on lock keys: it sends no more of
// these commands to the upstream.
type PauseReport struct {
	// Proxy is the ID of the proxy. Server is the run_id of its upstream, or UnknownServer; empty if
	// the proxy has no upstream to which locks can be moved.
	Proxy, Server string
	// IdleConns and BusyConns hold the local addresses of the proxy's upstream connections, as
	// host:port. On BusyConns a command on lock keys may still run; on IdleConns none runs.
	IdleConns, BusyConns []string
}

// UnknownServer replaces the run_id of an upstream that does not report it.
const UnknownServer = "?"

// ReportPaused reports to all proxies that this proxy has paused commands on lock keys in an era.
// It ignores report.Proxy and uses this proxy's own ID.
func (c *Cluster) ReportPaused(ctx context.Context, era int, report PauseReport) error {
	if c.pausedEra.Load() != int64(era)+1 { // a lock whose removal is pending must not be copied
		removalCtx, cancel := context.WithTimeout(ctx, removals.AttemptTime)
		defer cancel()
		if err := c.removals.WaitAll(removalCtx); err != nil {
			return fmt.Errorf("the move waits for pending removals (%d): %w", c.RemovalsPending(), err)
		}
		c.pausedEra.Store(int64(era) + 1)
	}
	fields := []string{
		strconv.Itoa(era), strings.Join(report.IdleConns, ","), strings.Join(report.BusyConns, ","), report.Server,
	}
	return c.masterSet().guards.ReportPaused(ctx, strings.Join(fields, " "))
}

// PauseReports returns the reports of the proxies that paused commands in an era, and the IDs of
// all other running proxies, possibly this one included.
func (c *Cluster) PauseReports(ctx context.Context, era int) (reports []PauseReport, missing []string) {
	guards := c.masterSet().guards
	for id, text := range guards.PauseReports(ctx) {
		fields := strings.Split(text, " ")
		if n, err := strconv.Atoi(fields[0]); err == nil && n == era && len(fields) == 4 {
			reports = append(reports, PauseReport{id, fields[3], addresses(fields[1]), addresses(fields[2])})
		}
	}
	// A proxy that became known while the reports were read is missing, too.
	for _, id := range append([]string{c.proxyID}, guards.PeerIDs()...) {
		if !slices.ContainsFunc(reports, func(h PauseReport) bool { return h.Proxy == id }) {
			missing = append(missing, id)
		}
	}
	return reports, missing
}

func addresses(text string) []string {
	return slices.DeleteFunc(strings.Split(text, ","), func(address string) bool { return address == "" })
}
