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

// fate is what becomes of an operation at a master.
type fate int

const (
	done    fate = iota // done and answered at once
	refused             // not done: it was not sent, or answered an error
	unsent              // not done, and whether it was is not known
	lost                // done, and its answer is lost
	outside             // done, and the vote does not count
	late                // done at once, and answered when the test says so
	slow                // done and answered when the test says so
	stray               // done when the test says so, and whether it will be is not known: its connection broke
)

// bench is some masters whose time the test moves, and what becomes of what they are
// asked.
type bench struct {
	*testing.T
	stores []*cell.Store
	now    time.Time
	// fate says what becomes of an operation; nil: it is done.
	fate func(master int, op cell.Op) fate
	// takes is how long a round takes.
	takes time.Duration
	// rounds are the kinds of those that were asked.
	rounds []string
	owed   []owedOp
	timers []timer
	// pending are the answers, or operations, that are late.
	pending []func()
	proxies int
	pauses  int
	// voters is how many vote; floor is the masters' median time.
	voters int
	floor  time.Duration
	// missed is set once a master was away that may lack something.
	missed bool
	// last is the proxy that was made last: the one that compares.
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

func newBench(t *testing.T, masters int) *bench {
	b := &bench{T: t, voters: masters, now: time.Unix(1_700_000_000, 0)}
	for range masters {
		b.stores = append(b.stores, &cell.Store{Now: 1_700_000_000 * time.Second})
	}
	return b
}

// proxy is a register over the masters.
func (b *bench) proxy() *Register {
	b.proxies++
	b.last = New(Options{
		N: len(b.stores), Masters: b, Source: cell.NumberedSource(big.NewInt(int64(b.proxies))),
		Patience: time.Second, Keep: true,
	})
	return b.last
}

// takeBack has what a proxy took removed by its version, as who owes it does.
func (b *bench) takeBack(r *Register, token, version string) {
	_, _ = r.Update(b.Context(), Change{Key: "k", Expect: &token, Run: func(l Look) (Decision, error) {
		if l.Present && l.Version == version {
			return Decision{Do: Remove}, nil
		}
		return Decision{}, nil
	}})
}

// owing has what a Taking may leave behind be taken back.
func (b *bench) owing(r *Register, t Terms) Terms {
	t.Owed = func(version string, _ func() bool) { b.After(0, func() { b.takeBack(r, t.Tokens[0], version) }) }
	return t
}

// pass lets time go by, and what is to be done after some time be done.
func (b *bench) pass(d time.Duration) {
	until := b.now.Add(d)
	for {
		if b.missed && b.Well() {
			b.missed = false
			b.sure(b.last.Compare(b.Context(), []string{"k", "j"}, false))
		}
		next := -1
		for i, t := range b.timers {
			if !t.at.After(until) && (next < 0 || t.at.Before(b.timers[next].at)) {
				next = i
			}
		}
		if next < 0 {
			b.clock(until)
			return
		}
		t := b.timers[next]
		b.timers = slices.Delete(b.timers, next, next+1)
		b.clock(t.at)
		t.f()
	}
}

// clock moves all clocks on.
func (b *bench) clock(to time.Time) {
	if d := to.Sub(b.now); d > 0 {
		b.now = to
		for _, s := range b.stores {
			s.Now += d
		}
	}
}

// deliver has all that is late be done and answered.
func (b *bench) deliver() {
	pending := b.pending
	b.pending = nil
	for _, f := range pending {
		f()
	}
}

// pay has the masters do what they are owed.
func (b *bench) pay() {
	owed := b.owed
	b.owed = nil
	for _, o := range owed {
		b.Tell(o.master, o.op, true)
	}
}

func (b *bench) fateOf(master int, op cell.Op) fate {
	if b.fate == nil {
		return done
	}
	return b.fate(master, op)
}

// at has some masters have a fate, whatever they are asked.
func (b *bench) at(what fate, masters ...int) {
	b.fate = func(m int, _ cell.Op) fate {
		if slices.Contains(masters, m) {
			return what
		}
		return done
	}
}

// of has some masters have a fate if they are asked an operation of this kind.
func (b *bench) of(kind string, what fate, masters ...int) {
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

// fakeAsked is a round.
type fakeAsked struct {
	replies []Reply
	later   func(int, Reply)
	came    []int // after it was decided
	all     []Reply
	givenUp bool
}

func (a *fakeAsked) Replies() []Reply { return a.replies }
func (a *fakeAsked) Drop()            {}

// Forget makes what is used after it look like nothing at all.
func (a *fakeAsked) Forget() { clear(a.replies) }

func (a *fakeAsked) Later(f func(int, Reply)) {
	a.later = f
	for _, i := range a.came {
		f(i, a.all[i])
	}
	a.came = nil
}

// answer is for what comes after the round was decided.
func (a *fakeAsked) answer(i int, r Reply) {
	if a.givenUp {
		return
	}
	a.all[i] = r
	if a.later != nil {
		a.later(i, r)
	} else {
		a.came = append(a.came, i)
	}
}

func (b *bench) Ask(ctx context.Context, ops []cell.Op, decided func([]Reply) bool) (Asked, error) {
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
		case stray:
			a.replies[i] = Reply{State: Unknown}
			b.pending = append(b.pending, func() { op.Apply(b.stores[i]) })
		default:
			a.replies[i] = b.do(i, op, what)
		}
	}
	b.rounds = append(b.rounds, kind)
	b.clock(b.now.Add(b.takes))
	if !decided(a.replies) && waiting(a.replies) > 0 { // then it waits until they are given up
		b.clock(b.now.Add(100 * time.Millisecond))
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

func (b *bench) do(master int, op cell.Op, what fate) Reply {
	switch what {
	case refused:
		return Reply{State: Failed}
	case unsent:
		return Reply{State: Unknown}
	case lost:
		op.Apply(b.stores[master])
		return Reply{State: Unknown}
	case outside:
		return Reply{State: Uncounted, Answer: op.Apply(b.stores[master])}
	default:
		return Reply{State: Counted, Answer: op.Apply(b.stores[master])}
	}
}

func (b *bench) Tell(master int, op cell.Op, owed bool) {
	switch what := b.fateOf(master, op); {
	case what == late || what == slow || what == stray:
		b.pending = append(b.pending, func() { op.Apply(b.stores[master]) })
	default:
		if r := b.do(master, op, what); owed && (r.State == Failed || r.State == Unknown) {
			b.owed = append(b.owed, owedOp{master, op})
		}
	}
}

func (b *bench) After(d time.Duration, f func()) {
	b.timers = append(b.timers, timer{b.now.Add(d), f})
}

func (b *bench) Voters() int { return b.voters }

func (b *bench) Clock() time.Duration { return b.floor }

// Missed has keys compared once no operation is disturbed; see pass.
func (b *bench) Missed() { b.missed = true }

// Well reports whether no operation is disturbed.
func (b *bench) Well() bool { return b.fate == nil }

func (b *bench) Pause(ctx context.Context, _ int) error {
	b.pauses++
	b.clock(b.now.Add(10 * time.Millisecond))
	if b.pausing != nil {
		b.pausing()
	}
	return context.Cause(ctx)
}

func (b *bench) Now() time.Time { return b.now }

// holds is what each master holds under a key: a dot for nothing, the token of a plain
// cell, with * behind it in register form ("-*" where that holds nothing), b for a
// blocking cell, m for a mark, and what is foreign in brackets.
func (b *bench) holds(key string) string {
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

func (b *bench) wantHolds(want string) {
	b.Helper()
	if got := b.holds("k"); got != want {
		b.Errorf("the masters hold %s, want %s", got, want)
	}
}

func (b *bench) wantRounds(want string) {
	b.Helper()
	if got := strings.Join(b.rounds, " "); got != want {
		b.Errorf("rounds: %s, want %s", got, want)
	}
	b.rounds = nil
}

// plain puts a plain cell on masters, as an attempt of a proxy that is no more left it.
func (b *bench) plain(token, attempt string, ttl time.Duration, masters ...int) {
	for _, m := range masters {
		b.stores[m].Put("k", cell.Cell{Form: cell.Plain, Attempt: attemptOf(attempt), Value: cell.Value{Present: true, Text: token}}, ttl)
	}
}

// accepted puts a cell in register form on masters, of one incarnation, in which a ballot of this
// round put a value, or a removal ("").
func (b *bench) accepted(value string, round uint64, masters ...int) {
	b.acceptedFor(time.Minute, value, round, masters...)
}

// acceptedFor is accepted with a remaining time.
func (b *bench) acceptedFor(ttl time.Duration, value string, round uint64, masters ...int) {
	ballot := cell.NumberedSource(big.NewInt(2000)).Ballot(round)
	for _, m := range masters {
		b.stores[m].Put("k", cell.Cell{
			Form: cell.Register, Attempt: attemptOf("a"), Promised: ballot, Accepted: ballot, Value: cell.Value{Present: value != "", Text: value},
		}, ttl)
	}
}

// foreign puts there what no proxy wrote.
func (b *bench) foreign(text string, masters ...int) {
	for _, m := range masters {
		b.stores[m].Put("k", cell.Parse(text), time.Minute)
	}
}

// blocking puts there what a catch-up may leave.
func (b *bench) blocking(attempt string, masters ...int) {
	for _, m := range masters {
		b.stores[m].Put("k", cell.Cell{Form: cell.Blocking, Attempt: attemptOf(attempt)}, time.Minute)
	}
}

// attemptOf is an attempt with a name of a letter.
func attemptOf(name string) cell.Attempt {
	return cell.NumberedSource(big.NewInt(1000 + int64(name[0]))).Attempt()
}

// taking is for the key k.
func taking(token string) Terms {
	return Terms{Tokens: []string{token}, TTL: 10 * time.Second}
}

// lock takes k and fails the test unless that is granted.
func (b *bench) lock(r *Register, token string) Granted {
	b.Helper()
	got, err := r.Lock(b.Context(), []string{"k"}, taking(token))
	if err != nil {
		b.Fatalf("LOCK %s: %v", token, err)
	}
	b.rounds = nil
	return got
}

// put is a change that puts a value there, whatever stands there.
func put(value string) Change {
	return Change{Key: "k", Run: func(Look) (Decision, error) {
		return Decision{Do: Put, Value: value, TTL: 10 * time.Second}, nil
	}}
}

// appending is a change that adds to the value.
func appending(text string) Change {
	return Change{Key: "k", Run: func(l Look) (Decision, error) {
		return Decision{Do: Put, Value: l.Value + text, TTL: 10 * time.Second}, nil
	}}
}

// sure sees to it that there was no error.
func (b *bench) sure(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}
