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
	b := ballot{number: u.nextBallot(u.highestRound + u.ahead), start: u.masters.Now()}
	op := cell.Prepare{Name: u.Key, Ballot: b.number}
	if u.Expect != nil && len(u.sent) == 0 {
		op.Only, op.Expect = true, *u.Expect
	}
	asked, err := u.masters.Ask(ctx, u.toAll(op), u.prepareDecided)
	if err != nil {
		return Outcome{}, err
	}
	b.asked, b.passed = asked, u.masters.Now().Sub(b.start)
	replies := asked.Replies()
	u.noteRounds(replies)
	t, promised := resolve(replies, 0), resolve(promisesIn(replies), 0)
	if differ(replies, 0, t) {
		u.repairLater(u.Key)
	}
	switch {
	case t.standing == Undetermined && allExpireSoon(replies):
		return Outcome{}, &splitError{}
	case t.standing == Undetermined:
		return Outcome{}, &NoQuorum{Replies: replies}
	case t.standing != Held:
		return u.onUnheld(ctx, t, replies)
	case promised.standing == Held && promised.attempt == t.attempt:
		return u.onHeld(ctx, b, promised)
	case op.Only && t.chosen && (!t.value.Present || t.value.Text != op.Expect):
		return u.onUnexpected(t)
	default:
		u.Expect = nil
		return Outcome{}, &splitError{}
	}
}

type ballot struct {
	number cell.Ballot
	start  time.Time
	// passed is the time from start to the last promise.
	passed time.Duration
	asked  Round
}

// prepareDecided accepts replies once a majority promised, no majority can hold the key, or no
// majority can promise.
func (u *update) prepareDecided(replies []Reply) bool {
	t := resolve(replies, 0)
	switch promised := resolve(promisesIn(replies), 0); {
	case t.standing == Undetermined:
		return false
	case t.standing != Held, promised.standing == Held:
		return !promised.leasesDiffer()
	case u.Expect != nil && t.leasesDiffer():
		return false // perhaps the key is only read, so wait as Read does
	default:
		return countVotes(replies, (*Reply).yes) == vote.Lost
	}
}

// promisesIn returns the replies, blank for masters that did not promise.
func promisesIn(replies []Reply) []Reply {
	only := make([]Reply, len(replies))
	for i, r := range replies {
		if r.yes() {
			only[i] = r
		}
	}
	return only
}

func (u *update) noteRounds(replies []Reply) {
	for _, r := range replies {
		for _, f := range r.Found {
			u.highestRound = max(u.highestRound, f.Promised.Round(), f.Accepted.Round())
		}
	}
}

// onUnheld runs the change if no incarnation of the key has a majority.
func (u *update) onUnheld(ctx context.Context, t tally, replies []Reply) (Outcome, error) {
	if len(u.sent) > 0 {
		return Outcome{}, &NoQuorum{Replies: replies, Unclear: true}
	}
	d, err := u.Run(t.look())
	switch {
	case err != nil:
		return Outcome{}, err
	case d.Do == Leave, d.Do == Remove && t.standing == Absent:
		return Outcome{Decision: d, Granted: Granted{Version: t.look().Version}}, nil
	case t.standing == Foreign:
		return Outcome{}, ErrForeign
	}
	got, err := u.take(ctx, []string{u.Key}, Terms{
		Tokens: []string{d.Value}, TTL: d.TTL, AllowShortTTL: !u.strict, KeepOnNoQuorum: !d.RemoveOnError && !u.strict,
		OnRemovalDue: u.OnRemovalDue,
	})
	switch {
	case errors.Is(err, ErrHeld):
		return Outcome{}, &splitError{}
	case err != nil:
		return Outcome{}, err
	}
	return Outcome{Decision: d, Granted: got}, nil
}

// onUnexpected runs the change on a value that differs from the expected one.
func (u *update) onUnexpected(t tally) (Outcome, error) {
	d, err := u.Run(t.look())
	if err != nil {
		return Outcome{}, err
	}
	if d.Do != Leave {
		u.Expect = nil
		return Outcome{}, &splitError{}
	}
	return Outcome{Decision: d, Granted: Granted{Version: t.look().Version}}, nil
}

// onHeld runs the change on a key for which a majority holds a value and promised.
func (u *update) onHeld(ctx context.Context, b ballot, t tally) (Outcome, error) {
	if s := u.changeMade(t); s != nil {
		return u.acceptUnchanged(ctx, b, t, *s)
	}
	if u.isUnclear(t) {
		return Outcome{}, &NoQuorum{Replies: b.asked.Replies(), Unclear: true}
	}
	l := t.look()
	l.Unknown = t.isTTLUnclear(b.asked.Replies(), 0)
	d, err := u.Run(l)
	if l.Unknown && errors.Is(err, ErrNeedsLeft) {
		err = &NoQuorum{Replies: b.asked.Replies()}
	}
	switch {
	case err != nil || d.Do == Leave || d.Do == Remove && !t.value.Present:
		// Some masters may have accepted this change before. No later ballot may adopt it.
		out, kept := u.acceptUnchanged(ctx, b, t, sentChange{decision: d, lease: cell.Endless, since: b.start})
		if kept == nil && err != nil {
			return Outcome{}, err
		}
		return out, kept
	case !t.value.Present && t.left < Limit:
		return u.extendRemoval(ctx, b, t)
	}
	return u.accept(ctx, b, u.proposalFor(b, t, d))
}

// extendRemoval prolongs a removal before a value replaces it, because the effect would be
// undetermined if the removal expired meanwhile.
func (u *update) extendRemoval(ctx context.Context, b ballot, t tally) (Outcome, error) {
	_, err := u.accept(ctx, b, u.sameRemoval(t))
	if err == nil {
		err = &splitError{}
	}
	return Outcome{}, err
}

// changeMade returns the sent change that led to the current value, or nil.
func (u *update) changeMade(t tally) *sentChange {
	for i, s := range u.sent {
		if s.attempt == t.attempt && slices.Contains(t.value.Changes, s.change) {
			return &u.sent[i]
		}
	}
	return nil
}

// isUnclear reports whether a sent change may have been made and overwritten without a trace. It
// was not made if a majority that promised a higher ballot has accepted nothing since.
func (u *update) isUnclear(t tally) bool {
	return slices.ContainsFunc(u.sent, func(s sentChange) bool {
		return s.attempt != t.attempt || t.accepted > s.ballot && !t.value.Knows(s.change)
	})
}

// acceptUnchanged lets a majority accept the current value unless it has. s takes effect with it.
func (u *update) acceptUnchanged(ctx context.Context, b ballot, t tally, s sentChange) (Outcome, error) {
	if t.chosen && len(u.sent) == 0 && !u.settle {
		return Outcome{Decision: s.decision, Granted: Granted{Version: t.look().Version}}, nil
	}
	until, shared := notAfter(t.longest), t.value.Present && u.opts.HoldsSeveralKeys != nil &&
		u.opts.HoldsSeveralKeys(t.value.Text)
	if shared {
		until = notBefore(b, t, 0)
	}
	// A master that adopts the value keeps it shorter, at most by the duration of this round.
	return u.accept(ctx, b, proposal{
		decision: s.decision, base: t, value: t.value, same: true, change: s.change,
		keep: true, until: until, shared: shared,
		lease: s.lease, since: s.since.Add(-u.masters.Now().Sub(b.start)),
	})
}
