package register

import (
	"errors"
	"strings"
	"testing"
	"time"

	"redlock-proxy/quorum/cell"
)

// newMastersLackingKey returns five masters, three with a key that a vanished proxy took for a
// minute.
func newMastersLackingKey(t *testing.T) *fakeMasters {
	b := newFakeMasters(t, 5)
	b.putPlainCell("me", "a", time.Minute, 0, 1, 2)
	return b
}

// TestRefill checks that any proxy restores a missing key. A late refill does not bring back a key
// that was released, removed, or taken by another client meanwhile.
func TestRefill(t *testing.T) {
	for _, test := range []struct {
		name string
		// afterMarking runs after the proxy marked the masters that lack the key.
		afterMarking func(b *fakeMasters)
		wantCells    string
	}{
		{"nothing happens", func(*fakeMasters) {}, "me* me* me* me* me*"},
		{"released by another", func(b *fakeMasters) { b.noError(b.proxy().Unlock(b.Context(), "k", "me", nil)) },
			". . . . ."},
		{"replaced", func(b *fakeMasters) { _, err := b.proxy().Update(b.Context(), putChange("you")); b.noError(err) },
			"you* you* you* you* you*"},
		{"some cells are deleted", func(b *fakeMasters) { b.stores[0].Delete("k"); b.stores[1].Delete("k") }, ". . . . ."},
		{"one has the mark no more", func(b *fakeMasters) { b.stores[3].Delete("k") }, "me* me* me* me* me*"},
		{"another mark holds one place", func(b *fakeMasters) { putMark(b, "z", 3) }, "me* me* me* me* me*"},
		{"another holds one place", func(b *fakeMasters) { b.stores[3].Delete("k"); b.putPlainCell("x", "b", time.Minute, 3) },
			"me* me* me* me* me*"},
	} {
		b := newMastersLackingKey(t)
		b.readValue()
		b.advance(2 * RepairPause)
		b.wantCells("me me me m m")
		test.afterMarking(b)
		b.advance(8 * time.Second)
		if got := b.cells("k"); got != test.wantCells {
			t.Errorf("%s: %s, want %s", test.name, got, test.wantCells)
		}
		if len(b.timers) > 0 {
			t.Errorf("%s: it never comes to rest", test.name)
		}
	}
}

// TestNoRefillOfPassingLock checks that the proxy marks no master for a lock that changes hands
// quickly. A marked master would refuse the next holders.
func TestNoRefillOfPassingLock(t *testing.T) {
	b := newMastersLackingKey(t)
	b.readValue()
	for i := range 100 {
		attempt := string(rune('b' + i%20))
		for m := range 3 {
			b.stores[m].Delete("k")
		}
		b.putPlainCell("me", attempt, time.Minute, 0, 1, 2)
		b.advance(RepairPause / 2)
		b.wantCells("me me me . .")
	}
	b.advance(8 * time.Second)
	b.wantCells("me* me* me* me* me*")
}

// putMark puts a mark of another proxy.
func putMark(b *fakeMasters, attempt string, masters ...int) {
	for _, m := range masters {
		c := cell.Cell{Form: cell.Mark, Attempt: attemptOf(attempt), Promised: cell.Ballot(attemptOf("y"))}
		b.stores[m].Put("k", c, time.Second)
	}
}

// TestExpiryAfterRefill checks that a restored key expires no later than on the master where it
// expires first. A mark blocks no client once the lock has expired.
func TestExpiryAfterRefill(t *testing.T) {
	b := newMastersLackingKey(t)
	b.putPlainCell("me", "a", 50*time.Second, 0)
	b.readValue()
	b.advance(5 * time.Second)
	b.wantCells("me* me* me* me* me*")
	for _, m := range []int{3, 4} {
		left, first := b.stores[m].Get("k").TimeLeft, b.stores[0].Get("k").TimeLeft
		if left > first || left < first-time.Second {
			t.Errorf("it ends in %v, and in %v where it ends first", left, first)
		}
	}
	b = newFakeMasters(t, 5)
	b.putPlainCell("me", "a", 800*time.Millisecond, 0, 1, 2)
	b.readValue()
	b.advance(900 * time.Millisecond)
	b.wantCells(". . . . .")
}

// TestLateFill checks that a late fill does not change the value of a key that was removed or
// taken, or whose mark has expired.
func TestLateFill(t *testing.T) {
	for name, then := range map[string]func(*fakeMasters){
		"removed": func(b *fakeMasters) { b.noError(b.proxy().Unlock(b.Context(), "k", "me", nil)) },
		"removed long ago": func(b *fakeMasters) {
			b.noError(b.proxy().Unlock(b.Context(), "k", "me", nil))
			b.setClock(b.now.Add(2 * removalTTL))
		},
		"taken by a rival": func(b *fakeMasters) {
			b.noError(b.proxy().Unlock(b.Context(), "k", "me", nil))
			b.mustLock(b.proxy(), "rival")
		},
		"the fill's is old": func(b *fakeMasters) { b.setClock(b.now.Add(removalTTL)) },
	} {
		b := newMastersLackingKey(t)
		b.readValue()
		b.advance(2 * RepairPause)
		b.faultOf = func(m int, op cell.Op) fault {
			if a, is := op.(cell.Accept); is && a.Mark != "" {
				return requestLate
			}
			return noFault
		}
		b.advance(leftoverPause)
		if len(b.pendingDeliveries) != 2 {
			t.Fatalf("%s: %d fills are on their way", name, len(b.pendingDeliveries))
		}
		b.faultOf = nil
		then(b)
		want := b.readValue()
		b.deliverPending()
		if got := b.readValue(); got != want {
			t.Errorf("%s: %q is back, and %s", name, got, b.cells("k"))
		}
		b.advance(time.Minute)
		b.wantCells(". . . . .")
	}
}

// TestRestoreOfMissedLock checks that any proxy that compares the keys restores a held lock on
// masters that were away, once all masters vote.
func TestRestoreOfMissedLock(t *testing.T) {
	for _, test := range []struct {
		name     string
		nextStep func(*fakeMasters, *Register)
		holds    string
	}{
		{"it holds", func(*fakeMasters, *Register) {}, "me* me* me* me* me*"},
		{"another proxy compares", func(b *fakeMasters, _ *Register) { b.timers = nil; b.proxy() }, "me* me* me* me* me*"},
		{"replaced meanwhile", func(b *fakeMasters, _ *Register) {
			_, err := b.proxy().Update(b.Context(), putChange("you"))
			b.noError(err)
		}, "you* you* you* you* you*"},
		{"released meanwhile", func(b *fakeMasters, r *Register) { b.noError(r.Unlock(b.Context(), "k", "me", nil)) },
			". . . . ."},
		{"taken away meanwhile", func(b *fakeMasters, _ *Register) {
			b.noError(b.proxy().Unlock(b.Context(), "k", "me",
				nil))
		}, ". . . . ."},
	} {
		b := newFakeMasters(t, 5)
		r := b.proxy()
		b.setFault(requestFailed, 3, 4)
		_, err := r.Lock(t.Context(), []string{"k"}, TakeOptions{Tokens: []string{"me"}, TTL: cell.NoExpiry})
		b.noError(err)
		test.nextStep(b, r)
		b.rounds = nil
		b.advance(2 * time.Second)
		b.wantRounds("") // the proxy does not repeat requests to masters that are away
		b.faultOf = nil
		b.deliverRepeatedOps()
		b.advance(10 * time.Second)
		if got := b.cells("k"); got != test.holds && !(test.holds == "you* you* you* you* you*" && got == ". . . . .") {
			t.Errorf("%s: the masters hold %s, want %s", test.name, got, test.holds)
		}
		if len(b.timers) > 0 {
			t.Errorf("%s: it never comes to rest", test.name)
		}
	}
}

// TestRefillAfterALeftover checks that a master with a leftover gets the lock once the leftover is
// removed.
func TestRefillAfterALeftover(t *testing.T) {
	b := newFakeMasters(t, 3)
	b.putPlainCell("x", "a", time.Minute, 0)
	b.mustLock(b.proxy(), "me")
	b.advance(3 * time.Second)
	b.wantCells("me* me* me*")
}

// TestMissedExtension checks that a master that missed an extension gets the remaining time of the
// majority.
func TestMissedExtension(t *testing.T) {
	b := newFakeMasters(t, 3)
	r := b.proxy()
	b.mustLock(r, "me")
	b.setFaultOn("extend", requestLost, 0)
	_, err := r.Extend(t.Context(), "k", "me", time.Minute)
	b.noError(err)
	b.faultOf = nil
	b.advance(30 * time.Second)
	b.wantCells("me me me")
	first, other := b.stores[0].Get("k").TimeLeft, b.stores[1].Get("k").TimeLeft
	if first < other-time.Second || first > other {
		t.Errorf("it ends in %v there, and in %v elsewhere", first, other)
	}
}

// TestForceRemove checks that an operator can remove any key, even if its holder is undetermined.
func TestForceRemove(t *testing.T) {
	for _, test := range []struct {
		name    string
		set     func(b *fakeMasters)
		removed bool
	}{
		{"nothing", func(*fakeMasters) {}, false},
		{"held", func(b *fakeMasters) { b.putPlainCell("me", "a", time.Minute, 0, 1, 2) }, true},
		{"open", func(b *fakeMasters) { b.putPlainCell("me", "a", time.Minute, 0, 1); b.putBlockingCell("a", 2) }, true},
		{"promised, and removed", func(b *fakeMasters) { b.putAcceptedCell("", 3, 0, 1, 2) }, true},
		{"open between two", func(b *fakeMasters) {
			b.putAcceptedCell("you", 3, 0, 1)
			b.putPlainCell("me", "b", time.Minute, 3, 4)
			b.putBlockingCell("b", 2)
		}, true},
	} {
		b := newFakeMasters(t, 5)
		test.set(b)
		removed, err := b.proxy().ForceRemove(t.Context(), "k")
		if err != nil || removed != test.removed {
			t.Errorf("%s: %v, %v", test.name, removed, err)
		}
		if got := b.cells("k"); got != ". . . . ." {
			t.Errorf("%s: %s", test.name, got)
		}
		b.mustLock(b.proxy(), "next")
	}
	b := newFakeMasters(t, 3)
	b.putAcceptedCell("you", 3, 0, 1, 2)
	b.faultOf = func(_ int, op cell.Op) fault {
		if _, isRemove := op.(cell.Remove); isRemove {
			return requestLate
		}
		return noFault
	}
	_, _ = b.proxy().ForceRemove(t.Context(), "k")
	b.putAcceptedCell("next", 4, 0, 1, 2)
	b.deliverPending()
	b.wantCells("next* next* next*") // the late removal leaves the value of a newer ballot

	b = newFakeMasters(t, 3)
	b.putForeignCell("x", 0, 1)
	if _, err := b.proxy().ForceRemove(t.Context(), "k"); !errors.Is(err, ErrForeign) {
		t.Error(err)
	}
}

// TestForceRemoveOfChangingKey checks a removal that the masters refuse because a ballot has just
// put another value. ForceRemove removes the new value, too. It reports no removal that no master
// made.
func TestForceRemoveOfChangingKey(t *testing.T) {
	for _, test := range []struct {
		name      string
		changes   int // that come right before a removal
		ttl       time.Duration
		removed   bool
		err       error
		wantCells string
	}{
		{"changed once", 1, time.Minute, true, nil, ". . ."},
		{"changed all the time", 1000, time.Minute, false, ErrContended, "next* next* next*"},
		{"released", 1, time.Nanosecond, false, nil, ". . ."},
	} {
		b := newFakeMasters(t, 3)
		b.putAcceptedCell("you", 3, 0, 1, 2)
		changes := 0
		b.faultOf = func(master int, op cell.Op) fault {
			if _, isRemove := op.(cell.Remove); isRemove && master == 0 && changes < test.changes {
				changes++
				b.putAcceptedCellFor(test.ttl, "next", uint64(3+changes), 0, 1, 2)
				b.setClock(b.now.Add(time.Microsecond))
			}
			return noFault
		}
		removed, err := b.proxy().ForceRemove(t.Context(), "k")
		if removed != test.removed || !errors.Is(err, test.err) {
			t.Errorf("%s: %v, %v", test.name, removed, err)
		}
		if got := b.cells("k"); got != test.wantCells {
			t.Errorf("%s: %s", test.name, got)
		}
	}
}

// TestBlockingCopyStaysForLongerLease checks a lock that a majority holds, though one of these
// masters missed an extension, and a master with a blocking copy may have granted it. The repair
// first gives the extension to the master that missed it, so the lock stays on a majority.
func TestBlockingCopyStaysForLongerLease(t *testing.T) {
	b := newFakeMasters(t, 5)
	b.putPlainCell("me", "a", time.Minute, 0, 1)
	b.putPlainCell("me", "a", time.Second, 3)
	b.putBlockingCell("a", 2)
	b.proxy().scheduleRepair("k")
	for range 50 {
		b.advance(100 * time.Millisecond)
		if got := b.cells("k"); strings.Count(got, "me") < 3 {
			t.Fatalf("the masters hold %s", got)
		}
	}
	for m, s := range b.stores {
		if left := s.Get("k").TimeLeft; left < 50*time.Second {
			t.Errorf("master %d holds it for %v", m, left)
		}
	}
}
