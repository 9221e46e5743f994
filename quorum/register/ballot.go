package register

import (
	"context"
	"errors"
	"slices"
	"time"

	"redlock-proxy/quorum/cell"
	"redlock-proxy/quorum/vote"
)

// round is one ballot from its beginning. A *splitError asks for another.
func (u *update) round(ctx context.Context) (Outcome, error) {
	b := ballot{number: u.nextBallot(u.above + u.ahead), start: u.masters.Now()}
	op := cell.Prepare{Name: u.Key, Ballot: b.number}
	if u.Expect != nil && len(u.sent) == 0 {
		op.Only, op.Expect = true, *u.Expect
	}
	asked, err := u.masters.Ask(ctx, u.toAll(op), u.prepared)
	if err != nil {
		return Outcome{}, err
	}
	b.asked, b.passed = asked, u.masters.Now().Sub(b.start)
	replies := asked.Replies()
	u.saw(replies)
	f, promised := resolve(replies, 0), resolve(promisesOf(replies), 0)
	if differ(replies, 0, f) {
		u.mendLater(u.Key)
	}
	switch {
	case f.standing == Open && endsSoon(replies):
		return Outcome{}, &splitError{}
	case f.standing == Open:
		return Outcome{}, &NoQuorum{Replies: replies}
	case f.standing != Held:
		return u.onUnheld(ctx, f, replies)
	case promised.standing == Held && promised.attempt == f.attempt:
		return u.onHeld(ctx, b, promised)
	case op.Only && f.chosen && (!f.value.Present || f.value.Text != op.Expect):
		return u.onAnother(f)
	default:
		u.Expect = nil
		return Outcome{}, &splitError{}
	}
}

// ballot is one on its way.
type ballot struct {
	number cell.Ballot
	start  time.Time
	// passed is how long it took from start until the promises were in.
	passed time.Duration
	asked  Asked
}

// prepared: a majority promised, the key can hold nothing, or no answer can change that
// neither is so.
func (u *update) prepared(replies []Reply) bool {
	f := resolve(replies, 0)
	switch promised := resolve(promisesOf(replies), 0); {
	case f.standing == Open:
		return false
	case f.standing != Held, promised.standing == Held:
		return !promised.uneven()
	case u.Expect != nil && f.uneven():
		return false // it may only be looked at, and then as a Read does
	default:
		return tally(replies, (*Reply).yes) == vote.Lost
	}
}

// promisesOf are the replies that are promises; the others are silent.
func promisesOf(replies []Reply) []Reply {
	only := make([]Reply, len(replies))
	for i, r := range replies {
		if r.yes() {
			only[i] = r
		}
	}
	return only
}

// saw notes the highest round in replies.
func (u *update) saw(replies []Reply) {
	for _, r := range replies {
		for _, f := range r.Found {
			u.above = max(u.above, f.Promised.Round(), f.Accepted.Round())
		}
	}
}

// onUnheld is for a key of which no incarnation has a majority.
func (u *update) onUnheld(ctx context.Context, f finding, replies []Reply) (Outcome, error) {
	if len(u.sent) > 0 {
		return Outcome{}, &NoQuorum{Replies: replies, Unclear: true}
	}
	d, err := u.Run(f.look())
	switch {
	case err != nil:
		return Outcome{}, err
	case d.Do == Leave, d.Do == Remove && f.standing == Absent:
		return Outcome{Decision: d, Granted: Granted{Version: f.look().Version}}, nil
	case f.standing == Foreign:
		return Outcome{}, ErrForeign
	}
	got, err := u.take(ctx, []string{u.Key}, Terms{Tokens: []string{d.Value}, TTL: d.TTL, Anyhow: !u.strict, Stays: !d.Takes && !u.strict, Owed: u.Owed})
	switch {
	case errors.Is(err, ErrHeld):
		return Outcome{}, &splitError{}
	case err != nil:
		return Outcome{}, err
	}
	return Outcome{Decision: d, Granted: got}, nil
}

// onAnother is for a key that holds another value than the one that is expected.
func (u *update) onAnother(f finding) (Outcome, error) {
	d, err := u.Run(f.look())
	if err != nil {
		return Outcome{}, err
	}
	if d.Do != Leave {
		u.Expect = nil
		return Outcome{}, &splitError{}
	}
	return Outcome{Decision: d, Granted: Granted{Version: f.look().Version}}, nil
}

// onHeld is for a key that a majority holds, and promised.
func (u *update) onHeld(ctx context.Context, b ballot, f finding) (Outcome, error) {
	if s := u.made(f); s != nil {
		return u.keep(ctx, b, f, *s)
	}
	if u.isUnclear(f) {
		return Outcome{}, &NoQuorum{Replies: b.asked.Replies(), Unclear: true}
	}
	l := f.look()
	l.Unknown = f.isUnsure(b.asked.Replies(), 0)
	d, err := u.Run(l)
	if l.Unknown && errors.Is(err, ErrNeedsLeft) {
		err = &NoQuorum{Replies: b.asked.Replies()}
	}
	switch {
	case err != nil || d.Do == Leave || d.Do == Remove && !f.value.Present:
		// What some masters accepted of this change before must not be found later.
		out, kept := u.keep(ctx, b, f, sentChange{decision: d, lease: cell.Endless, since: b.start})
		if kept == nil && err != nil {
			return Outcome{}, err
		}
		return out, kept
	case !f.value.Present && f.left < Limit:
		return u.refresh(ctx, b, f)
	}
	return u.accept(ctx, b, u.replacing(b, f, d))
}

// refresh has a removal stay for longer, before it is replaced: what ended in the
// midst of a ballot would leave open what became of that.
func (u *update) refresh(ctx context.Context, b ballot, f finding) (Outcome, error) {
	_, err := u.accept(ctx, b, u.removed(f))
	if err == nil {
		err = &splitError{}
	}
	return Outcome{}, err
}

// made is the change of those sent that led to the current value, or nil.
func (u *update) made(f finding) *sentChange {
	for i, s := range u.sent {
		if s.attempt == f.attempt && slices.Contains(f.value.Changes, s.change) {
			return &u.sent[i]
		}
	}
	return nil
}

// isUnclear reports whether a change that some masters accepted may have been made and
// then overwritten without a trace. It was not made where a majority that promised a
// higher ballot has accepted nothing since.
func (u *update) isUnclear(f finding) bool {
	return slices.ContainsFunc(u.sent, func(s sentChange) bool {
		return s.attempt != f.attempt || f.accepted > s.ballot && !f.value.Knows(s.change)
	})
}

// keep has a majority accept the current value, unless it has already. s is the change that
// holds with it.
func (u *update) keep(ctx context.Context, b ballot, f finding, s sentChange) (Outcome, error) {
	if f.chosen && len(u.sent) == 0 && !u.settle {
		return Outcome{Decision: s.decision, Granted: Granted{Version: f.look().Version}}, nil
	}
	until, shared := notAfter(f.longest), f.value.Present && u.opts.Shared != nil && u.opts.Shared(f.value.Text)
	if shared {
		until = notBefore(b, f, 0)
	}
	// Masters that take the value over keep it a little shorter: by this round at the most.
	return u.accept(ctx, b, proposal{
		decision: s.decision, base: f, value: f.value, same: true, change: s.change, keep: true, until: until, shared: shared,
		lease: s.lease, since: s.since.Add(-u.masters.Now().Sub(b.start)),
	})
}
