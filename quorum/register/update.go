package register

import (
	"context"
	"errors"
	"time"

	"redlock-proxy/quorum/cell"
)

// Do is what a Change does to its key.
type Do int

const (
	Leave  Do = iota // nothing
	Put              // put a value there
	Remove           // take the value away
)

// Decision is what a Change makes of the current value of its key.
type Decision struct {
	Do    Do
	Value string
	// TTL is in whole milliseconds, or cell.Endless. With KeepTTL a value that is replaced
	// keeps its remaining time instead.
	TTL     time.Duration
	KeepTTL bool
	// Shift is added to the remaining time that is kept, on each master by itself, in whole
	// milliseconds.
	Shift time.Duration
	// Shared is set where the ends of several keys depend on that of the cell, in the value that is
	// put or the one before: then no master may have an earlier end than the first of those that
	// held it.
	Shared bool
	// Takes is set where nobody holds what is put there if the Update returns an error: then it
	// does not stay.
	Takes bool
	// Note is whatever the caller wants to find in the Outcome if this decision holds.
	Note any
}

// Change is a change of one key that depends on its current value.
type Change struct {
	Key string
	// Run decides. It may be run several times, on the value of that moment, and must
	// decide the same of the same. An error ends the Update, with nothing changed by it.
	Run func(Look) (Decision, error)
	// Expect, if it is set, is the only value of which Run makes a change: a key that
	// holds another is only looked at.
	Expect *string
	// Owed is as that of the Terms.
	Owed func(version string, mayArrive func() bool)
	// strict has an absent key be taken as Lock does.
	strict bool
	// settle has a majority accept the current value, also where nothing is changed.
	settle bool
	// unpromised has no master promise the next ballot at once: the lock is left as it can be
	// extended without one.
	unpromised bool
	// fill has masters hold what the others do, once a majority of these has accepted it.
	fill *filling
	// onward has it go on to its end once it has begun, also where the caller leaves.
	onward bool
}

// ErrNeedsLeft is returned by a Change's Run where it needs the remaining time, and the
// Look does not know it.
var ErrNeedsLeft = errors.New("the remaining time of the key is not known")

// Outcome is what came of an Update.
type Outcome struct {
	// Decision is the one that holds of those which the runs of the Change came to.
	Decision Decision
	// Granted is about the value that was put, if one was; its Version is that of the Look after it
	// in any case, also where others have replaced by now what it put there.
	Granted
}

// removedFor is how long a removal by ballot stays on the masters: so long a command
// whose own ballot failed can see what became of the key.
const removedFor = 3 * time.Second

// Update makes a change of one key by ballot (rules R3, R4 and R6), or of an absent one as
// Lock does. What is accepted by a majority holds; a change that fewer accepted is found
// in, or missing from, the changes that led to what a later ballot finds, so it is made
// once.
//
// Errors: those of Run, ErrForeign, ErrContended, *NoQuorum, or the cause of ctx. After
// ErrContended nothing was changed; after the last two the change is made once at any
// later moment, or never.
func (r *Register) Update(ctx context.Context, c Change) (Outcome, error) {
	leave, err := r.queues.enter(ctx, c.Key)
	if err != nil {
		return Outcome{}, err
	}
	if c.onward {
		ctx = context.WithoutCancel(ctx)
	}
	u := &update{Register: r, Change: c}
	defer func() {
		if u.contended && r.opts.Yield > 0 {
			r.masters.After(r.opts.Yield, leave)
		} else {
			leave()
		}
	}()
	out, err := u.perform(ctx)
	if err != nil && c.Owed != nil {
		for _, s := range u.sent {
			c.Owed(string(s.attempt)+string(s.change), u.mayArrive)
		}
	}
	return out, err
}

// update is a Change on its way.
type update struct {
	*Register
	Change
	// sent are the ballots of this change that some master may have accepted.
	sent []sentChange
	// above is the highest round seen. After failures the next ballot goes further ahead of
	// it, because others have gone on by the time that it arrives.
	above, ahead uint64
	// contended: a ballot of this change was overtaken.
	contended bool
	// asked is when the last accept was sent.
	asked time.Time
	// late is how long the last round had taken when it was too late to go on with it, else zero.
	late time.Duration
}

// mayArrive reports whether an accept that was sent may still be done: its deadline is by the
// masters' clocks.
func (u *update) mayArrive() bool {
	return u.opts.Unlimited || u.masters.Now().Before(u.asked.Add(sweepPause))
}

// sentChange is a value that some masters may have accepted.
type sentChange struct {
	decision Decision
	attempt  cell.Attempt
	ballot   cell.Ballot
	change   cell.Change
	// lease is what it gave, since then.
	lease time.Duration
	since time.Time
}

func (u *update) perform(ctx context.Context) (Outcome, error) {
	until := u.masters.Now().Add(u.opts.Patience)
	if p := u.promises.take(u.Key, u.masters.Now()); p != nil {
		out, err := u.onPromise(ctx, p)
		if !errors.As(err, new(*splitError)) {
			return out, err
		}
	}
	for failures, tries := 1, 1; ; failures, tries = failures+1, tries+1 {
		u.late = 0
		out, err := u.round(ctx)
		if !errors.As(err, new(*splitError)) {
			return out, err
		}
		u.contended, u.ahead = true, min(2*u.ahead+4, 128)
		if u.masters.Now().After(until) && (u.late > 0 || tries >= u.opts.Tries) {
			return Outcome{}, u.givenUp()
		}
		if len(u.sent) > 0 {
			failures = 0 // what became of it is found out without a longer pause
		}
		if err := u.masters.Pause(ctx, failures); err != nil {
			return Outcome{}, err
		}
	}
}

// givenUp is the error of a change that could not be made, or may have been: since others came
// between, or the masters took too long.
func (u *update) givenUp() error {
	switch {
	case u.late > 0:
		return &NoQuorum{Late: u.late, Overtaken: len(u.sent) > 0}
	case len(u.sent) > 0:
		return &NoQuorum{Unclear: true, Overtaken: true}
	}
	return ErrContended
}
