package guard

import (
	"testing"
	"time"

	"redlock-proxy/quorum/guard/marker"
)

// TestOverrideBound checks that an operator's override counts only after every proxy that reaches
// the masters has had time to publish the TTL that it knows. A longer published TTL takes
// precedence.
func TestOverrideBound(t *testing.T) {
	now, ttl := time.Now(), time.Minute
	w := newOverride(3, &ttl, false)
	check := func(label string, elapsed time.Duration, largestTTL, bound time.Duration, ok bool) {
		t.Helper()
		if got, counts := w.bound(largestTTL, now.Add(elapsed)); got != bound || counts != ok {
			t.Errorf("%s: got %v, %v, want %v, %v", label, got, counts, bound, ok)
		}
	}
	check("nothing was reached", time.Hour, 0, 0, false)
	w.noteReached(0, "a", now)
	w.noteReached(1, "b", now)
	check("two of three were reached", time.Hour, 0, 0, false)
	w.noteReached(2, "c", now)
	w.noteReached(0, "a", now.Add(time.Second))
	check("just reached", allCheckedTime-1, 0, 0, false)
	check("for long enough", allCheckedTime, 0, ttl, true)
	check("a longer one is known", allCheckedTime, time.Hour, time.Hour, true)
	w.noteReached(1, "d", now.Add(2*time.Second))
	check("one restarted since", allCheckedTime, 0, 0, false)
	check("that was long ago", allCheckedTime+2*time.Second, 0, ttl, true)

	w = newOverride(3, nil, false)
	w.noteReached(0, "a", now)
	check("nothing was said", time.Hour, 0, 0, false)
}

// TestRecordBound checks that a record's bound can be parsed. It takes precedence over an assumed
// TTL, but not over a longer TTL that a master reported.
func TestRecordBound(t *testing.T) {
	r := marker.Record{RunID: "1", Nonce: "n", WrittenAt: 3, Claim: marker.NoClaim, Reason: string(Empty)}
	if got, ok := marker.ParseRecord(r.String()); !ok || got != r || got.Bounded {
		t.Errorf("%q: got %+v, %v", r, got, ok)
	}
	bounded := r.WithBound(1500 * time.Microsecond)
	if got, ok := marker.ParseRecord(bounded.String()); !ok || got != bounded || got.Bound != 2*time.Millisecond {
		t.Errorf("%q: got %+v, %v", bounded, got, ok)
	}
	l := newMaxTTLTracker(5, time.Hour)
	l.Observe(0, time.Minute, true)
	for _, c := range []struct {
		r    marker.Record
		want time.Duration
	}{{r, time.Hour}, {r.WithBound(0), time.Minute}, {r.WithBound(2 * time.Minute), 2 * time.Minute}, {r.WithOverride(0), 0}} {
		if got := l.LongestLostTTL(c.r); got != c.want {
			t.Errorf("%q: %v, want %v", c.r, got, c.want)
		}
	}
}
