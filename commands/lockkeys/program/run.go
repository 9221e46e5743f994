package program

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/lockkeys/keyspace"
	"redlock-proxy/quorum"
)

// run is a program on its way to its end. It is for one goroutine.
type run struct {
	*Engine
	Program
	// removed are the keys that this program has removed already, with what they held:
	// it still sees them so.
	removed map[string]keyspace.Entry
	// seen is what was read last.
	seen view
	// instead is what the only key turned out to hold when it was refused, for the next look.
	instead view
	// effects are what is done at the upstream.
	effects effects
	// found are how many keys were added to those that the program was known to use.
	found int
	// seed is what its random choices follow from, the same ones in each run; nil until the first
	// is made.
	seed *uint64
}

// retryTime is how long a program may start over because others change its keys; quorum.LeastTries
// is how often at the least, however long that takes: a process that gets no processor for a while
// comes to few tries in that time.
const retryTime = 5 * time.Second

// errHalfMoved says that a program removed some of its keys before the locks were moved, and others
// not.
var errHalfMoved = errors.New("the locks were moved in the midst of it: some of its keys are removed, others are not")

// Run runs a program on what the masters hold until what it makes of it stands. With
// a right guess, or if it only reads, that is one call of the register; one more without
// a guess, and two more with a wrong one.
func (e *Engine) Run(ctx context.Context, p Program) (Outcome, error) {
	if why := TooManyKeys(len(p.Keys)); why != "" {
		return Outcome{Reply: keyspace.Fail(why)}, nil
	}
	r := run{Engine: e, Program: p, removed: map[string]keyspace.Entry{}, seen: view{}}
	defer func() { r.effects.drop() }()
	done, err := r.guess(ctx)
	until := e.Now().Add(retryTime)
	for failures := 0; done == nil && err == nil; failures++ {
		if failures >= quorum.LeastTries && e.Now().After(until) {
			return Outcome{}, &ContendedError{r.Keys[0]}
		}
		if failures > 2 {
			if err := e.Pause(ctx, e.backOff(failures)); err != nil {
				return Outcome{}, err
			}
		}
		done, err = r.round(ctx)
	}
	if err == nil {
		done, err = r.finish(ctx, done)
	}
	var elsewhere *quorum.ElsewhereError
	switch {
	case errors.Is(err, quorum.ErrContended):
		return Outcome{}, &ContendedError{r.Keys[0]}
	case errors.As(err, &elsewhere) && len(r.removed) > 0: // it must not be run again as if nothing was done
		return Outcome{}, errHalfMoved
	case err != nil:
		return Outcome{}, err
	}
	if r.Committed != nil && len(done.Edits) > 0 {
		r.Committed(done.Edits)
	}
	return *done, nil
}

// guess tries the guesses until one has edits to commit, or shows that the keys do not
// matter.
func (r *run) guess(ctx context.Context) (done *Outcome, err error) {
	for _, g := range r.Guesses {
		if len(r.Watched) > 0 {
			return nil, nil // a guess tells no version
		}
		a, err := r.granted(ctx, func() (Outcome, error) { return r.once(ctx, g.Space(r.Now())) })
		var unread *keyspace.UnreadError
		var unlisted *UnlistedError
		switch {
		case errors.Is(err, keyspace.ErrNeedsRead), errors.As(err, &unread), errors.As(err, &unlisted):
			continue
		case err != nil:
			return nil, err
		case !a.touched:
			return &a, nil
		case len(a.Edits) == 0:
			continue
		}
		if _, why := r.committable(a); why != "" || r.leansOn(a) {
			continue // only what the keys really hold is a reason to refuse it
		}
		return r.commit(ctx, a)
	}
	return nil, nil
}

// leansOn reports whether what a run came to may be made in part, or in whole, where
// the guess that it was made on is wrong: keys that are not taken are changed one by one,
// and those that are not changed are not looked at.
func (r *run) leansOn(a Outcome) bool {
	if _, together := r.together(a); together {
		return false // a ballot makes nothing of a guess
	}
	changing, conditions := changes(a.Edits)
	return len(conditions) > 0 || len(changing) > 1 && !all(changing, isCreation)
}

// round makes one try. done is set if that was the last one.
func (r *run) round(ctx context.Context) (done *Outcome, err error) {
	if r.Replaces && len(r.Keys) == 1 {
		return r.update(ctx, r.Keys, nil)
	}
	seen, reported, err := r.look(ctx)
	if err != nil {
		return nil, err
	}
	a, err := r.granted(ctx, func() (Outcome, error) { return r.runOn(ctx, seen) })
	var unread *keyspace.UnreadError
	var unlisted *UnlistedError
	switch {
	case errors.As(err, &unread):
		return r.add(unread.Key), nil
	case errors.As(err, &unlisted):
		return r.list(ctx, unlisted)
	case reported && errors.Is(err, keyspace.ErrNeedsRead):
		return nil, nil // its remaining time was not told
	case err != nil:
		return nil, err
	case len(a.Edits) == 0:
		return &a, nil
	}
	return r.commit(ctx, a)
}

// errUnasked ends a run that did something of which it is not known whether the client may do it.
var errUnasked = errors.New("rights must be asked for")

// granted runs until it is known of everything that the program does whether the client
// may do it.
func (r *run) granted(ctx context.Context, try func() (Outcome, error)) (Outcome, error) {
	for {
		a, err := try()
		if !errors.Is(err, errUnasked) {
			return a, err
		}
		if err := r.Rights.Ask(ctx); err != nil {
			return Outcome{}, err
		}
	}
}

// add has a key be read, too. It is done where that would be one too many.
func (r *run) add(key string) (done *Outcome) {
	if slices.Contains(r.Keys, key) {
		return nil
	}
	limit := MaxFound
	if slices.ContainsFunc(r.Keys, func(other string) bool { return r.cell(other) == r.cell(key) }) {
		limit = MaxFoundOfTag
	}
	if r.found++; r.found > limit {
		return &Outcome{Reply: keyspace.Fail(fmt.Sprintf("ERR too many undeclared lock keys: a script may use at most %d that are not in its KEYS, and '%s' is one more",
			limit, syntax.Shown(key))), touched: true}
	}
	r.Keys = append(r.Keys, key)
	return nil
}

// chance is the seed of random choices.
func (r *run) chance() uint64 {
	if r.seed == nil {
		var bits [8]byte
		r.Random(bits[:])
		r.seed = new(binary.NativeEndian.Uint64(bits[:]))
	}
	return *r.seed
}

// list has the lock keys that a program asks for be read, too. It is done where they are too many.
func (r *run) list(ctx context.Context, wanted *UnlistedError) (done *Outcome, err error) {
	found, err := r.List(ctx, r.DB, wanted.Match)
	if err != nil {
		return nil, err
	}
	keys := syntax.Distinct(slices.Concat(r.Keys, found))
	if why := TooManyKeys(len(keys)); why != "" {
		return &Outcome{Reply: keyspace.Fail(why), touched: true}, nil
	}
	r.Keys = keys
	wanted.Found(found)
	return nil, nil
}

// view is what the masters hold under keys.
type view map[string]quorum.Look

// look reads the keys, unless a refusal has just told what the only one holds.
func (r *run) look(ctx context.Context) (seen view, reported bool, err error) {
	seen, reported = r.instead, len(r.instead) > 0 && len(r.Keys) == 1
	r.instead = nil
	switch {
	case reported:
		r.seen = seen
		return seen, true, nil
	case len(r.Keys) == 0:
		return view{}, false, nil
	}
	all, err := r.Register.Read(ctx, r.Places(r.DB, r.Keys))
	if err != nil {
		return nil, false, err
	}
	seen = view{}
	for i, l := range all {
		seen[r.Keys[i]] = l
	}
	r.seen = seen
	return seen, false, nil
}

// runOn runs the program on a view, if that is still what it watched.
func (r *run) runOn(ctx context.Context, seen view) (Outcome, error) {
	for key, version := range r.Watched {
		if l, known := seen[key]; known && l.Version != version {
			return Outcome{Reply: keyspace.Reply{Kind: keyspace.NilArray}, touched: true}, nil
		}
	}
	s := seen.space(r.Now())
	for key, was := range r.removed {
		s.Put(key, was)
	}
	return r.once(ctx, s)
}

// once runs the program once. What it must not do is a reply without edits.
func (r *run) once(ctx context.Context, s *keyspace.Space) (Outcome, error) {
	s.Seed(r.chance)
	reply, effects, err := r.Program.Run(ctx, s)
	var refused *Refusal
	switch {
	case r.Rights.Unasked():
		return Outcome{}, errUnasked
	case errors.As(err, &refused):
		return Outcome{Reply: keyspace.Fail(refused.Text), touched: s.Touched()}, nil
	case err != nil:
		return Outcome{}, err
	}
	a := Outcome{Reply: reply, Edits: s.Edits(), Read: r.read(s), effects: effects, touched: s.Touched()}
	if r.Watches {
		a.Found = s.Found()
	}
	if why := r.Forbids(a.Edits); why != "" {
		return Outcome{Reply: keyspace.Fail(why), touched: true}, nil
	}
	return a, nil
}

// read is what the run told of keys, where somebody asks for it.
func (r *run) read(s *keyspace.Space) map[string]keyspace.Entry {
	if !r.Tracked {
		return nil
	}
	return s.Read()
}
