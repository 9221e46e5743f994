package watch

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"redlock-proxy/internal/redistest"
)

// contentChan passes the results of reads of a key.
type contentChan chan Content

// newKeyAlarm returns an alarm for a key of a cell that five masters hold, without connecting to
// them.
func newKeyAlarm(t *testing.T, read func(context.Context) Content) *KeyAlarm {
	t.Helper()
	w := New(Options{Quorum: 3, Rand: rand.Float64})
	t.Cleanup(w.Close)
	a := w.NewKeyAlarm(0, "cell", true, read)
	a.observations = make([]observation, 5)
	a.lastView = a.evaluate(a.observations, a.quorum, time.Now())
	for i := range a.observations {
		a.update(i, observation{state: stateHeld})
	}
	<-a.Changes()
	return a
}

// TestKeyAlarm checks that the alarm reads the key once after each read that finds its cell held.
// The result is valid until the next change of the cell or the next read of it.
func TestKeyAlarm(t *testing.T) {
	contents := make(contentChan)
	a := newKeyAlarm(t, func(context.Context) Content { return <-contents })
	now := time.Now()
	expiry := now.Add(time.Hour)
	for _, test := range []struct {
		content Content
		want    View
	}{
		{Content{Expiry: expiry}, View{Verdict: Held, Expiry: expiry}},
		{Content{}, View{Verdict: Held}},
		{Content{Free: true}, View{Verdict: Free}},
		{Content{IsOnlyKey: true}, View{Verdict: Held}},
	} {
		a.Read(now)
		for range 2 { // the second call starts no other read
			if v := a.View(now); v != (View{Reading: true}) {
				t.Fatalf("before it is read: %+v", v)
			}
		}
		contents <- test.content
		<-a.Changes()
		for range 2 {
			if v := a.View(now); v != test.want {
				t.Errorf("it holds %+v: %+v", test.content, v)
			}
		}
	}
	a.update(0, observation{state: stateChanged})
	if v := a.View(now); v.Verdict != Held || !v.SomeChanged {
		t.Errorf("after a change: %+v", v)
	}
	a.update(0, observation{state: stateHeld})
	if v := a.View(now); !v.Reading {
		t.Errorf("after a change that was read: %+v", v)
	}
	contents <- Content{}
}

// TestKeyAlarmLateRead checks that the alarm discards the result of a read that began before the
// last read of the cell.
func TestKeyAlarmLateRead(t *testing.T) {
	first, second := make(contentChan), make(contentChan)
	channels := make(chan contentChan, 2)
	channels <- first
	channels <- second
	a := newKeyAlarm(t, func(context.Context) Content { return <-<-channels })
	now := time.Now()
	a.View(now)
	redistest.Await(t, "the first read has begun", func() bool { return len(channels) < 2 })
	a.Read(now)
	a.View(now)
	redistest.Await(t, "the second read has begun", func() bool { return len(channels) < 1 })
	second <- Content{}
	<-a.Changes()
	first <- Content{Free: true}
	a.watcher.Close() // waits for both
	if v := a.View(now); v.Verdict != Held {
		t.Errorf("%+v", v)
	}
}

// TestStopOfKeyAlarm checks that Stop cancels a read.
func TestStopOfKeyAlarm(t *testing.T) {
	ended := make(chan struct{})
	a := newKeyAlarm(t, func(ctx context.Context) Content { <-ctx.Done(); close(ended); return Content{} })
	a.View(time.Now())
	a.Stop()
	<-ended
}
