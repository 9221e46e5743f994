package register

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"redlock-proxy/quorum/cell"
)

func (b *fakeMasters) readValue() string {
	b.Helper()
	snapshots, err := b.proxy().Read(b.Context(), []string{"k"})
	if err != nil {
		return outcome(err)
	}
	return snapshots[0].Value
}

func TestUpdate(t *testing.T) {
	for _, test := range []struct {
		name      string
		prepare   func(*fakeMasters)
		want      string
		wantCells string
		rounds    string
	}{
		{"of nothing", func(*fakeMasters) {}, "granted", "+ + + + +", "prepare take"},
		{"of a lock", func(b *fakeMasters) { b.mustLock(b.proxy(), "me") }, "granted", "me+* me+* me+* me+* me+*",
			"prepare accept"},
		{"of a leftover", func(b *fakeMasters) { b.putPlainCell("x", "a", time.Minute, 0, 1) }, "granted", "x* x* + + +",
			"prepare take"},
		{"two are away", func(b *fakeMasters) { b.mustLock(b.proxy(), "me"); b.setFault(requestFailed, 3, 4) }, "granted",
			"me+* me+* me+* me me", "prepare accept"},
		{"three are away", func(b *fakeMasters) { b.mustLock(b.proxy(), "me"); b.setFault(requestFailed, 2, 3, 4) }, "no quorum",
			"me* me* me me me", "prepare"},
		{"three do not count", func(b *fakeMasters) { b.mustLock(b.proxy(), "me"); b.setFault(voteUncounted, 2, 3, 4) },
			"no quorum", "me* me* me* me* me*", "prepare"},
		{"of what is foreign", func(b *fakeMasters) { b.putForeignCell("x", 0, 1, 2) }, "foreign", "[x] [x] [x] . .", "prepare"},
		{"beside what is foreign", func(b *fakeMasters) { b.putForeignCell("x", 0, 1) }, "granted", "[x] [x] + + +",
			"prepare take"},
		{"of a lock that is foreign at two", func(b *fakeMasters) {
			b.putPlainCell("me", "a", time.Minute, 0, 1, 2)
			b.putForeignCell("x", 3, 4)
		}, "granted", "me+* me+* me+* [x] [x]", "prepare accept"},
		{"of what blocks", func(b *fakeMasters) { b.putBlockingCell("a", 0, 1, 2) }, "no quorum", "b b b . .", everyTry("prepare")},
	} {
		b := newFakeMasters(t, 5)
		test.prepare(b)
		_, err := b.proxy().Update(t.Context(), appendChange("+"))
		if outcome(err) != test.want {
			t.Errorf("%s: %v, want %s", test.name, err, test.want)
		}
		if got := b.cells("k"); got != test.wantCells {
			t.Errorf("%s: the masters hold %s, want %s", test.name, got, test.wantCells)
		}
		b.wantRounds(test.rounds)
	}
}

// TestUpdateTakesEffectOnce checks that a change is made once, however its first accepts fail.
func TestUpdateTakesEffectOnce(t *testing.T) {
	names := map[fault]string{replyLost: "lost", requestLost: "not sent", requestLate: "slow", replyLate: "late", requestFailed: "refused"}
	for injected, name := range names {
		for from := range 4 {
			b := newFakeMasters(t, 3)
			b.mustLock(b.proxy(), "me")
			accepts := 0
			b.faultOf = func(m int, op cell.Op) fault {
				if kindOf(op) == "accept" {
					if accepts++; accepts <= 3 && m >= from {
						return injected
					}
				}
				return noFault
			}
			out, err := b.proxy().Update(t.Context(), appendChange("+"))
			b.deliverPending()
			b.faultOf = nil
			if got := b.readValue(); err != nil || got != "me+" {
				t.Errorf("%s from master %d on: %q, %v", name, from, got, err)
			}
			if err == nil && out.Decision.Action != Put {
				t.Errorf("%s from master %d on: %v", name, from, out.Decision)
			}
		}
	}
}

// TestUpdateGrants checks that a lease starts with the ballot that sent the change, even if a later
// ballot finds the change.
func TestUpdateGrants(t *testing.T) {
	for _, lostFirst := range []bool{false, true} {
		b := newFakeMasters(t, 3)
		b.mustLock(b.proxy(), "me")
		b.roundTime = 10 * time.Millisecond
		if lostFirst {
			b.setFaultOn("accept", requestLost, 1, 2)
			b.onPause = func() { b.faultOf = nil }
		}
		start := b.now
		out, err := b.proxy().Update(t.Context(), putChange("you"))
		b.noError(err)
		// LeaseStart is no later than the first accept.
		if delay := out.LeaseStart.Sub(start); delay < 0 || delay > b.roundTime {
			t.Errorf("it began %v later", delay)
		}
		early := out.EndsEarlyBy(out.LeaseStart, 10*time.Second)
		if early > 2*b.roundTime || early > 0 != lostFirst {
			t.Errorf("a master may end it %v early", early)
		}
		if want := 10*time.Second - b.now.Sub(out.LeaseStart) - 102*time.Millisecond - early; out.Validity != want {
			t.Errorf("valid for %v, want %v", out.Validity, want)
		}
	}
}

// TestSentChangeOfUpdate checks that an Update finds out whether its change, which one master
// accepted, led to the current value.
func TestSentChangeOfUpdate(t *testing.T) {
	for _, test := range []struct {
		name         string
		hideAcceptor bool // other proxies do not reach the master that accepted
		otherChanges int  // number of changes by other proxies
		want         string
		value        string
		runs         int
	}{
		{"others built on it", false, 1, "granted", "me+x", 1},
		{"others built on it, and went on", false, 10, "granted", "me+xxxxxxxxxx", 1},
		{"others did not see it", true, 1, "granted", "mex+", 2},
		{"others did not see it, and went on", true, 10, "granted", "mexxxxxxxxxx+", 2},
		{"however many they are", true, 2 * cell.MaxChanges, "granted", "me" +
			strings.Repeat("x", 2*cell.MaxChanges) + "+", 2},
		{"however many they are, if they built on it", false, 2 * cell.MaxChanges, "granted", "me+" +
			strings.Repeat("x", 2*cell.MaxChanges), 1},
	} {
		b := newFakeMasters(t, 3)
		b.mustLock(b.proxy(), "me")
		other := b.proxy()
		b.setFaultOn("accept", requestLost, 1, 2)
		b.onPause = func() { // one master has accepted the change
			b.onPause, b.faultOf = nil, nil
			if test.hideAcceptor {
				b.setFault(requestFailed, 0)
			}
			for range test.otherChanges {
				_, err := other.Update(t.Context(), appendChange("x"))
				b.noError(err)
			}
			b.faultOf = nil
		}
		runs := 0
		change := appendChange("+")
		run := change.Run
		change.Run = func(l Snapshot) (Decision, error) {
			runs++
			d, err := run(l)
			d.Note = runs
			return d, err
		}
		out, err := b.proxy().Update(t.Context(), change)
		if outcome(err) != test.want {
			t.Errorf("%s: %v, want %s", test.name, err, test.want)
		}
		if got := b.readValue(); got != test.value {
			t.Errorf("%s: %s, want %s", test.name, got, test.value)
		}
		if err == nil && (out.Decision.Note != test.runs || runs != test.runs) {
			t.Errorf("%s: run %v of %d, want %d", test.name, out.Decision.Note, runs, test.runs)
		}
	}
}

// TestUpdateOfExpiredKey checks that the effect of a change that one master accepted is unknown
// once the key has expired.
func TestUpdateOfExpiredKey(t *testing.T) {
	for _, takenAgain := range []bool{false, true} {
		b := newFakeMasters(t, 3)
		b.mustLock(b.proxy(), "me")
		b.setFaultOn("accept", requestLost, 1, 2)
		b.onPause = func() {
			b.onPause, b.faultOf = nil, nil
			for _, s := range b.stores {
				s.Delete("k")
			}
			if takenAgain {
				b.mustLock(b.proxy(), "me")
			}
		}
		if _, err := b.proxy().Update(t.Context(), appendChange("+")); outcome(err) != "unclear" {
			t.Errorf("taken again %v: %v", takenAgain, err)
		}
	}
}

// TestUpdateAfterAnotherIncarnation checks that a promise for an expired lock does not prevent
// changes of the next lock, even if masters are away.
func TestUpdateAfterAnotherIncarnation(t *testing.T) {
	for _, injected := range []fault{noFault, requestFailed} {
		b := newFakeMasters(t, 5)
		b.setFault(injected, 3, 4)
		r := b.proxy()
		b.mustLock(r, "me")
		if _, err := r.Update(t.Context(), putChange("you")); err != nil {
			t.Fatal(err)
		}
		for _, s := range b.stores {
			s.Delete("k") // its lease expires
		}
		b.mustLock(b.proxy(), "they")
		if _, err := r.Update(t.Context(), appendChange("+")); err != nil {
			t.Error(err)
		}
		if got := b.readValue(); got != "they+" {
			t.Errorf("%q, want they+", got)
		}
	}
}

// TestUpdateContended checks that an Update that other proxies always overtake ends with
// ErrContended, and changes nothing.
func TestUpdateContended(t *testing.T) {
	b := newFakeMasters(t, 3)
	b.mustLock(b.proxy(), "me")
	other := b.proxy()
	b.faultOf = func(m int, op cell.Op) fault {
		if accept, ok := op.(cell.Accept); ok && accept.Value.Text != "you" {
			b.faultOf = nil
			_, err := other.Update(t.Context(), putChange("you"))
			b.noError(err)
			b.faultOf = func(int, cell.Op) fault { return noFault }
		}
		return noFault
	}
	rival := b.faultOf
	b.onPause = func() { b.faultOf = rival }
	if _, err := b.proxy().Update(t.Context(), appendChange("+")); outcome(err) != "contended" {
		t.Error(err)
	}
	if got := b.readValue(); got != "you" {
		t.Error(got)
	}
}

// TestKeptPromise checks that the next change of the same proxy takes one round, while the promise
// is valid and no other proxy has changed the key.
func TestKeptPromise(t *testing.T) {
	for _, test := range []struct {
		name           string
		betweenUpdates func(*fakeMasters)
		value          string
		rounds         string
	}{
		{"at once", func(*fakeMasters) {}, "me++", "accept"},
		{"within the limit", func(b *fakeMasters) { b.advance(Limit) }, "me++", "accept"},
		{"after the limit", func(b *fakeMasters) { b.advance(Limit + 1) }, "me++", "prepare accept"},
		{"another changed it", func(b *fakeMasters) {
			_, err := b.proxy().Update(b.Context(), appendChange("x"))
			b.noError(err)
		}, "me+x+", "accept prepare accept"},
		{"another client read it", func(b *fakeMasters) {
			_, err := b.proxy().Update(b.Context(),
				readChange(nil))
			b.noError(err)
		}, "me++", "accept prepare accept"},
		{"it ended", func(b *fakeMasters) {
			for _, s := range b.stores {
				s.Delete("k")
			}
		}, "+", "accept prepare take"},
		{"a master is away", func(b *fakeMasters) { b.setFault(requestFailed, 0) }, "me++", "accept"},
		{"two masters restarted empty", func(b *fakeMasters) { b.stores[0].Delete("k"); b.stores[1].Delete("k") }, "+",
			"accept prepare take"},
	} {
		b := newFakeMasters(t, 3)
		r := b.proxy()
		b.mustLock(r, "me")
		_, err := r.Update(t.Context(), appendChange("+"))
		b.noError(err)
		test.betweenUpdates(b)
		b.rounds = nil
		_, err = r.Update(t.Context(), appendChange("+"))
		b.faultOf = nil
		if test.name == "two masters restarted empty" {
			if outcome(err) != "granted" && outcome(err) != "unclear" {
				t.Errorf("%s: %v", test.name, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
		b.wantRounds(test.rounds)
		if got := b.readValue(); got != test.value {
			t.Errorf("%s: %s, want %s", test.name, got, test.value)
		}
	}
}

// TestUnusedPromise checks that a change that needs the remaining time, or changes nothing, uses
// no promise.
func TestUnusedPromise(t *testing.T) {
	b := newFakeMasters(t, 3)
	r := b.proxy()
	b.mustLock(r, "me")
	run := func(f func(Snapshot) (Decision, error)) Outcome {
		t.Helper()
		_, err := r.Update(t.Context(), appendChange("+"))
		b.noError(err)
		b.rounds = nil
		out, err := r.Update(t.Context(), Change{Key: "k", Run: f})
		b.noError(err)
		return out
	}
	out := run(func(l Snapshot) (Decision, error) {
		if l.TimeLeftUnknown {
			return Decision{}, ErrTTLUnknown
		}
		return Decision{Action: Put, Value: fmt.Sprint(l.TimeLeft), TTL: time.Second}, nil
	})
	b.wantRounds("prepare accept")
	if out.Decision.Value != "10s" {
		t.Errorf("%v stands", out.Decision)
	}
	if got := b.readValue(); got != "10s" {
		t.Error(got)
	}
	run(func(Snapshot) (Decision, error) { return Decision{}, nil })
	b.wantRounds("prepare")
	failed := errors.New("failed")
	failing := Change{Key: "k", Run: func(Snapshot) (Decision, error) { return Decision{}, failed }}
	if _, err := r.Update(t.Context(), failing); !errors.Is(err, failed) {
		t.Error(err)
	}
}

// TestNoPromises checks that the proxy stores no promise without Options.PromiseNextBallot.
func TestNoPromises(t *testing.T) {
	b := newFakeMasters(t, 3)
	r := b.proxy()
	r.opts.PromiseNextBallot = false
	b.mustLock(r, "me")
	for range 2 {
		_, err := r.Update(t.Context(), appendChange("+"))
		b.noError(err)
		b.wantRounds("prepare accept")
	}
}

// TestExpiredPromises checks that a proxy forgets expired promises.
func TestExpiredPromises(t *testing.T) {
	b := newFakeMasters(t, 1)
	r := b.proxy()
	for i := range 5000 {
		change := putChange("x")
		change.Key = fmt.Sprint(i)
		_, err := r.Lock(t.Context(), []string{change.Key}, TakeOptions{Tokens: []string{"me"}, TTL: time.Second})
		b.noError(err)
		_, err = r.Update(t.Context(), change)
		b.noError(err)
		b.advance(time.Millisecond)
	}
	if n := len(r.promises.byKey); n > 2400 {
		t.Errorf("%d are kept", n)
	}
}

// TestAcceptDeadline checks that an accept that arrives after the round has no effect: the
// master may have forgotten its promise.
func TestAcceptDeadline(t *testing.T) {
	b := newFakeMasters(t, 3)
	b.mustLock(b.proxy(), "me")
	r := b.proxy()
	b.setFaultOn("accept", requestLate, 0)
	_, err := r.Update(t.Context(), putChange("you"))
	b.noError(err)
	b.faultOf = nil
	b.wantCells("me* you* you*")
	b.setClock(b.now.Add(Limit + time.Millisecond))
	b.deliverPending()
	b.wantCells("me* you* you*")
}

// TestNoAcceptAfterTheLimit checks that a promise at the time limit gets no accept: a deadline in
// the same millisecond would not have passed on the master.
func TestNoAcceptAfterTheLimit(t *testing.T) {
	b := newFakeMasters(t, 3)
	b.mustLock(b.proxy(), "me")
	b.setFaultOn("prepare", requestLate, 0)
	_, err := b.proxy().Update(t.Context(), putChange("you"))
	b.noError(err)
	b.faultOf = nil
	b.setClock(b.now.Add(Limit))
	b.deliverPending()
	b.wantCells("me* you* you*")

	b.rounds, b.roundTime = nil, Limit
	var noQuorum *NoQuorum
	_, err = b.proxy().Update(t.Context(), putChange("them"))
	if !errors.As(err, &noQuorum) || noQuorum.AgreementTime < Limit || noQuorum.Overtaken {
		t.Errorf("of which each round takes too long: %v", err)
	}
	b.wantCells("me* you* you*")
	b.wantRounds("prepare prepare")
}

// TestLatePromise checks that a master that promises late also accepts.
func TestLatePromise(t *testing.T) {
	b := newFakeMasters(t, 3)
	b.mustLock(b.proxy(), "me")
	b.setFaultOn("prepare", replyLate, 0)
	_, err := b.proxy().Update(t.Context(), putChange("you"))
	b.noError(err)
	b.wantCells("me* you* you*")
	b.faultOf = nil
	b.deliverPending()
	b.wantCells("you* you* you*")
}

// TestRepair checks that masters that hold different values agree soon after the last command.
func TestRepair(t *testing.T) {
	for name, during := range map[string]func(*fakeMasters){
		"an accept was lost":      func(b *fakeMasters) { b.setFaultOn("accept", requestLost, 0) },
		"a promise was lost":      func(b *fakeMasters) { b.setFaultOn("prepare", requestLost, 0) },
		"a master was away":       func(b *fakeMasters) { b.setFault(requestFailed, 0) },
		"an accept did not count": func(b *fakeMasters) { b.setFaultOn("accept", voteUncounted, 0) },
	} {
		b := newFakeMasters(t, 3)
		b.mustLock(b.proxy(), "me")
		during(b)
		_, err := b.proxy().Update(t.Context(), putChange("you"))
		b.noError(err)
		b.faultOf = nil
		b.advance(2 * time.Second)
		if got := b.cells("k"); got != "you* you* you*" {
			t.Errorf("%s: %s", name, got)
		}
		if len(b.timers) > 0 {
			t.Errorf("%s: it never comes to rest", name)
		}
	}
}

// TestRepairOfChosenValue checks that a leftover stays if a late take gave its incarnation a
// majority, and a ballot has chosen a value since.
func TestRepairOfChosenValue(t *testing.T) {
	for name, before := range map[string]func(*fakeMasters){
		"a plain leftover":         func(b *fakeMasters) { b.putPlainCell("x", "a", time.Minute, 0, 1) },
		"one with an older ballot": func(b *fakeMasters) { b.putAcceptedCell("x", 1, 0, 1) },
	} {
		b, late := newFakeMasters(t, 5), []int{2}
		before(b)
		b.proxy().scheduleRepair("k")
		b.setFaultOn("remove", requestLate, 0, 1)
		b.advance(time.Second)
		if len(b.pendingDeliveries) != 2 {
			t.Fatalf("%s: %d removals, want 2", name, len(b.pendingDeliveries))
		}
		b.putPlainCell("x", "a", time.Minute, late...)
		_, err := b.proxy().Update(t.Context(), putChange("you"))
		b.noError(err)
		b.deliverPending()
		if got := b.readValue(); got != "you" {
			t.Errorf("%s: %q is there, and %s", name, got, b.cells("k"))
		}
	}
}

// TestChangedLeftover checks that a leftover that changed between two reads stays.
func TestChangedLeftover(t *testing.T) {
	b := newFakeMasters(t, 5)
	b.putPlainCell("x", "a", time.Minute, 0, 1)
	b.proxy().scheduleRepair("k")
	b.advance(500 * time.Millisecond)
	b.putAcceptedCell("y", 1, 0, 1)
	b.advance(time.Second)
	b.wantCells("y* y* . . .")
}

// TestRepairAfterRead checks that a proxy repairs a key after it read cells that differ.
func TestRepairAfterRead(t *testing.T) {
	b := newFakeMasters(t, 5)
	b.mustLock(b.proxy(), "me")
	b.setFaultOn("accept", requestLost, 3, 4)
	_, err := b.proxy().Update(t.Context(), putChange("you"))
	b.noError(err)
	b.faultOf, b.timers = nil, nil // the proxy of the change has stopped
	if got := b.readValue(); got != "you" {
		t.Error(got)
	}
	b.advance(2 * time.Second)
	b.wantCells("you* you* you* you* you*")
}

// TestLockAfterARemoval checks that clients can take a key although its removal has not expired.
func TestLockAfterARemoval(t *testing.T) {
	for _, proxyOf := range []string{"the same", "another"} {
		b := newFakeMasters(t, 3)
		b.mustLock(b.proxy(), "me")
		r := b.proxy()
		b.noError(r.Unlock(t.Context(), "k", "me", nil))
		b.wantCells("-* -* -*")
		if proxyOf == "another" {
			r = b.proxy()
		}
		b.roundTime = time.Millisecond
		start := b.now
		got, err := r.Lock(t.Context(), []string{"k"}, takeOptions("you"))
		b.noError(err)
		if waited := b.now.Sub(start); waited > 100*time.Millisecond {
			t.Errorf("through %s proxy: it took %v", proxyOf, waited)
		}
		if got.Validity < 9*time.Second || got.LeaseStart.Before(start) {
			t.Errorf("through %s proxy: %+v", proxyOf, got)
		}
		if _, err := b.proxy().Lock(t.Context(), []string{"k"}, takeOptions("they")); outcome(err) != "held" {
			t.Error(err)
		}
		b.noError(r.Unlock(t.Context(), "k", "you", nil))
		if got := b.readValue(); got != "" {
			t.Errorf("released, and it is %q", got)
		}
	}
}

// TestRemovalsDueAfterNoQuorum checks that Lock reports the removal of each version that may remain
// after *NoQuorum as due, unless KeepOnNoQuorum is set.
func TestRemovalsDueAfterNoQuorum(t *testing.T) {
	removed := func(b *fakeMasters) {
		b.mustLock(b.proxy(), "me")
		b.noError(b.proxy().Unlock(b.Context(), "k", "me", nil))
	}
	failOn := func(kind string) func(*fakeMasters) {
		return func(b *fakeMasters) {
			b.faultOf = func(m int, op cell.Op) fault {
				switch {
				case kindOf(op) != kind:
					return noFault
				case m == 0:
					return replyLost
				default:
					return requestLost
				}
			}
		}
	}
	for _, c := range []struct {
		name           string
		keepOnNoQuorum bool
		prepare        func(*fakeMasters)
		nextStep       func(*fakeMasters)
		want           string
	}{
		{"a take", false, func(*fakeMasters) {}, failOn("take"), ". . ."},
		{"a take that stays", true, func(*fakeMasters) {}, failOn("take"), "t . ."},
		{"after a removal", false, removed, failOn("accept"), "t* -* -*"},
		{"after a removal, one after another", false, removed, func(b *fakeMasters) {
			ballots := map[cell.Ballot]int{}
			b.faultOf = func(m int, op cell.Op) fault {
				switch op := op.(type) {
				case cell.Accept:
					if _, known := ballots[op.Ballot]; !known {
						ballots[op.Ballot] = len(ballots)
					}
					if m != ballots[op.Ballot] {
						return requestLost
					}
					return replyLost
				case cell.Prepare:
					if m < len(ballots) || len(ballots) > 1 {
						return requestLost
					}
				}
				return noFault
			}
		}, "t* t* -*"},
		{"after a removal, too late", false, removed, func(b *fakeMasters) {
			b.faultOf = func(_ int, op cell.Op) fault {
				if a, ok := op.(cell.Accept); ok && a.Value.Present {
					b.setClock(b.now.Add(time.Second / 4))
				}
				return noFault
			}
		}, "t* t* -*"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newFakeMasters(t, 3)
			c.prepare(b)
			r := b.proxy()
			c.nextStep(b)
			dueVersions := map[string]bool{}
			onRemovalDue := func(v string, _ func() bool) { dueVersions[v] = true }
			request := TakeOptions{Tokens: []string{"t"}, TTL: time.Minute, KeepOnNoQuorum: c.keepOnNoQuorum, OnRemovalDue: onRemovalDue}
			_, err := r.Lock(t.Context(), []string{"k"}, request)
			if !errors.As(err, new(*NoQuorum)) {
				t.Fatal(err)
			}
			b.wantCells(c.want)
			for i, s := range b.stores {
				if f := s.Get("k"); f.Value.Present && dueVersions[version(f.Incarnation(), f.Value)] == c.keepOnNoQuorum {
					t.Errorf("master %d holds a version, owed its removal: %v", i, !c.keepOnNoQuorum)
				}
			}
		})
	}
}

// TestLateLockAfterARemoval lets only one master accept a LOCK after a removal. A client releases
// this lock through another proxy, and a rival takes the key. By then the time limit of the LOCK
// has passed, and its proxy withdraws the lock. The rival's lock stays.
func TestLateLockAfterARemoval(t *testing.T) {
	b := newFakeMasters(t, 3)
	b.mustLock(b.proxy(), "me")
	slow, other := b.proxy(), b.proxy()
	b.noError(other.Unlock(t.Context(), "k", "me", nil))
	b.setFaultOn("accept", requestLost, 1, 2)
	b.onPause = func() {
		if b.cells("k") != "late* -* -*" {
			return
		}
		b.faultOf, b.onPause = nil, nil
		b.noError(other.Unlock(t.Context(), "k", "late", nil))
		b.mustLock(other, "rival")
		b.setClock(b.now.Add(2 * Limit))
	}
	_, err := slow.Lock(t.Context(), []string{"k"}, b.withRemoval(slow, takeOptions("late")))
	if !errors.As(err, new(*NoQuorum)) {
		t.Errorf("the late lock: %v", err)
	}
	b.advance(time.Second)
	b.wantCells("rival* rival* rival*")
	b.noError(other.Unlock(t.Context(), "k", "rival", nil))
}

// TestLockSeveralAfterARemoval checks that Lock takes several keys once a removal has expired.
func TestLockSeveralAfterARemoval(t *testing.T) {
	b := newFakeMasters(t, 3)
	r := b.proxy()
	r.opts.ContentionTimeout = 2 * removalTTL
	b.mustLock(r, "me")
	b.noError(b.proxy().Unlock(t.Context(), "k", "me", nil))
	start := b.now
	_, err := r.Lock(t.Context(), []string{"k2", "k"}, TakeOptions{Tokens: []string{"a", "b"}, TTL: time.Minute})
	b.noError(err)
	if waited := b.now.Sub(start); waited > removalTTL+100*time.Millisecond {
		t.Errorf("it took %v", waited)
	}
	b.wantCells("b b b")
}

// TestWithdrawAfterARemoval checks that a proxy withdraws only the version that a ballot granted.
func TestWithdrawAfterARemoval(t *testing.T) {
	for _, takenAgain := range []bool{false, true} {
		b := newFakeMasters(t, 3)
		b.mustLock(b.proxy(), "1")
		r := b.proxy()
		b.noError(r.Unlock(t.Context(), "k", "1", nil))
		got, err := r.Lock(t.Context(), []string{"k"}, takeOptions("1"))
		b.noError(err)
		want := ""
		if takenAgain { // the lock was released, and another client has it now
			b.noError(b.proxy().Unlock(t.Context(), "k", "1", nil))
			_, err := b.proxy().Lock(t.Context(), []string{"k"}, takeOptions("1"))
			b.noError(err)
			want = "1"
		}
		b.removeVersion(r, "1", got.Version)
		if got := b.readValue(); got != want {
			t.Errorf("taken by another %v: %q, want %q", takenAgain, got, want)
		}
	}
}

// TestKeepTTLOnPromise checks that each master keeps its own expiry if a proxy replaces
// a value that the same proxy has just put. The proxy does not know the expiry.
func TestKeepTTLOnPromise(t *testing.T) {
	b := newFakeMasters(t, 3)
	b.mustLock(b.proxy(), "me")
	r := b.proxy()
	_, err := r.Update(t.Context(), putChange("you"))
	b.noError(err)
	left := b.stores[0].Get("k").TimeLeft
	b.rounds = nil
	_, err = r.Update(t.Context(), Change{Key: "k", Run: func(Snapshot) (Decision, error) {
		return Decision{Action: Put, Value: "they", KeepTTL: true}, nil
	}})
	b.noError(err)
	b.wantRounds("accept")
	for m, s := range b.stores {
		if f := s.Get("k"); f.Value.Text != "they" || f.TimeLeft != left {
			t.Errorf("master %d holds %q for %v, want %v", m, f.Value.Text, f.TimeLeft, left)
		}
	}
}

// TestUpdateWithKeepTTL checks that KeepTTL keeps the remaining time, which grows on no master.
func TestUpdateWithKeepTTL(t *testing.T) {
	b := newFakeMasters(t, 3)
	b.mustLock(b.proxy(), "me")
	b.roundTime = 5 * time.Millisecond
	keep := Change{Key: "k", Run: func(l Snapshot) (Decision, error) {
		return Decision{Action: Put, Value: l.Value + "+", KeepTTL: true}, nil
	}}
	ends := b.stores[0].Now + b.stores[0].Get("k").TimeLeft
	for i := range 5 {
		if i == 2 {
			b.setFaultOn("accept", requestLost, 0) // master 0 misses this change
		}
		_, err := b.proxy().Update(t.Context(), keep)
		b.noError(err)
		b.faultOf = nil
		for m, s := range b.stores {
			if now := s.Now + s.Get("k").TimeLeft; now > ends {
				t.Errorf("change %d: master %d keeps it for %v longer", i, m, now-ends)
			}
		}
	}
	if got := b.readValue(); got != "me+++++" {
		t.Error(got)
	}
	b.advance(10 * time.Second)
	b.wantCells(". . .")
}

// TestHeldUntilWithKeepTTL checks that a value that keeps its remaining time reports until when each
// master holds it: a slow prepare shortens it on a master that missed the former value.
func TestHeldUntilWithKeepTTL(t *testing.T) {
	b := newFakeMasters(t, 3)
	b.mustLock(b.proxy(), "me")
	b.roundTime = 100 * time.Millisecond
	for i := range 2 {
		b.setFaultOn("accept", requestLost, i) // the master misses the change
		out, err := b.proxy().Update(t.Context(), Change{Key: "k", Run: func(l Snapshot) (Decision, error) {
			return Decision{Action: Put, Value: l.Value + "+", KeepTTL: true}, nil
		}})
		b.noError(err)
		for m, s := range b.stores {
			until := b.now.Add(s.Get("k").TimeLeft)
			if m != i && (out.HeldUntil.IsZero() || until.Before(out.HeldUntil)) {
				t.Errorf("change %d: master %d holds it until %v, reported is %v", i, m, until, out.HeldUntil)
			}
		}
	}
}

// TestUpdateWithShift checks that the expiry of a cell with several keys shifts equally on all
// masters. No cell expires before the shifted expiry of the first cell. A master may miss a change,
// reply late, or be repaired.
func TestUpdateWithShift(t *testing.T) {
	for name, happens := range map[string]func(b *fakeMasters, i int){
		"nothing":            func(*fakeMasters, int) {},
		"misses the change":  func(b *fakeMasters, i int) { b.setFaultOn("accept", requestLost, i%3) },
		"answers late":       func(b *fakeMasters, i int) { b.setFaultOn("prepare", replyLate, i%3) },
		"answers late again": func(b *fakeMasters, _ int) { b.setFaultOn("prepare", replyLate, 1) },
	} {
		b := newFakeMasters(t, 3)
		b.mustLock(b.proxy(), "me")
		b.roundTime = 5 * time.Millisecond
		first := b.stores[0].Now + b.stores[0].Get("k").TimeLeft
		for i := range 12 {
			r := b.proxy()
			r.opts.IsKeygroup = func(string) bool { return true }
			shift := []time.Duration{time.Hour, 0, -50 * time.Minute}[i%3]
			happens(b, i)
			_, err := r.Update(t.Context(), Change{Key: "k", Run: func(l Snapshot) (Decision, error) {
				return Decision{Action: Put, Value: l.Value + "+", KeepTTL: true, Shift: shift, Shared: true}, nil
			}})
			b.noError(err)
			b.faultOf = nil
			b.deliverPending()
			first += shift
			b.checkExpiries(name, i, first)
			if i%4 == 3 {
				b.advance(time.Second) // the repair of the master
				b.checkExpiries(name+", mended", i, first)
			}
		}
	}
}

// TestEarlyEndInKeygroup changes a keygroup in a cell that ends earlier on master 1 than on master 0,
// by less than a slow prepare can tell. A master that missed the value before, or promises late, keeps
// its end, so that ends do not drift; the outcome says by how much a key may end early there. It keeps
// no end if the change moves the ends.
func TestEarlyEndInKeygroup(t *testing.T) {
	const slow, difference = 100 * time.Millisecond, 50 * time.Millisecond
	for name, test := range map[string]struct {
		isLate bool
		shift  time.Duration
	}{
		"missed the value": {false, 0}, "promises late": {true, 0},
		"missed the value, with a shift": {false, slow * 2 / 5}, "promises late, with a shift": {true, slow * 2 / 5},
	} {
		isLate, keepsEnd := test.isLate, test.shift == 0
		b := newFakeMasters(t, 3)
		b.mustLock(b.proxy(), "me")
		earlier := b.stores[1].Get("k")
		b.stores[1].Put("k", earlier.Cell, earlier.TimeLeft-difference)
		change := func(shift time.Duration) Outcome {
			out, err := b.proxy().Update(t.Context(), Change{Key: "k", Run: func(l Snapshot) (Decision, error) {
				return Decision{Action: Put, Value: l.Value + "+", KeepTTL: true, Shift: shift, Shared: true}, nil
			}})
			b.noError(err)
			return out
		}
		if isLate {
			b.setFaultOn("prepare", replyLate, 1)
		} else {
			b.setFaultOn("accept", requestLost, 1)
			change(0)
			b.setFault(requestLost, 2)
		}
		b.roundTime = slow
		ends := [2]time.Time{b.now.Add(b.stores[0].Get("k").TimeLeft), b.now.Add(b.stores[1].Get("k").TimeLeft)}
		out := change(test.shift)
		b.faultOf = nil
		b.deliverPending()
		got := [2]time.Time{b.now.Add(b.stores[0].Get("k").TimeLeft), b.now.Add(b.stores[1].Get("k").TimeLeft)}
		switch {
		case got[0] != ends[0].Add(test.shift):
			t.Errorf("%s: the end on master 0 moves by %v", name, got[0].Sub(ends[0]))
		case !keepsEnd && got[1].Before(got[0]):
			t.Errorf("%s: master 1 ends %v before master 0", name, got[0].Sub(got[1]))
		case keepsEnd && got[1] != ends[1]:
			t.Errorf("%s: the end on master 1 moves by %v", name, got[1].Sub(ends[1]))
		case keepsEnd && out.Early < difference:
			t.Errorf("%s: the outcome says %v", name, out.Early)
		}
	}
}

// TestExpiryNotBeforeFirst checks that the cell of a repaired or late master does not expire
// before the first of the other cells.
func TestExpiryNotBeforeFirst(t *testing.T) {
	for _, kind := range []string{"accept", "prepare"} {
		b := newFakeMasters(t, 3)
		b.mustLock(b.proxy(), "me")
		b.roundTime = 5 * time.Millisecond
		left := b.stores[0].Get("k").TimeLeft
		first := b.stores[0].Now + left + time.Hour
		r := b.proxy()
		r.opts.IsKeygroup = func(string) bool { return true }
		if kind == "accept" {
			b.setFaultOn(kind, requestLost, 0)
		} else {
			b.setFaultOn(kind, replyLate, 0)
			b.stores[0].Put("k", b.stores[0].Get("k").Cell, left-500*time.Millisecond)
		}
		_, err := r.Update(t.Context(), Change{Key: "k", Run: func(Snapshot) (Decision, error) {
			return Decision{Action: Put, Value: "you", KeepTTL: true, Shift: time.Hour, Shared: true}, nil
		}})
		b.noError(err)
		b.faultOf = nil
		b.deliverPending()
		b.advance(time.Second)
		b.wantCells("you* you* you*")
		b.checkExpiries(kind, 0, first)
	}
}

// checkExpiries checks that the newest value expires on no master before first, nor long after
// first.
func (b *fakeMasters) checkExpiries(name string, change int, first time.Duration) {
	b.Helper()
	newest := b.readValue()
	for m, s := range b.stores {
		found := s.Get("k")
		if found.Value.Text != newest {
			continue
		}
		if ends := s.Now + found.TimeLeft; ends < first || ends > first+100*time.Millisecond {
			b.Errorf("%s, change %d: on master %d it ends %v off", name, change, m, ends-first)
		}
	}
}

// TestUpdateWithoutExpiry checks that KeepTTL gives no expiry to an absent key, or to a key without
// expiry.
func TestUpdateWithoutExpiry(t *testing.T) {
	b := newFakeMasters(t, 3)
	keep := Change{Key: "k", Run: func(l Snapshot) (Decision, error) {
		return Decision{Action: Put, Value: "me", KeepTTL: true, TTL: cell.NoExpiry}, nil
	}}
	for range 3 {
		_, err := b.proxy().Update(t.Context(), keep)
		b.noError(err)
		for m, s := range b.stores {
			if left := s.Get("k").TimeLeft; left != cell.NoExpiry {
				t.Errorf("master %d: %v left", m, left)
			}
		}
	}
}

// TestUpdateWithExpectedValue checks that a change that expects a value leaves no trace on another
// value.
func TestUpdateWithExpectedValue(t *testing.T) {
	for _, test := range []struct{ expectedValue, want, wantCells, rounds string }{
		{"me", "granted", "new* new* new*", "prepare accept"},
		{"you", "granted", "me me me", "prepare"},
	} {
		b := newFakeMasters(t, 3)
		b.mustLock(b.proxy(), "me")
		run := func(l Snapshot) (Decision, error) {
			if l.Value != test.expectedValue {
				return Decision{}, nil
			}
			return Decision{Action: Put, Value: "new", TTL: time.Minute}, nil
		}
		_, err := b.proxy().Update(t.Context(), Change{Key: "k", ExpectedValue: &test.expectedValue, Run: run})
		if outcome(err) != test.want {
			t.Error(err)
		}
		b.wantCells(test.wantCells)
		b.wantRounds(test.rounds)
	}
	// A change whose Run changes an unexpected value takes effect nevertheless.
	b := newFakeMasters(t, 3)
	b.mustLock(b.proxy(), "me")
	you, change := "you", putChange("new")
	change.ExpectedValue = &you
	_, err := b.proxy().Update(t.Context(), change)
	b.noError(err)
	b.wantCells("new* new* new*")
}

func TestUpdateCanceled(t *testing.T) {
	cause := errors.New("left")
	b := newFakeMasters(t, 3)
	b.mustLock(b.proxy(), "me")
	ctx, cancel := context.WithCancelCause(t.Context())
	b.faultOf = func(_ int, op cell.Op) fault {
		if kindOf(op) == "accept" {
			cancel(cause)
		}
		return noFault
	}
	if _, err := b.proxy().Update(ctx, putChange("you")); !errors.Is(err, cause) {
		t.Error(err)
	}
	b.wantCells("you* you* you*") // the accept was on its way
}

// TestKeyQueues checks that commands on one key run one after another.
func TestKeyQueues(t *testing.T) {
	l := keyQueues{byKey: map[string]*keyQueue{}}
	release, err := l.acquire(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("gone")
	cancel(cause)
	if _, err := l.acquire(ctx, "k"); !errors.Is(err, cause) {
		t.Error(err)
	}
	acquired := make(chan struct{})
	go func() {
		release, _ := l.acquire(t.Context(), "k")
		release()
		close(acquired)
	}()
	release()
	<-acquired
	if len(l.byKey) > 0 {
		t.Error("the queue is still remembered")
	}
}

func TestNoQuorumTexts(t *testing.T) {
	for want, err := range map[string]*NoQuorum{
		"a majority agreed too late": {AgreementTime: time.Second},
		"the command may or may not have taken effect: other commands changed the key meanwhile": {Unclear: true},
		"too few masters answered": {},
	} {
		if err.Error() != want {
			t.Errorf("%q, want %q", err, want)
		}
	}
}

// TestUpdateDuringExpiryOfRemoval checks that a change waits for the last master with a removal,
// while two masters are away.
func TestUpdateDuringExpiryOfRemoval(t *testing.T) {
	b := newFakeMasters(t, 5)
	b.putAcceptedCellFor(5*time.Millisecond, "", 2, 0)
	b.setFault(requestFailed, 3, 4)
	_, err := b.proxy().Update(t.Context(), putChange("me"))
	b.noError(err)
	b.wantCells("me me me . .")
}

// TestUpdateByStalledProcess lets other proxies overtake a process that gets no processor time. The
// process retries up to its number of tries, and then fails.
func TestUpdateByStalledProcess(t *testing.T) {
	outcomes := map[int]string{0: "granted", 1: "granted", 4: "granted", 5: "contended", 9: "contended"}
	for standstills, want := range outcomes {
		b := newFakeMasters(t, 3)
		b.mustLock(b.proxy(), "me")
		r, rival := b.proxy(), b.proxy()
		r.opts.MinTries = 5
		overtakes := standstills
		b.faultOf = func(master int, op cell.Op) fault {
			if _, accepts := op.(cell.Accept); accepts && overtakes > 0 && master == 0 {
				overtakes--
				fate, pausing := b.faultOf, b.onPause
				b.faultOf, b.onPause = nil, func() {}
				_, err := rival.Update(t.Context(), putChange(fmt.Sprint(overtakes)))
				b.noError(err)
				b.faultOf, b.onPause = fate, pausing
			}
			return noFault
		}
		b.onPause = func() { b.setClock(b.now.Add(2 * r.opts.ContentionTimeout)) }
		_, err := r.Update(t.Context(), appendChange("+"))
		if outcome(err) != want {
			t.Errorf("overtaken %d times: %v, want %s", standstills, err, want)
		}
	}
}
