package quorum

import (
	"testing"
	"time"
)

func TestCoarse(t *testing.T) {
	records := map[time.Duration]bool{}
	for ms := time.Duration(1); ms < 100_000; ms++ {
		ttl := ms * time.Millisecond
		got := coarse(ttl)
		if got < ttl || got > ttl+ttl/4 || coarse(got) != got {
			t.Fatalf("%v: got %v", ttl, got)
		}
		records[got] = true
	}
	if len(records) > 70 {
		t.Errorf("%d records for 100,000 TTLs", len(records))
	}
	if got := coarse(1500 * time.Microsecond); got != 2*time.Millisecond {
		t.Errorf("1.5 ms: got %v", got)
	}
}

func TestLongestTTL(t *testing.T) {
	l := newLongestTTL(5, time.Hour)
	want := func(what string, inUse, recorded time.Duration) {
		t.Helper()
		if got := time.Duration(l.recorded.Load()); l.inUse() != inUse || got != recorded {
			t.Errorf("%s: in use %v, recorded %v, want %v, %v", what, l.inUse(), got, inUse, recorded)
		}
	}
	want("nothing is known", time.Hour, 0)
	l.saw(0, time.Minute, true)
	l.saw(1, time.Second, true)
	want("two of five are known", time.Hour, 0)
	l.saw(2, 2*time.Minute, false)
	want("one in quarantine does not count", time.Hour, 0)
	l.saw(3, 0, true)
	want("three meet every majority", 2*time.Minute, 0)
	l.saw(3, time.Minute, true)
	want("three have a second", 2*time.Minute, time.Second)
	l.made(3 * time.Minute)
	want("recorded", 3*time.Minute, 3*time.Minute)
	l.saw(4, time.Second, true)
	want("what stood on a majority is made to stand again", 3*time.Minute, 3*time.Minute)
}

func TestLongestOfAChange(t *testing.T) {
	endlessly := Entry{Present: true, Value: "v", Left: Endless}
	for _, c := range []struct {
		change Change
		want   time.Duration
	}{
		{Acquire(job, token, time.Minute), time.Minute},
		{Acquire(job, token, Endless), time.Hour},
		{Extend(job, token, time.Second), time.Second},
		{Release(job, token), 0},
		{read([]Key{job}), 0},
		{edited([]Edit{{Key: job, Now: lasting("a", time.Second)}, {Key: spare, Now: lasting("a", time.Minute)}}), time.Minute},
		{edited([]Edit{{Key: job, Was: endlessly, Now: lasting("a", time.Minute), KeepLeft: true}}), 0},
		{edited([]Edit{{Key: job, Now: endlessly}}), time.Hour},
	} {
		if got := c.change.longest(time.Hour); got != c.want {
			t.Errorf("%+v: got %v, want %v", c.change, got, c.want)
		}
	}
}

// TestLongestIsRecordedBeforeItIsUsed, on a majority, once.
func TestLongestIsRecordedBeforeItIsUsed(t *testing.T) {
	inGuardedBubble(t, 3, func(b *bench) {
		b.settle()
		records := func() (all []string) {
			for _, m := range b.masters {
				m.set(func(f *fakeMaster) { all = append(all, f.own(0, longestKey)) })
			}
			return all
		}
		b.mustLock(token, 30*time.Second)
		if got := records(); got[0] != "32768" || got[1] != "32768" || got[2] != "32768" {
			t.Errorf("got %q, want 32768 on each", got)
		}
		for _, m := range b.masters {
			m.set(func(f *fakeMaster) { f.log = nil })
		}
		for _, m := range b.masters {
			m.set(func(f *fakeMaster) { m.refuses = true })
		}
		if _, err := b.cluster.Commit(b.Context(), Acquire(spare, token, time.Hour)); err == nil {
			t.Error("granted without a record")
		}
	})
}
