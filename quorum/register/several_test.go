package register

import (
	"errors"
	"strconv"
	"testing"
	"time"

	"redlock-proxy/quorum/cell"
)

var severalKeys = []string{"k", "k2"}

func severalOptions(token string) TakeOptions {
	return TakeOptions{Tokens: []string{token, token}, TTL: time.Minute}
}

// TestRefusingKey checks that a refused attempt on several keys names the key that is held, and its
// value.
func TestRefusingKey(t *testing.T) {
	for i, held := range severalKeys {
		b := newFakeMasters(t, 3)
		_, err := b.proxy().Lock(t.Context(), []string{held}, takeOptions("x"))
		b.noError(err)
		_, err = b.proxy().Lock(t.Context(), severalKeys, severalOptions("me"))
		refused, isRefused := errors.AsType[*RefusedError](err)
		if !isRefused || !errors.Is(err, ErrHeld) || refused.Key != i || refused.CurrentSnapshot.Value != "x" {
			t.Errorf("%s is held: %+v", held, err)
		}
		if free := severalKeys[1-i]; b.cells(free) != ". . ." {
			t.Errorf("%s: %s", free, b.cells(free))
		}
	}
}

// TestSeveralAreNotHeldByLeftovers checks that a majority of refusals because of different keys, or
// of different attempts, does not mean that a client holds a key.
func TestSeveralAreNotHeldByLeftovers(t *testing.T) {
	b := newFakeMasters(t, 3)
	b.stores[0].Put("k", plainCell("x"), time.Minute)
	b.stores[1].Put("k2", plainCell("x"), time.Minute)
	if _, err := b.proxy().Lock(t.Context(), severalKeys, severalOptions("me")); outcome(err) != "contended" {
		t.Error(err)
	}
	if b.cells("k") != "x . ." || b.cells("k2") != ". x ." {
		t.Errorf("the masters hold %s and %s", b.cells("k"), b.cells("k2"))
	}
}

// TestSecondKeyMayBeHeld checks that the result is unknown if a master that is away may complete
// the majority of a holder of the second key.
func TestSecondKeyMayBeHeld(t *testing.T) {
	b := newFakeMasters(t, 5)
	for m := range 2 {
		b.stores[m].Put("k2", plainCell("x"), time.Minute)
	}
	b.setFault(requestFailed, 4)
	if _, err := b.proxy().Lock(t.Context(), severalKeys, severalOptions("me")); outcome(err) != "no quorum" {
		t.Error(err)
	}
	if b.pauses > 2*maxBlockedTries {
		t.Errorf("%d pauses", b.pauses)
	}
}

// TestSeveralAfterRemoval checks that an attempt on several keys waits until a removal by ballot
// has expired, without asking the masters meanwhile.
func TestSeveralAfterRemoval(t *testing.T) {
	b := newFakeMasters(t, 3)
	owner, other := b.proxy(), b.proxy()
	b.mustLock(owner, "x")
	b.noError(other.Unlock(t.Context(), "k", "x", nil))
	b.wantCells("-* -* -*")
	b.rounds = nil
	start := b.now
	_, err := b.newPatientProxy().Lock(t.Context(), severalKeys, severalOptions("me"))
	b.noError(err)
	b.wantRounds("take take")
	if waited := b.now.Sub(start); waited < removalTTL-time.Second || b.cells("k") != "me me me" || b.cells("k2") != "me me me" {
		t.Errorf("after %v: %s, %s", waited, b.cells("k"), b.cells("k2"))
	}
}

// newPatientProxy returns a proxy that retries for longer than a removal stays.
func (b *fakeMasters) newPatientProxy() *Register {
	r := b.proxy()
	r.opts.ContentionTimeout = 2 * removalTTL
	return r
}

// TestUndoOfSeveral checks that a failed attempt is undone under each of its keys.
func TestUndoOfSeveral(t *testing.T) {
	b := newFakeMasters(t, 3)
	b.setFaultOn("take", replyLost, 1, 2)
	if _, err := b.proxy().Lock(t.Context(), severalKeys, severalOptions("me")); outcome(err) != "no quorum" {
		t.Error(err)
	}
	for _, key := range severalKeys {
		if got := b.cells(key); got != ". . ." {
			t.Errorf("%s: the masters hold %s", key, got)
		}
	}
}

// TestFenceOfSeveral checks that several keys get the same fence, above each key's earlier fences.
func TestFenceOfSeveral(t *testing.T) {
	b := newFakeMasters(t, 3)
	for m, s := range b.stores {
		s.Put(cell.FenceKey("k"), cell.Parse("5"), time.Hour)
		s.Put(cell.FenceKey("k2"), cell.Parse(strconv.Itoa(70+m)), time.Hour)
	}
	options := severalOptions("me")
	options.Fence = true
	got, err := b.proxy().Lock(t.Context(), severalKeys, options)
	b.noError(err)
	b.wantRounds("take take")
	for _, key := range severalKeys {
		if fence, err := b.proxy().Fence(t.Context(), key); err != nil || fence != got.Fence || fence < 72 {
			t.Errorf("%s: fence %d (%v), the lock has %d", key, fence, err, got.Fence)
		}
	}
}

// TestFenceOfSeveralIsRaised checks that several keys get a fence afterwards if the masters did not
// vote when they were asked for the keys, and that masters that lost one key do not accept it.
func TestFenceOfSeveralIsRaised(t *testing.T) {
	for _, lost := range []int{0, 1, 2} {
		b := newFakeMasters(t, 3)
		b.voterCount = 1
		options := severalOptions("me")
		options.Fence = true
		b.faultOf = func(m int, op cell.Op) fault {
			if kindOf(op) == "raise" && m < lost {
				b.stores[m].Delete("k2")
			}
			return noFault
		}
		got, err := b.proxy().Lock(t.Context(), severalKeys, options)
		if want := map[bool]string{true: "granted", false: "no quorum"}[lost < 2]; outcome(err) != want {
			t.Fatalf("%d masters lost a key: %v, want %s", lost, err, want)
		}
		for m, s := range b.stores {
			fence := cell.ParseFence(s.Get(cell.FenceKey("k")).Value.Text)
			if accepted := m >= lost; accepted != (fence > 0) || err == nil && accepted && fence != got.Fence {
				t.Errorf("%d masters lost a key: master %d has fence %d", lost, m, fence)
			}
		}
	}
}

// plainCell returns the cell of an attempt of another proxy.
func plainCell(token string) cell.Cell {
	return cell.Cell{Form: cell.Plain, Attempt: attemptOf("a"), Value: cell.Value{Present: true, Text: token}}
}
