package register

import (
	"testing"
	"time"
)

// TestRetryOnMasterThatRefused checks that a master that refuses a lock because of an expiring cell
// soon holds it as a plain cell, so that its release takes one round trip.
func TestRetryOnMasterThatRefused(t *testing.T) {
	b := newFakeMasters(t, 3)
	r := b.proxy()
	b.plain("you", "x", 20*time.Millisecond, 2)
	b.lock(r, "me")
	b.wantHolds("me me you")
	b.advance(8 * time.Millisecond)
	b.wantHolds("me me you")
	b.advance(16 * time.Millisecond)
	b.wantHolds("me me me")
	b.rounds = nil
	b.noError(r.Unlock(t.Context(), "k", "me", nil))
	b.wantRounds("remove")
	b.wantHolds(". . .")
}

// TestNoRetryAfterRelease checks that the master is not asked again once the lock is released.
func TestNoRetryAfterRelease(t *testing.T) {
	b := newFakeMasters(t, 3)
	r := b.proxy()
	b.plain("you", "x", 5*time.Millisecond, 2)
	b.lock(r, "me")
	b.noError(r.Unlock(t.Context(), "k", "me", nil))
	b.rounds = nil
	b.advance(100 * time.Millisecond)
	b.wantRounds("")
	b.wantHolds(". . .")
}

// TestReleaseDuringRetry checks that a ballot releases the lock if the connection of a retry broke.
func TestReleaseDuringRetry(t *testing.T) {
	b := newFakeMasters(t, 3)
	r := b.proxy()
	b.plain("you", "x", 5*time.Millisecond, 2)
	b.lock(r, "me")
	b.setFateOf("take", broken, 2)
	b.advance(8 * time.Millisecond)
	b.noError(r.Unlock(t.Context(), "k", "me", nil))
	b.fate = nil
	b.deliverPending()
	b.wantHolds("-* -* me")
	b.advance(removalTTL)
	b.wantHolds(". . .")
}
