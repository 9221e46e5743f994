package quorum

import (
	"testing"
	"time"
)

// TestRemovals: what is owed is due at once, then again after pauses that grow, until a majority has answered and it can come to none any more; a lease
// that is over owes nothing.
func TestRemovals(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	r := newRemovals()
	open := true
	owed := func(version string, lease time.Duration) *removal {
		return &removal{owedVersion: owedVersion{job, version}, until: now.Add(lease), next: now, mayArrive: func() bool { return open }}
	}
	if !r.add(owed("v", time.Minute)) || !r.add(owed("v", time.Minute)) || r.len() != 1 {
		t.Fatalf("%d are owed, want 1", r.len())
	}
	for n, c := range []struct {
		paid bool
		wait time.Duration
	}{{false, firstPause}, {false, 2 * firstPause}, {true, longestPause}, {false, longestPause}} {
		one, _ := r.take(now)
		if one == nil {
			t.Fatalf("payment %d is not due", n)
		}
		r.settled(one, c.paid, now)
		select {
		case <-r.news:
		default:
			t.Errorf("payment %d: who pays is not told of the next", n)
		}
		if again, wait := r.take(now); again != nil || wait != c.wait {
			t.Errorf("payment %d: due again after %v, want %v", n, wait, c.wait)
		}
		now = now.Add(c.wait)
	}
	open = false
	one, _ := r.take(now)
	r.settled(one, true, now)
	if r.owes(job, "v") || r.len() != 0 || r.bytes != 0 {
		t.Errorf("paid, %d are owed, %d bytes", r.len(), r.bytes)
	}
	r.add(owed("w", time.Minute))
	if one, _ := r.take(now.Add(time.Hour)); one != nil || r.len() != 0 {
		t.Error("a lease that is over is owed")
	}
}

// TestRemovalsAreBounded: beyond its bounds nothing is remembered.
func TestRemovalsAreBounded(t *testing.T) {
	r := newRemovals()
	large := string(make([]byte, mostOwedBytes/2))
	for i, want := range []bool{true, false} {
		if got := r.add(&removal{owedVersion: owedVersion{job, large + string(rune('a'+i)) + large[:i]}, until: time.Now()}); got != want {
			t.Errorf("removal %d: %v", i, got)
		}
		large += large
	}
}

// TestRemovalsAreAskedFor: all are due at once, and unpaid until a majority has answered again.
func TestRemovalsAreAskedFor(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	r := newRemovals()
	r.add(&removal{owedVersion: owedVersion{job, "v"}, until: now.Add(time.Hour), next: now, mayArrive: func() bool { return true }})
	one, _ := r.take(now)
	r.settled(one, true, now)
	if r.unpaid() != 0 {
		t.Error("it was paid")
	}
	r.ask(now)
	if one, _ = r.take(now); one == nil || r.unpaid() != 1 {
		t.Error("it is not asked for")
	}
}
