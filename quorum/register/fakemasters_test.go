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

// fault is the way in which an operation fails at a master.
type fault int

const (
	noFault          fault = iota // the master does the operation and answers at once
	requestFailed                 // the operation was not sent, or the reply is an error
	requestLost                   // the master gets no operation, but the proxy does not know that
	replyLost                     // the master does the operation, but the reply is lost
	voteUncounted                 // the master does the operation, but its vote does not count
	replyLate                     // the master does it at once; deliverPending delivers the reply
	requestLate                   // deliverPending carries out the operation and delivers the reply
	connectionBroken              // deliverPending carries out the operation; the proxy gets no reply
)

// fakeMasters imitates masters in memory. The test sets their clocks, and the outcome of
// operations.
type fakeMasters struct {
	*testing.T
	stores []*cell.Store
	now    time.Time
	// faultOf returns the fault of an operation; nil means no faults.
	faultOf func(master int, op cell.Op) fault
	// roundTime is the duration of a round.
	roundTime time.Duration
	// rounds holds the kinds of the rounds so far.
	rounds []string
	// unawaitedRounds holds the kinds of the rounds that were decided before any reply. Real
	// masters reply only after such a round.
	unawaitedRounds []string
	repeatedOps     []repeatedOp
	timers          []timer
	// pendingDeliveries holds late operations and late replies.
	pendingDeliveries []func()
	proxyCount        int
	pauses            int
	// voterCount is the number of masters that vote. clock is their median time.
	voterCount int
	clock      time.Duration
	// compareScheduled is set by ScheduleCompare.
	compareScheduled bool
	// newestProxy is the newest proxy, which compares the keys.
	newestProxy *Register
	// onPause runs at each pause.
	onPause func()
}

type repeatedOp struct {
	master int
	op     cell.Op
}

type timer struct {
	at time.Time
	f  func()
}

func newFakeMasters(t *testing.T, masters int) *fakeMasters {
	b := &fakeMasters{T: t, voterCount: masters, now: time.Unix(1_700_000_000, 0)}
	for range masters {
		b.stores = append(b.stores, &cell.Store{Now: 1_700_000_000 * time.Second})
	}
	return b
}

// proxy returns the register of a new proxy.
func (b *fakeMasters) proxy() *Register {
	b.proxyCount++
	b.newestProxy = New(Options{
		N: len(b.stores), Masters: b, Source: cell.NumberedSource(big.NewInt(int64(b.proxyCount))),
		ContentionTimeout: time.Second, PromiseNextBallot: true,
	})
	return b.newestProxy
}

// removeVersion removes a version, like a proxy with a pending removal.
func (b *fakeMasters) removeVersion(r *Register, token, version string) {
	_, _ = r.Update(b.Context(), Change{Key: "k", ExpectedValue: &token, Run: func(l Snapshot) (Decision, error) {
		if l.Present && l.Version == version {
			return Decision{Action: Remove}, nil
		}
		return Decision{}, nil
	}})
}

// withRemoval returns options with an OnRemovalDue that removes the version.
func (b *fakeMasters) withRemoval(r *Register, t TakeOptions) TakeOptions {
	t.OnRemovalDue = func(version string, _ func() bool) {
		b.RunAfter(0, func() { b.removeVersion(r, t.Tokens[0], version) })
	}
	return t
}

// advance lets time pass, and runs the timers that become due.
func (b *fakeMasters) advance(d time.Duration) {
	until := b.now.Add(d)
	for {
		if b.compareScheduled && b.HasAllVotes() {
			b.compareScheduled = false
			b.noError(b.newestProxy.Compare(b.Context(), []string{"k", "j"}, false))
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

func (b *fakeMasters) setClock(now time.Time) {
	if d := now.Sub(b.now); d > 0 {
		b.now = now
		for _, s := range b.stores {
			s.Now += d
		}
	}
}

// deliverPending carries out late operations and delivers late replies.
func (b *fakeMasters) deliverPending() {
	pending := b.pendingDeliveries
	b.pendingDeliveries = nil
	for _, f := range pending {
		f()
	}
}

// deliverRepeatedOps repeats the operations that Tell must repeat until the master has replied.
func (b *fakeMasters) deliverRepeatedOps() {
	owedOps := b.repeatedOps
	b.repeatedOps = nil
	for _, o := range owedOps {
		b.Tell(o.master, o.op, true)
	}
}

func (b *fakeMasters) faultAt(master int, op cell.Op) fault {
	if b.faultOf == nil {
		return noFault
	}
	return b.faultOf(master, op)
}

// setFault sets the outcome of all operations at some masters.
func (b *fakeMasters) setFault(injectedFault fault, masters ...int) {
	b.faultOf = func(m int, _ cell.Op) fault {
		if slices.Contains(masters, m) {
			return injectedFault
		}
		return noFault
	}
}

// setFaultOn sets the outcome of operations of one kind at some masters.
func (b *fakeMasters) setFaultOn(kind string, injectedFault fault, masters ...int) {
	b.faultOf = func(m int, op cell.Op) fault {
		if kindOf(op) == kind && slices.Contains(masters, m) {
			return injectedFault
		}
		return noFault
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
	case cell.Extends:
		return "extends"
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

type fakeRound struct {
	replies      []Reply
	onLaterReply func(int, Reply)
	lateReplies  []int // masters whose replies came after Ask returned
	allReplies   []Reply
	closed       bool
}

func (a *fakeRound) Replies() []Reply { return a.replies }
func (a *fakeRound) Drop()            {}

// Release clears the replies, to detect a later use.
func (a *fakeRound) Release() { clear(a.replies) }

func (a *fakeRound) OnLaterReply(f func(int, Reply)) {
	a.onLaterReply = f
	for _, i := range a.lateReplies {
		f(i, a.allReplies[i])
	}
	a.lateReplies = nil
}

func (a *fakeRound) answer(i int, r Reply) {
	if a.closed {
		return
	}
	a.allReplies[i] = r
	if a.onLaterReply != nil {
		a.onLaterReply(i, r)
	} else {
		a.lateReplies = append(a.lateReplies, i)
	}
}

func (b *fakeMasters) Ask(ctx context.Context, ops []cell.Op, decided func([]Reply) bool) (Round, error) {
	a := &fakeRound{replies: make([]Reply, len(ops)), allReplies: make([]Reply, len(ops))}
	kind := ""
	for i, op := range ops {
		if op == nil {
			a.replies[i] = Reply{State: Failed}
		}
	}
	isDecidedBefore := decided(a.replies)
	for i, op := range ops {
		if op == nil {
			continue
		}
		kind = kindOf(op)
		switch injected := b.faultAt(i, op); injected {
		case replyLate, requestLate:
			answer := Reply{State: Counted}
			if injected == replyLate {
				answer.Answer = op.Apply(b.stores[i])
			}
			b.pendingDeliveries = append(b.pendingDeliveries, func() {
				if injected == requestLate {
					answer.Answer = op.Apply(b.stores[i])
				}
				a.answer(i, answer)
			})
		case connectionBroken:
			a.replies[i] = Reply{State: Unknown}
			b.pendingDeliveries = append(b.pendingDeliveries, func() { op.Apply(b.stores[i]) })
		default:
			a.replies[i] = b.do(i, op, injected)
		}
	}
	b.rounds = append(b.rounds, kind)
	if isDecidedBefore {
		b.unawaitedRounds = append(b.unawaitedRounds, kind)
	}
	b.setClock(b.now.Add(b.roundTime))
	// If the round is undecided, wait until the proxy gives up on the masters that have not
	// replied.
	if !decided(a.replies) && countWaiting(a.replies) > 0 {
		b.setClock(b.now.Add(100 * time.Millisecond))
		a.closed = true
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

func (b *fakeMasters) do(master int, op cell.Op, injected fault) Reply {
	switch injected {
	case requestFailed:
		return Reply{State: Failed}
	case requestLost:
		return Reply{State: Unknown}
	case replyLost:
		op.Apply(b.stores[master])
		return Reply{State: Unknown}
	case voteUncounted:
		return Reply{State: Uncounted, Answer: op.Apply(b.stores[master])}
	default:
		return Reply{State: Counted, Answer: op.Apply(b.stores[master])}
	}
}

func (b *fakeMasters) Tell(master int, op cell.Op, untilReplied bool) {
	switch injected := b.faultAt(master, op); {
	case injected == replyLate || injected == requestLate || injected == connectionBroken:
		b.pendingDeliveries = append(b.pendingDeliveries, func() { op.Apply(b.stores[master]) })
	default:
		if r := b.do(master, op, injected); untilReplied && (r.State == Failed || r.State == Unknown) {
			b.repeatedOps = append(b.repeatedOps, repeatedOp{master, op})
		}
	}
}

func (b *fakeMasters) RunAfter(d time.Duration, f func()) {
	b.timers = append(b.timers, timer{b.now.Add(d), f})
}

func (b *fakeMasters) VoterCount() int { return b.voterCount }

func (b *fakeMasters) Clock() time.Duration { return b.clock }

// ScheduleCompare lets advance compare the keys once the test injects no faults.
func (b *fakeMasters) ScheduleCompare() { b.compareScheduled = true }

// HasAllVotes returns true while the test injects no faults.
func (b *fakeMasters) HasAllVotes() bool { return b.faultOf == nil }

func (b *fakeMasters) Pause(ctx context.Context, _ int) error {
	b.pauses++
	b.setClock(b.now.Add(10 * time.Millisecond))
	if b.onPause != nil {
		b.onPause()
	}
	return context.Cause(ctx)
}

func (b *fakeMasters) Now() time.Time { return b.now }

// cells returns the cells of a key on all masters as a text. A dot means an absent cell, b a
// blocking cell, and m a mark. The token means a plain cell, and the value with a * a cell in
// register form ("-*" for a removal). A value in brackets means a foreign value.
func (b *fakeMasters) cells(key string) string {
	all := make([]string, len(b.stores))
	for i, s := range b.stores {
		switch f := s.Get(key); {
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

func (b *fakeMasters) wantCells(want string) {
	b.Helper()
	if got := b.cells("k"); got != want {
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

// everyTry returns the rounds of a command that gives up, because the state of its key stays
// undetermined.
func everyTry(round string) string {
	return strings.Join(slices.Repeat([]string{round}, maxBlockedTries), " ")
}

// putPlainCell puts a plain cell on masters, like an attempt of a proxy that has ended.
func (b *fakeMasters) putPlainCell(token, attempt string, ttl time.Duration, masters ...int) {
	for _, m := range masters {
		c := cell.Cell{Form: cell.Plain, Attempt: attemptOf(attempt), Value: cell.Value{Present: true, Text: token}}
		b.stores[m].Put("k", c, ttl)
	}
}

// putAcceptedCell puts a value or a removal ("") of a round on masters, all of one incarnation.
func (b *fakeMasters) putAcceptedCell(value string, round uint64, masters ...int) {
	b.putAcceptedCellFor(time.Minute, value, round, masters...)
}

func (b *fakeMasters) putAcceptedCellFor(ttl time.Duration, value string, round uint64, masters ...int) {
	ballot := cell.NumberedSource(big.NewInt(2000)).Ballot(round)
	for _, m := range masters {
		b.stores[m].Put("k", cell.Cell{
			Form: cell.Register, Attempt: attemptOf("a"), Promised: ballot, Accepted: ballot,
			Value: cell.Value{Present: value != "", Text: value},
		}, ttl)
	}
}

func (b *fakeMasters) putForeignCell(text string, masters ...int) {
	for _, m := range masters {
		b.stores[m].Put("k", cell.Parse(text), time.Minute)
	}
}

func (b *fakeMasters) putBlockingCell(attempt string, masters ...int) {
	for _, m := range masters {
		b.stores[m].Put("k", cell.Cell{Form: cell.Blocking, Attempt: attemptOf(attempt)}, time.Minute)
	}
}

// attemptOf returns the attempt with a letter as its name.
func attemptOf(name string) cell.Attempt {
	return cell.NumberedSource(big.NewInt(1000 + int64(name[0]))).Attempt()
}

func takeOptions(token string) TakeOptions {
	return TakeOptions{Tokens: []string{token}, TTL: 10 * time.Second}
}

// mustLock takes k, or fails the test.
func (b *fakeMasters) mustLock(r *Register, token string) GrantedLock {
	b.Helper()
	got, err := r.Lock(b.Context(), []string{"k"}, takeOptions(token))
	if err != nil {
		b.Fatalf("LOCK %s: %v", token, err)
	}
	b.rounds = nil
	return got
}

func putChange(value string) Change {
	return Change{Key: "k", Run: func(Snapshot) (Decision, error) {
		return Decision{Action: Put, Value: value, TTL: 10 * time.Second}, nil
	}}
}

func appendChange(text string) Change {
	return Change{Key: "k", Run: func(l Snapshot) (Decision, error) {
		return Decision{Action: Put, Value: l.Value + text, TTL: 10 * time.Second}, nil
	}}
}

func (b *fakeMasters) noError(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}
