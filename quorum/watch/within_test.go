package watch

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"redlock-proxy/internal/redistest"
)

// reads passes the results of reads of a key.
type reads chan Content

// within returns an alarm for a key of a cell that five masters hold, without connecting to them.
func within(t *testing.T, read func(context.Context) Content) *KeyAlarm {
	t.Helper()
	w := New(Options{Quorum: 3, Rand: rand.Float64})
	t.Cleanup(w.Close)
	a := w.Within(0, "cell", read)
	a.seen = make([]sighting, 5)
	a.lastView = a.evaluate(a.seen, a.quorum, time.Now())
	for i := range a.seen {
		a.update(i, sighting{state: held})
	}
	<-a.Changes()
	return a
}

// TestWithin: the key is read once after each look that finds its cell held. The result is valid
// until the next change or look.
func TestWithin(t *testing.T) {
	found := make(reads)
	a := within(t, func(context.Context) Content { return <-found })
	now := time.Now()
	end := now.Add(time.Hour)
	for _, test := range []struct {
		holds Content
		want  View
	}{
		{Content{End: end}, View{Verdict: Held, End: end}},
		{Content{}, View{Verdict: Held}},
		{Content{Absent: true}, View{Verdict: Free}},
		{Content{Alone: true}, View{Verdict: Held}},
	} {
		a.Read(now)
		for range 2 { // the second call starts no other read
			if v := a.View(now); v != (View{Asking: true}) {
				t.Fatalf("before it is read: %+v", v)
			}
		}
		found <- test.holds
		<-a.Changes()
		for range 2 {
			if v := a.View(now); v != test.want {
				t.Errorf("it holds %+v: %+v", test.holds, v)
			}
		}
	}
	a.update(0, sighting{state: changed})
	if v := a.View(now); v.Verdict != Held || !v.SomeChanged {
		t.Errorf("after a change: %+v", v)
	}
	a.update(0, sighting{state: held})
	if v := a.View(now); !v.Asking {
		t.Errorf("after a change that was looked at: %+v", v)
	}
	found <- Content{}
}

// TestWithinLateRead: the result of a read that began before a look is discarded.
func TestWithinLateRead(t *testing.T) {
	first, second := make(reads), make(reads)
	all := make(chan reads, 2)
	all <- first
	all <- second
	a := within(t, func(context.Context) Content { return <-<-all })
	now := time.Now()
	a.View(now)
	redistest.Await(t, "the first read has begun", func() bool { return len(all) < 2 })
	a.Read(now)
	a.View(now)
	redistest.Await(t, "the second read has begun", func() bool { return len(all) < 1 })
	second <- Content{}
	<-a.Changes()
	first <- Content{Absent: true}
	a.watcher.Close() // waits for both
	if v := a.View(now); v.Verdict != Held {
		t.Errorf("%+v", v)
	}
}

// TestWithinStops: Stop cancels a read.
func TestWithinStops(t *testing.T) {
	ended := make(chan struct{})
	a := within(t, func(ctx context.Context) Content { <-ctx.Done(); close(ended); return Content{} })
	a.View(time.Now())
	a.Stop()
	<-ended
}
