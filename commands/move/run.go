package move

import (
	"context"
	"errors"
	"fmt"
	"time"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/internal/pacing"
	"redlock-proxy/quorum"
	"redlock-proxy/quorum/location"
)

// run holds the state of one request: a move, an abort, or the removal of leftovers.
type run struct {
	*Mover
	request Request
	conn    Connection
	// connID is the ID of the connection at the upstream, upstreamRunID the run_id of the upstream.
	connID, upstreamRunID string
	// upstreamReplicas is the number of the upstream's replicas before the move.
	upstreamReplicas int
	// room is the upstream's free memory in bytes; negative if it has no limit.
	room int64
	// at is the location of the locks, as far as this run knows. Its zero value means unknown.
	at quorum.Location
	// claimedEra is the era in which this run moves the locks.
	claimedEra int
	// proposedArrival is set after the run has proposed that the locks have moved. undecided is set
	// if the outcome of a proposal is unknown.
	proposedArrival, undecided bool
	// endedElsewhere is set if an operator or another proxy has ended the era of the move.
	endedElsewhere bool
	// copiedCounts is the number of copied lock keys of each type.
	copiedCounts string
	// lines is the report for the operator.
	lines []string
}

// addLine adds a line to the report for the operator.
func (r *run) addLine(format string, args ...any) {
	r.lines = append(r.lines, fmt.Sprintf(format, args...))
}

// logStep logs a step of the run. It does not use Info, because each proxy logs the new era.
func (r *run) logStep(format string, args ...any) {
	r.opts.Logger.Debug("moving the locks", "step", fmt.Sprintf(format, args...))
}

// describeLocation returns a text about the location of the locks after a failure.
func (r *run) describeLocation() string {
	source := r.at.Source()
	switch {
	case r.at == quorum.Location{}:
		return "nothing was changed, and the location of the locks is unknown"
	case r.undecided && r.proposedArrival:
		return fmt.Sprintf("the locks are at the %v or already at the %v: commands on lock keys wait "+
			"until a majority of the masters votes and decides", source, r.at.Target())
	case r.undecided:
		return fmt.Sprintf("the locks are at the %v, and stay there: "+
			"commands on lock keys continue once a majority of the masters votes", source)
	case r.at.Moves():
		return fmt.Sprintf("the locks are at the %v, and another proxy is moving them", source)
	default:
		return fmt.Sprintf("the locks stay at the %v", source)
	}
}

// awaitOtherMove waits while another proxy moves the locks. If that proxy crashes, the wait ends
// when the lease of the move expires.
func (r *run) awaitOtherMove(ctx context.Context) (err error) {
	for reported := false; ; reported = true {
		if r.at, err = r.opts.Masters.Confirm(ctx); err != nil || !r.at.Moves() {
			return err
		}
		if !reported {
			r.logStep("another proxy is moving the locks, or has crashed while it did: waiting until that move ends")
		}
		if err := pacing.Sleep(ctx, retryInterval); err != nil {
			return err
		}
	}
}

// move moves the locks, or removes leftovers of an earlier move if the locks are already at the
// target. The run connects before it confirms the location, so that the location is valid for
// everything sent over the connection (rule 1 of package location).
func (r *run) move(ctx context.Context) (err error) {
	switch r.at, err = r.opts.Masters.Confirm(ctx); {
	case err != nil:
		return err
	case r.at.Moves():
		return errClaimed
	case r.at.Place == r.request.target():
		r.addLine("nothing to move: the locks are at the %v", r.at.Place)
		return r.removeLeftovers(ctx)
	default:
		return r.moveLocks(ctx)
	}
}

// moveLocks moves the locks from the source to the target.
func (r *run) moveLocks(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx) // cancel ends the renewal of the lease
	defer cancel()
	if err := r.checkStores(ctx); err != nil {
		current, confirmErr := r.opts.Masters.Confirm(ctx)
		if confirmErr == nil && current.Era != r.at.Era { // a faster run has closed this connection
			return errClaimed
		}
		return err
	}
	if err := r.beginMove(ctx); errors.Is(err, errClaimed) {
		return err
	} else if err != nil { // the proposal may be accepted nevertheless
		cancel()
		return r.abort(ctx, r.at.Era+1, err)
	}
	pausedSince := time.Now()
	r.logStep("decided: %v, in era %d; all proxies pause commands on lock keys", r.at.Place, r.at.Era)
	limitedCtx, end := context.WithTimeoutCause(ctx, r.copyTimeout, fmt.Errorf("the move took longer than %v", r.copyTimeout))
	defer end()
	copied, err := r.quiesceAndCopy(limitedCtx, pausedSince)
	if err == nil {
		err = r.proposeArrival(limitedCtx)
	}
	pauseDuration := time.Since(pausedSince)
	if err != nil {
		cancel()
		if err = r.abort(ctx, r.at.Era, err); err != nil {
			return err
		}
	}
	r.logStep("decided: %v, in era %d", r.at.Place, r.at.Era)
	r.lines = append([]string{
		fmt.Sprintf("the locks are at the %v now: %s", r.at.Place, r.copiedCounts),
		fmt.Sprintf("commands on lock keys were paused for %d ms", pauseDuration.Milliseconds()),
	}, r.lines...)
	r.clearSource(ctx, copied)
	return nil
}

// errClaimed reports that another proxy moves the locks.
var errClaimed = errors.New("another proxy is moving the locks")

// beginMove proposes the start of the move, and claims the new era.
func (r *run) beginMove(ctx context.Context) error {
	moving, err := r.opts.Masters.DecideLocation(ctx, r.at, r.at.MovingPlace())
	switch {
	case errors.Is(err, quorum.ErrLocationChanged): // another proxy already changed the location
		return errClaimed
	case err != nil:
		return err
	}
	if err := r.claim(ctx, moving); err != nil {
		return err
	}
	r.at = moving
	return nil
}

// claim makes this run the only mover of an era (rule 6 of package location). It succeeds if the
// record at the upstream has no claim for that era yet. It returns errClaimed if the record has one,
// or if the connection is lost: another run that has claimed the era may have closed it.
func (r *run) claim(ctx context.Context, at quorum.Location) error {
	if r.claimedEra == at.Era {
		return nil
	}
	field := location.RecordField(at.Era, r.opts.LockKeys)
	set := []string{"HSETNX", location.RecordKey, field, at.Place.String()}
	replies, err := ask(ctx, r.conn, []string{"SELECT", "0"}, set)
	if errors.Is(err, errConnectionLost) {
		return errors.Join(errClaimed, err)
	}
	if err != nil {
		return err
	}
	if replies[1] != any(int64(1)) {
		return errClaimed
	}
	r.claimedEra = at.Era
	return nil
}

// quiesceAndCopy ends all other writes and copies the locks from the source to the target, and
// returns their names at the source.
func (r *run) quiesceAndCopy(ctx context.Context, pausedSince time.Time) ([]lockName, error) {
	if err := r.quiesce(ctx); err != nil {
		return nil, err
	}
	source, target := r.stores()
	names, err := source.list(ctx)
	if err != nil {
		return nil, err
	}
	// Rule 3 of package location: the masters must ignore promises of earlier eras before the copy.
	if err := pacing.Sleep(ctx, time.Until(pausedSince.Add(r.eraDelay))); err != nil {
		return nil, err
	}
	return names, r.copy(ctx, source, target, names)
}

// proposeArrival proposes that the locks have moved, if the upstream is still the same server.
func (r *run) proposeArrival(ctx context.Context) error {
	if err := r.checkSameUpstream(ctx); err != nil {
		return err
	}
	r.proposedArrival = true
	arrived, err := r.opts.Masters.DecideLocation(ctx, r.at, r.at.Target())
	if err == nil {
		r.at = arrived
	}
	return err
}

// abort proposes that the locks stay at the source after the era of a move, and returns the cause.
// It returns nil if this run has moved the locks nevertheless.
func (r *run) abort(ctx context.Context, era int, cause error) error {
	r.logStep("aborting: %v", cause)
	moved := quorum.Location{Place: r.at.Target(), Era: r.at.Era + 1}
	if r.proposeStay(ctx, era) == nil {
		switch {
		case r.at == moved && r.proposedArrival:
			return nil
		case r.endedElsewhere:
			return errors.New("redlock-proxy move --abort or another proxy has ended this move")
		}
	}
	return cause
}

// proposeStay proposes that the locks stay at the source after the era of a move. It makes no
// proposal if the masters made another decision, or if another run moves the locks. If too few
// masters answer, the lease of the move expires, and any proxy makes this proposal.
func (r *run) proposeStay(ctx context.Context, era int) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.lease)
	defer cancel()
	for proposed := false; ; proposed = true {
		current, err := r.opts.Masters.Confirm(ctx)
		r.endedElsewhere = err == nil && !proposed && current.Era > era
		if err == nil && current.Era == era && current.Moves() && (r.request.Abort || !errors.Is(r.claim(ctx, current), errClaimed)) {
			current, err = r.opts.Masters.DecideLocation(ctx, current, current.Source())
		}
		if r.undecided = err != nil; !r.undecided {
			r.at = current
			return nil
		}
		if pacing.Sleep(ctx, retryInterval) != nil {
			return err
		}
	}
}

// abortAny aborts a running move of any proxy.
func (r *run) abortAny(ctx context.Context) (err error) {
	if r.at, err = r.opts.Masters.Confirm(ctx); err != nil {
		return err
	}
	if !r.at.Moves() {
		r.addLine("nothing to abort: the locks are at the %v, and no move has been decided; "+
			"if redlock-proxy move still checks both places, interrupt it", r.at.Place)
		return nil
	}
	source := r.at.Source()
	if err := r.proposeStay(ctx, r.at.Era); err != nil {
		return err
	}
	if r.at.Place != source {
		return errors.New("it was too late to abort the move")
	}
	r.addLine("aborted: the locks stay at the %v", r.at.Place)
	r.logStep("aborted: %v, in era %d", r.at.Place, r.at.Era)
	return nil
}

// clearSource removes the locks from the source (rule 5 of package location). They no longer have
// an effect at the source, so the move has succeeded even if clearSource fails.
func (r *run) clearSource(ctx context.Context, names []lockName) {
	if err := r.checkSameUpstream(ctx); err != nil {
		r.opts.Logger.Warn("the locks have moved, but their copies at the source were kept", "cause", err)
		r.addLine("kept the lock keys at the %v: %v; check whether the %v has the locks; "+
			"the same command with --even-if-others removes the kept ones", r.otherPlace(), err, r.at.Place)
		return
	}
	_, source := r.stores()
	if err := r.remove(ctx, source, names); err != nil {
		r.addLine("cannot remove the lock keys left at the %v, which have no effect: %v; "+
			"the same command with --even-if-others removes them", r.otherPlace(), err)
	}
}

// remove removes lock keys from the store without the locks.
func (r *run) remove(ctx context.Context, other store, names []lockName) error {
	n, err := other.remove(ctx, names)
	if n > 0 {
		r.addLine("removed %s from the %v", syntax.Count(n, "lock key"), r.otherPlace())
	}
	return err
}

// otherPlace returns the place without the locks. The locks are at rest.
func (r *run) otherPlace() location.Place { return r.at.MovingPlace().Target() }

// removeLeftovers removes the lock keys that an earlier run left in the store without the locks, if
// the operator has ordered it. Leftovers at the upstream may belong to clients without a proxy. An
// earlier run may have kept leftovers at the masters because the upstream may lack the locks.
func (r *run) removeLeftovers(ctx context.Context) error {
	if !r.opts.Masters.IsDecided(r.at) { // no move has begun: the keys may be used without the proxies
		return nil
	}
	_, other := r.stores()
	names, err := other.list(ctx)
	if err == nil && !r.request.CloseForeignConns {
		if len(names) > 0 {
			r.addLine("found %s at the %v: an earlier move left them, or clients use them directly; "+
				"--even-if-others (EVENIFOTHERS) removes them", syntax.Count(len(names), "lock key"), r.otherPlace())
		}
		return nil
	}
	if err == nil {
		err = r.remove(ctx, other, names)
	}
	if err != nil {
		return fmt.Errorf("cannot remove the lock keys left at the %v: %w", r.otherPlace(), err)
	}
	return nil
}
