package move

import (
	"context"
	"errors"
	"fmt"
	"time"

	"redlock-proxy/internal/pacing"
	"redlock-proxy/quorum"
	"redlock-proxy/quorum/place"
)

// run is one move.
type run struct {
	*Mover
	order Order
	say   func(string)
	conn  Connection
	// own is the number of that connection at the upstream, server the run_id there.
	own, server string
	// room is for how many more bytes the upstream has room; negative: it has no limit.
	room int64
	// at is where the locks are, as far as this run knows; its zero value: it does not.
	at quorum.Placed
	// claimed is the era in which this run moves the locks.
	claimed int
	// arriving is set while it is being decided that they have moved, open where it is not known
	// what became of a decision.
	arriving, open bool
	result         Result
}

// where tells where the locks are after a failure.
func (r *run) where() string {
	from := r.at.Source()
	switch {
	case r.at == quorum.Placed{}:
		return "nothing is changed, and where the locks are is not known"
	case r.open && r.arriving:
		return fmt.Sprintf("the locks are at the %v still, or at the %v already: a majority of the masters decides that as soon as it votes, and commands on lock keys wait for it",
			from, r.at.Target())
	case r.open:
		return fmt.Sprintf("the locks are at the %v, and stay there: commands on lock keys go on as soon as a majority of the masters votes", from)
	case r.at.Moves():
		return fmt.Sprintf("the locks are at the %v, and another proxy moves them", from)
	default:
		return fmt.Sprintf("the locks stay at the %v", from)
	}
}

// awaitRest waits while another proxy moves the locks. That ends, also if the proxy does.
func (r *run) awaitRest(ctx context.Context) (err error) {
	for said := false; ; said = true {
		if r.at, err = r.opts.Masters.Confirm(ctx); err != nil || !r.at.Moves() {
			return err
		}
		if !said {
			r.say("another proxy moves the locks, or did: waiting until that is over")
		}
		if err := pacing.Sleep(ctx, retryPause); err != nil {
			return err
		}
	}
}

// move moves the locks, or does what is left to do where they are there already. The connection was
// made before, so that what is confirmed holds for what is sent over it (rule 1).
func (r *run) move(ctx context.Context) (err error) {
	switch r.at, err = r.opts.Masters.Confirm(ctx); {
	case err != nil:
		return err
	case r.at.Moves():
		return errClaimed
	case r.at.Place == r.order.target():
		r.result.Already = true
		return r.tidy(ctx)
	default:
		return r.through(ctx)
	}
}

// through moves the locks by the moving place.
func (r *run) through(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx) // until then the lease is renewed
	defer cancel()
	if err := r.look(ctx); err != nil {
		if now, unknown := r.opts.Masters.Confirm(ctx); unknown == nil && now.Era != r.at.Era { // another was faster, which ends this connection
			return errClaimed
		}
		return err
	}
	if err := r.begin(ctx); errors.Is(err, errClaimed) {
		return err
	} else if err != nil { // it may be decided all the same
		cancel()
		return r.giveUp(ctx, r.at.Era+1, err)
	}
	since := time.Now()
	r.say(fmt.Sprintf("decided: %v, in era %d; all proxies hold back commands on lock keys", r.at.Place, r.at.Era))
	limited, end := context.WithTimeoutCause(ctx, r.copyTime, fmt.Errorf("it took longer than %v", r.copyTime))
	defer end()
	copied, err := r.carry(limited, since)
	if err == nil {
		err = r.arrive(limited)
	}
	r.result.Held = time.Since(since)
	if err != nil {
		cancel()
		if err = r.giveUp(ctx, r.at.Era, err); err != nil {
			return err
		}
	}
	r.say(fmt.Sprintf("decided: %v, in era %d", r.at.Place, r.at.Era))
	r.clear(ctx, copied)
	return nil
}

// errClaimed says that another proxy moves the locks.
var errClaimed = errors.New("another proxy moves the locks")

// begin has it decided that the locks are being moved, and claims that era.
func (r *run) begin(ctx context.Context) error {
	began, err := r.opts.Masters.MoveOn(ctx, r.at, r.at.Away())
	switch {
	case errors.Is(err, quorum.ErrNotThere): // another has come further
		return errClaimed
	case err != nil:
		return err
	}
	if err := r.claim(ctx, began); err != nil { // by whom it is given up is not known
		return errors.Join(errClaimed, err)
	}
	r.at = began
	return nil
}

// claim has this run be the one that moves the locks in an era (rule 6): the record at the upstream
// has none yet.
func (r *run) claim(ctx context.Context, at quorum.Placed) error {
	if r.claimed == at.Era {
		return nil
	}
	replies, err := asked(ctx, r.conn, []string{"SELECT", "0"}, []string{"HSETNX", place.RecordKey, place.RecordField(at.Era, r.opts.LockKeys), at.Place.String()})
	if err != nil {
		return err
	}
	if replies[1] != any(int64(1)) {
		return errClaimed
	}
	r.claimed = at.Era
	return nil
}

// carry has the locks be at the target as they are at the source, and returns those that are at the
// source.
func (r *run) carry(ctx context.Context, since time.Time) ([]name, error) {
	if err := r.quiet(ctx); err != nil {
		return nil, err
	}
	source, target := r.stores()
	names, err := source.list(ctx)
	if err != nil {
		return nil, err
	}
	if err := pacing.Sleep(ctx, time.Until(since.Add(r.settle))); err != nil { // rule 3
		return nil, err
	}
	return names, r.copy(ctx, source, target, names)
}

// arrive has it decided that the locks have moved.
func (r *run) arrive(ctx context.Context) error {
	r.arriving = true
	there, err := r.opts.Masters.MoveOn(ctx, r.at, r.at.Target())
	if err == nil {
		r.at = there
	}
	return err
}

// giveUp has it decided that the locks stay where they are after an era in which they are moved,
// unless others have decided otherwise, and returns why: nil where this very run has them moved
// after all, as it turns out.
func (r *run) giveUp(ctx context.Context, era int, cause error) error {
	r.say(fmt.Sprintf("giving up: %v", cause))
	moved := quorum.Placed{Place: r.at.Target(), Era: r.at.Era + 1}
	if r.rest(ctx, era) == nil && r.at == moved && r.arriving {
		return nil
	}
	return cause
}

// rest has the locks stay where they are after an era in which they are moved, unless something
// else is decided by now, or another run moves them. Where too few masters answer for that, the
// lease of the move is over meanwhile, and any proxy does it.
func (r *run) rest(ctx context.Context, era int) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.lease)
	defer cancel()
	for {
		now, err := r.opts.Masters.Confirm(ctx)
		if err == nil && now.Era == era && now.Moves() && (r.order.Abort || r.claim(ctx, now) == nil) {
			now, err = r.opts.Masters.MoveOn(ctx, now, now.Source())
		}
		if r.open = err != nil; !r.open {
			r.at = now
			return nil
		}
		if pacing.Sleep(ctx, retryPause) != nil {
			return err
		}
	}
}

// abort ends a move, whoever began it.
func (r *run) abort(ctx context.Context) (err error) {
	if r.at, err = r.opts.Masters.Confirm(ctx); err != nil {
		return err
	}
	if !r.at.Moves() {
		r.result.Already = true
		return nil
	}
	source := r.at.Source()
	if err := r.rest(ctx, r.at.Era); err != nil {
		return err
	}
	if r.at.Place != source {
		return errLate
	}
	r.result.Aborted = true
	r.say(fmt.Sprintf("given up: %v, in era %d", r.at.Place, r.at.Era))
	return nil
}

// errLate says that there was nothing to end any more.
var errLate = errors.New("it was too late to end the move")

// clear removes the locks where they were (rule 5). They mean nothing there any more, so the move
// is done whatever comes of it.
func (r *run) clear(ctx context.Context, names []name) {
	_, source := r.stores()
	n, err := source.remove(ctx, names)
	if r.result.Removed = n; err != nil {
		r.result.Left = err
	}
}

// tidy removes what a run before left where the locks are not: if that is wanted, for it may be of
// clients that lock there.
func (r *run) tidy(ctx context.Context) error {
	if r.at.Era == 0 { // they were never moved
		return nil
	}
	_, other := r.stores()
	names, err := other.list(ctx)
	if err == nil && r.at.Source() == place.Masters && !r.order.EvenIfOthers {
		r.result.Standing = len(names)
		return nil
	}
	if err == nil {
		r.result.Removed, err = other.remove(ctx, names)
	}
	if err != nil {
		return fmt.Errorf("what may be left of them elsewhere is not removed: %w", err)
	}
	return nil
}
