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

// run holds the state of Engine.Run for one program. It is not safe for concurrent use.
type run struct {
	*Engine
	Program
	// removedKeys holds the keys that earlier tries have removed, with their old values, which the
	// program still sees.
	removedKeys map[string]keyspace.Entry
	// lastRead is the result of the last read.
	lastRead view
	// refusalView holds the value of the program's only key, if a refusal reported it. It is the
	// view of the next try.
	refusalView view
	// effects holds the commands for the upstream.
	effects effects
	// undeclaredCount counts the keys that addKey added after the program began.
	undeclaredCount int
	// seed is the seed of random choices, the same in each run. It is nil before the first random
	// choice.
	seed *uint64
}

// retryTime limits the time for which the Engine retries a program while other clients change its
// keys. The Engine tries at least quorum.MinTries times, because a process with little processor
// time makes few tries in that time.
const retryTime = 5 * time.Second

// errPartlyRemoved is the error of a program that had removed only some of its keys when the locks
// moved.
var errPartlyRemoved = errors.New(
	"the locks moved while the command ran: only some of its keys were removed; check its keys")

// Run runs a program on the values that the masters hold, until it has committed the changes. With
// a right guess, or if the program only reads, this takes one call of the register. A change
// without a guess takes one more call, a change after a wrong guess up to two more.
func (e *Engine) Run(ctx context.Context, p Program) (Outcome, error) {
	if refusal := TooManyKeys(len(p.Keys)); refusal != "" {
		return Outcome{Reply: keyspace.ErrorReply(refusal)}, nil
	}
	r := run{Engine: e, Program: p, removedKeys: map[string]keyspace.Entry{}, lastRead: view{}}
	defer func() { r.effects.discard() }()
	outcome, err := r.tryGuesses(ctx)
	deadline := e.Now().Add(retryTime)
	for failures := 0; outcome == nil && err == nil; failures++ {
		if failures >= quorum.MinTries && e.Now().After(deadline) {
			return Outcome{}, &ContendedError{r.Keys[0]}
		}
		if failures > 2 {
			if err := e.Pause(ctx, e.retryDelay(failures)); err != nil {
				return Outcome{}, err
			}
		}
		outcome, err = r.tryOnce(ctx)
	}
	if err == nil {
		outcome, err = r.runEffects(ctx, outcome)
	}
	var wrongLocationErr *quorum.WrongLocationError
	switch {
	case errors.Is(err, quorum.ErrContended):
		return Outcome{}, &ContendedError{r.Keys[0]}
	case errors.As(err, &wrongLocationErr) && len(r.removedKeys) > 0:
		// A repetition would remove the keys twice.
		return Outcome{}, errPartlyRemoved
	case err != nil:
		return Outcome{}, err
	}
	if r.OnCommit != nil && len(outcome.Edits) > 0 {
		r.OnCommit(outcome.Edits)
	}
	return *outcome, nil
}

// tryGuesses tries the guesses until one gives edits to commit, or shows that the keys do not
// matter.
func (r *run) tryGuesses(ctx context.Context) (outcome *Outcome, err error) {
	for _, g := range r.Guesses {
		if len(r.WatchedVersions) > 0 {
			return nil, nil // a guess has no versions
		}
		a, err := r.withRights(ctx, func() (Outcome, error) { return r.execute(ctx, g.Snapshot(r.Now())) })
		var unreadErr *keyspace.UnreadError
		var unlistedErr *UnlistedError
		switch {
		case errors.Is(err, keyspace.ErrNeedsRead), errors.As(err, &unreadErr), errors.As(err, &unlistedErr):
			continue
		case err != nil:
			return nil, err
		case !a.dependsOnKeys:
			return &a, nil
		case len(a.Edits) == 0:
			continue
		}
		if _, refusal := r.editsToCommit(a); refusal != "" || r.needsAllGuesses(a) {
			continue // a refusal needs the real values
		}
		return r.commit(ctx, a)
	}
	return nil, nil
}

// needsAllGuesses reports whether the commit could make some of a run's edits although a guess is
// wrong. Unless all edits take keys, the commit makes them one by one. It does not check unchanged
// keys.
func (r *run) needsAllGuesses(a Outcome) bool {
	if _, inOneCell := r.sameCell(a); inOneCell {
		return false // a ballot does not use the guess
	}
	changes, conditions := splitEdits(a.Edits)
	return len(conditions) > 0 || len(changes) > 1 && !allEdits(changes, isCreation)
}

// tryOnce makes one try. outcome is nil if another try is needed.
func (r *run) tryOnce(ctx context.Context) (outcome *Outcome, err error) {
	if r.UsuallyWrites && len(r.Keys) == 1 {
		return r.update(ctx, r.Keys, nil)
	}
	values, fromRefusal, err := r.readKeys(ctx)
	if err != nil {
		return nil, err
	}
	a, err := r.withRights(ctx, func() (Outcome, error) { return r.runOn(ctx, values) })
	var unread *keyspace.UnreadError
	var unlisted *UnlistedError
	switch {
	case errors.As(err, &unread):
		return r.addKey(unread.Key), nil
	case errors.As(err, &unlisted):
		return r.addMatchingKeys(ctx, unlisted)
	case fromRefusal && errors.Is(err, keyspace.ErrNeedsRead):
		return nil, nil // the refusal did not report the remaining time
	case err != nil:
		return nil, err
	case len(a.Edits) == 0:
		return &a, nil
	}
	return r.commit(ctx, a)
}

// errRightsUnknown ends a run that calls a command before the proxy has checked the client's
// permission for it.
var errRightsUnknown = errors.New("the proxy has not checked the client's permissions yet")

// withRights repeats a run until the proxy knows the client's permission for each command in it.
func (r *run) withRights(ctx context.Context, try func() (Outcome, error)) (Outcome, error) {
	for {
		a, err := try()
		if !errors.Is(err, errRightsUnknown) {
			return a, err
		}
		if err := r.Rights.Ask(ctx); err != nil {
			return Outcome{}, err
		}
	}
}

// addKey adds a key that the next try must read. It returns a refusal if the program uses too many
// undeclared keys.
func (r *run) addKey(key string) (refusalOutcome *Outcome) {
	if slices.Contains(r.Keys, key) {
		return nil
	}
	limit := MaxUndeclaredKeys
	if slices.ContainsFunc(r.Keys, func(declared string) bool { return r.cell(declared) == r.cell(key) }) {
		limit = MaxUndeclaredKeysOfTag
	}
	if r.undeclaredCount++; r.undeclaredCount > limit {
		return &Outcome{Reply: keyspace.ErrorReply(fmt.Sprintf(
			"ERR too many undeclared lock keys: "+
				"'%s' is not in KEYS, and a script may use at most %d such keys; declare it",
			syntax.Excerpt(key), limit)), dependsOnKeys: true}
	}
	r.Keys = append(r.Keys, key)
	return nil
}

func (r *run) randomSeed() uint64 {
	if r.seed == nil {
		var bits [8]byte
		r.Random(bits[:])
		r.seed = new(binary.NativeEndian.Uint64(bits[:]))
	}
	return *r.seed
}

// addMatchingKeys adds the lock keys that match the glob of a KEYS, SCAN or DBSIZE in a program. It
// returns a refusal if the program then has too many keys.
func (r *run) addMatchingKeys(ctx context.Context, unlistedErr *UnlistedError) (refused *Outcome, err error) {
	found, err := r.List(ctx, r.DB, unlistedErr.Match)
	if err != nil {
		return nil, err
	}
	keys := syntax.Distinct(slices.Concat(r.Keys, found))
	if refusal := TooManyKeys(len(keys)); refusal != "" {
		return &Outcome{Reply: keyspace.ErrorReply(refusal), dependsOnKeys: true}, nil
	}
	r.Keys = keys
	unlistedErr.OnListed(found)
	return nil, nil
}

// view holds the states of keys on the masters.
type view map[string]quorum.Snapshot

// readKeys reads the keys, unless a refusal has just reported the value of the only key.
func (r *run) readKeys(ctx context.Context) (values view, fromRefusal bool, err error) {
	values, fromRefusal = r.refusalView, len(r.refusalView) > 0 && len(r.Keys) == 1
	r.refusalView = nil
	switch {
	case fromRefusal:
		r.lastRead = values
		return values, true, nil
	case len(r.Keys) == 0:
		return view{}, false, nil
	}
	snapshots, err := r.Register.Read(ctx, r.KeysOnMasters(r.DB, r.Keys))
	if err != nil {
		return nil, false, err
	}
	values = view{}
	for i, l := range snapshots {
		values[r.Keys[i]] = l
	}
	r.lastRead = values
	return values, false, nil
}

// runOn runs the program on a view, unless a watched key has changed.
func (r *run) runOn(ctx context.Context, values view) (Outcome, error) {
	for key, version := range r.WatchedVersions {
		if l, ok := values[key]; ok && l.Version != version {
			return Outcome{Reply: keyspace.Reply{Kind: keyspace.NilArray}, dependsOnKeys: true}, nil
		}
	}
	s := values.snapshot(r.Now())
	for key, oldEntry := range r.removedKeys {
		s.Put(key, oldEntry)
	}
	return r.execute(ctx, s)
}

// execute runs the program once. A refused program gives a reply without edits.
func (r *run) execute(ctx context.Context, s *keyspace.Snapshot) (Outcome, error) {
	s.Seed(r.randomSeed)
	reply, effects, err := r.Program.Run(ctx, s)
	var refusalErr *Refusal
	switch {
	case r.Rights.HasOpenChecks():
		return Outcome{}, errRightsUnknown
	case errors.As(err, &refusalErr):
		return Outcome{Reply: keyspace.ErrorReply(refusalErr.Text), dependsOnKeys: s.HasUsedKeys()}, nil
	case err != nil:
		return Outcome{}, err
	}
	a := Outcome{
		Reply: reply, Edits: s.Edits(), KeysRead: r.trackedKeys(s), effects: effects,
		dependsOnKeys: s.HasUsedKeys(),
	}
	if r.WatchesKeys {
		a.FoundKeys = s.FoundKeys()
	}
	if refusal := r.RefuseEdits(a.Edits); refusal != "" {
		return Outcome{Reply: keyspace.ErrorReply(refusal), dependsOnKeys: true}, nil
	}
	return a, nil
}

// trackedKeys returns the values that the run revealed, if the client tracks keys.
func (r *run) trackedKeys(s *keyspace.Snapshot) map[string]keyspace.Entry {
	if !r.TracksKeys {
		return nil
	}
	return s.KeysRead()
}
