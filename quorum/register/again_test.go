package register

import (
	"testing"
	"time"
)

// A master that refuses a lock because of what ends a moment later has it soon after, as it was
// taken: its release takes one round trip.
func TestRefusedIsAskedAgain(t *testing.T) {
	b := newBench(t, 3)
	r := b.proxy()
	b.plain("you", "x", 20*time.Millisecond, 2)
	b.lock(r, "me")
	b.wantHolds("me me you")
	b.pass(8 * time.Millisecond)
	b.wantHolds("me me you")
	b.pass(16 * time.Millisecond)
	b.wantHolds("me me me")
	b.rounds = nil
	b.sure(r.Unlock(t.Context(), "k", "me", nil))
	b.wantRounds("remove")
	b.wantHolds(". . .")
}

// It is asked no more once the lock is released.
func TestReleasedIsNotAskedAgain(t *testing.T) {
	b := newBench(t, 3)
	r := b.proxy()
	b.plain("you", "x", 5*time.Millisecond, 2)
	b.lock(r, "me")
	b.sure(r.Unlock(t.Context(), "k", "me", nil))
	b.rounds = nil
	b.pass(100 * time.Millisecond)
	b.wantRounds("")
	b.wantHolds(". . .")
}

// Where the connection broke on which the master was asked again, a ballot releases the lock.
func TestReleaseWhileAskedAgain(t *testing.T) {
	b := newBench(t, 3)
	r := b.proxy()
	b.plain("you", "x", 5*time.Millisecond, 2)
	b.lock(r, "me")
	b.of("take", stray, 2)
	b.pass(8 * time.Millisecond)
	b.sure(r.Unlock(t.Context(), "k", "me", nil))
	b.fate = nil
	b.deliver()
	b.wantHolds("-* -* me")
	b.pass(removedFor)
	b.wantHolds(". . .")
}
