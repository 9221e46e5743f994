//go:build integration

package schedules

import (
	"testing"
	"time"

	"redlock-proxy/integration/kit"
)

// TestSplitVoteDuringCrash lets the LOCKs of two proxies take two masters each, while both are on
// their way to A. Then A crashes. No proxy can know which LOCK A has taken, so at least one client
// gets NOQUORUM. Soon a third client gets the lock, although A is still away.
func TestSplitVoteDuringCrash(t *testing.T) {
	t.Parallel()
	f := startFleet(t, 5)
	first, second, third := f.startProxy(t), f.startProxy(t), f.startProxy(t)
	lost := append(first.hold("lock:k", 0, A), second.hold("lock:k", 0, A)...)
	delayed := append(first.hold("lock:k", 0, D, E), second.hold("lock:k", 0, B, C)...)
	firstReply := sendAsync(connect(t, first), "LOCK", "lock:k", "first", "PX", "600000")
	secondReply := sendAsync(connect(t, second), "LOCK", "lock:k", "second", "PX", "600000")
	lost.wait(t)
	delayed.wait(t)
	f.wantHolders(t, "lock:k", "first", B, C)
	f.wantHolders(t, "lock:k", "second", D, E)
	delayed.release()
	kit.Must(t, f.masters[A].Kill())
	lost.discard()
	start := time.Now()
	replies := []any{<-firstReply, <-secondReply}
	t.Logf("the LOCKs got %v after %v", replies, time.Since(start))
	if isGrant(replies[0]) && isGrant(replies[1]) {
		t.Fatal("both clients have the lock")
	}
	client := connect(t, third)
	if isGrant(replies[0]) || isGrant(replies[1]) {
		kit.Want(t, client, nil, "LOCK", "lock:k", "third", "PX", "10000")
		return
	}
	if awaitGrant(t, client, start.Add(kit.WaitLimit), "LOCK", "lock:k", "third", "PX", "10000").IsZero() {
		t.Fatalf("no client gets the lock while A is away: %v", kit.Do(t, client, "LOCKINFO", "lock:k"))
	}
	t.Logf("a third client has the lock after %v", time.Since(start))
	kit.Want(t, client, int64(1), "UNLOCK", "lock:k", "third")
}
