package register

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"redlock-proxy/quorum/cell"
	"redlock-proxy/quorum/vote"
)

// Terms are those on which keys are to be taken.
type Terms struct {
	// Tokens are those of the keys, in their order.
	Tokens []string
	// TTL is in whole milliseconds, or cell.Endless.
	TTL time.Duration
	// Anyhow takes them also for a time that is too short to be relied on.
	Anyhow bool
	// Until, unless it is zero, is when no new try is begun any more.
	Until time.Time
	// Holder is whatever Holdings is to return of who holds them.
	Holder any
	// Fence has the lock, of one key, get a fence.
	Fence bool
	// Stays has what was taken with *NoQuorum for an answer stay where it can: others may have seen
	// it, and go by it.
	Stays bool
	// Owed is called with each version that the keys may have although an error was returned:
	// nobody holds them by it, so it is owed its removal. mayArrive, unless it is nil, reports
	// whether it may still come to so many masters that they make a majority. A cluster has its
	// own.
	Owed func(version string, mayArrive func() bool)
	// IsNobodys, unless it is nil, reports whether what the key, the only one, holds is owed its
	// removal: then it may be taken over. A cluster has its own.
	IsNobodys func(Look) bool
}

func (t Terms) owed(version string, mayArrive func() bool) {
	if t.Owed != nil {
		t.Owed(version, mayArrive)
	}
}

// isNobodys reports whether a key holds what may be taken over.
func (t Terms) isNobodys(l Look) bool {
	return l.Present && t.IsNobodys != nil && len(t.Tokens) == 1 && t.IsNobodys(l)
}

// Granted is what a Lock gives.
type Granted struct {
	// Validity is how long it is valid from now, or cell.Endless.
	Validity time.Duration
	// Since is when the lease began: just before the masters were asked.
	Since time.Time
	// Attempt is what created the lock.
	Attempt cell.Attempt
	// Version is that of the Look of each key that was taken. Nothing else ever has it, so it names
	// what Withdraw takes back.
	Version string
	// Longer is set by Extend where a master had a longer lease than was asked for.
	Longer bool
	// Fence is higher than that of any lock of the key that was granted before, if one was asked
	// for.
	Fence int64
}

// Lock takes keys that nobody holds, all or none. Tries that win too few masters each, because
// others try at the same moment, are made again.
//
// Errors: ErrHeld, ErrTooShort, ErrContended, ErrFences, *NoQuorum, or the cause of ctx. After an
// error nothing is held; what was taken is undone in the background.
func (r *Register) Lock(ctx context.Context, keys []string, t Terms) (Granted, error) {
	if !t.Anyhow && t.TTL >= 0 && t.TTL < vote.Shortest {
		return Granted{}, ErrTooShort
	}
	until := r.masters.Now().Add(r.opts.Patience)
	for failures := 1; ; failures++ {
		got, err := r.take(ctx, keys, t)
		if err == nil {
			return r.withFence(ctx, keys[0], t, got)
		}
		if told, held := errors.AsType[*InsteadError](err); held && t.isNobodys(told.Instead) {
			return r.lockByBallot(ctx, keys[0], t)
		}
		var again *splitError
		if !errors.As(err, &again) {
			return got, err
		}
		switch {
		case again.vacated && len(keys) == 1:
			return r.lockByBallot(ctx, keys[0], t)
		case again.open && failures >= openTries:
			return Granted{}, &NoQuorum{Replies: again.replies}
		case !t.Until.IsZero() && r.masters.Now().After(t.Until), r.masters.Now().After(until) && failures >= r.opts.Tries:
			return Granted{}, ErrContended
		case again.low:
			continue
		}
		if err := r.masters.Pause(ctx, failures); err != nil {
			return Granted{}, err
		}
	}
}

// lockByBallot is Lock of a key that was removed by ballot a moment ago, and holds nothing, or what
// may be taken over. A ballot is not undone, so once begun it goes on to its end also where the
// caller does not wait any more: only then it is known whether the lock was granted.
func (r *Register) lockByBallot(ctx context.Context, key string, t Terms) (Granted, error) {
	out, err := r.Update(ctx, Change{Key: key, Owed: t.Owed, strict: !t.Anyhow, onward: true, Run: func(l Look) (Decision, error) {
		if l.Present && !t.isNobodys(l) {
			return leave(l)
		}
		return Decision{Do: Put, Value: t.Tokens[0], TTL: t.TTL}, nil
	}})
	switch {
	case err != nil:
		return Granted{}, err
	case out.Decision.Do == Leave:
		return Granted{}, &InsteadError{Err: ErrHeld, Instead: out.Decision.Note.(Look)}
	}
	elapsed := r.masters.Now().Sub(out.Since)
	if out.Version != string(out.Attempt) { // else it was taken the usual way in the end
		one := newGrant(t, 0, out.Attempt, out.Since, r.n)
		one.version = out.Version
		r.grants.put(key, one, out.Since)
	}
	if !t.Anyhow && (t.TTL >= 0 && out.Validity < time.Millisecond || r.late(elapsed)) {
		t.owed(out.Version, nil)
		return Granted{}, &NoQuorum{Late: elapsed}
	}
	return r.withFence(ctx, key, t, out.Granted)
}

// splitError says that a try can have no majority and held up no other: it can be made
// again.
type splitError struct {
	// vacated is set where a key was removed by ballot a moment ago, or a ballot is to decide
	// what it holds: its next value is for a ballot, too.
	vacated bool
	// open is set where masters that do not vote may make a majority of another holder, for longer
	// than a removal stays.
	open bool
	// low is set where nothing but too low a fence was in the way.
	low     bool
	replies []Reply
}

// openTries is how often a key is tried that another may hold: what is only trying, as
// this is, is done by then.
const openTries = 5

func (e *splitError) Error() string { return "votes are split" }

// take makes one attempt (rule R6, LOCK), with a fence where one round trip does it.
func (r *Register) take(ctx context.Context, keys []string, t Terms) (Granted, error) {
	fence := int64(0)
	// Where too few masters vote nothing can be granted, and nothing is left there that stays.
	if t.Fence && r.masters.Voters() >= r.quorum {
		var err error
		if fence, err = r.nextFence(keys[0]); err != nil {
			return Granted{}, err
		}
	}
	op := cell.Take{Names: keys, Attempt: r.opts.Source.Attempt(), Tokens: t.Tokens, TTL: t.TTL, Fence: fence}
	start := r.masters.Now()
	asked, err := r.masters.Ask(ctx, r.toAll(op), takeDecided)
	if err == nil {
		asked, err = r.insist(ctx, op, asked)
	}
	if fence != 0 {
		r.learnFences(keys[0], fence, asked.Replies())
	}
	if err == nil {
		var got Granted
		if got, err = r.judgeTake(keys, t, asked.Replies(), start); err == nil {
			got.Attempt, got.Version, got.Fence = op.Attempt, string(op.Attempt), fence
			r.granted(t, op, asked, start)
			asked.Forget()
			return got, nil
		}
	}
	asked.Drop()
	known := errors.Is(err, ErrHeld) || errors.As(err, new(*splitError))
	if t.Stays && errors.As(err, new(*NoQuorum)) { // and is removed where it cannot stay
		r.mendRest(asked, keys...)
		return Granted{}, err
	}
	var open, may atomic.Int32 // masters at which it may still arrive, and those that may have it
	undo := func(master int, reply Reply) {
		if reply.did() {
			r.undo(keys, op.Attempt, master)
		}
	}
	for i, reply := range asked.Replies() {
		undo(i, reply)
		if reply.State == Waiting || reply.State == Unknown {
			open.Add(1)
		}
		if !reply.no() {
			may.Add(1)
		}
	}
	if !known && int(may.Load()) >= r.quorum {
		t.owed(string(op.Attempt), func() bool { return open.Load() > 0 && int(may.Load()) >= r.quorum })
	}
	asked.Later(func(master int, reply Reply) {
		if undo(master, reply); reply.State != Unknown {
			open.Add(-1)
		}
		if reply.no() {
			may.Add(-1)
		}
	})
	if errors.Is(err, ErrHeld) { // other errors hold the replies
		asked.Forget()
	}
	return Granted{}, err
}

func (r *Register) undo(keys []string, a cell.Attempt, master int) {
	for _, key := range keys {
		r.masters.Tell(master, cell.Remove{Name: key, Attempt: a, How: cell.Undo}, true)
	}
}

// takeResult is the vote on an attempt. What is not known to have failed at a master may still take
// it.
func takeResult(replies []Reply) vote.Result {
	yes, no := count(replies, (*Reply).yes), count(replies, (*Reply).no)
	return vote.Count(len(replies), yes, len(replies)-yes-no)
}

// takeDecided: granted, surely held by another, or neither is possible any more.
func takeDecided(replies []Reply) bool {
	result := takeResult(replies)
	return result == vote.Won || refusedByOne(replies) || result == vote.Lost && !canBeRefusedByOne(replies)
}

// canBeRefusedByOne reports whether the masters that are waited for may make a majority
// with others that refused.
func canBeRefusedByOne(replies []Reply) bool {
	return waiting(replies) > 0 && tally(replies, (*Reply).refused) != vote.Lost
}

// refusedByOne reports whether a majority refused because one and the same holder has one of
// the keys.
func refusedByOne(replies []Reply) bool {
	keys := 0
	for _, reply := range replies {
		keys = max(keys, len(reply.Found))
	}
	for i := range keys {
		if resolve(replies, i).taken() {
			return true
		}
	}
	return false
}

// judgeTake decides what came of an attempt.
func (r *Register) judgeTake(keys []string, t Terms, replies []Reply, start time.Time) (Granted, error) {
	elapsed := r.masters.Now().Sub(start)
	validity := vote.Validity(t.TTL, elapsed)
	switch result := takeResult(replies); {
	case result == vote.Won && (r.late(elapsed) || !t.Anyhow && t.TTL >= 0 && validity < time.Millisecond):
		return Granted{}, &NoQuorum{Replies: replies, Late: elapsed}
	case result == vote.Won:
		return Granted{Validity: validity, Since: start}, nil
	case refusedByOne(replies) && len(keys) == 1:
		return Granted{}, resolve(replies, 0).refuses(ErrHeld)
	case refusedByOne(replies):
		return Granted{}, ErrHeld
	case result == vote.Lost && tally(replies, (*Reply).answered) != vote.Lost:
		if count(replies, (*Reply).isLow) > 0 && count(replies, (*Reply).refused) == 0 {
			return Granted{}, &splitError{low: true, replies: replies}
		}
		for _, key := range keys {
			r.mendLater(key)
		}
		return Granted{}, &splitError{vacated: isVacated(replies), open: mayBeHeld(replies) && !endsSoon(replies), replies: replies}
	default:
		return Granted{}, &NoQuorum{Replies: replies}
	}
}

// mayBeHeld reports whether masters that do not vote may make a majority of one that others
// refused for. Those that took the attempt hold nothing else.
func mayBeHeld(replies []Reply) bool {
	known := slices.Clone(replies)
	for i, reply := range known {
		if reply.yes() {
			known[i].Found = make([]cell.Found, 1)
		}
	}
	return resolve(known, 0).standing == Open
}

// isVacated reports whether some refusal returned a cell of the first key that holds no value, or
// its holders differ.
func isVacated(replies []Reply) bool {
	return resolve(replies, 0).unsettled() || slices.ContainsFunc(replies, func(r Reply) bool {
		return len(r.Found) > 0 && r.Found[0].Form == cell.Register && !r.Found[0].Value.Present
	})
}

// granted remembers a lock that a cell.Take took, and has it taken or restored on masters that
// refused it, or may have missed it.
func (r *Register) granted(t Terms, op cell.Take, asked Asked, start time.Time) {
	made := make([]*grant, len(op.Names))
	for i, key := range op.Names {
		made[i] = newGrant(t, i, op.Attempt, start, r.n)
		for m, reply := range asked.Replies() {
			made[i].note(m, reply)
		}
		r.grants.put(key, made[i], start)
	}
	op.Fence = 0 // a majority has it
	for m, reply := range asked.Replies() {
		r.again(op, made, m, 0, reply)
	}
	asked.Later(func(master int, reply Reply) {
		for _, one := range made {
			r.grants.reached(one, master, reply)
		}
		r.again(op, made, master, 0, reply)
	})
}

const (
	// againAfter is the pause before a master that refused a lock is asked again; each is twice as
	// long as the one before.
	againAfter = 8 * time.Millisecond
	againTries = 4
)

// again has a lock taken on a master that refused it, because of what a rival took and takes back,
// or of a removal that ends: neither is gone everywhere at the same moment. Refilling needs a
// second for it. As the master is asked again only after it refused, it is as if the first message
// had been slow. What else a master may lack is mended, and several keys are.
func (r *Register) again(op cell.Take, made []*grant, master, tries int, reply Reply) {
	if reply.State != Counted || reply.Did || tries == againTries || len(made) > 1 {
		r.mendUnless(reply, op.Names...)
		return
	}
	r.askAgain(op, made, master, tries)
}

func (r *Register) askAgain(op cell.Take, made []*grant, master, tries int) {
	r.masters.After(againAfter<<tries, func() {
		if op.TTL = r.grants.reopen(op.Names[0], made[0], master, r.masters.Now()); op.TTL == 0 {
			return
		}
		ops := make([]cell.Op, r.n)
		ops[master] = op
		asked, err := r.masters.Ask(context.Background(), ops, func([]Reply) bool { return true })
		if err != nil {
			return
		}
		heard := func(_ int, reply Reply) { // before what a release is answered there
			r.grants.reached(made[0], master, reply)
			r.again(op, made, master, tries+1, reply)
		}
		if reply := asked.Replies()[master]; reply.State != Waiting {
			heard(master, reply)
		}
		asked.Later(heard)
		asked.Forget()
	})
}
