package register

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"redlock-proxy/quorum/cell"
)

func outcome(err error) string {
	var noQuorum *NoQuorum
	switch {
	case err == nil:
		return "granted"
	case errors.As(err, &noQuorum) && noQuorum.AgreementTime > 0:
		return "late"
	case errors.As(err, &noQuorum) && noQuorum.Unclear:
		return "unclear"
	case errors.As(err, &noQuorum):
		return "no quorum"
	case errors.Is(err, ErrHeld):
		return "held"
	case errors.Is(err, ErrNotHeld):
		return "not held"
	case errors.Is(err, ErrTooShort):
		return "too short"
	case errors.Is(err, ErrContended):
		return "contended"
	case errors.Is(err, ErrForeign):
		return "foreign"
	default:
		return err.Error()
	}
}

// TestLock takes a key on five masters with various cells. Some masters do not reply.
func TestLock(t *testing.T) {
	for _, test := range []struct {
		name      string
		prepare   func(*fakeMasters)
		want      string
		wantCells string // the cells after the LOCK
	}{
		{"free", func(*fakeMasters) {}, "granted", "me me me me me"},
		{"held by one attempt", func(b *fakeMasters) { b.putPlainCell("x", "a", time.Minute, 0, 1, 2) }, "held", "x x x . ."},
		{"held by a value in register form", func(b *fakeMasters) {
			b.mustLock(b.proxy(), "x")
			_, err := b.proxy().Update(b.Context(), putChange("y"))
			b.noError(err)
		}, "held", "y* y* y* y* y*"},
		// Masters 1 to 4 chose the removal in round 2. z may never be chosen, so no client may see
		// it.
		{"newer and older values than the removal", func(b *fakeMasters) {
			b.putAcceptedCell("y", 1, 0)
			b.putAcceptedCell("z", 3, 1, 2)
			b.putAcceptedCell("", 2, 3, 4)
			b.setFault(requestFailed, 3, 4)
		},
			"held", "z* z* z* -* -*"},
		{"removed, and a newer value on one that is away", func(b *fakeMasters) {
			b.putAcceptedCell("", 2, 0, 1,
				2)
			b.putAcceptedCell("z", 3, 3)
			b.setFault(requestFailed, 3, 4)
		},
			"granted", "me* me* me* z* ."},
		{"a leftover on two", func(b *fakeMasters) { b.putPlainCell("x", "a", time.Minute, 0, 1) }, "granted", "x x me me me"},
		{"equal values of two attempts are no majority", func(b *fakeMasters) {
			b.putPlainCell("x", "a", time.Minute, 0, 1)
			b.putPlainCell("x", "b", time.Minute, 2, 3)
		}, "contended", "x x x x ."},
		{"foreign on a majority", func(b *fakeMasters) { b.putForeignCell("x", 0, 1, 2) }, "held", "[x] [x] [x] . ."},
		{"foreign on two", func(b *fakeMasters) { b.putForeignCell("x", 0, 1) }, "granted", "[x] [x] me me me"},
		{"two foreign values", func(b *fakeMasters) { b.putForeignCell("x", 0, 1); b.putForeignCell("y", 2, 3) }, "contended",
			"[x] [x] [y] [y] ."},
		{"blocking copies refuse, but are no majority", func(b *fakeMasters) { b.putBlockingCell("a", 0, 1, 2) }, "no quorum",
			"b b b . ."},
		{"two are away", func(b *fakeMasters) { b.setFault(requestFailed, 3, 4) }, "granted", "me me me . ."},
		{"three are away", func(b *fakeMasters) { b.setFault(requestFailed, 2, 3, 4) }, "no quorum", ". . . . ."},
		{"perhaps held by a master that is away", func(b *fakeMasters) {
			b.putPlainCell("x", "a", time.Minute, 0, 1)
			b.setFault(requestFailed, 4)
		}, "no quorum", "x x . . ."},
		{"two do not count", func(b *fakeMasters) { b.setFault(voteUncounted, 3, 4) }, "granted", "me me me me me"},
		{"three do not count", func(b *fakeMasters) { b.setFault(voteUncounted, 2, 3, 4) }, "no quorum", ". . . . ."},
		{"too late", func(b *fakeMasters) { b.roundTime = Limit + 1 }, "late", ". . . . ."},
	} {
		b := newFakeMasters(t, 5)
		r := b.proxy()
		test.prepare(b)
		got, err := r.Lock(t.Context(), []string{"k"}, takeOptions("me"))
		if outcome(err) != test.want {
			t.Errorf("%s: %v, want %s", test.name, err, test.want)
		}
		if err == nil && got.Validity != 10*time.Second-100*time.Millisecond-2*time.Millisecond {
			t.Errorf("%s: granted for %v", test.name, got.Validity)
		}
		if got := b.cells("k"); got != test.wantCells {
			t.Errorf("%s: the masters hold %s, want %s", test.name, got, test.wantCells)
		}
	}
}

// TestRivalsWhileMasterIsAway lets each try of a command meet a rival's attempt on two of five
// masters, while a third is away. The command outlasts many rivals, but it gives up if
// one rival stays.
func TestRivalsWhileMasterIsAway(t *testing.T) {
	commands := map[string]func(*Register) error{
		"LOCK": func(r *Register) error {
			_, err := r.Lock(t.Context(), []string{"k"}, takeOptions("me"))
			return err
		},
		"GET":    func(r *Register) error { _, err := r.Read(t.Context(), []string{"k"}); return err },
		"APPEND": func(r *Register) error { _, err := r.Update(t.Context(), appendChange("+")); return err },
	}
	for _, test := range []struct {
		name, rivals string // one letter for the rival of each try
		want         string
	}{
		{"another rival each time", "abcdefghijklmnopqrstuvwxyz", "granted"},
		{"a rival whose attempt is repeated", strings.Repeat("a", maxBlockedTries-1), "granted"},
		{"a rival that stays, after others", "bcd" + strings.Repeat("a", maxBlockedTries), "no quorum"},
	} {
		for name, run := range commands {
			b := newFakeMasters(t, 5)
			b.setFault(requestFailed, 4)
			next := func() {
				for _, store := range b.stores[:2] {
					store.Delete("k")
				}
				if b.pauses < len(test.rivals) {
					b.putPlainCell("rival", test.rivals[b.pauses:b.pauses+1], time.Minute, 0, 1)
				}
			}
			next()
			b.onPause = next
			if err := run(b.proxy()); outcome(err) != test.want {
				t.Errorf("%s, %s: %v, want %s", name, test.name, err, test.want)
			}
		}
	}
}

// TestUndoneLock checks that no cell of a failed attempt remains, whatever the masters do late.
func TestUndoneLock(t *testing.T) {
	for _, test := range []struct {
		name   string
		faults [3]fault // for the last three of five masters
	}{
		{"not sent", [3]fault{requestFailed, requestFailed, requestFailed}},
		{"answers lost", [3]fault{replyLost, replyLost, replyLost}},
		{"answered late", [3]fault{replyLate, replyLate, requestFailed}},
		{"does not count", [3]fault{voteUncounted, voteUncounted, requestFailed}},
	} {
		b := newFakeMasters(t, 5)
		r := b.proxy()
		b.faultOf = func(m int, op cell.Op) fault {
			if kindOf(op) == "take" && m >= 2 {
				return test.faults[m-2]
			}
			return noFault
		}
		_, err := r.Lock(t.Context(), []string{"k"}, takeOptions("me"))
		if outcome(err) != "no quorum" {
			t.Errorf("%s: %v", test.name, err)
		}
		b.deliverPending()
		if got := b.cells("k"); got != ". . . . ." {
			t.Errorf("%s: in the end %s", test.name, got)
		}
	}
}

// TestUndoOnReturningMasters checks that masters that are away receive the undo later.
func TestUndoOnReturningMasters(t *testing.T) {
	b := newFakeMasters(t, 3)
	r := b.proxy()
	b.faultOf = func(m int, op cell.Op) fault {
		switch {
		case m == 0:
			return noFault
		case kindOf(op) == "take":
			return replyLost
		default:
			return requestFailed
		}
	}
	_, err := r.Lock(t.Context(), []string{"k"}, takeOptions("me"))
	if outcome(err) != "no quorum" || len(b.repeatedOps) != 2 {
		t.Fatalf("%v, and %d are owed", err, len(b.repeatedOps))
	}
	b.wantCells(". me me")
	b.deliverRepeatedOps() // masters 1 and 2 are still away
	b.faultOf = nil
	b.deliverRepeatedOps()
	b.wantCells(". . .")
}

// TestUndoOfOneAttempt checks that an undo leaves another attempt with an equal value alone.
func TestUndoOfOneAttempt(t *testing.T) {
	b := newFakeMasters(t, 3)
	owner, rival := b.proxy(), b.proxy()
	b.mustLock(owner, "1")
	b.setFaultOn("take", replyLost, 0, 1, 2)
	_, err := rival.Lock(t.Context(), []string{"k"}, takeOptions("1"))
	if outcome(err) != "no quorum" {
		t.Error(err)
	}
	b.wantCells("1 1 1")
}

// TestLockDuringExpiryOfRemoval starts with a removal that has expired on one master only, while
// two masters do not vote. The attempt needs all other masters, and gets them a moment later.
func TestLockDuringExpiryOfRemoval(t *testing.T) {
	for _, test := range []struct {
		name          string
		timeLeft      time.Duration
		removalResult func(*fakeMasters)
		want          string
		holds         string
	}{
		{"two have taken it without a vote", 25 * time.Millisecond, func(b *fakeMasters) {
			b.setFaultOn("take",
				voteUncounted, 3, 4)
		}, "granted", "me me me me me"},
		{"one is away, one has lost the answer", 5 * time.Millisecond, func(b *fakeMasters) {
			b.faultOf = func(m int, op cell.Op) fault { return map[int]fault{3: requestFailed, 4: replyLost}[m] }
		}, "granted", "me me me . me"},
		{"one has not answered when it can have no majority", 5 * time.Millisecond, func(b *fakeMasters) {
			b.putAcceptedCell("", 2, 4)
			b.faultOf = func(m int, op cell.Op) fault {
				if m == 2 && len(b.rounds) == 0 {
					return replyLate
				}
				return map[int]fault{3: requestFailed, 4: voteUncounted}[m]
			}
		}, "granted", "me me me . -*"},
		{"it stays", 4 * time.Second, func(b *fakeMasters) { b.setFault(voteUncounted, 3, 4) }, "no quorum", ". -* -* . ."},
	} {
		b := newFakeMasters(t, 5)
		b.putAcceptedCellFor(test.timeLeft, "", 2, 1, 2)
		test.removalResult(b)
		if _, err := b.proxy().Lock(t.Context(), []string{"k"}, takeOptions("me")); outcome(err) != test.want {
			t.Errorf("%s: %v, want %s", test.name, err, test.want)
		}
		if got := b.cells("k"); got != test.holds {
			t.Errorf("%s: the masters hold %s, want %s", test.name, got, test.holds)
		}
	}
}

// TestLockAfterSplit checks that a split vote ends when the rivals have undone their
// attempts.
func TestLockAfterSplit(t *testing.T) {
	b := newFakeMasters(t, 3)
	b.putPlainCell("x", "a", time.Minute, 0)
	b.putPlainCell("y", "b", time.Minute, 1)
	b.onPause = func() { b.stores[1].Delete("k") }
	_, err := b.proxy().Lock(t.Context(), []string{"k"}, takeOptions("me"))
	b.noError(err)
	b.wantCells("x me me")
	if b.pauses != 1 {
		t.Errorf("%d pauses", b.pauses)
	}
}

func TestLockTooShort(t *testing.T) {
	b := newFakeMasters(t, 3)
	request := takeOptions("me")
	request.TTL = 3 * time.Millisecond
	_, err := b.proxy().Lock(t.Context(), []string{"k"}, request)
	if outcome(err) != "too short" {
		t.Error(err)
	}
	request.AllowShortTTL = true
	_, err = b.proxy().Lock(t.Context(), []string{"k"}, request)
	b.noError(err)
	b.wantCells("me me me")
	// A lease that has expired when the reply arrives is not granted.
	b = newFakeMasters(t, 3)
	b.roundTime = 20 * time.Millisecond
	request.AllowShortTTL, request.TTL = false, 15*time.Millisecond
	_, err = b.proxy().Lock(t.Context(), []string{"k"}, request)
	if outcome(err) != "late" {
		t.Error(err)
	}
	b.wantCells(". . .")
}

func TestLockWithoutExpiry(t *testing.T) {
	b := newFakeMasters(t, 3)
	request := takeOptions("me")
	request.TTL = cell.NoExpiry
	got, err := b.proxy().Lock(t.Context(), []string{"k"}, request)
	b.noError(err)
	if got.Validity != cell.NoExpiry || b.stores[0].Get("k").TimeLeft != cell.NoExpiry {
		t.Errorf("granted for %v", got.Validity)
	}
}

// TestLockSeveralKeys checks that each master takes several keys all or none.
func TestLockSeveralKeys(t *testing.T) {
	b := newFakeMasters(t, 3)
	r := b.proxy()
	keys, several := []string{"k", "k2"}, TakeOptions{Tokens: []string{"a", "b"}, TTL: time.Minute}
	_, err := r.Lock(t.Context(), keys, several)
	b.noError(err)
	if b.cells("k") != "a a a" || b.cells("k2") != "b b b" {
		t.Errorf("%s, %s", b.cells("k"), b.cells("k2"))
	}
	b.noError(r.Unlock(t.Context(), "k", "a", nil))
	_, err = r.Lock(t.Context(), keys, several)
	if outcome(err) != "held" || b.cells("k") != ". . ." {
		t.Errorf("%v, and they hold %s", err, b.cells("k"))
	}
}

func TestLockCanceled(t *testing.T) {
	b := newFakeMasters(t, 3)
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("left")
	cancel(cause)
	_, err := b.proxy().Lock(ctx, []string{"k"}, takeOptions("me"))
	if !errors.Is(err, cause) {
		t.Error(err)
	}
	b.wantCells(". . .")
}

// TestRemoveVersion checks that a proxy withdraws a lock whose client has disconnected. The proxy
// does so even if another proxy granted the lock, or masters promised a rival's ballot. A later
// value of another client stays.
func TestRemoveVersion(t *testing.T) {
	b := newFakeMasters(t, 3)
	r := b.proxy()
	got := b.mustLock(r, "1")
	b.removeVersion(r, "1", got.Version)
	b.wantCells("-* -* -*")
	b.advance(removalTTL)
	for _, next := range []*Register{b.proxy(), r} {
		newer := b.mustLock(next, "1")
		b.removeVersion(r, "1", got.Version)
		if b.readValue() != "1" {
			t.Error("another's lock was taken back")
		}
		_, err := b.proxy().Update(t.Context(), Change{Key: "k", Run: keepUnchanged})
		b.noError(err)
		b.removeVersion(b.proxy(), "1", newer.Version)
		b.wantCells("-* -* -*")
		b.advance(removalTTL)
	}
}

func TestGuess(t *testing.T) {
	b := newFakeMasters(t, 3)
	r := b.proxy()
	want := func(want string) {
		t.Helper()
		if got, _ := r.Guess("k"); got != want {
			t.Errorf("guess %q, want %q", got, want)
		}
	}
	want("")
	b.mustLock(r, "me")
	want("me")
	_, err := r.Update(t.Context(), putChange("you"))
	b.noError(err)
	want("you") // until the promise expires
	b.advance(Limit + time.Millisecond)
	want("")
	_, err = r.Update(t.Context(), putChange("she"))
	b.noError(err)
	want("she")
	b.noError(r.Unlock(t.Context(), "k", "she", nil))
	want("")
}

func TestExpiredGrants(t *testing.T) {
	b := newFakeMasters(t, 1)
	r := b.proxy()
	for i := range 10_000 {
		name := strconv.Itoa(i)
		_, err := r.Lock(t.Context(), []string{name}, TakeOptions{Tokens: []string{"me"}, TTL: time.Second})
		b.noError(err)
		b.advance(time.Millisecond)
	}
	if n := len(r.grants.byKey); n > 3100 {
		t.Errorf("%d are remembered", n)
	}
}

// TestEvictionOfOldestGrants checks that grants without expiry take limited memory, and that the
// register knows which grants it may have evicted.
func TestEvictionOfOldestGrants(t *testing.T) {
	b := newFakeMasters(t, 1)
	r := b.proxy()
	var starts []time.Time
	for i := range 1000 {
		name := strings.Repeat("k", 200_000) + strconv.Itoa(i)
		got, err := r.Lock(t.Context(), []string{name}, TakeOptions{Tokens: []string{"me"}, TTL: cell.NoExpiry})
		b.noError(err)
		starts = append(starts, got.LeaseStart)
		b.advance(time.Millisecond)
	}
	if n := len(r.grants.byKey); n > 3*maxGrantBytes/200_000 || n < maxGrantBytes/3/200_000 {
		t.Errorf("%d are remembered", n)
	}
	evicted := 0
	for _, since := range starts {
		if r.MayHaveEvicted(since) {
			evicted++
		}
	}
	if want := len(starts) - len(r.grants.byKey); evicted != want {
		t.Errorf("%d may have been evicted, want %d", evicted, want)
	}
}

// TestEvictionKeepsLaterBound checks that an eviction of older grants does not make the register
// forget that it may have evicted later ones, as after a change of the masters.
func TestEvictionKeepsLaterBound(t *testing.T) {
	b := newFakeMasters(t, 1)
	r := b.proxy()
	later := b.now.Add(time.Hour)
	r.grants.noteEvictedUntil(later)
	for i := range 1000 {
		r.RecordGrant(strings.Repeat("k", 200_000)+strconv.Itoa(i), "me", "version", cell.NoExpiry, nil, time.Time{})
	}
	if len(r.grants.byKey) == 1000 {
		t.Fatal("the register evicted no grant")
	}
	if !r.MayHaveEvicted(later) {
		t.Error("the register forgot a later bound")
	}
}

// TestExpiredGrantsOfLongKeys checks that the proxy forgets expired locks with long
// names sooner. A hundred of them take as much memory as many thousands of locks with short names.
func TestExpiredGrantsOfLongKeys(t *testing.T) {
	b := newFakeMasters(t, 1)
	r := b.proxy()
	for i := range 200 {
		name := strings.Repeat("k", 100_000) + strconv.Itoa(i)
		_, err := r.Lock(t.Context(), []string{name}, TakeOptions{Tokens: []string{"me"}, TTL: time.Second})
		b.noError(err)
		change := putChange("v")
		change.Key = "u" + name
		_, err = r.Update(t.Context(), change)
		b.noError(err)
		_, err = r.Update(t.Context(), change)
		b.noError(err)
		b.advance(time.Second)
	}
	if n, p := len(r.grants.byKey), len(r.promises.byKey); n > 40 || p > 40 {
		t.Errorf("%d grants and %d promises are remembered", n, p)
	}
}
