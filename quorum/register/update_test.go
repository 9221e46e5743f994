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

// value is what the masters agree on.
func (b *bench) value() string {
	b.Helper()
	looks, err := b.proxy().Read(b.Context(), []string{"k"})
	if err != nil {
		return outcome(err)
	}
	return looks[0].Value
}

func TestUpdate(t *testing.T) {
	for _, test := range []struct {
		name    string
		prepare func(*bench)
		want    string
		holds   string
		rounds  string
	}{
		{"of nothing", func(*bench) {}, "granted", "+ + + + +", "prepare take"},
		{"of a lock", func(b *bench) { b.lock(b.proxy(), "me") }, "granted", "me+* me+* me+* me+* me+*", "prepare accept"},
		{"of a leftover", func(b *bench) { b.plain("x", "a", time.Minute, 0, 1) }, "granted", "x* x* + + +", "prepare take"},
		{"two are away", func(b *bench) { b.lock(b.proxy(), "me"); b.at(refused, 3, 4) }, "granted", "me+* me+* me+* me me", "prepare accept"},
		{"three are away", func(b *bench) { b.lock(b.proxy(), "me"); b.at(refused, 2, 3, 4) }, "no quorum", "me* me* me me me", "prepare"},
		{"three do not count", func(b *bench) { b.lock(b.proxy(), "me"); b.at(outside, 2, 3, 4) }, "no quorum", "me* me* me* me* me*", "prepare"},
		{"of what is foreign", func(b *bench) { b.foreign("x", 0, 1, 2) }, "foreign", "[x] [x] [x] . .", "prepare"},
		{"beside what is foreign", func(b *bench) { b.foreign("x", 0, 1) }, "granted", "[x] [x] + + +", "prepare take"},
		{"of a lock that is foreign at two", func(b *bench) { b.plain("me", "a", time.Minute, 0, 1, 2); b.foreign("x", 3, 4) }, "granted", "me+* me+* me+* [x] [x]", "prepare accept"},
		{"of what blocks", func(b *bench) { b.blocking("a", 0, 1, 2) }, "no quorum", "b b b . .", "prepare"},
	} {
		b := newBench(t, 5)
		test.prepare(b)
		_, err := b.proxy().Update(t.Context(), appending("+"))
		if outcome(err) != test.want {
			t.Errorf("%s: %v, want %s", test.name, err, test.want)
		}
		if got := b.holds("k"); got != test.holds {
			t.Errorf("%s: the masters hold %s, want %s", test.name, got, test.holds)
		}
		b.wantRounds(test.rounds)
	}
}

// Whatever becomes of the first accepts, a change is made once.
func TestUpdateIsMadeOnce(t *testing.T) {
	for what, name := range map[fate]string{lost: "lost", unsent: "not sent", slow: "slow", late: "late", refused: "refused"} {
		for from := range 4 {
			b := newBench(t, 3)
			b.lock(b.proxy(), "me")
			accepts := 0
			b.fate = func(m int, op cell.Op) fate {
				if kindOf(op) == "accept" {
					if accepts++; accepts <= 3 && m >= from {
						return what
					}
				}
				return done
			}
			out, err := b.proxy().Update(t.Context(), appending("+"))
			b.deliver()
			b.fate = nil
			if got := b.value(); err != nil || got != "me+" {
				t.Errorf("%s from master %d on: %q, %v", name, from, got, err)
			}
			if err == nil && out.Decision.Do != Put {
				t.Errorf("%s from master %d on: %v", name, from, out.Decision)
			}
		}
	}
}

// What a change gives began with the ballot that brought it, also if a later one found it.
func TestUpdateGrants(t *testing.T) {
	for _, lostFirst := range []bool{false, true} {
		b := newBench(t, 3)
		b.lock(b.proxy(), "me")
		b.takes = 10 * time.Millisecond
		if lostFirst {
			b.of("accept", unsent, 1, 2)
			b.pausing = func() { b.fate = nil }
		}
		begun := b.now
		out, err := b.proxy().Update(t.Context(), put("you"))
		b.sure(err)
		if later := out.Since.Sub(begun); later < 0 || later > b.takes { // not after the first accept
			t.Errorf("it began %v later", later)
		}
		if want := 10*time.Second - b.now.Sub(out.Since) - 102*time.Millisecond; out.Validity != want {
			t.Errorf("valid for %v, want %v", out.Validity, want)
		}
	}
}

// A change that one master accepted is found in, or missing from, those that led to what
// others made of the key since.
func TestUpdateLineage(t *testing.T) {
	for _, test := range []struct {
		name   string
		unseen bool // the others do not see the master that accepted
		others int  // so many changes of theirs
		want   string
		value  string
		runs   int
	}{
		{"others built on it", false, 1, "granted", "me+x", 1},
		{"others built on it, and went on", false, 10, "granted", "me+xxxxxxxxxx", 1},
		{"others did not see it", true, 1, "granted", "mex+", 2},
		{"others did not see it, and went on", true, 10, "granted", "mexxxxxxxxxx+", 2},
		{"however many they are", true, 2 * cell.MaxChanges, "granted", "me" + strings.Repeat("x", 2*cell.MaxChanges) + "+", 2},
		{"however many they are, if they built on it", false, 2 * cell.MaxChanges, "granted", "me+" + strings.Repeat("x", 2*cell.MaxChanges), 1},
	} {
		b := newBench(t, 3)
		b.lock(b.proxy(), "me")
		other := b.proxy()
		b.of("accept", unsent, 1, 2)
		b.pausing = func() { // one master has accepted it
			b.pausing, b.fate = nil, nil
			if test.unseen {
				b.at(refused, 0)
			}
			for range test.others {
				_, err := other.Update(t.Context(), appending("x"))
				b.sure(err)
			}
			b.fate = nil
		}
		runs := 0
		change := appending("+")
		run := change.Run
		change.Run = func(l Look) (Decision, error) {
			runs++
			d, err := run(l)
			d.Note = runs
			return d, err
		}
		out, err := b.proxy().Update(t.Context(), change)
		if outcome(err) != test.want {
			t.Errorf("%s: %v, want %s", test.name, err, test.want)
		}
		if got := b.value(); got != test.value {
			t.Errorf("%s: %s, want %s", test.name, got, test.value)
		}
		if err == nil && (out.Decision.Note != test.runs || runs != test.runs) {
			t.Errorf("%s: run %v of %d, want %d", test.name, out.Decision.Note, runs, test.runs)
		}
	}
}

// Where the key ended meanwhile, what became of a change that one master accepted is not
// known.
func TestUpdateOfWhatEnded(t *testing.T) {
	for _, again := range []bool{false, true} {
		b := newBench(t, 3)
		b.lock(b.proxy(), "me")
		b.of("accept", unsent, 1, 2)
		b.pausing = func() {
			b.pausing, b.fate = nil, nil
			for _, s := range b.stores {
				s.Delete("k")
			}
			if again {
				b.lock(b.proxy(), "me")
			}
		}
		if _, err := b.proxy().Update(t.Context(), appending("+")); outcome(err) != "unclear" {
			t.Errorf("taken again %v: %v", again, err)
		}
	}
}

// What was promised for a lock that is over keeps nobody from changing the next one, also
// where some masters are away.
func TestUpdateAfterAnotherIncarnation(t *testing.T) {
	for _, away := range []fate{done, refused} {
		b := newBench(t, 5)
		b.at(away, 3, 4)
		r := b.proxy()
		b.lock(r, "me")
		if _, err := r.Update(t.Context(), put("you")); err != nil {
			t.Fatal(err)
		}
		for _, s := range b.stores {
			s.Delete("k") // as its lease ends
		}
		b.lock(b.proxy(), "they")
		if _, err := r.Update(t.Context(), appending("+")); err != nil {
			t.Error(err)
		}
		if got := b.value(); got != "they+" {
			t.Errorf("%q, want they+", got)
		}
	}
}

// Others that change the key all the time keep a change from its end for so long; whether
// it was made is told.
func TestUpdateContended(t *testing.T) {
	b := newBench(t, 3)
	b.lock(b.proxy(), "me")
	other := b.proxy()
	b.fate = func(m int, op cell.Op) fate {
		if accept, ok := op.(cell.Accept); ok && accept.Value.Text != "you" {
			b.fate = nil
			_, err := other.Update(t.Context(), put("you"))
			b.sure(err)
			b.fate = func(int, cell.Op) fate { return done }
		}
		return done
	}
	rival := b.fate
	b.pausing = func() { b.fate = rival }
	if _, err := b.proxy().Update(t.Context(), appending("+")); outcome(err) != "contended" {
		t.Error(err)
	}
	if got := b.value(); got != "you" {
		t.Error(got)
	}
}

// The next change of the same proxy needs one round, as long as the masters surely
// remember what they promised, and nobody else has changed the key.
func TestKeptPromise(t *testing.T) {
	for _, test := range []struct {
		name     string
		meantime func(*bench)
		value    string
		rounds   string
	}{
		{"at once", func(*bench) {}, "me++", "accept"},
		{"within the limit", func(b *bench) { b.pass(Limit) }, "me++", "accept"},
		{"after the limit", func(b *bench) { b.pass(Limit + 1) }, "me++", "prepare accept"},
		{"another changed it", func(b *bench) { _, err := b.proxy().Update(b.Context(), appending("x")); b.sure(err) }, "me+x+", "accept prepare accept"},
		{"another looked at it", func(b *bench) { _, err := b.proxy().Update(b.Context(), look(nil)); b.sure(err) }, "me++", "accept prepare accept"},
		{"it ended", func(b *bench) {
			for _, s := range b.stores {
				s.Delete("k")
			}
		}, "+", "accept prepare take"},
		{"a master is away", func(b *bench) { b.at(refused, 0) }, "me++", "accept"},
		{"two masters restarted empty", func(b *bench) { b.stores[0].Delete("k"); b.stores[1].Delete("k") }, "+", "accept prepare take"},
	} {
		b := newBench(t, 3)
		r := b.proxy()
		b.lock(r, "me")
		_, err := r.Update(t.Context(), appending("+"))
		b.sure(err)
		test.meantime(b)
		b.rounds = nil
		_, err = r.Update(t.Context(), appending("+"))
		b.fate = nil
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
		if got := b.value(); got != test.value {
			t.Errorf("%s: %s, want %s", test.name, got, test.value)
		}
	}
}

// A change that needs the remaining time, or comes to nothing, is no matter of a kept
// promise.
func TestPromiseThatDoesNotDo(t *testing.T) {
	b := newBench(t, 3)
	r := b.proxy()
	b.lock(r, "me")
	run := func(f func(Look) (Decision, error)) Outcome {
		t.Helper()
		_, err := r.Update(t.Context(), appending("+"))
		b.sure(err)
		b.rounds = nil
		out, err := r.Update(t.Context(), Change{Key: "k", Run: f})
		b.sure(err)
		return out
	}
	out := run(func(l Look) (Decision, error) {
		if l.Unknown {
			return Decision{}, ErrNeedsLeft
		}
		return Decision{Do: Put, Value: fmt.Sprint(l.Left), TTL: time.Second}, nil
	})
	b.wantRounds("prepare accept")
	if out.Decision.Value != "10s" {
		t.Errorf("%v stands", out.Decision)
	}
	if got := b.value(); got != "10s" {
		t.Error(got)
	}
	run(func(Look) (Decision, error) { return Decision{}, nil })
	b.wantRounds("prepare")
	failed := errors.New("failed")
	if _, err := r.Update(t.Context(), Change{Key: "k", Run: func(Look) (Decision, error) { return Decision{}, failed }}); !errors.Is(err, failed) {
		t.Error(err)
	}
}

// Without the option no promise is kept.
func TestNoPromises(t *testing.T) {
	b := newBench(t, 3)
	r := b.proxy()
	r.opts.Keep = false
	b.lock(r, "me")
	for range 2 {
		_, err := r.Update(t.Context(), appending("+"))
		b.sure(err)
		b.wantRounds("prepare accept")
	}
}

// Promises that are no good any more are forgotten.
func TestPromisesAreSwept(t *testing.T) {
	b := newBench(t, 1)
	r := b.proxy()
	for i := range 5000 {
		change := put("x")
		change.Key = fmt.Sprint(i)
		_, err := r.Lock(t.Context(), []string{change.Key}, Terms{Tokens: []string{"me"}, TTL: time.Second})
		b.sure(err)
		_, err = r.Update(t.Context(), change)
		b.sure(err)
		b.pass(time.Millisecond)
	}
	if n := len(r.promises.byKey); n > 2400 {
		t.Errorf("%d are kept", n)
	}
}

// An accept that arrives when the round is over does nothing: the master may have
// forgotten meanwhile what it promised.
func TestAcceptHasADeadline(t *testing.T) {
	b := newBench(t, 3)
	b.lock(b.proxy(), "me")
	r := b.proxy()
	b.of("accept", slow, 0)
	_, err := r.Update(t.Context(), put("you"))
	b.sure(err)
	b.fate = nil
	b.wantHolds("me* you* you*")
	b.clock(b.now.Add(Limit + time.Millisecond))
	b.deliver()
	b.wantHolds("me* you* you*")
}

// What was promised when the limit was over is asked of nobody: a deadline of the promise's own
// millisecond would not be over there.
func TestNoAcceptAfterTheLimit(t *testing.T) {
	b := newBench(t, 3)
	b.lock(b.proxy(), "me")
	b.of("prepare", slow, 0)
	_, err := b.proxy().Update(t.Context(), put("you"))
	b.sure(err)
	b.fate = nil
	b.clock(b.now.Add(Limit))
	b.deliver()
	b.wantHolds("me* you* you*")

	b.rounds, b.takes = nil, Limit
	var none *NoQuorum
	if _, err := b.proxy().Update(t.Context(), put("them")); !errors.As(err, &none) || none.Late < Limit || none.Overtaken {
		t.Errorf("of which each round takes too long: %v", err)
	}
	b.wantHolds("me* you* you*")
	b.wantRounds("prepare prepare")
}

// A master whose promise is late accepts all the same.
func TestLatePromise(t *testing.T) {
	b := newBench(t, 3)
	b.lock(b.proxy(), "me")
	b.of("prepare", late, 0)
	_, err := b.proxy().Update(t.Context(), put("you"))
	b.sure(err)
	b.wantHolds("me* you* you*")
	b.fate = nil
	b.deliver()
	b.wantHolds("you* you* you*")
}

// Holders that differ agree a moment after the last command.
func TestMend(t *testing.T) {
	for name, during := range map[string]func(*bench){
		"an accept was lost":      func(b *bench) { b.of("accept", unsent, 0) },
		"a promise was lost":      func(b *bench) { b.of("prepare", unsent, 0) },
		"a master was away":       func(b *bench) { b.at(refused, 0) },
		"an accept did not count": func(b *bench) { b.of("accept", outside, 0) },
	} {
		b := newBench(t, 3)
		b.lock(b.proxy(), "me")
		during(b)
		_, err := b.proxy().Update(t.Context(), put("you"))
		b.sure(err)
		b.fate = nil
		b.pass(2 * time.Second)
		if got := b.holds("k"); got != "you* you* you*" {
			t.Errorf("%s: %s", name, got)
		}
		if len(b.timers) > 0 {
			t.Errorf("%s: it never comes to rest", name)
		}
	}
}

// What is nobody's is swept. A take that was on its way may give it a majority in the meantime, and
// what a ballot has chosen there since stays.
func TestSweepLeavesWhatWasChosen(t *testing.T) {
	for name, before := range map[string]func(*bench){
		"a plain leftover":         func(b *bench) { b.plain("x", "a", time.Minute, 0, 1) },
		"one with an older ballot": func(b *bench) { b.accepted("x", 1, 0, 1) },
	} {
		b, late := newBench(t, 5), []int{2}
		before(b)
		b.proxy().mendLater("k")
		b.of("remove", slow, 0, 1)
		b.pass(time.Second)
		if len(b.pending) != 2 {
			t.Fatalf("%s: %d removals, want 2", name, len(b.pending))
		}
		b.plain("x", "a", time.Minute, late...)
		_, err := b.proxy().Update(t.Context(), put("you"))
		b.sure(err)
		b.deliver()
		if got := b.value(); got != "you" {
			t.Errorf("%s: %q is there, and %s", name, got, b.holds("k"))
		}
	}
}

// A leftover that changed between two looks is looked at anew.
func TestSweepOnlyWhatStayed(t *testing.T) {
	b := newBench(t, 5)
	b.plain("x", "a", time.Minute, 0, 1)
	b.proxy().mendLater("k")
	b.pass(500 * time.Millisecond)
	b.accepted("y", 1, 0, 1)
	b.pass(time.Second)
	b.wantHolds("y* y* . . .")
}

// Who reads what differs has it mended.
func TestMendWhatWasRead(t *testing.T) {
	b := newBench(t, 5)
	b.lock(b.proxy(), "me")
	b.of("accept", unsent, 3, 4)
	_, err := b.proxy().Update(t.Context(), put("you"))
	b.sure(err)
	b.fate, b.timers = nil, nil // that proxy dies
	if got := b.value(); got != "you" {
		t.Error(got)
	}
	b.pass(2 * time.Second)
	b.wantHolds("you* you* you* you* you*")
}

// A removal by ballot leaves something for a moment, which keeps nobody from the key.
func TestLockAfterARemoval(t *testing.T) {
	for _, through := range []string{"the same", "another"} {
		b := newBench(t, 3)
		b.lock(b.proxy(), "me")
		r := b.proxy()
		b.sure(r.Unlock(t.Context(), "k", "me", nil))
		b.wantHolds("-* -* -*")
		if through == "another" {
			r = b.proxy()
		}
		b.takes = time.Millisecond
		begun := b.now
		got, err := r.Lock(t.Context(), []string{"k"}, taking("you"))
		b.sure(err)
		if waited := b.now.Sub(begun); waited > 100*time.Millisecond {
			t.Errorf("through %s proxy: it took %v", through, waited)
		}
		if got.Validity < 9*time.Second || got.Since.Before(begun) {
			t.Errorf("through %s proxy: %+v", through, got)
		}
		if _, err := b.proxy().Lock(t.Context(), []string{"k"}, taking("they")); outcome(err) != "held" {
			t.Error(err)
		}
		b.sure(r.Unlock(t.Context(), "k", "you", nil))
		if got := b.value(); got != "" {
			t.Errorf("released, and it is %q", got)
		}
	}
}

// Whatever version a key may have after *NoQuorum is owed its removal, unless it is to stay.
func TestOwedVersions(t *testing.T) {
	removed := func(b *bench) {
		b.lock(b.proxy(), "me")
		b.sure(b.proxy().Unlock(b.Context(), "k", "me", nil))
	}
	answers := func(kind string) func(*bench) {
		return func(b *bench) {
			b.fate = func(m int, op cell.Op) fate {
				switch {
				case kindOf(op) != kind:
					return done
				case m == 0:
					return lost
				default:
					return unsent
				}
			}
		}
	}
	for _, c := range []struct {
		name   string
		stays  bool
		before func(*bench)
		then   func(*bench)
		want   string
	}{
		{"a take", false, func(*bench) {}, answers("take"), ". . ."},
		{"a take that stays", true, func(*bench) {}, answers("take"), "t . ."},
		{"after a removal", false, removed, answers("accept"), "t* -* -*"},
		{"after a removal, one after another", false, removed, func(b *bench) {
			ballots := map[cell.Ballot]int{}
			b.fate = func(m int, op cell.Op) fate {
				switch op := op.(type) {
				case cell.Accept:
					if _, known := ballots[op.Ballot]; !known {
						ballots[op.Ballot] = len(ballots)
					}
					if m != ballots[op.Ballot] {
						return unsent
					}
					return lost
				case cell.Prepare:
					if m < len(ballots) || len(ballots) > 1 {
						return unsent
					}
				}
				return done
			}
		}, "t* t* -*"},
		{"after a removal, too late", false, removed, func(b *bench) {
			b.fate = func(_ int, op cell.Op) fate {
				if a, ok := op.(cell.Accept); ok && a.Value.Present {
					b.clock(b.now.Add(time.Second / 4))
				}
				return done
			}
		}, "t* t* -*"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, 3)
			c.before(b)
			r := b.proxy()
			c.then(b)
			owed := map[string]bool{}
			_, err := r.Lock(t.Context(), []string{"k"}, Terms{Tokens: []string{"t"}, TTL: time.Minute, Stays: c.stays, Owed: func(v string, _ func() bool) { owed[v] = true }})
			if !errors.As(err, new(*NoQuorum)) {
				t.Fatal(err)
			}
			b.wantHolds(c.want)
			for i, s := range b.stores {
				if f := s.Look("k"); f.Value.Present && owed[version(f.Incarnation(), f.Value)] == c.stays {
					t.Errorf("master %d holds something of which it was told that it is owed its removal: %v", i, !c.stays)
				}
			}
		})
	}
}

// A lock after a removal reaches one master, is seen and removed through another proxy, and a rival
// is granted the lock. Then it is too late for the first, whose proxy takes it back: the rival's
// stays.
func TestLateLockAfterARemoval(t *testing.T) {
	b := newBench(t, 3)
	b.lock(b.proxy(), "me")
	slow, other := b.proxy(), b.proxy()
	b.sure(other.Unlock(t.Context(), "k", "me", nil))
	b.of("accept", unsent, 1, 2)
	b.pausing = func() {
		if b.holds("k") != "late* -* -*" {
			return
		}
		b.fate, b.pausing = nil, nil
		b.sure(other.Unlock(t.Context(), "k", "late", nil))
		b.lock(other, "rival")
		b.clock(b.now.Add(2 * Limit))
	}
	if _, err := slow.Lock(t.Context(), []string{"k"}, b.owing(slow, taking("late"))); !errors.As(err, new(*NoQuorum)) {
		t.Errorf("the late lock: %v", err)
	}
	b.pass(time.Second)
	b.wantHolds("rival* rival* rival*")
	b.sure(other.Unlock(t.Context(), "k", "rival", nil))
}

// Several keys are taken when what a removal left of one of them is over.
func TestLockSeveralAfterARemoval(t *testing.T) {
	b := newBench(t, 3)
	r := b.proxy()
	r.opts.Patience = 2 * removedFor
	b.lock(r, "me")
	b.sure(b.proxy().Unlock(t.Context(), "k", "me", nil))
	begun := b.now
	_, err := r.Lock(t.Context(), []string{"k2", "k"}, Terms{Tokens: []string{"a", "b"}, TTL: time.Minute})
	b.sure(err)
	if waited := b.now.Sub(begun); waited > removedFor+100*time.Millisecond {
		t.Errorf("it took %v", waited)
	}
	b.wantHolds("b b b")
}

// What was granted by a ballot is withdrawn as such, and nothing but it.
func TestWithdrawAfterARemoval(t *testing.T) {
	for _, again := range []bool{false, true} {
		b := newBench(t, 3)
		b.lock(b.proxy(), "1")
		r := b.proxy()
		b.sure(r.Unlock(t.Context(), "k", "1", nil))
		got, err := r.Lock(t.Context(), []string{"k"}, taking("1"))
		b.sure(err)
		want := ""
		if again { // it was released, and another has it now
			b.sure(b.proxy().Unlock(t.Context(), "k", "1", nil))
			_, err := b.proxy().Lock(t.Context(), []string{"k"}, taking("1"))
			b.sure(err)
			want = "1"
		}
		b.takeBack(r, "1", got.Version)
		if got := b.value(); got != want {
			t.Errorf("taken by another %v: %q, want %q", again, got, want)
		}
	}
}

// A proxy that replaces what it has just put there itself does not know its end: each master keeps
// the one that it has.
func TestUpdateOnAPromiseKeepsTheTime(t *testing.T) {
	b := newBench(t, 3)
	b.lock(b.proxy(), "me")
	r := b.proxy()
	_, err := r.Update(t.Context(), put("you"))
	b.sure(err)
	left := b.stores[0].Look("k").Left
	b.rounds = nil
	_, err = r.Update(t.Context(), Change{Key: "k", Run: func(Look) (Decision, error) { return Decision{Do: Put, Value: "they", KeepTTL: true}, nil }})
	b.sure(err)
	b.wantRounds("accept")
	for m, s := range b.stores {
		if f := s.Look("k"); f.Value.Text != "they" || f.Left != left {
			t.Errorf("master %d holds %q for %v, want %v", m, f.Value.Text, f.Left, left)
		}
	}
}

// The remaining time is kept, and is longer nowhere.
func TestUpdateKeepsTheTime(t *testing.T) {
	b := newBench(t, 3)
	b.lock(b.proxy(), "me")
	b.takes = 5 * time.Millisecond
	keep := Change{Key: "k", Run: func(l Look) (Decision, error) {
		return Decision{Do: Put, Value: l.Value + "+", KeepTTL: true}, nil
	}}
	ends := b.stores[0].Now + b.stores[0].Look("k").Left
	for i := range 5 {
		if i == 2 {
			b.of("accept", unsent, 0) // the next one does not find it there
		}
		_, err := b.proxy().Update(t.Context(), keep)
		b.sure(err)
		b.fate = nil
		for m, s := range b.stores {
			if now := s.Now + s.Look("k").Left; now > ends {
				t.Errorf("change %d: master %d keeps it for %v longer", i, m, now-ends)
			}
		}
	}
	if got := b.value(); got != "me+++++" {
		t.Error(got)
	}
	b.pass(10 * time.Second)
	b.wantHolds(". . .")
}

// Where the ends of several keys hang on that of the cell, it is shifted by the same time on each
// master, and no master has an end before that of the first: neither one that missed a change, nor
// one that answers late, nor one that is mended.
func TestUpdateShiftsTheTime(t *testing.T) {
	for name, happens := range map[string]func(b *bench, i int){
		"nothing":            func(*bench, int) {},
		"misses the change":  func(b *bench, i int) { b.of("accept", unsent, i%3) },
		"answers late":       func(b *bench, i int) { b.of("prepare", late, i%3) },
		"answers late again": func(b *bench, _ int) { b.of("prepare", late, 1) },
	} {
		b := newBench(t, 3)
		b.lock(b.proxy(), "me")
		b.takes = 5 * time.Millisecond
		first := b.stores[0].Now + b.stores[0].Look("k").Left
		for i := range 12 {
			r := b.proxy()
			r.opts.Shared = func(string) bool { return true }
			shift := []time.Duration{time.Hour, 0, -50 * time.Minute}[i%3]
			happens(b, i)
			_, err := r.Update(t.Context(), Change{Key: "k", Run: func(l Look) (Decision, error) {
				return Decision{Do: Put, Value: l.Value + "+", KeepTTL: true, Shift: shift, Shared: true}, nil
			}})
			b.sure(err)
			b.fate = nil
			b.deliver()
			first += shift
			b.checkEnds(name, i, first)
			if i%4 == 3 {
				b.pass(time.Second) // it is mended
				b.checkEnds(name+", mended", i, first)
			}
		}
	}
}

// TestUpdateNotBeforeTheFirst: a master that is mended, and one with an earlier end of its own that
// answers late, end with the others.
func TestUpdateNotBeforeTheFirst(t *testing.T) {
	for _, kind := range []string{"accept", "prepare"} {
		b := newBench(t, 3)
		b.lock(b.proxy(), "me")
		b.takes = 5 * time.Millisecond
		left := b.stores[0].Look("k").Left
		first := b.stores[0].Now + left + time.Hour
		r := b.proxy()
		r.opts.Shared = func(string) bool { return true }
		if kind == "accept" {
			b.of(kind, unsent, 0)
		} else {
			b.of(kind, late, 0)
			b.stores[0].Put("k", b.stores[0].Look("k").Cell, left-500*time.Millisecond)
		}
		_, err := r.Update(t.Context(), Change{Key: "k", Run: func(Look) (Decision, error) {
			return Decision{Do: Put, Value: "you", KeepTTL: true, Shift: time.Hour, Shared: true}, nil
		}})
		b.sure(err)
		b.fate = nil
		b.deliver()
		b.pass(time.Second)
		b.wantHolds("you* you* you*")
		b.checkEnds(kind, 0, first)
	}
}

// checkEnds wants the newest value to end on no master before a moment, nor long after it.
func (b *bench) checkEnds(name string, change int, first time.Duration) {
	b.Helper()
	newest := b.value()
	for m, s := range b.stores {
		found := s.Look("k")
		if found.Value.Text != newest {
			continue
		}
		if ends := s.Now + found.Left; ends < first || ends > first+100*time.Millisecond {
			b.Errorf("%s, change %d: on master %d it ends %v off", name, change, m, ends-first)
		}
	}
}

// A value without end stays so; where nothing was, there is no time to keep.
func TestUpdateKeepsNoEnd(t *testing.T) {
	b := newBench(t, 3)
	keep := Change{Key: "k", Run: func(l Look) (Decision, error) {
		return Decision{Do: Put, Value: "me", KeepTTL: true, TTL: cell.Endless}, nil
	}}
	for range 3 {
		_, err := b.proxy().Update(t.Context(), keep)
		b.sure(err)
		for m, s := range b.stores {
			if left := s.Look("k").Left; left != cell.Endless {
				t.Errorf("master %d: %v left", m, left)
			}
		}
	}
}

// Who expects a value leaves no trace where another stands.
func TestUpdateExpects(t *testing.T) {
	for _, test := range []struct{ expect, want, holds, rounds string }{
		{"me", "granted", "new* new* new*", "prepare accept"},
		{"you", "granted", "me me me", "prepare"},
	} {
		b := newBench(t, 3)
		b.lock(b.proxy(), "me")
		_, err := b.proxy().Update(t.Context(), Change{Key: "k", Expect: &test.expect, Run: func(l Look) (Decision, error) {
			if l.Value != test.expect {
				return Decision{}, nil
			}
			return Decision{Do: Put, Value: "new", TTL: time.Minute}, nil
		}})
		if outcome(err) != test.want {
			t.Error(err)
		}
		b.wantHolds(test.holds)
		b.wantRounds(test.rounds)
	}
	// Who changes another all the same was wrong to expect it.
	b := newBench(t, 3)
	b.lock(b.proxy(), "me")
	you, change := "you", put("new")
	change.Expect = &you
	_, err := b.proxy().Update(t.Context(), change)
	b.sure(err)
	b.wantHolds("new* new* new*")
}

func TestUpdateWhoLeaves(t *testing.T) {
	left := errors.New("left")
	b := newBench(t, 3)
	b.lock(b.proxy(), "me")
	ctx, leave := context.WithCancelCause(t.Context())
	b.fate = func(_ int, op cell.Op) fate {
		if kindOf(op) == "accept" {
			leave(left)
		}
		return done
	}
	if _, err := b.proxy().Update(ctx, put("you")); !errors.Is(err, left) {
		t.Error(err)
	}
	b.wantHolds("you* you* you*") // it was on its way
}

// Commands that change one key queue.
func TestLines(t *testing.T) {
	l := keyQueues{byKey: map[string]*keyQueue{}}
	leave, err := l.enter(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("gone")
	cancel(gone)
	if _, err := l.enter(ctx, "k"); !errors.Is(err, gone) {
		t.Error(err)
	}
	next := make(chan struct{})
	go func() {
		leave, _ := l.enter(t.Context(), "k")
		leave()
		close(next)
	}()
	leave()
	<-next
	if len(l.byKey) > 0 {
		t.Error("the queue is still remembered")
	}
}

func TestNoQuorumTexts(t *testing.T) {
	for want, err := range map[string]*NoQuorum{
		"a majority agreed too late":                         {Late: time.Second},
		"what became of the command cannot be seen any more": {Unclear: true},
		"too few masters answered":                           {},
	} {
		if err.Error() != want {
			t.Errorf("%q, want %q", err, want)
		}
	}
}

// What ends at one master later than at others, while two are away, is waited for.
func TestUpdateWhereARemovalEnds(t *testing.T) {
	b := newBench(t, 5)
	b.acceptedFor(5*time.Millisecond, "", 2, 0)
	b.at(refused, 3, 4)
	_, err := b.proxy().Update(t.Context(), put("me"))
	b.sure(err)
	b.wantHolds("me me me . .")
}

// A process that gets no processor while it is overtaken goes on when it does, up to so many tries;
// without end it says so.
func TestUpdateAfterAStandstill(t *testing.T) {
	for standstills, want := range map[int]string{0: "granted", 1: "granted", 4: "granted", 5: "contended", 9: "contended"} {
		b := newBench(t, 3)
		b.lock(b.proxy(), "me")
		r, rival := b.proxy(), b.proxy()
		r.opts.Tries = 5
		overtakes := standstills
		b.fate = func(master int, op cell.Op) fate {
			if _, accepts := op.(cell.Accept); accepts && overtakes > 0 && master == 0 {
				overtakes--
				fate, pausing := b.fate, b.pausing
				b.fate, b.pausing = nil, func() {}
				_, err := rival.Update(t.Context(), put(fmt.Sprint(overtakes)))
				b.sure(err)
				b.fate, b.pausing = fate, pausing
			}
			return done
		}
		b.pausing = func() { b.clock(b.now.Add(2 * r.opts.Patience)) }
		_, err := r.Update(t.Context(), appending("+"))
		if outcome(err) != want {
			t.Errorf("overtaken %d times: %v, want %s", standstills, err, want)
		}
	}
}
