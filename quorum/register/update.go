package register

import (
	"context"
	"errors"
	"time"

	"redlock-proxy/quorum/cell"
)

// Action is the effect of a Change on its key.
type Action int

const (
	NoChange Action = iota // leave the key unchanged
	Put                    // put a value
	Remove                 // remove the value
)

// Decision is the result of Change.Run for the current value of the key.
type Decision struct {
	Action Action
	Value  string
	// TTL is in whole milliseconds, or cell.NoExpiry. KeepTTL keeps the remaining time of a
	// replaced value instead.
	TTL     time.Duration
	KeepTTL bool
	// Shift is the time that each master adds to the kept remaining time, in whole milliseconds.
	Shift time.Duration
	// Shared is set if the old or the new value is a keygroup. Then the cell must expire on no
	// master before the first expiry on the masters that hold it.
	Shared bool
	// RemoveOnError removes the value, which no client then holds, if the Update returns an error.
	RemoveOnError bool
	// Note is an arbitrary value that the Outcome returns if this decision takes effect.
	Note any
}

// Change is a change of one key that depends on its current value.
type Change struct {
	Key string
	// Run decides. It may run several times, each time on the current value, and must be
	// deterministic. An error ends the Update without a change.
	Run func(Snapshot) (Decision, error)
	// ExpectedValue, unless it is nil, is the only value that Run changes. Any other value is only
	// read.
	ExpectedValue *string
	// OnRemovalDue has the meaning of TakeOptions.OnRemovalDue.
	OnRemovalDue func(version string, mayArrive func() bool)
	// requireValidity lets the Update take an absent key only if a validity remains, as Lock does.
	requireValidity bool
	// alwaysAccept lets a majority accept the current value even if nothing changes.
	alwaysAccept bool
	// noNextPromise prevents promises for the next ballot, so one round can extend the lock later.
	noNextPromise bool
	// fill identifies marks to replace with the value once a majority accepted the value.
	fill *filling
	// uncancellable lets the Update, once begun, run to its end even if ctx ends.
	uncancellable bool
}

// ErrTTLUnknown is the error that Change.Run returns if it needs the remaining time and
// Snapshot.TimeLeftUnknown is set.
var ErrTTLUnknown = errors.New("the remaining time of the key is unknown")

// Outcome is the result of an Update.
type Outcome struct {
	Decision Decision
	// GrantedLock describes the value that was put, if any. Its Version is the version that the
	// Update put, even if another command has replaced the value.
	GrantedLock
}

// removalTTL is the TTL of a removal. Until the removal expires, a command whose ballot failed can
// find out whether the ballot took effect.
const removalTTL = 3 * time.Second

// Update changes one key by ballot (REGISTER.md, Replacing), or takes an absent key like Lock. A
// change takes effect once a majority accepted it. If fewer masters accepted it, a later ballot
// finds the change among the changes that led to the current value, or excludes the change. So the
// change takes effect at most once.
//
// Errors: the errors of Run, ErrForeign, ErrContended, *NoQuorum, or the cause of ctx. After
// ErrContended nothing changed. After the last two the change may or may not take effect, possibly
// later, at most once.
func (r *Register) Update(ctx context.Context, c Change) (Outcome, error) {
	release, err := r.queues.acquire(ctx, c.Key)
	if err != nil {
		return Outcome{}, err
	}
	if c.uncancellable {
		ctx = context.WithoutCancel(ctx)
	}
	u := &update{Register: r, Change: c}
	defer func() {
		if u.contended && r.opts.ContentionPause > 0 {
			r.masters.RunAfter(r.opts.ContentionPause, release)
		} else {
			release()
		}
	}()
	out, err := u.perform(ctx)
	if err != nil && c.OnRemovalDue != nil {
		for _, s := range u.sentChanges {
			c.OnRemovalDue(string(s.attempt)+string(s.change), u.mayArrive)
		}
	}
	return out, err
}

type update struct {
	*Register
	Change
	// sentChanges holds the ballots of this change that some master may have accepted.
	sentChanges []sentChange
	// highestRound is the highest round seen. roundMargin grows with failures, because other
	// proxies have started new rounds by the time that the next ballot arrives.
	highestRound, roundMargin uint64
	// contended is set once another ballot overtook this change.
	contended bool
	// lastSent is the time at which the last accept was sent.
	lastSent time.Time
	// agreementTime is the duration of the last ballot if it exceeded the time limit, or zero.
	agreementTime time.Duration
}

// mayArrive reports whether a sent accept may still take effect. leftoverPause exceeds the time
// until its deadline, by any master's clock.
func (u *update) mayArrive() bool {
	return u.opts.Unlimited || u.masters.Now().Before(u.lastSent.Add(leftoverPause))
}

type sentChange struct {
	decision Decision
	attempt  cell.Attempt
	ballot   cell.Ballot
	change   cell.Change
	// lease is the lease that the change gave from leaseStart.
	lease      time.Duration
	leaseStart time.Time
	// early has the meaning of GrantedLock.Early.
	early time.Duration
}

func (u *update) perform(ctx context.Context) (Outcome, error) {
	contentionDeadline := u.masters.Now().Add(u.opts.ContentionTimeout)
	if p := u.promises.take(u.Key, u.masters.Now()); p != nil {
		out, err := u.usePromise(ctx, p)
		if !errors.As(err, new(*splitError)) {
			return out, err
		}
	}
	var blocked blockedTries
	for failures, tries := 1, 1; ; failures, tries = failures+1, tries+1 {
		u.agreementTime = 0
		out, err := u.runBallot(ctx)
		var split *splitError
		if !errors.As(err, &split) {
			return out, err
		}
		u.contended, u.roundMargin = true, min(2*u.roundMargin+4, 128)
		isPastDeadline := u.masters.Now().After(contentionDeadline)
		if blocked.areTooMany(split, isPastDeadline) {
			return Outcome{}, &NoQuorum{Replies: split.replies}
		}
		if isPastDeadline && (u.agreementTime > 0 || tries >= u.opts.MinTries) {
			return Outcome{}, u.exhaustedError()
		}
		if len(u.sentChanges) > 0 {
			failures = 0 // find out soon whether the sent change was made
		}
		if err := u.masters.Pause(ctx, failures); err != nil {
			return Outcome{}, err
		}
	}
}

// exhaustedError returns the error of a change that was overtaken, or whose rounds took too long.
func (u *update) exhaustedError() error {
	switch {
	case u.agreementTime > 0:
		return &NoQuorum{AgreementTime: u.agreementTime, Overtaken: len(u.sentChanges) > 0}
	case len(u.sentChanges) > 0:
		return &NoQuorum{Unclear: true, Overtaken: true}
	}
	return ErrContended
}
