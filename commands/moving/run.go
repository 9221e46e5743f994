package moving

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
	// at is where the locks are, as far as this run has brought them.
	at     quorum.Placed
	result Result
}

// move moves the locks, or does what is left to do where they are there already. The connection was made before, so that what is confirmed
// holds for what is sent over it (rule 1).
func (r *run) move(ctx context.Context) (Result, error) {
	var err error
	if r.at, err = r.opts.Masters.Confirm(ctx); err != nil {
		return r.result, err
	}
	target := r.order.target()
	switch next := r.at.Towards(target); {
	case next.Moves():
		err = r.through(ctx, next)
	case r.at.Moves():
		return r.abort(ctx, r.say)
	default:
		r.result.Already = true
		err = r.tidy(ctx)
	}
	r.result.At = r.at.Place
	return r.result, err
}

// through moves the locks by the moving place.
func (r *run) through(ctx context.Context, moving place.Place) error {
	if err := r.look(ctx); err != nil {
		return fmt.Errorf("nothing is changed: %w", err)
	}
	began, err := r.begin(ctx, moving)
	since := time.Now()
	if errors.Is(err, quorum.ErrNotThere) { // it is another one's move
		return fmt.Errorf("nothing is changed by this one: %w", err)
	}
	if err != nil {
		return r.giveUp(ctx, r.at.Era+1, err)
	}
	r.at = began
	r.say(fmt.Sprintf("decided: %v, in era %d; all proxies hold back commands on lock keys", began.Place, began.Era))
	limited, cancel := context.WithTimeoutCause(ctx, r.copyTime, fmt.Errorf("it took longer than %v", r.copyTime))
	defer cancel()
	copied, err := r.carry(limited, since)
	if err == nil {
		err = r.arrive(limited)
	}
	r.result.Held = time.Since(since)
	if err != nil {
		if err = r.giveUp(ctx, began.Era, err); err != nil {
			return err
		}
	}
	r.say(fmt.Sprintf("decided: %v, in era %d", r.at.Place, r.at.Era))
	r.clear(ctx, copied)
	return nil
}

// beginnings is how often a move is begun where others bring it about at the same time.
const beginnings = 3

var errBusy = errors.New("others decide where the locks are at the same time, over and over")

// begin has it decided that the locks are being moved, by this run. Where others have decided just that meanwhile it is decided once more: they may
// only have brought to its end what this one had begun, and nobody would go on with it. quorum.ErrNotThere: something else is decided.
func (r *run) begin(ctx context.Context, moving place.Place) (quorum.Placed, error) {
	for range beginnings {
		began, err := r.opts.Masters.MoveOn(ctx, r.at, moving)
		if !errors.Is(err, quorum.ErrNotThere) {
			return began, err
		}
		now, unknown := r.opts.Masters.Confirm(ctx)
		switch {
		case unknown != nil:
			return began, unknown
		case now.Place != moving:
			return began, err
		}
		r.at = now
	}
	return quorum.Placed{}, errBusy
}

// look finds what speaks against a move, and changes nothing.
func (r *run) look(ctx context.Context) error {
	if err := r.opts.Masters.MayMove(); err != nil {
		return err
	}
	if err := r.checkUpstream(ctx); err != nil {
		return err
	}
	source, _ := r.stores()
	names, err := source.list(ctx)
	if err != nil {
		return err
	}
	for part := range parts(names) { // whether all can be copied
		_, err := source.read(ctx, part)
		if err != nil && !passes(err) { // clients are at work still, so a key may be open just now
			return err
		}
	}
	r.say(fmt.Sprintf("looked first: %d lock keys", len(names)))
	return nil
}

// carry has the locks be at the target as they are at the source, and returns those that are at the source.
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
	there, err := r.opts.Masters.MoveOn(ctx, r.at, r.at.Target())
	if err == nil {
		r.at = there
	}
	return err
}

// giveUp has it decided that the locks stay where they are, unless others have decided otherwise, and returns why: nil where this very run has them
// moved after all, as it turns out. The era is that in which it moved them.
func (r *run) giveUp(ctx context.Context, era int, cause error) error {
	r.say(fmt.Sprintf("giving up: %v", cause))
	target := r.order.target()
	rests, err := r.rest(ctx, era)
	switch {
	case err != nil:
		return fmt.Errorf("%w; %w", cause, errUnknown)
	case rests.Place == target && rests.Era == era+1:
		r.at = rests
		return nil
	case rests.Place == target:
		return fmt.Errorf("another one has moved the locks: %w", cause)
	case rests.Moves():
		return fmt.Errorf("another one continues it: %w", cause)
	default:
		r.at = rests
		return fmt.Errorf("the locks stay at the %v: %w", rests.Place, cause)
	}
}

// rest has the locks stay where they are unless something is decided after an era in which they were moved, and returns where they are. Where that
// era is not decided so far it takes its place: else it might be later, with nobody who moves them.
func (m *Mover) rest(ctx context.Context, era int) (quorum.Placed, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), m.giveUpTime)
	defer cancel()
	for {
		now, err := m.opts.Masters.Confirm(ctx)
		if err == nil && (now.Era > era || now.Era == era && !now.Moves()) {
			return now, nil
		}
		if err == nil {
			if now, err = m.opts.Masters.MoveOn(ctx, now, now.Source()); err == nil {
				return now, nil
			}
		}
		if pacing.Sleep(ctx, retryPause) != nil {
			return quorum.Placed{}, err
		}
	}
}

// abort ends a move, whoever began it.
func (m *Mover) abort(ctx context.Context, say func(string)) (Result, error) {
	at, err := m.opts.Masters.Confirm(ctx)
	if err != nil {
		return Result{}, err
	}
	if !at.Moves() {
		return Result{At: at.Place, Already: true}, nil
	}
	rests, err := m.rest(ctx, at.Era)
	switch {
	case err != nil:
		return Result{}, fmt.Errorf("%w; %w", err, errUnknown)
	case rests.Place != at.Source():
		return Result{}, fmt.Errorf("it was too late: the locks are at the %v", rests.Place)
	}
	say(fmt.Sprintf("given up: %v, in era %d", rests.Place, rests.Era))
	return Result{At: rests.Place, Aborted: true}, nil
}

// clear removes the locks where they were (rule 5). They mean nothing there any more, so the move is done whatever comes of it.
func (r *run) clear(ctx context.Context, names []name) {
	_, source := r.stores()
	n, err := source.remove(ctx, names)
	if r.result.Removed = n; err != nil {
		r.result.Left = err
	}
}

// tidy removes what a run before left where the locks are not: if that is wanted, for it may be of clients that lock there.
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
		return fmt.Errorf("the locks are at the %v, and what may be left of them elsewhere is not removed: %w", r.at.Place, err)
	}
	return nil
}
