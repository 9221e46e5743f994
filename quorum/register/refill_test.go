package register

import (
	"errors"
	"testing"
	"time"

	"redlock-proxy/quorum/cell"
)

// lacking is a key that three of five masters hold, with a lease of a minute, of which the proxy
// that took it is gone.
func lacking(t *testing.T) *bench {
	b := newBench(t, 5)
	b.plain("me", "a", time.Minute, 0, 1, 2)
	return b
}

// A key that a majority holds is restored where it is missing by any proxy that sees it, and by
// none that is late: what was released, removed, or taken by another in the meantime does not come
// back.
func TestRefill(t *testing.T) {
	for _, test := range []struct {
		name  string
		then  func(b *bench) // after the places are marked
		holds string
	}{
		{"nothing happens", func(*bench) {}, "me* me* me* me* me*"},
		{"released by another", func(b *bench) { b.sure(b.proxy().Unlock(b.Context(), "k", "me", nil)) }, ". . . . ."},
		{"replaced", func(b *bench) { _, err := b.proxy().Update(b.Context(), put("you")); b.sure(err) }, "you* you* you* you* you*"},
		{"some cells are deleted", func(b *bench) { b.stores[0].Delete("k"); b.stores[1].Delete("k") }, ". . . . ."},
		{"one has the mark no more", func(b *bench) { b.stores[3].Delete("k") }, "me* me* me* me* me*"},
		{"another mark holds one place", func(b *bench) { mark(b, "z", 3) }, "me* me* me* me* me*"},
		{"another holds one place", func(b *bench) { b.stores[3].Delete("k"); b.plain("x", "b", time.Minute, 3) }, "me* me* me* me* me*"},
	} {
		b := lacking(t)
		b.value()
		b.pass(2 * mendPause)
		b.wantHolds("me me me m m")
		test.then(b)
		b.pass(8 * time.Second)
		if got := b.holds("k"); got != test.holds {
			t.Errorf("%s: %s, want %s", test.name, got, test.holds)
		}
		if len(b.timers) > 0 {
			t.Errorf("%s: it never comes to rest", test.name)
		}
	}
}

// For a lock that passes from hand to hand no place is marked: it would be missing to those who
// have it next.
func TestNoRefillOfWhatPasses(t *testing.T) {
	b := lacking(t)
	b.value()
	for i := range 100 {
		attempt := string(rune('b' + i%20))
		for m := range 3 {
			b.stores[m].Delete("k")
		}
		b.plain("me", attempt, time.Minute, 0, 1, 2)
		b.pass(mendPause / 2)
		b.wantHolds("me me me . .")
	}
	b.pass(8 * time.Second)
	b.wantHolds("me* me* me* me* me*")
}

// mark puts one of another proxy.
func mark(b *bench, attempt string, masters ...int) {
	for _, m := range masters {
		c := cell.Cell{Form: cell.Mark, Attempt: attemptOf(attempt), Promised: cell.Ballot(attemptOf("y"))}
		b.stores[m].Put("k", c, time.Second)
	}
}

// What is restored ends no later than where it ends first, and nobody is held up by a mark once the
// lock is over.
func TestRefillEnds(t *testing.T) {
	b := lacking(t)
	b.plain("me", "a", 50*time.Second, 0)
	b.value()
	b.pass(5 * time.Second)
	b.wantHolds("me* me* me* me* me*")
	for _, m := range []int{3, 4} {
		if left, first := b.stores[m].Look("k").Left, b.stores[0].Look("k").Left; left > first || left < first-time.Second {
			t.Errorf("it ends in %v, and in %v where it ends first", left, first)
		}
	}
	b = newBench(t, 5)
	b.plain("me", "a", 800*time.Millisecond, 0, 1, 2)
	b.value()
	b.pass(900 * time.Millisecond)
	b.wantHolds(". . . . .")
}

// A fill that comes late, when the key was removed, or its place was taken, does nothing.
func TestFillThatIsLate(t *testing.T) {
	for name, then := range map[string]func(*bench){
		"removed": func(b *bench) { b.sure(b.proxy().Unlock(b.Context(), "k", "me", nil)) },
		"removed long ago": func(b *bench) {
			b.sure(b.proxy().Unlock(b.Context(), "k", "me", nil))
			b.clock(b.now.Add(2 * removedFor))
		},
		"taken by a rival":  func(b *bench) { b.sure(b.proxy().Unlock(b.Context(), "k", "me", nil)); b.lock(b.proxy(), "rival") },
		"the fill's is old": func(b *bench) { b.clock(b.now.Add(removedFor)) },
	} {
		b := lacking(t)
		b.value()
		b.pass(2 * mendPause)
		b.fate = func(m int, op cell.Op) fate {
			if a, is := op.(cell.Accept); is && a.Mark != "" {
				return slow
			}
			return done
		}
		b.pass(sweepPause)
		if len(b.pending) != 2 {
			t.Fatalf("%s: %d fills are on their way", name, len(b.pending))
		}
		b.fate = nil
		then(b)
		want := b.value()
		b.deliver()
		if got := b.value(); got != want {
			t.Errorf("%s: %q is back, and %s", name, got, b.holds("k"))
		}
		b.pass(time.Minute)
		b.wantHolds(". . . . .")
	}
}

// A lock that masters missed which were away is given to them once all are well, by whichever proxy
// compares, if it still holds.
func TestMissed(t *testing.T) {
	for _, test := range []struct {
		name  string
		then  func(*bench, *Register)
		holds string
	}{
		{"it holds", func(*bench, *Register) {}, "me* me* me* me* me*"},
		{"another proxy compares", func(b *bench, _ *Register) { b.timers = nil; b.proxy() }, "me* me* me* me* me*"},
		{"replaced meanwhile", func(b *bench, _ *Register) { _, err := b.proxy().Update(b.Context(), put("you")); b.sure(err) }, "you* you* you* you* you*"},
		{"released meanwhile", func(b *bench, r *Register) { b.sure(r.Unlock(b.Context(), "k", "me", nil)) }, ". . . . ."},
		{"taken away meanwhile", func(b *bench, _ *Register) { b.sure(b.proxy().Unlock(b.Context(), "k", "me", nil)) }, ". . . . ."},
	} {
		b := newBench(t, 5)
		r := b.proxy()
		b.at(refused, 3, 4)
		_, err := r.Lock(t.Context(), []string{"k"}, Terms{Tokens: []string{"me"}, TTL: cell.Endless})
		b.sure(err)
		test.then(b, r)
		b.rounds = nil
		b.pass(2 * time.Second)
		b.wantRounds("") // masters that are away are not asked again and again
		b.fate = nil
		b.pay()
		b.pass(10 * time.Second)
		if got := b.holds("k"); got != test.holds && !(test.holds == "you* you* you* you* you*" && got == ". . . . .") {
			t.Errorf("%s: the masters hold %s, want %s", test.name, got, test.holds)
		}
		if len(b.timers) > 0 {
			t.Errorf("%s: it never comes to rest", test.name)
		}
	}
}

// A master that refused a lock for a leftover of another holds it once that was removed.
func TestRefillAfterALeftover(t *testing.T) {
	b := newBench(t, 3)
	b.plain("x", "a", time.Minute, 0)
	b.lock(b.proxy(), "me")
	b.pass(3 * time.Second)
	b.wantHolds("me* me* me*")
}

// A master that missed an extension is given the time that the others have.
func TestMissedExtension(t *testing.T) {
	b := newBench(t, 3)
	r := b.proxy()
	b.lock(r, "me")
	b.of("extend", unsent, 0)
	_, err := r.Extend(t.Context(), "k", "me", time.Minute)
	b.sure(err)
	b.fate = nil
	b.pass(30 * time.Second)
	b.wantHolds("me me me")
	if first, other := b.stores[0].Look("k").Left, b.stores[1].Look("k").Left; first < other-time.Second || first > other {
		t.Errorf("it ends in %v there, and in %v elsewhere", first, other)
	}
}

// An operator ends whatever a key holds, also where nobody can say who holds it.
func TestForce(t *testing.T) {
	for _, test := range []struct {
		name    string
		set     func(b *bench)
		removed bool
	}{
		{"nothing", func(*bench) {}, false},
		{"held", func(b *bench) { b.plain("me", "a", time.Minute, 0, 1, 2) }, true},
		{"open", func(b *bench) { b.plain("me", "a", time.Minute, 0, 1); b.blocking("a", 2) }, true},
		{"promised, and removed", func(b *bench) { b.accepted("", 3, 0, 1, 2) }, true},
		{"open between two", func(b *bench) { b.accepted("you", 3, 0, 1); b.plain("me", "b", time.Minute, 3, 4); b.blocking("b", 2) }, true},
	} {
		b := newBench(t, 5)
		test.set(b)
		removed, err := b.proxy().Force(t.Context(), "k")
		if err != nil || removed != test.removed {
			t.Errorf("%s: %v, %v", test.name, removed, err)
		}
		if got := b.holds("k"); got != ". . . . ." {
			t.Errorf("%s: %s", test.name, got)
		}
		b.lock(b.proxy(), "next")
	}
	b := newBench(t, 3)
	b.accepted("you", 3, 0, 1, 2)
	b.fate = func(_ int, op cell.Op) fate {
		if _, removes := op.(cell.Remove); removes {
			return slow
		}
		return done
	}
	_, _ = b.proxy().Force(t.Context(), "k")
	b.accepted("next", 4, 0, 1, 2)
	b.deliver()
	b.wantHolds("next* next* next*") // what a ballot put there before a late removal arrives

	b = newBench(t, 3)
	b.foreign("x", 0, 1)
	if _, err := b.proxy().Force(t.Context(), "k"); !errors.Is(err, ErrForeign) {
		t.Error(err)
	}
}
