package commands

import (
	"context"
	"errors"
	"slices"
	"time"

	"redlock-proxy/commands/register"
	"redlock-proxy/quorum"
)

// Register is what lock keys stand in: a *quorum.Cluster, whose methods tell the
// errors.
type Register interface {
	// ReadAll tells what a majority holds under each key of one database.
	ReadAll(ctx context.Context, keys []quorum.Key) ([]quorum.Holding, error)
	// Apply makes edits of keys of one database, all or none on each master.
	Apply(ctx context.Context, edits []quorum.Edit) (quorum.Outcome, error)
	// Turn asks for the turn to change a key that others change, too.
	Turn(ctx context.Context, key quorum.Key) (end func(), ok bool)
}

// program is something that runs on a view of lock keys and gives a reply: a
// command, a script or a transaction. It may run several times, and must do the
// same on the same view.
type program struct {
	db int
	// keys are those that it is known to use. More are added when it asks for them.
	keys []string
	run  func(ctx context.Context, s *register.Space) (register.Reply, [][]string, error)
	// guesses are views on which it is worth trying without a read. A wrong one
	// costs no more than the read would have.
	guesses []guess
	// committed, if it is set, is told of the edits that were made.
	committed func(edits []register.Edit)
}

// guess is what keys might hold.
type guess map[string]register.Entry

// attempt is what came of one run of a program.
type attempt struct {
	reply register.Reply
	edits []register.Edit
	// asides are the commands for the upstream.
	asides [][]string
	// touched is set where the reply or the edits have to do with the keys at all.
	touched bool
}

// refusal ends a run whose program does what is not done on lock keys: nothing is
// committed, and its text is the reply.
type refusal struct{ text string }

// Error is the reply's text.
func (r *refusal) Error() string { return r.text }

// performance is a program on its way to its end.
type performance struct {
	*Table
	*program
	seen     view // what the masters hold, if it is known
	failures int
	watcher  watcher
	// removed is an attempt that removed what a majority held, on too few masters
	// because others did the same.
	removed *attempt
	// reach is how far the edits came that were taken back.
	reach quorum.Reach
	// until is when it is given up because others change the keys.
	until time.Time
	// endTurn is nil until it is this program's turn.
	endTurn func()
}

// perform runs a program on what the masters hold until its edits are made under
// the condition that they still hold it. In the ordinary case that is one round
// trip, and one more where there was no guess or a wrong one.
func (t *Table) perform(ctx context.Context, p *program) (attempt, error) {
	f := performance{Table: t, program: p, until: t.opts.Now().Add(patience)}
	defer f.leaveTurn()
	done, err := f.guess(ctx)
	for ; done == nil && err == nil; f.failures++ {
		if f.failures > 0 {
			if f.seen, err = t.again(ctx, p, f.seen, f.failures, f.until); err != nil {
				break
			}
		}
		done, err = f.round(ctx)
	}
	if err != nil {
		return attempt{}, err
	}
	return *done, nil
}

// round runs the program on what was seen, or else is read now, and takes the step
// that follows from it. done is set if that was the last one.
func (f *performance) round(ctx context.Context) (done *attempt, err error) {
	for {
		if f.seen == nil {
			if f.seen, err = f.look(ctx, f.program); err != nil {
				return nil, err
			}
		}
		stuck := f.watcher.sees(f.seen, f.opts.Now())
		next, err := f.plan(ctx, f.program, f.seen, f.failures, stuck)
		var unread *register.UnreadError
		switch {
		case errors.As(err, &unread):
			f.add(unread.Key)
			f.seen = nil
		case err != nil:
			return nil, err
		case next.step == stepAnswer && f.removed != nil && f.seen.free(f.removed.edits):
			return f.removed, nil // perhaps nobody else was told that he removed it
		case next.step == stepAnswer:
			return &next.attempt, nil
		case next.step == stepCommit && f.removed != nil && isRemoval(next.attempt) && !next.attempt.removesAgain(f.removed):
			return f.removed, nil // what is there now came after it
		default:
			return f.take(ctx, next)
		}
	}
}

// add has a key be read, too.
func (p *program) add(key string) {
	if !slices.Contains(p.keys, key) {
		p.keys = append(p.keys, key)
	}
}

// guess tries the guesses until one has edits to commit, or shows that the keys do not
// matter.
func (f *performance) guess(ctx context.Context) (done *attempt, err error) {
	for _, g := range f.guesses {
		a, err := f.Table.run(ctx, f.program, g.space(f.opts.Now()))
		var unread *register.UnreadError
		switch {
		case errors.Is(err, register.ErrNeedsRead), errors.As(err, &unread):
			continue
		case err != nil:
			return nil, err
		case !a.touched:
			return &a, nil
		case len(a.edits) == 0:
			continue
		}
		return f.commit(ctx, a, nil)
	}
	return nil, nil
}

// look reads the keys.
func (t *Table) look(ctx context.Context, p *program) (view, error) {
	seen := view{}
	if len(p.keys) == 0 {
		return seen, nil
	}
	all, err := t.opts.Register.ReadAll(ctx, t.places(p.db, p.keys))
	if err != nil {
		return nil, err
	}
	for i, h := range all {
		seen[p.keys[i]] = h
	}
	return seen, nil
}

// run runs the program once. What it must not do is a reply without edits.
func (t *Table) run(ctx context.Context, p *program, s *register.Space) (attempt, error) {
	reply, asides, err := p.run(ctx, s)
	var refused *refusal
	switch {
	case errors.As(err, &refused):
		return attempt{reply: register.Fail(refused.text), touched: s.Touched()}, nil
	case err != nil:
		return attempt{}, err
	}
	a := attempt{reply: reply, edits: s.Edits(), asides: asides, touched: s.Touched()}
	if why := t.forbids(a.edits); why != "" {
		return attempt{reply: register.Fail(why), touched: true}, nil
	}
	return a, nil
}

// take makes the next step. done is set when that was the last one.
func (f *performance) take(ctx context.Context, next move) (done *attempt, err error) {
	seen := f.seen
	f.seen = nil
	switch next.step {
	case stepCommit:
		if f.needsTurn(next.attempt) {
			if waited, err := f.takeTurn(ctx, next.attempt.edits[0].Key); waited || err != nil {
				return nil, err // others have changed what was seen
			}
		}
		done, err = f.commit(ctx, next.attempt, seen)
	case stepClear: // each by itself: they may stand on different masters
		for _, e := range next.leftovers {
			if _, err := f.opts.Register.Apply(ctx, f.quorumEdits(f.db, []register.Edit{e})); err != nil {
				return nil, err
			}
		}
		if isRemoval(next.attempt) {
			f.removed = &next.attempt
		}
	}
	return done, err
}

// commit makes the edits of an attempt on what was seen, or learns what is there instead.
func (f *performance) commit(ctx context.Context, a attempt, seen view) (done *attempt, err error) {
	outcome, err := f.opts.Register.Apply(ctx, f.quorumEdits(f.db, a.edits))
	switch {
	case err != nil:
		return nil, err
	case outcome.Applied:
		if f.committed != nil {
			f.committed(a.edits)
		}
		return &a, nil
	}
	if f.reach = f.reach.Join(outcome.Reach); f.reach.Seen() && a.asks() {
		return f.doubt(ctx, a)
	}
	if outcome.Removed && seen != nil && seen.holds(a.edits) {
		f.removed = &a
	}
	found := view{}
	for i, e := range a.edits {
		found[e.Key] = outcome.Found[i]
	}
	if found.clear() {
		f.seen = found
	}
	return nil, nil
}
