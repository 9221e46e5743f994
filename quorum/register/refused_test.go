package register

import (
	"errors"
	"testing"
	"time"

	"redlock-proxy/quorum/cell"
)

// What a refusal says of the key is what a Read would have told then; only the remaining time may
// be missing.
func TestRefusalTellsWhatIsThere(t *testing.T) {
	const other, ours = "you", "me"
	lock := func(b *bench, r *Register) error {
		_, err := r.Lock(b.Context(), []string{"k"}, taking(ours))
		return err
	}
	unlock := func(b *bench, r *Register) error { return r.Unlock(b.Context(), "k", ours, nil) }
	extend := func(b *bench, r *Register) error { _, err := r.Extend(b.Context(), "k", ours, time.Hour); return err }
	held := func(b *bench, _ *Register) { b.lock(b.proxy(), other) }
	replace := func(b *bench) { _, err := b.proxy().Update(b.Context(), put("x")); b.sure(err) }
	replaced := func(b *bench, r *Register) { held(b, r); replace(b) }
	for _, test := range []struct {
		name    string
		there   func(*bench, *Register)
		refused func(*bench, *Register) error
		left    bool // the remaining time is told
	}{
		{"taking what is held", held, lock, false},
		{"taking what was replaced", replaced, lock, false},
		{"taking what a client of the masters holds", func(b *bench, _ *Register) { b.foreign(other, 0, 1, 2) }, lock, false},
		{"releasing what is free", func(*bench, *Register) {}, unlock, true},
		{"releasing what is held", held, unlock, true},
		{"releasing what was replaced", replaced, unlock, true},
		{"releasing what is over", func(b *bench, r *Register) { b.lock(r, ours); b.pass(time.Hour) }, unlock, true},
		{"releasing what was replaced since", func(b *bench, r *Register) { b.lock(r, ours); replace(b) }, unlock, true},
		{"extending what is free", func(*bench, *Register) {}, extend, true},
		{"extending what is held", held, extend, true},
		{"extending what was replaced", replaced, extend, true},
		{"extending what a client of the masters holds", func(b *bench, _ *Register) { b.foreign(other, 0, 1, 2) }, extend, true},
		{"extending what is over, and held by another", func(b *bench, r *Register) { b.lock(r, ours); b.pass(time.Hour); held(b, r) }, extend, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newBench(t, 3)
			r := b.proxy()
			test.there(b, r)
			var told *InsteadError
			if err := test.refused(b, r); !errors.As(err, &told) || !errors.Is(err, ErrHeld) && !errors.Is(err, ErrNotHeld) {
				t.Fatalf("got %v, which does not tell what is there", err)
			}
			looks, err := r.Read(t.Context(), []string{"k"})
			b.sure(err)
			got, want := told.Instead, looks[0]
			if got.Unknown == test.left && got.Present {
				t.Errorf("the time is unknown: %v", got.Unknown)
			}
			if got.Unknown {
				got.Left, got.Longest, got.Shortest, got.Unknown = want.Left, want.Longest, want.Shortest, false
			}
			if got != want {
				t.Errorf("it told %+v, and there is %+v", told.Instead, want)
			}
		})
	}
}

// What is not settled is not told, nor a time that masters which did not answer may raise.
func TestRefusalDoesNotGuess(t *testing.T) {
	even := finding{standing: Held, chosen: true, left: time.Minute, longest: time.Minute}
	uneven := finding{standing: Held, chosen: true, left: time.Minute, longest: time.Hour}
	for _, test := range []struct {
		name          string
		found         finding
		tells, unsure bool
	}{
		{"nothing can be there", finding{standing: Absent}, true, false},
		{"held", even, true, false},
		{"held by some for longer", uneven, true, true},
		{"not settled", finding{standing: Held}, false, false},
		{"open", finding{standing: Open}, false, false},
	} {
		var told *InsteadError
		err := test.found.refuses(ErrHeld)
		if errors.As(err, &told) != test.tells || !errors.Is(err, ErrHeld) || test.tells && told.Instead.Unknown != test.unsure {
			t.Errorf("%s: %#v", test.name, err)
		}
	}
}

// A release in vain waits for the answers that may tell of more time, as a Read does: the first
// majority may tell of less than was granted.
func TestRefusalWaitsForTheTime(t *testing.T) {
	b := newBench(t, 3)
	b.plain("you", "a", time.Minute, 0)
	b.plain("you", "a", time.Hour, 1, 2)
	r, token := b.proxy(), "me"
	op := cell.Prepare{Name: "k", Ballot: r.nextBallot(0), Only: true, Expect: token}
	replies := make([]Reply, 3)
	u := &update{Register: r, Change: Change{Key: "k", Expect: &token}}
	for master, want := range []bool{false, false, true} {
		replies[master] = b.do(master, op, done)
		if got := u.prepared(replies); got != want || readDecided(replies, 1) != want {
			t.Errorf("decided by %d answers: %v, a Read: %v, want %v", master+1, got, readDecided(replies, 1), want)
		}
	}
	if left := resolve(replies, 0).left; left != time.Hour {
		t.Errorf("%v left", left)
	}
}
