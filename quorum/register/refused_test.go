package register

import (
	"errors"
	"testing"
	"time"

	"redlock-proxy/quorum/cell"
)

// TestCurrentValueInRefusal checks that a refusal contains the value that a Read would return.
// Only the remaining time may be missing.
func TestCurrentValueInRefusal(t *testing.T) {
	const otherToken, ownToken = "you", "me"
	lock := func(b *fakeMasters, r *Register) error {
		_, err := r.Lock(b.Context(), []string{"k"}, takeOptions(ownToken))
		return err
	}
	unlock := func(b *fakeMasters, r *Register) error { return r.Unlock(b.Context(), "k", ownToken, nil) }
	extend := func(b *fakeMasters, r *Register) error {
		_, err := r.Extend(b.Context(), "k", ownToken, time.Hour)
		return err
	}
	held := func(b *fakeMasters, _ *Register) { b.mustLock(b.proxy(), otherToken) }
	replace := func(b *fakeMasters) { _, err := b.proxy().Update(b.Context(), putChange("x")); b.noError(err) }
	replaced := func(b *fakeMasters, r *Register) { held(b, r); replace(b) }
	for _, test := range []struct {
		name           string
		prepare        func(*fakeMasters, *Register)
		refusedCommand func(*fakeMasters, *Register) error
		wantTimeLeft   bool // whether the refusal must contain the remaining time
	}{
		{"taking what is held", held, lock, false},
		{"taking what was replaced", replaced, lock, false},
		{"taking what a client of the masters holds", func(b *fakeMasters, _ *Register) { b.putForeignCell(otherToken, 0, 1, 2) },
			lock, false},
		{"releasing what is free", func(*fakeMasters, *Register) {}, unlock, true},
		{"releasing what is held", held, unlock, true},
		{"releasing what was replaced", replaced, unlock, true},
		{"releasing what has expired", func(b *fakeMasters, r *Register) { b.mustLock(r, ownToken); b.advance(time.Hour) },
			unlock, true},
		{"releasing what was replaced since", func(b *fakeMasters, r *Register) { b.mustLock(r, ownToken); replace(b) }, unlock, true},
		{"extending what is free", func(*fakeMasters, *Register) {}, extend, true},
		{"extending what is held", held, extend, true},
		{"extending what was replaced", replaced, extend, true},
		{"extending what a client of the masters holds", func(b *fakeMasters,
			_ *Register) {
			b.putForeignCell(otherToken, 0, 1, 2)
		}, extend, true},
		{"extending what has expired, and is held by another", func(b *fakeMasters, r *Register) {
			b.mustLock(r, ownToken)
			b.advance(time.Hour)
			held(b, r)
		}, extend, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newFakeMasters(t, 3)
			r := b.proxy()
			test.prepare(b, r)
			var refusal *RefusedError
			err := test.refusedCommand(b, r)
			if !errors.As(err, &refusal) || !errors.Is(err, ErrHeld) && !errors.Is(err, ErrNotHeld) {
				t.Fatalf("got %v, which does not tell what is there", err)
			}
			snapshots, err := r.Read(t.Context(), []string{"k"})
			b.noError(err)
			got, want := refusal.CurrentSnapshot, snapshots[0]
			if got.TimeLeftUnknown == test.wantTimeLeft && got.Present {
				t.Errorf("the time is unknown: %v", got.TimeLeftUnknown)
			}
			if got.TimeLeftUnknown {
				got.TimeLeft, got.LongestTimeLeft, got.ShortestTimeLeft, got.TimeLeftUnknown = want.TimeLeft, want.LongestTimeLeft, want.ShortestTimeLeft, false
			}
			if got != want {
				t.Errorf("it told %+v, and there is %+v", refusal.CurrentSnapshot, want)
			}
		})
	}
}

// TestUndecidedValueInRefusal checks that a refusal contains no undecided value or time.
func TestUndecidedValueInRefusal(t *testing.T) {
	sameLeases := tally{status: TallyHeld, chosen: true, timeLeft: time.Minute, longestTimeLeft: time.Minute}
	differentLeases := tally{status: TallyHeld, chosen: true, timeLeft: time.Minute, longestTimeLeft: time.Hour}
	for _, test := range []struct {
		name                        string
		foundTally                  tally
		wantValue, wantUndetermined bool
	}{
		{"nothing can be there", tally{status: TallyAbsent}, true, false},
		{"held", sameLeases, true, false},
		{"held by some for longer", differentLeases, true, true},
		{"not settled", tally{status: TallyHeld}, false, false},
		{"open", tally{status: TallyUndetermined}, false, false},
	} {
		var refusal *RefusedError
		err := test.foundTally.refusalError(ErrHeld, 0)
		if errors.As(err, &refusal) != test.wantValue || !errors.Is(err, ErrHeld) ||
			test.wantValue && refusal.CurrentSnapshot.TimeLeftUnknown != test.wantUndetermined {
			t.Errorf("%s: %#v", test.name, err)
		}
	}
}

// TestTimeLeftInRefusal checks that a refused release waits, as a Read does, for replies that
// may report more time than the first majority.
func TestTimeLeftInRefusal(t *testing.T) {
	b := newFakeMasters(t, 3)
	b.putPlainCell("you", "a", time.Minute, 0)
	b.putPlainCell("you", "a", time.Hour, 1, 2)
	r, token := b.proxy(), "me"
	op := cell.Prepare{Name: "k", Ballot: r.nextBallot(0), OnlyExpected: true, Expected: token}
	replies := make([]Reply, 3)
	u := &update{Register: r, Change: Change{Key: "k", ExpectedValue: &token}}
	for master, want := range []bool{false, false, true} {
		replies[master] = b.do(master, op, noFault)
		if got := u.prepareDecided(replies); got != want || readDecided(replies, 1) != want {
			t.Errorf("decided by %d answers: %v, a Read: %v, want %v", master+1, got, readDecided(replies, 1), want)
		}
	}
	if left := resolve(replies, 0).timeLeft; left != time.Hour {
		t.Errorf("%v left", left)
	}
}
