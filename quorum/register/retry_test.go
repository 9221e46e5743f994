package register

import (
	"testing"
	"time"
)

// TestRetryOnRefusingMaster checks that a master that refuses a lock because of an expiring cell
// soon holds the lock as a plain cell. So the release takes one round trip.
func TestRetryOnRefusingMaster(t *testing.T) {
	b := newFakeMasters(t, 3)
	r := b.proxy()
	b.putPlainCell("you", "x", 20*time.Millisecond, 2)
	b.mustLock(r, "me")
	b.wantCells("me me you")
	b.advance(8 * time.Millisecond)
	b.wantCells("me me you")
	b.advance(16 * time.Millisecond)
	b.wantCells("me me me")
	b.rounds = nil
	b.noError(r.Unlock(t.Context(), "k", "me", nil))
	b.wantRounds("remove")
	b.wantCells(". . .")
}

// TestRetryNeededForMajority checks that an attempt is repeated on a master that refused it because
// of an expiring cell, if a third master's vote does not count. The proxy waits for the reply.
func TestRetryNeededForMajority(t *testing.T) {
	b := newFakeMasters(t, 3)
	r := b.proxy()
	b.putPlainCell("you", "x", 5*time.Millisecond, 1)
	b.setFaultOn("take", voteUncounted, 2)
	b.mustLock(r, "me")
	b.wantCells("me me me")
	if len(b.unawaitedRounds) > 0 {
		t.Errorf("rounds that do not wait for a reply: %v", b.unawaitedRounds)
	}
}

// TestNoRetryAfterRelease checks that, once the lock is released, the proxy does not repeat the
// take on a master that refused it.
func TestNoRetryAfterRelease(t *testing.T) {
	b := newFakeMasters(t, 3)
	r := b.proxy()
	b.putPlainCell("you", "x", 5*time.Millisecond, 2)
	b.mustLock(r, "me")
	b.noError(r.Unlock(t.Context(), "k", "me", nil))
	b.rounds = nil
	b.advance(100 * time.Millisecond)
	b.wantRounds("")
	b.wantCells(". . .")
}

// TestReleaseDuringRetry checks that a ballot releases the lock if the connection of a retry broke.
func TestReleaseDuringRetry(t *testing.T) {
	b := newFakeMasters(t, 3)
	r := b.proxy()
	b.putPlainCell("you", "x", 5*time.Millisecond, 2)
	b.mustLock(r, "me")
	b.setFaultOn("take", connectionBroken, 2)
	b.advance(8 * time.Millisecond)
	b.noError(r.Unlock(t.Context(), "k", "me", nil))
	b.faultOf = nil
	b.deliverPending()
	b.wantCells("-* -* me")
	b.advance(removalTTL)
	b.wantCells(". . .")
}
