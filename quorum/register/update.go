package register

import (
	"context"
	"errors"
	"time"

	"redlock-proxy/quorum/cell"
)

// Do is the effect of a Change on its key.
type Do int

const (
	Leave  Do = iota // do not change the key
	Put              // put a value
	Remove           // remove the value
)

// Decision is the result of a Change for the current value of its key.
type Decision struct {
	Do    Do
	Value string
	// TTL is in whole milliseconds, or cell.Endless. If KeepTTL is set, a value that replaces
	// another keeps the remaining time instead.
	TTL     time.Duration
	KeepTTL bool
	// Shift is added to the remaining time that is kept, separately on each master, in whole
	// milliseconds.
	Shift time.Duration
	// Shared is set if the old or the new value holds several keys, whose ends depend on the end of
	// the cell. Then no master may end the cell before the first end among its holders.
	Shared bool
	// RemoveOnError is set if no client holds the new value when the Update returns an error. Then
	// the value does not stay.
	RemoveOnError bool
	// Note is an arbitrary value that the Outcome returns if this decision takes effect.
	Note any
}

// Change is a change of one key that depends on its current value.
type Change struct {
	Key string
	// Run decides. It may run several times, each time on the value of that moment, and must be
	// deterministic. An error ends the Update without a change.
	Run func(Look) (Decision, error)
	// Expect, unless it is nil, is the only value that Run changes. A key that holds another value
	// is only read.
	Expect *string
	// Owed is called as Terms.Owed is.
	Owed func(version string, mayArrive func() bool)
	// strict lets an absent key be taken only if a validity remains, as Lock does.
	strict bool
	// settle lets a majority accept the current value, even if nothing changes.
	settle bool
	// noNextPromise prevents masters from promising the next ballot at once, so that one round can
	// extend the lock afterwards.
	noNextPromise bool
	// fill names marks that are filled with the value, once a majority of its holders accepted it.
	fill *filling
	// uncancellable lets the Update run to its end once it has begun, even if ctx ends.
	uncancellable bool
}

// ErrNeedsLeft is returned by the Run of a Change that needs the remaining time if the Look does
// not know it.
var ErrNeedsLeft = errors.New("the remaining time of the key is unknown")

// Outcome is the result of an Update.
type Outcome struct {
	// Decision is the decision that took effect.
	Decision Decision
	// Granted describes the value that was put, if any. Its Version is always that of the Look
	// after the Update, even if another command has replaced the value by now.
	Granted
}

// removalTTL is how long a removal by ballot stays on the masters. During this time a command whose
// own ballot failed can still determine the fate of the key.
const removalTTL = 3 * time.Second

// Update changes one key by ballot (rules R3, R4 and R6), or takes an absent one as Lock does. A
// change that a majority accepted has taken effect. If fewer masters accepted it, a later ballot
// finds it among the changes that led to the current value, or knows that it never will. So it
// takes effect at most once.
//
// Errors: those of Run, ErrForeign, ErrContended, *NoQuorum, or the cause of ctx. After
// ErrContended nothing changed. After the last two the change may or may not take effect, possibly
// later, at most once.
func (r *Register) Update(ctx context.Context, c Change) (Outcome, error) {
	leave, err := r.queues.enter(ctx, c.Key)
	if err != nil {
		return Outcome{}, err
	}
	if c.uncancellable {
		ctx = context.WithoutCancel(ctx)
	}
	u := &update{Register: r, Change: c}
	defer func() {
		if u.contended && r.opts.ContentionPause > 0 {
			r.masters.After(r.opts.ContentionPause, leave)
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

// update is a Change under way.
type update struct {
	*Register
	Change
	// sent are the ballots of this change that some master may have accepted.
	sent []sentChange
	// highestRound is the highest round seen. After failures the next ballot goes further ahead of
	// it, because other proxies have started new rounds by the time that it arrives.
	highestRound, ahead uint64
	// contended is set once another ballot overtook one of this change.
	contended bool
	// lastSent is when the last accept was sent.
	lastSent time.Time
	// late is how long the last round took if that was too long to continue with it, or zero.
	late time.Duration
}

// mayArrive reports whether a master may still carry out an accept that was sent. The deadline of
// the accept is by the masters' clocks.
func (u *update) mayArrive() bool {
	return u.opts.Unlimited || u.masters.Now().Before(u.lastSent.Add(leftoverPause))
}

// sentChange is a change that some masters may have accepted.
type sentChange struct {
	decision Decision
	attempt  cell.Attempt
	ballot   cell.Ballot
	change   cell.Change
	// lease is the lease that it gave from since.
	lease time.Duration
	since time.Time
}

func (u *update) perform(ctx context.Context) (Outcome, error) {
	until := u.masters.Now().Add(u.opts.Patience)
	if p := u.promises.take(u.Key, u.masters.Now()); p != nil {
		out, err := u.usePromise(ctx, p)
		if !errors.As(err, new(*splitError)) {
			return out, err
		}
	}
	for failures, tries := 1, 1; ; failures, tries = failures+1, tries+1 {
		u.late = 0
		out, err := u.runBallot(ctx)
		if !errors.As(err, new(*splitError)) {
			return out, err
		}
		u.contended, u.ahead = true, min(2*u.ahead+4, 128)
		if u.masters.Now().After(until) && (u.late > 0 || tries >= u.opts.Tries) {
			return Outcome{}, u.giveUpError()
		}
		if len(u.sent) > 0 {
			failures = 0 // determine the effect of the sent change without a longer pause
		}
		if err := u.masters.Pause(ctx, failures); err != nil {
			return Outcome{}, err
		}
	}
}

// giveUpError returns the error of a change that failed or may have been made, because other
// commands interfered or the masters took too long.
func (u *update) giveUpError() error {
	switch {
	case u.late > 0:
		return &NoQuorum{Late: u.late, Overtaken: len(u.sent) > 0}
	case len(u.sent) > 0:
		return &NoQuorum{Unclear: true, Overtaken: true}
	}
	return ErrContended
}
