package register

import (
	"context"
	"errors"
	"slices"
	"time"

	"redlock-proxy/quorum/cell"
	"redlock-proxy/quorum/vote"
)

// runBallot runs one ballot. A *splitError requests another ballot.
func (u *update) runBallot(ctx context.Context) (Outcome, error) {
	b := ballot{number: u.nextBallot(u.highestRound + u.roundMargin), start: u.masters.Now()}
	op := cell.Prepare{Name: u.Key, Ballot: b.number}
	if u.ExpectedValue != nil && len(u.sentChanges) == 0 {
		op.OnlyExpected, op.Expected = true, *u.ExpectedValue
	}
	round, err := u.masters.Ask(ctx, u.repeatOp(op), u.prepareDecided)
	if err != nil {
		return Outcome{}, err
	}
	b.prepareRound, b.elapsed = round, u.masters.Now().Sub(b.start)
	replies := round.Replies()
	u.noteRounds(replies)
	t, promised := resolve(replies, 0), resolve(promisesIn(replies), 0)
	if cellsDiffer(replies, 0, t) {
		u.scheduleRepair(u.Key)
	}
	switch {
	case t.status == TallyUndetermined:
		return Outcome{}, undeterminedError(replies, 0)
	case t.status != TallyHeld:
		return u.runOnUnheldKey(ctx, t, replies)
	case promised.status == TallyHeld && promised.attempt == t.attempt:
		return u.runOnHeldKey(ctx, b, promised)
	case op.OnlyExpected && t.chosen && (!t.value.Present || t.value.Text != op.Expected):
		return u.runOnUnexpectedValue(t)
	default:
		u.ExpectedValue = nil
		return Outcome{}, &splitError{}
	}
}

type ballot struct {
	number cell.Ballot
	start  time.Time
	// elapsed is the time from start to the end of the prepare round.
	elapsed      time.Duration
	prepareRound Round
}

// prepareDecided ends the wait for replies once a majority promised, no majority can hold the key,
// or no majority can promise. If the remaining times differ much, it waits for more replies.
func (u *update) prepareDecided(replies []Reply) bool {
	t := resolve(replies, 0)
	switch promised := resolve(promisesIn(replies), 0); {
	case t.status == TallyUndetermined:
		return false
	case t.status != TallyHeld, promised.status == TallyHeld:
		return !promised.leasesDiffer()
	case u.ExpectedValue != nil && t.leasesDiffer():
		return false // the change may only read the key, so wait as Read does
	default:
		return countVotes(replies, (*Reply).isYes) == vote.Lost
	}
}

// promisesIn returns a copy of the replies in which the replies of masters without a promise are
// empty.
func promisesIn(replies []Reply) []Reply {
	promised := make([]Reply, len(replies))
	for i, r := range replies {
		if r.isYes() {
			promised[i] = r
		}
	}
	return promised
}

func (u *update) noteRounds(replies []Reply) {
	for _, r := range replies {
		for _, f := range r.KeyStates {
			u.highestRound = max(u.highestRound, f.Promised.Round(), f.Accepted.Round())
		}
	}
}

// runOnUnheldKey runs the change if no incarnation of the key has a majority.
func (u *update) runOnUnheldKey(ctx context.Context, t tally, replies []Reply) (Outcome, error) {
	if len(u.sentChanges) > 0 {
		return Outcome{}, &NoQuorum{Replies: replies, Unclear: true}
	}
	d, err := u.Run(t.snapshot())
	switch {
	case err != nil:
		return Outcome{}, err
	case d.Action == NoChange, d.Action == Remove && t.status == TallyAbsent:
		return Outcome{Decision: d, GrantedLock: GrantedLock{Version: t.snapshot().Version}}, nil
	case t.status == TallyForeign:
		return Outcome{}, ErrForeign
	}
	got, err := u.take(ctx, []string{u.Key}, TakeOptions{
		Tokens: []string{d.Value}, TTL: d.TTL, AllowShortTTL: !u.requireValidity, KeepOnNoQuorum: !d.RemoveOnError && !u.requireValidity,
		OnRemovalDue: u.OnRemovalDue,
	})
	switch {
	case errors.Is(err, ErrHeld):
		return Outcome{}, &splitError{}
	case err != nil:
		return Outcome{}, err
	}
	return Outcome{Decision: d, GrantedLock: got}, nil
}

// runOnUnexpectedValue runs the change on a value that differs from the expected value.
func (u *update) runOnUnexpectedValue(t tally) (Outcome, error) {
	d, err := u.Run(t.snapshot())
	if err != nil {
		return Outcome{}, err
	}
	if d.Action != NoChange {
		u.ExpectedValue = nil
		return Outcome{}, &splitError{}
	}
	return Outcome{Decision: d, GrantedLock: GrantedLock{Version: t.snapshot().Version}}, nil
}

// runOnHeldKey runs the change on a key for which a majority holds a value and promised the ballot.
func (u *update) runOnHeldKey(ctx context.Context, b ballot, t tally) (Outcome, error) {
	if s := u.findSentChange(t); s != nil {
		return u.acceptUnchanged(ctx, b, t, *s)
	}
	if u.isOutcomeUnclear(t) {
		return Outcome{}, &NoQuorum{Replies: b.prepareRound.Replies(), Unclear: true}
	}
	l := t.snapshot()
	l.TimeLeftUnknown = t.isTTLUnclear(b.prepareRound.Replies(), 0)
	d, err := u.Run(l)
	if l.TimeLeftUnknown && errors.Is(err, ErrTTLUnknown) {
		err = &NoQuorum{Replies: b.prepareRound.Replies()}
	}
	switch {
	case err != nil || d.Action == NoChange || d.Action == Remove && !t.value.Present:
		// Some masters may have accepted this change before. No later ballot may adopt it.
		out, acceptErr := u.acceptUnchanged(ctx, b, t, sentChange{decision: d, lease: cell.NoExpiry, leaseStart: b.start})
		if acceptErr == nil && err != nil {
			return Outcome{}, err
		}
		return out, acceptErr
	case !t.value.Present && t.timeLeft < Limit:
		return u.extendRemoval(ctx, b, t)
	}
	return u.accept(ctx, b, u.newProposal(b, t, d))
}

// extendRemoval extends a removal before a value replaces it, because the effect would be
// undetermined if the removal expired meanwhile.
func (u *update) extendRemoval(ctx context.Context, b ballot, t tally) (Outcome, error) {
	_, err := u.accept(ctx, b, u.renewedRemoval(t))
	if err == nil {
		err = &splitError{}
	}
	return Outcome{}, err
}

// findSentChange returns the sent change that led to the current value, or nil.
func (u *update) findSentChange(t tally) *sentChange {
	for i, s := range u.sentChanges {
		if s.attempt == t.attempt && slices.Contains(t.value.Changes, s.change) {
			return &u.sentChanges[i]
		}
	}
	return nil
}

// isOutcomeUnclear reports whether a sent change may have been made and overwritten without a
// trace. The change was not made if the masters that promised have accepted no ballot above its
// own.
func (u *update) isOutcomeUnclear(t tally) bool {
	return slices.ContainsFunc(u.sentChanges, func(s sentChange) bool {
		return s.attempt != t.attempt || t.acceptedBallot > s.ballot && !t.value.ShowsOutcomeOf(s.change)
	})
}

// acceptUnchanged lets a majority accept the current value. It asks no master if a majority holds
// the value already, this change was never sent, and alwaysAccept is not set. If it returns no
// error, s has taken effect.
func (u *update) acceptUnchanged(ctx context.Context, b ballot, t tally, s sentChange) (Outcome, error) {
	if t.chosen && len(u.sentChanges) == 0 && !u.alwaysAccept {
		return Outcome{Decision: s.decision, GrantedLock: GrantedLock{Version: t.snapshot().Version}}, nil
	}
	until, shared := expiryNotAfter(t.longestTimeLeft), t.value.Present && u.opts.IsKeygroup != nil &&
		u.opts.IsKeygroup(t.value.Text)
	if shared {
		until = expiryNotBefore(b, t, 0)
		// A master that accepts the value for the first time may keep an end that is earlier by as much
		// as the two promises can lie apart, and the compared end by as much as before.
		s.early += 2 * b.elapsed
	}
	heldUntil := time.Time{}
	if !shared && t.value.Present && t.value.Text == s.decision.Value && t.longestTimeLeft >= 0 {
		heldUntil = b.keptUntil(t) // the version may be a later one of the same value
	}
	return u.accept(ctx, b, proposal{
		decision: s.decision, base: t, value: t.value, unchanged: true, change: s.change,
		keepTTL: true, expiryAt: until, shared: shared,
		lease: s.lease, leaseStart: s.leaseStart, heldUntil: heldUntil, early: s.early,
	})
}
