package register

import (
	"context"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"redlock-proxy/quorum/cell"
)

// fate is the outcome of an operation at a master.
type fate int

const (
	done      fate = iota // done and answered at once
	refused               // not done: not sent, or the reply is an error
	unsent                // not done, but the proxy does not know that
	lost                  // done, but the reply is lost
	uncounted             // done, but the vote does not count
	late                  // done at once; deliverPending delivers the reply
	slow                  // deliverPending does it and delivers the reply
	broken                // deliverPending does it, unknown to the proxy, because the connection broke
)

// fakeMasters are masters in memory. The test moves their time, and sets the outcome of operations.
type fakeMasters struct {
	*testing.T
	stores []*cell.Store
	now    time.Time
	// fate returns the outcome of an operation; nil: done.
	fate func(master int, op cell.Op) fate
	// takes is the duration of a round.
	takes time.Duration
	// rounds holds the kinds of the rounds so far.
	rounds []string
	owed   []owedOp
	timers []timer
	// pending holds late operations and late replies.
	pending []func()
	proxies int
	pauses  int
	// voters is the number of masters that vote. floor is their median time.
	voters int
	floor  time.Duration
	// missed is set by ScheduleCompare.
	missed bool
	// last is the newest proxy, which compares the keys.
	last *Register
	// pausing is called at each pause.
	pausing func()
}

type owedOp struct {
	master int
	op     cell.Op
}

type timer struct {
	at time.Time
	f  func()
}

func newFakeMasters(t *testing.T, masters int) *fakeMasters {
	b := &fakeMasters{T: t, voters: masters, now: time.Unix(1_700_000_000, 0)}
	for range masters {
		b.stores = append(b.stores, &cell.Store{Now: 1_700_000_000 * time.Second})
	}
	return b
}

// proxy returns the register of a new proxy.
func (b *fakeMasters) proxy() *Register {
	b.proxies++
	b.last = New(Options{
		N: len(b.stores), Masters: b, Source: cell.NumberedSource(big.NewInt(int64(b.proxies))),
		Patience: time.Second, Keep: true,
	})
	return b.last
}

// removeVersion removes a version, like a proxy that owes its removal.
func (b *fakeMasters) removeVersion(r *Register, token, version string) {
	_, _ = r.Update(b.Context(), Change{Key: "k", Expect: &token, Run: func(l Look) (Decision, error) {
		if l.Present && l.Version == version {
			return Decision{Do: Remove}, nil
		}
		return Decision{}, nil
	}})
}

// withOwed returns the terms with an OnRemovalDue that removes the version.
func (b *fakeMasters) withOwed(r *Register, t Terms) Terms {
	t.OnRemovalDue = func(version string, _ func() bool) { b.After(0, func() { b.removeVersion(r, t.Tokens[0], version) }) }
	return t
}

// advance lets time pass, and runs the timers that become due.
func (b *fakeMasters) advance(d time.Duration) {
	until := b.now.Add(d)
	for {
		if b.missed && b.AllVote() {
			b.missed = false
			b.noError(b.last.Compare(b.Context(), []string{"k", "j"}, false))
		}
		next := -1
		for i, t := range b.timers {
			if !t.at.After(until) && (next < 0 || t.at.Before(b.timers[next].at)) {
				next = i
			}
		}
		if next < 0 {
			b.setClock(until)
			return
		}
		t := b.timers[next]
		b.timers = slices.Delete(b.timers, next, next+1)
		b.setClock(t.at)
		t.f()
	}
}

func (b *fakeMasters) setClock(to time.Time) {
	if d := to.Sub(b.now); d > 0 {
		b.now = to
		for _, s := range b.stores {
			s.Now += d
		}
	}
}

// deliverPending carries out late operations and delivers late replies.
func (b *fakeMasters) deliverPending() {
	pending := b.pending
	b.pending = nil
	for _, f := range pending {
		f()
	}
}

// deliverOwed lets the masters do the operations that they are owed.
func (b *fakeMasters) deliverOwed() {
	owed := b.owed
	b.owed = nil
	for _, o := range owed {
		b.Tell(o.master, o.op, true)
	}
}

func (b *fakeMasters) fateOf(master int, op cell.Op) fate {
	if b.fate == nil {
		return done
	}
	return b.fate(master, op)
}

// setFate sets the outcome of all operations at some masters.
func (b *fakeMasters) setFate(what fate, masters ...int) {
	b.fate = func(m int, _ cell.Op) fate {
		if slices.Contains(masters, m) {
			return what
		}
		return done
	}
}

// setFateOf sets the outcome of operations of one kind at some masters.
func (b *fakeMasters) setFateOf(kind string, what fate, masters ...int) {
	b.fate = func(m int, op cell.Op) fate {
		if kindOf(op) == kind && slices.Contains(masters, m) {
			return what
		}
		return done
	}
}

func kindOf(op cell.Op) string {
	switch op.(type) {
	case cell.Take:
		return "take"
	case cell.Remove:
		return "remove"
	case cell.Extend:
		return "extend"
	case cell.Prepare:
		return "prepare"
	case cell.Accept:
		return "accept"
	case cell.Raise:
		return "raise"
	default:
		return "read"
	}
}

type fakeAsked struct {
	replies     []Reply
	later       func(int, Reply)
	lateReplies []int // masters whose replies came after Ask returned
	all         []Reply
	givenUp     bool
}

func (a *fakeAsked) Replies() []Reply { return a.replies }
func (a *fakeAsked) Drop()            {}

// Forget clears the replies, to detect a later use.
func (a *fakeAsked) Forget() { clear(a.replies) }

func (a *fakeAsked) Later(f func(int, Reply)) {
	a.later = f
	for _, i := range a.lateReplies {
		f(i, a.all[i])
	}
	a.lateReplies = nil
}

func (a *fakeAsked) answer(i int, r Reply) {
	if a.givenUp {
		return
	}
	a.all[i] = r
	if a.later != nil {
		a.later(i, r)
	} else {
		a.lateReplies = append(a.lateReplies, i)
	}
}

func (b *fakeMasters) Ask(ctx context.Context, ops []cell.Op, decided func([]Reply) bool) (Round, error) {
	a := &fakeAsked{replies: make([]Reply, len(ops)), all: make([]Reply, len(ops))}
	kind := ""
	for i, op := range ops {
		if op == nil {
			a.replies[i] = Reply{State: Failed}
			continue
		}
		kind = kindOf(op)
		switch what := b.fateOf(i, op); what {
		case late, slow:
			answer := Reply{State: Counted}
			if what == late {
				answer.Answer = op.Apply(b.stores[i])
			}
			b.pending = append(b.pending, func() {
				if what == slow {
					answer.Answer = op.Apply(b.stores[i])
				}
				a.answer(i, answer)
			})
		case broken:
			a.replies[i] = Reply{State: Unknown}
			b.pending = append(b.pending, func() { op.Apply(b.stores[i]) })
		default:
			a.replies[i] = b.do(i, op, what)
		}
	}
	b.rounds = append(b.rounds, kind)
	b.setClock(b.now.Add(b.takes))
	if !decided(a.replies) && countWaiting(a.replies) > 0 { // wait until the proxy gives up on the other masters
		b.setClock(b.now.Add(100 * time.Millisecond))
		a.givenUp = true
		for i := range a.replies {
			if a.replies[i].State == Waiting {
				a.replies[i] = Reply{State: Unknown}
			}
		}
	}
	if ctx.Err() != nil {
		return a, context.Cause(ctx)
	}
	return a, nil
}

func (b *fakeMasters) do(master int, op cell.Op, what fate) Reply {
	switch what {
	case refused:
		return Reply{State: Failed}
	case unsent:
		return Reply{State: Unknown}
	case lost:
		op.Apply(b.stores[master])
		return Reply{State: Unknown}
	case uncounted:
		return Reply{State: Uncounted, Answer: op.Apply(b.stores[master])}
	default:
		return Reply{State: Counted, Answer: op.Apply(b.stores[master])}
	}
}

func (b *fakeMasters) Tell(master int, op cell.Op, owed bool) {
	switch what := b.fateOf(master, op); {
	case what == late || what == slow || what == broken:
		b.pending = append(b.pending, func() { op.Apply(b.stores[master]) })
	default:
		if r := b.do(master, op, what); owed && (r.State == Failed || r.State == Unknown) {
			b.owed = append(b.owed, owedOp{master, op})
		}
	}
}

func (b *fakeMasters) After(d time.Duration, f func()) {
	b.timers = append(b.timers, timer{b.now.Add(d), f})
}

func (b *fakeMasters) Voters() int { return b.voters }

func (b *fakeMasters) Clock() time.Duration { return b.floor }

// ScheduleCompare lets advance compare the keys once no operation fails.
func (b *fakeMasters) ScheduleCompare() { b.missed = true }

// AllVote reports whether no operation fails.
func (b *fakeMasters) AllVote() bool { return b.fate == nil }

func (b *fakeMasters) Pause(ctx context.Context, _ int) error {
	b.pauses++
	b.setClock(b.now.Add(10 * time.Millisecond))
	if b.pausing != nil {
		b.pausing()
	}
	return context.Cause(ctx)
}

func (b *fakeMasters) Now() time.Time { return b.now }

// holds returns the cells of a key on all masters: a dot for an absent cell, the token of a plain
// cell, the value with a * for a cell in register form ("-*" for a removal), b for a blocking cell,
// m for a mark, and a foreign value in brackets.
func (b *fakeMasters) holds(key string) string {
	all := make([]string, len(b.stores))
	for i, s := range b.stores {
		switch f := s.Look(key); {
		case f.Form == cell.Absent:
			all[i] = "."
		case f.Form == cell.Blocking:
			all[i] = "b"
		case f.Form == cell.Mark:
			all[i] = "m"
		case f.Form == cell.Foreign:
			all[i] = "[" + f.Value.Text + "]"
		case f.Form == cell.Plain:
			all[i] = f.Value.Text
		case !f.Value.Present:
			all[i] = "-*"
		default:
			all[i] = f.Value.Text + "*"
		}
	}
	return strings.Join(all, " ")
}

func (b *fakeMasters) wantHolds(want string) {
	b.Helper()
	if got := b.holds("k"); got != want {
		b.Errorf("the masters hold %s, want %s", got, want)
	}
}

func (b *fakeMasters) wantRounds(want string) {
	b.Helper()
	if got := strings.Join(b.rounds, " "); got != want {
		b.Errorf("rounds: %s, want %s", got, want)
	}
	b.rounds = nil
}

// plain puts a plain cell on masters, like an attempt of a proxy that has ended.
func (b *fakeMasters) plain(token, attempt string, ttl time.Duration, masters ...int) {
	for _, m := range masters {
		c := cell.Cell{Form: cell.Plain, Attempt: attemptOf(attempt), Value: cell.Value{Present: true, Text: token}}
		b.stores[m].Put("k", c, ttl)
	}
}

// accepted puts a value or a removal ("") of a round on masters, all of one incarnation.
func (b *fakeMasters) accepted(value string, round uint64, masters ...int) {
	b.acceptedFor(time.Minute, value, round, masters...)
}

func (b *fakeMasters) acceptedFor(ttl time.Duration, value string, round uint64, masters ...int) {
	ballot := cell.NumberedSource(big.NewInt(2000)).Ballot(round)
	for _, m := range masters {
		b.stores[m].Put("k", cell.Cell{
			Form: cell.Register, Attempt: attemptOf("a"), Promised: ballot, Accepted: ballot,
			Value: cell.Value{Present: value != "", Text: value},
		}, ttl)
	}
}

func (b *fakeMasters) foreign(text string, masters ...int) {
	for _, m := range masters {
		b.stores[m].Put("k", cell.Parse(text), time.Minute)
	}
}

func (b *fakeMasters) blocking(attempt string, masters ...int) {
	for _, m := range masters {
		b.stores[m].Put("k", cell.Cell{Form: cell.Blocking, Attempt: attemptOf(attempt)}, time.Minute)
	}
}

// attemptOf returns the attempt with a letter as its name.
func attemptOf(name string) cell.Attempt {
	return cell.NumberedSource(big.NewInt(1000 + int64(name[0]))).Attempt()
}

func terms(token string) Terms {
	return Terms{Tokens: []string{token}, TTL: 10 * time.Second}
}

// lock takes k, or fails the test.
func (b *fakeMasters) lock(r *Register, token string) Granted {
	b.Helper()
	got, err := r.Lock(b.Context(), []string{"k"}, terms(token))
	if err != nil {
		b.Fatalf("LOCK %s: %v", token, err)
	}
	b.rounds = nil
	return got
}

func put(value string) Change {
	return Change{Key: "k", Run: func(Look) (Decision, error) {
		return Decision{Do: Put, Value: value, TTL: 10 * time.Second}, nil
	}}
}

func appending(text string) Change {
	return Change{Key: "k", Run: func(l Look) (Decision, error) {
		return Decision{Do: Put, Value: l.Value + text, TTL: 10 * time.Second}, nil
	}}
}

func (b *fakeMasters) noError(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}
