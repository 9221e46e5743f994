package guard

import (
	"testing"
	"time"
)

func TestRoundUpTTL(t *testing.T) {
	records := map[time.Duration]bool{}
	for ms := time.Duration(1); ms < 100_000; ms++ {
		ttl := ms * time.Millisecond
		got := roundUpTTL(ttl)
		if got < ttl || got > ttl+ttl/4 || roundUpTTL(got) != got {
			t.Fatalf("%v: got %v", ttl, got)
		}
		records[got] = true
	}
	if len(records) > 70 {
		t.Errorf("%d records for 100,000 TTLs", len(records))
	}
	if got := roundUpTTL(1500 * time.Microsecond); got != 2*time.Millisecond {
		t.Errorf("1.5 ms: got %v", got)
	}
}

func TestLongestTTL(t *testing.T) {
	l := newMaxTTLTracker(5, time.Hour)
	check := func(label string, wantInUse, wantRecorded time.Duration) {
		t.Helper()
		if got := time.Duration(l.maxRecordedTTL.Load()); l.TTLInUse() != wantInUse || got != wantRecorded {
			t.Errorf("%s: in use %v, recorded %v, want %v, %v", label, l.TTLInUse(), got, wantInUse, wantRecorded)
		}
	}
	check("nothing is known", time.Hour, 0)
	l.RaiseLimit(time.Minute)
	check("it is not lowered", time.Hour, 0)
	l.RaiseLimit(2 * time.Hour)
	check("it is raised", 2*time.Hour, 0)
	l.Observe(0, time.Minute, true)
	l.Observe(1, time.Second, true)
	check("two of five are known", 2*time.Hour, 0)
	l.Observe(2, 2*time.Minute, false)
	check("one in quarantine does not count", 2*time.Hour, 0)
	l.Observe(3, 0, true)
	check("three meet every majority", 2*time.Minute, 0)
	l.Observe(3, time.Minute, true)
	check("three have a second", 2*time.Minute, time.Second)
	l.NoteRecorded(3 * time.Minute)
	check("recorded", 3*time.Minute, 3*time.Minute)
	l.Observe(4, time.Second, true)
	if !l.Observe(0, 80*time.Hour, true) {
		t.Error("the record of a single master is not refuted")
	}
	check("one alone is longer than the limit", 3*time.Minute, 3*time.Minute)
	l.Observe(4, 70*time.Hour, true)
	check("two are", 70*time.Hour, 3*time.Minute)
	l = newMaxTTLTracker(5, time.Hour)
	for i, ttl := range []time.Duration{40 * time.Hour, time.Second, time.Second} {
		l.Observe(i, ttl, true)
	}
	check("it may stand on two others", time.Hour, time.Second)
	l.Observe(3, time.Second, true)
	check("three others meet every majority", time.Second, time.Second)
	l = newMaxTTLTracker(5, time.Hour)
	l.RaiseLimit(2 * time.Hour)
	for i, ttl := range []time.Duration{time.Minute, time.Second, 2 * time.Minute, time.Minute, time.Second} {
		l.Observe(i, ttl, i != 2)
	}
	l.NoteRecorded(3 * time.Minute)
	check("a majority has it recorded again", 3*time.Minute, 3*time.Minute)
}
