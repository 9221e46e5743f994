package register

import (
	"slices"
	"testing"
	"time"

	"redlock-proxy/quorum/cell"
)

// TestRemovalDueDuringAccepts checks that mayArrive returns true until the deadlines of the sent
// accepts have passed, and that later accepts have no effect.
func TestRemovalDueDuringAccepts(t *testing.T) {
	b := newFakeMasters(t, 5)
	r := b.proxy()
	b.mustLock(r, "first")
	b.noError(b.proxy().Unlock(t.Context(), "k", "first", nil)) // another proxy releases by ballot
	sent := 0
	b.faultOf = func(_ int, op cell.Op) fault {
		switch {
		case sent >= r.quorum:
			return requestFailed
		case kindOf(op) == "accept":
			sent++
			return connectionBroken
		}
		return noFault
	}
	var mayArrive func() bool
	request := takeOptions("second")
	request.OnRemovalDue = func(_ string, mayArriveFunc func() bool) { mayArrive = mayArriveFunc }
	if _, err := r.Lock(t.Context(), []string{"k"}, request); err == nil {
		t.Fatal("granted by nobody")
	}
	if mayArrive == nil || !mayArrive() {
		t.Fatal("no accept may arrive")
	}
	b.setClock(b.now.Add(2 * Limit))
	b.faultOf = nil
	if b.deliverPending(); mayArrive() || b.readValue() == "second" {
		t.Errorf("accepts that come late are done: the masters hold %s", b.cells("k"))
	}
}

// TestRemovalDueDuringTake checks that a failed LOCK reports its removal as due, and that mayArrive
// returns true, if a majority may hold the key. Two masters took the key and go away before the
// undo, and a third master may still take it.
func TestRemovalDueDuringTake(t *testing.T) {
	b := newFakeMasters(t, 5)
	b.faultOf = func(m int, op cell.Op) fault {
		switch isTake := kindOf(op) == "take"; {
		case isTake && m <= 1:
			return noFault
		case isTake && m == 2:
			return connectionBroken
		case isTake || m <= 1:
			return requestFailed
		}
		return noFault
	}
	var mayArrive func() bool
	request := takeOptions("A")
	request.OnRemovalDue = func(_ string, arrives func() bool) { mayArrive = arrives }
	if _, err := b.proxy().Lock(t.Context(), []string{"k"}, request); err == nil || mayArrive == nil || !mayArrive() {
		t.Errorf("%v, and nothing may arrive", err)
	}
}

// TestRemovalDueOfUnlock checks that a late UNLOCK reports only the removal of its own
// lock as due, not the removal of a newer lock with the same token.
func TestRemovalDueOfUnlock(t *testing.T) {
	b := newFakeMasters(t, 5)
	r, other := b.proxy(), b.proxy()
	b.setFaultOn("take", requestFailed, 3, 4)
	b.mustLock(r, "1")
	var nextGrant GrantedLock
	b.faultOf = func(m int, op cell.Op) fault {
		if kindOf(op) == "remove" && m == 3 && nextGrant.Version == "" {
			b.faultOf = nil
			nextGrant = b.mustLock(other, "1")
			b.setClock(b.now.Add(Limit + time.Millisecond))
		}
		return noFault
	}
	var dueVersions []string
	onRemovalDue := func(v string, _ time.Duration) { dueVersions = append(dueVersions, v) }
	if err := r.Unlock(t.Context(), "k", "1", onRemovalDue); err == nil || nextGrant.Version == "" {
		t.Fatalf("released in time: %v", err)
	}
	if len(dueVersions) == 0 || slices.Contains(dueVersions, nextGrant.Version) {
		t.Errorf("owed %q, and the next lock is %q", dueVersions, nextGrant.Version)
	}
}
