package register

import (
	"slices"
	"testing"
	"time"

	"redlock-proxy/quorum/cell"
)

// TestOwedWhileAcceptsMayArrive checks that a removal is repeated until the deadlines of the
// accepts of its version, even if a majority has replied that the version is absent.
func TestOwedWhileAcceptsMayArrive(t *testing.T) {
	b := newFakeMasters(t, 5)
	r := b.proxy()
	b.lock(r, "first")
	b.noError(b.proxy().Unlock(t.Context(), "k", "first", nil)) // by ballot
	sent := 0
	b.fate = func(_ int, op cell.Op) fate {
		switch {
		case sent >= r.quorum:
			return refused
		case kindOf(op) == "accept":
			sent++
			return broken
		}
		return done
	}
	var mayArrive func() bool
	lock := terms("second")
	lock.OnRemovalDue = func(_ string, may func() bool) { mayArrive = may }
	if _, err := r.Lock(t.Context(), []string{"k"}, lock); err == nil {
		t.Fatal("granted by nobody")
	}
	if mayArrive == nil || !mayArrive() {
		t.Fatal("no accept may arrive")
	}
	b.setClock(b.now.Add(2 * Limit))
	b.fate = nil
	if b.deliverPending(); mayArrive() || b.value() == "second" {
		t.Errorf("accepts that come late are done: the masters hold %s", b.holds("k"))
	}
}

// TestOwedWhileATakeMayArrive starts with a lock on two masters that go away before the undo. A
// third may still take it.
func TestOwedWhileATakeMayArrive(t *testing.T) {
	b := newFakeMasters(t, 5)
	b.fate = func(m int, op cell.Op) fate {
		switch takes := kindOf(op) == "take"; {
		case takes && m <= 1:
			return done
		case takes && m == 2:
			return broken
		case takes || m <= 1:
			return refused
		}
		return done
	}
	var mayArrive func() bool
	lock := terms("A")
	lock.OnRemovalDue = func(_ string, may func() bool) { mayArrive = may }
	if _, err := b.proxy().Lock(t.Context(), []string{"k"}, lock); err == nil || mayArrive == nil || !mayArrive() {
		t.Errorf("%v, and nothing may arrive", err)
	}
}

// TestUnlockOwesItsOwnLockAlone checks that a late UNLOCK does not owe the removal of a newer lock
// with the same token.
func TestUnlockOwesItsOwnLockAlone(t *testing.T) {
	b := newFakeMasters(t, 5)
	r, other := b.proxy(), b.proxy()
	b.setFateOf("take", refused, 3, 4)
	b.lock(r, "1")
	var next Granted
	b.fate = func(m int, op cell.Op) fate {
		if kindOf(op) == "remove" && m == 3 && next.Version == "" {
			b.fate = nil
			next = b.lock(other, "1")
			b.setClock(b.now.Add(Limit + time.Millisecond))
		}
		return done
	}
	var owed []string
	owe := func(v string, _ time.Duration) { owed = append(owed, v) }
	if err := r.Unlock(t.Context(), "k", "1", owe); err == nil || next.Version == "" {
		t.Fatalf("released in time: %v", err)
	}
	if len(owed) == 0 || slices.Contains(owed, next.Version) {
		t.Errorf("owed %q, and the next lock is %q", owed, next.Version)
	}
}
