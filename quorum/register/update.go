package register

import (
	"context"
	"errors"
	"slices"
	"time"

	"redlock-proxy/quorum/cell"
	"redlock-proxy/quorum/vote"
)

// Do is what a Change does to its key.
type Do int

const (
	Leave  Do = iota // nothing
	Put              // put a value there
	Remove           // take away what is there
)

// Decision is what a Change makes of what stands under its key.
type Decision struct {
	Do    Do
	Value string
	// TTL is in whole milliseconds, or cell.Endless. With KeepTTL a value that is replaced
	// keeps its remaining time instead.
	TTL     time.Duration
	KeepTTL bool
	// Shift is added to the remaining time that is kept, on each master by itself, in whole milliseconds.
	Shift time.Duration
	// Shared is set where the ends of several keys hang on that of the cell, in the value that is put or the one that stood there:
	// then no master may have an earlier end than the first of those that held it.
	Shared bool
	// Note is whatever the caller wants to find in the Outcome if this decision stands.
	Note any
}

// Change is a change of one key that depends on what stands there.
type Change struct {
	Key string
	// Run decides. It may be run several times, on what stands there each time, and must
	// decide the same of the same. An error ends the Update, with nothing changed by it.
	Run func(Look) (Decision, error)
	// Expect, if it is set, is the only value of which Run makes a change: a key that
	// holds another is only looked at.
	Expect *string
	// Tried, unless it is nil, is told the versions that the key may have although *NoQuorum was returned.
	Tried func(version string)
	// strict has an absent key be taken as Lock does.
	strict bool
	// settle has a majority accept what stands there, also where nothing is changed.
	settle bool
	// quiet is set where what is removed was never told to anybody, or whoever waits is told by the caller.
	quiet bool
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
	// Decision is the one that stands of those which the runs of the Change came to.
	Decision Decision
	// Granted is about the value that was put, if one was; its Version is that of the Look after it in any case, also where others have replaced
	// by now what it put there.
	Granted
}

// removedFor is how long a removal by ballot stays on the masters: so long a command
// whose own ballot failed can see what became of the key.
const removedFor = 3 * time.Second

// Update makes a change of one key by ballot (rules R3, R4 and R6), or of an absent one as
// Lock does. What is accepted by a majority stands; a change that fewer accepted is found
// in, or missing from, the changes that led to what a later ballot finds, so it is made
// once.
//
// Errors: those of Run, ErrForeign, ErrContended, *NoQuorum, or the cause of ctx. After
// ErrContended nothing was changed; after the last two the change is made once at any
// later moment, or never.
func (r *Register) Update(ctx context.Context, c Change) (Outcome, error) {
	leave, err := r.lines.enter(ctx, c.Key)
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
	if err != nil && c.Tried != nil {
		for _, s := range u.sent {
			c.Tried(string(s.attempt) + string(s.change))
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
	for failures := 1; ; failures++ {
		out, err := u.round(ctx)
		if !errors.As(err, new(*splitError)) {
			return out, err
		}
		u.contended, u.ahead = true, min(2*u.ahead+4, 128)
		if u.masters.Now().After(until) {
			return Outcome{}, u.givenUp(nil)
		}
		if len(u.sent) > 0 {
			failures = 0 // what became of it is found out without a longer pause
		}
		if err := u.masters.Pause(ctx, failures); err != nil {
			return Outcome{}, err
		}
	}
}

// givenUp is the error of a change that could not be made, or may have been.
func (u *update) givenUp(replies []Reply) error {
	if len(u.sent) > 0 {
		return &NoQuorum{Replies: replies, Unclear: true, Overtaken: true}
	}
	return ErrContended
}

// round is one ballot from its beginning. A *splitError asks for another.
func (u *update) round(ctx context.Context) (Outcome, error) {
	b := ballot{number: u.nextBallot(u.above + u.ahead), start: u.masters.Now()}
	op := cell.Prepare{Name: u.Key, Ballot: b.number}
	if u.Expect != nil && len(u.sent) == 0 {
		op.Only, op.Expect = true, *u.Expect
	}
	asked, err := u.askAll(ctx, op, u.prepared)
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

// prepared: a majority promised, nothing can be there, or no answer can change that
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
	got, err := u.take(ctx, Taking{Keys: []string{u.Key}, Tokens: []string{d.Value}, TTL: d.TTL, Anyhow: !u.strict, Tried: u.Tried})
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
	d, err := u.Run(f.look())
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

// refresh has a removal stay for longer, before something is made of it: what ended in the
// midst of a ballot would leave open what became of that.
func (u *update) refresh(ctx context.Context, b ballot, f finding) (Outcome, error) {
	_, err := u.accept(ctx, b, u.removed(f))
	if err == nil {
		err = &splitError{}
	}
	return Outcome{}, err
}

// removed has a removal stay from now on for as long as a new one.
func (u *update) removed(f finding) proposal {
	return proposal{base: f, value: f.value, same: true, ttl: removedFor, lease: cell.Endless}
}

// made is the change of those sent that led to what is there, or nil.
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
	for _, s := range u.sent {
		if s.attempt != f.attempt || f.accepted > s.ballot && !f.value.Tells(s.change) {
			return true
		}
	}
	return false
}

// keep has a majority accept what is there, unless it has already. s is the change that
// stands with it.
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

// proposal is what a ballot has the masters accept.
type proposal struct {
	decision Decision
	base     finding
	value    cell.Value
	// same: the value is the one that was there.
	same bool
	// change is that of the Update, which led to the value: others may have followed it.
	change cell.Change
	// keep, and until for the masters that did not hold the value before; else ttl.
	keep  bool
	until ending
	ttl   time.Duration
	// shift and shared are those of a Decision.
	shift  time.Duration
	shared bool
	// lease is what it gives, since then; zero: since it is sent.
	lease time.Duration
	since time.Time
}

// replacing is the proposal that a decision asks for.
func (u *update) replacing(b ballot, f finding, d Decision) proposal {
	p := proposal{decision: d, base: f, change: u.opts.Source.Change(), ttl: d.TTL}
	p.value = cell.Value{Present: true, Text: d.Value}
	switch {
	case d.Do == Remove:
		p.value, p.ttl = cell.Value{}, removedFor
	case d.KeepTTL && f.value.Present && d.Shared:
		p.keep, p.shared, p.shift, p.until = true, true, d.Shift, notBefore(b, f, d.Shift)
	case d.KeepTTL && f.value.Present:
		p.keep, p.until = true, notAfter(f.longest)
	case d.KeepTTL:
		p.ttl = cell.Endless
	}
	p.lease = p.ttl
	if p.keep || d.Do == Remove {
		p.lease = cell.Endless
	}
	p.value = p.value.Follow(f.value, p.change)
	return p
}

// ending is when a value is to end, by the clock of a master that told now when it promised, at the latest so long after the ballot began.
type ending func(now, passed time.Duration) time.Duration

// notAfter is the ending of a value that has so much left where others hold it: not later than there.
func notAfter(left time.Duration) ending {
	return func(now, passed time.Duration) time.Duration {
		if left < 0 {
			return cell.Endless
		}
		return max(now+left-passed, time.Millisecond)
	}
}

// notBefore is the ending of a cell of several keys: the end is not before the first one among the masters that held the value when they
// promised, shifted as theirs are. So none of the keys ends anywhere before its time; see package bag.
func notBefore(b ballot, f finding, shift time.Duration) ending {
	return func(now, _ time.Duration) time.Duration {
		if f.shortest < 0 {
			return cell.Endless
		}
		return max(now+f.shortest+b.passed+shift, time.Millisecond)
	}
}

// accept has the masters that promised accept a value. It is made once a majority did.
func (u *update) accept(ctx context.Context, b ballot, p proposal) (Outcome, error) {
	start := u.masters.Now()
	if u.timeLeft(b.passed) <= 0 {
		return Outcome{}, &splitError{}
	}
	if p.since.IsZero() {
		p.since = start
	}
	next := u.nextBallot(b.number.Round())
	opFor := func(told, passed time.Duration) cell.Accept {
		op := cell.Accept{Name: u.Key, Attempt: p.base.attempt, Ballot: b.number, Value: p.value, Keep: p.keep, Base: p.base.accepted, Shift: p.shift, TTL: p.ttl, Quiet: u.quiet}
		if u.opts.Keep && !(p.keep && !p.value.Present) { // such a removal may end any moment
			op.Next = next
		}
		if p.keep {
			op.Until = p.until(told, passed)
		}
		op.Deadline = told + u.timeLeft(passed)
		return op
	}
	ops := make([]cell.Op, u.n)
	for i, reply := range b.asked.Replies() {
		if reply.yes() && reply.Found[0].Attempt == p.base.attempt {
			ops[i] = opFor(reply.Now, b.passed)
		}
	}
	asked, err := u.masters.Ask(ctx, ops, acceptDecided)
	u.afterwards(b, p, asked, opFor)
	replies := asked.Replies()
	landed := count(replies, func(r *Reply) bool { return r.State == Waiting || r.did() }) > 0
	switch {
	case err != nil:
		return Outcome{}, err
	case isDone(replies):
		return u.accepted(b, p, next, replies, start), nil
	}
	if landed && !p.same {
		u.sent = append(u.sent, sentChange{p.decision, p.base.attempt, b.number, p.change, p.lease, p.since})
	}
	u.saw(replies)
	return Outcome{}, &splitError{}
}

// accepted is what came of a proposal that a majority accepted; what it promised for the next
// ballot is remembered.
func (u *update) accepted(b ballot, p proposal, next cell.Ballot, replies []Reply, start time.Time) Outcome {
	if u.opts.Keep {
		kept := promiseOf(b, p, next, replies)
		kept.start, kept.passed = start, u.masters.Now().Sub(start)
		u.promises.put(u.Key, kept)
	}
	if !p.same {
		u.grants.replaced(u.Key, p.value.Present)
	}
	return Outcome{
		Decision: p.decision, Granted: Granted{Validity: vote.Validity(p.lease, u.masters.Now().Sub(p.since)), Since: p.since, Attempt: p.base.attempt, Version: p.version()},
	}
}

// version is that of the value which the Update put there. By now it may have been replaced.
func (p proposal) version() string {
	if p.change == "" {
		return version(p.base.attempt, p.value)
	}
	return string(p.base.attempt) + string(p.change)
}

// acceptDecided: a majority accepted, or none can. Where none has accepted so far it is worth
// waiting for whether any does: else what became of it would have to be found out.
func acceptDecided(replies []Reply) bool {
	result := tally(replies, (*Reply).yes)
	return result == vote.Won || result == vote.Lost && count(replies, (*Reply).yes) > 0
}

// afterwards has masters accept whose promise comes late, where a majority has: else what
// no master accepted yet may have been given up. The same goes for marked ones that are to be filled. And it has the key looked at again
// if some did not accept, or lack it.
func (u *update) afterwards(b ballot, p proposal, asked Asked, opFor func(told, passed time.Duration) cell.Accept) {
	r, key := u.Register, u.Key
	chosen := isDone(asked.Replies())
	late := func(master int, reply Reply, promises bool) {
		passed := r.masters.Now().Sub(b.start)
		if !chosen || reply.State != Counted || reply.Found[0].Attempt != p.base.attempt || u.timeLeft(passed) <= 0 {
			return
		}
		fills := u.fills(p, reply.Found[0])
		if !fills && !(promises && reply.Did) {
			return
		}
		op := opFor(reply.Now, passed)
		switch {
		case fills:
			op.Mark, op.Next = u.fill.mark, ""
			if !p.shared {
				op.Until = notAfter(p.base.shortest)(reply.Now, passed)
			}
		case p.shared:
			op.Base = b.number // which no cell has accepted: its own end was not among those that were compared
		}
		r.masters.Tell(master, op, false)
	}
	promised := b.asked.Replies()
	for master, reply := range promised {
		late(master, reply, false)
	}
	b.asked.Later(func(master int, reply Reply) { late(master, reply, true) })
	left := func(master int, reply Reply) {
		switch before := promised[master]; {
		case before.State != Counted || before.Found[0].Holds(p.base.attempt):
			r.mendUnless(reply, key)
		case p.value.Present || before.Found[0].Form != cell.Absent:
			r.mendLater(key)
		}
	}
	for i, reply := range asked.Replies() {
		left(i, reply)
	}
	asked.Later(left)
}

// timeLeft is for how long after its promise a master may accept, if that was made at
// the latest so long after the ballot began. Where none is left no accept is sent: the
// promise may have been forgotten by now, and another ballot have been chosen since.
func (u *update) timeLeft(passed time.Duration) time.Duration {
	if u.opts.Unlimited {
		return 24 * time.Hour
	}
	return Limit - passed
}

// onPromise uses the promises that the last ballot of this proxy has left. A *splitError
// says to begin anew.
func (u *update) onPromise(ctx context.Context, kept *promise) (Outcome, error) {
	l := Look{Present: kept.value.Present, Value: kept.value.Text, Unknown: true, Version: version(kept.attempt, kept.value), incarnation: kept.attempt}
	d, err := u.Run(l)
	switch {
	case err != nil, d.Do == Leave, d.Do == Remove && !l.Present:
		return Outcome{}, &splitError{} // others may have changed it since
	}
	f := finding{standing: Held, attempt: kept.attempt, accepted: kept.accepted, value: kept.value, longest: cell.Endless, chosen: true}
	b := ballot{number: kept.ballot, start: kept.start, passed: kept.passed, asked: keptAsked(kept.replies)}
	return u.accept(ctx, b, u.replacing(b, f, d))
}
