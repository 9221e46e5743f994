package guard

import (
	"testing"
	"time"

	"redlock-proxy/quorum/guard/marker"
)

// TestOverride checks that an operator's override counts once every proxy that reaches the masters
// had time to publish its knowledge, which takes precedence.
func TestOverride(t *testing.T) {
	now, ttl := time.Now(), time.Minute
	w := newOverride(3, &ttl, false)
	want := func(what string, at time.Duration, largest, bound time.Duration, ok bool) {
		t.Helper()
		if got, counts := w.bound(largest, now.Add(at)); got != bound || counts != ok {
			t.Errorf("%s: got %v, %v, want %v, %v", what, got, counts, bound, ok)
		}
	}
	want("nothing was reached", time.Hour, 0, 0, false)
	w.reached(0, "a", now)
	w.reached(1, "b", now)
	want("two of three were reached", time.Hour, 0, 0, false)
	w.reached(2, "c", now)
	w.reached(0, "a", now.Add(time.Second))
	want("just reached", allChecked-1, 0, 0, false)
	want("for long enough", allChecked, 0, ttl, true)
	want("a longer one is known", allChecked, time.Hour, time.Hour, true)
	w.reached(1, "d", now.Add(2*time.Second))
	want("one restarted since", allChecked, 0, 0, false)
	want("that was long ago", allChecked+2*time.Second, 0, ttl, true)

	w = newOverride(3, nil, false)
	w.reached(0, "a", now)
	want("nothing was said", time.Hour, 0, 0, false)
}

// TestBoundOfARecord checks that a record's bound is parsed, and takes precedence over an assumed
// TTL, but not over a TTL that was seen.
func TestBoundOfARecord(t *testing.T) {
	r := marker.Record{RunID: "1", Nonce: "n", Since: 3, Claim: marker.NoClaim, Reason: string(Empty)}
	if got, ok := marker.ParseRecord(r.String()); !ok || got != r || got.Bounded {
		t.Errorf("%q: got %+v, %v", r, got, ok)
	}
	bounded := r.Within(1500 * time.Microsecond)
	if got, ok := marker.ParseRecord(bounded.String()); !ok || got != bounded || got.Bound != 2*time.Millisecond {
		t.Errorf("%q: got %+v, %v", bounded, got, ok)
	}
	l := newMaxTTLTracker(5, time.Hour)
	l.Saw(0, time.Minute, true)
	for _, c := range []struct {
		r    marker.Record
		want time.Duration
	}{{r, time.Hour}, {r.Within(0), time.Minute}, {r.Within(2 * time.Minute), 2 * time.Minute}, {r.WithOverride(0), 0}} {
		if got := l.Forgotten(c.r); got != c.want {
			t.Errorf("%q: %v, want %v", c.r, got, c.want)
		}
	}
}
