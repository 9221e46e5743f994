package queue

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"redlock-proxy/quorum/wake"
)

// hall is where some wait until things are put under keys. All of it happens in one bubble, one
// after the other.
type hall struct {
	*testing.T
	lines Lines[string]
	begun time.Time
	// quorum, if it is set, is closed when a majority votes again.
	quorum chan struct{}

	mu     sync.Mutex
	things map[string]int
	alarms map[string][]*hallAlarm // that are set
	// told is what has happened.
	told []string
}

// hallAlarm shows a view of its key.
type hallAlarm struct {
	hall  *hall
	key   string
	bell  chan struct{}
	view  wake.View
	ended bool
}

func (a *hallAlarm) View(time.Time) wake.View {
	a.hall.mu.Lock()
	defer a.hall.mu.Unlock()
	return a.view
}

func (a *hallAlarm) Arm() {
	a.hall.mu.Lock()
	defer a.hall.mu.Unlock()
	if a.view.Verdict == wake.Changed {
		a.view = wake.View{Verdict: wake.Held}
	}
}

func (a *hallAlarm) LookAnew() {
	a.hall.mu.Lock()
	defer a.hall.mu.Unlock()
	a.hall.note("looks anew at " + a.key)
}

func (a *hallAlarm) Ended() bool {
	a.hall.mu.Lock()
	defer a.hall.mu.Unlock()
	return a.ended
}

func (a *hallAlarm) Stop() {
	a.hall.mu.Lock()
	defer a.hall.mu.Unlock()
	a.hall.alarms[a.key] = slices.DeleteFunc(a.hall.alarms[a.key], func(other *hallAlarm) bool { return other == a })
}

func newHall(t *testing.T) *hall {
	return &hall{T: t, things: map[string]int{}, alarms: map[string][]*hallAlarm{}, begun: time.Now()}
}

// note is called with mu held.
func (h *hall) note(what string) {
	h.told = append(h.told, fmt.Sprintf("%v %s", time.Since(h.begun), what))
}

// waits has somebody wait for something under the first of some keys that has it.
func (h *hall) waits(ctx context.Context, name string, over <-chan time.Time, keys ...string) {
	go func() {
		ended := h.lines.Await(ctx, Arrival[string]{
			Keys: keys, Over: over, Rand: func() float64 { return 1 },
			Alarm: func(key string, bell chan struct{}) ChangeAlarm {
				h.mu.Lock()
				defer h.mu.Unlock()
				a := &hallAlarm{hall: h, key: key, bell: bell, view: wake.View{Verdict: wake.Held}}
				h.alarms[key] = append(h.alarms[key], a)
				return a
			},
			Quorum: func() <-chan struct{} { h.mu.Lock(); defer h.mu.Unlock(); return h.quorum },
			Try: func(own []bool) Attempt {
				h.mu.Lock()
				defer h.mu.Unlock()
				if h.quorum != nil {
					h.note(name + " cannot tell")
					return Unlooked
				}
				for i, key := range keys {
					if own[i] && h.things[key] > 0 {
						h.things[key]--
						h.note(name + " has " + key)
						return Made
					}
				}
				h.note(name + " has none")
				return InVain
			},
		})
		h.mu.Lock()
		defer h.mu.Unlock()
		if ended != Done {
			h.note(fmt.Sprintf("%s ends: %d", name, ended))
		}
	}()
	synctest.Wait()
}

// puts has so many things be under a key, and those who have an alarm be told.
func (h *hall) puts(key string, n int) {
	h.mu.Lock()
	h.things[key] += n
	h.mu.Unlock()
	h.shows(key, wake.View{Verdict: wake.Changed})
}

func (h *hall) shows(key string, v wake.View) {
	h.mu.Lock()
	for _, a := range h.alarms[key] {
		a.view = v
		select {
		case a.bell <- struct{}{}:
		default:
		}
	}
	h.mu.Unlock()
	synctest.Wait()
}

// happened fails unless this has happened since the last time.
func (h *hall) happened(want ...string) {
	h.Helper()
	if told := h.since(); !slices.Equal(told, want) {
		h.Errorf("it came to\n  %s\nwant\n  %s", strings.Join(told, "\n  "), strings.Join(want, "\n  "))
	}
}

// since is what has happened since the last time.
func (h *hall) since() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	told := h.told
	h.told = nil
	return told
}

// empty fails unless nobody waits any more.
func (h *hall) empty() {
	h.Helper()
	synctest.Wait()
	if n := h.lines.Len(); n > 0 || len(h.lines.byKey) > 0 {
		h.Errorf("%d wait, in %d lines", n, len(h.lines.byKey))
	}
	for key, alarms := range h.alarms {
		if len(alarms) > 0 {
			h.Errorf("an alarm for %s is set", key)
		}
	}
}

// Nothing is tried while nothing changes, but after a minute; what is put there is taken at once,
// by whoever came first.
func TestArrivals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHall(t)
		h.waits(t.Context(), "a", nil, "k")
		h.happened("0s a has none", "0s a has none") // the second one when the masters tell of changes
		h.waits(t.Context(), "b", nil, "k")
		h.waits(t.Context(), "c", nil, "k")
		h.happened("0s b has none", "0s c has none")
		if n := len(h.alarms["k"]); n != 1 {
			t.Errorf("%d alarms are set", n)
		}
		time.Sleep(59 * time.Second)
		h.puts("k", 2)
		h.happened("59s a has k", "59s b has k", "59s c has none")
		time.Sleep(time.Minute)
		synctest.Wait()
		h.happened("1m59s looks anew at k", "1m59s c has none")
		h.puts("k", 1)
		time.Sleep(longestLook)
		synctest.Wait()
		h.happened("1m59.0005s c has k")
		h.empty()
	})
}

// Who waits for several keys takes what comes under those of which it is the head, and is told when
// it becomes that.
func TestArrivalsOfSeveral(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHall(t)
		h.waits(t.Context(), "a", nil, "k")
		h.waits(t.Context(), "b", nil, "k", "l")
		h.waits(t.Context(), "c", nil, "l", "m")
		time.Sleep(time.Second)
		h.since()
		h.puts("l", 1)
		time.Sleep(time.Second)
		h.happened("1s b has l", "1s c has none")
		h.puts("k", 1)
		h.happened("2s a has k")
		h.puts("m", 1)
		h.happened("2s c has m")
		h.empty()
	})
}

// Those who leave, and those whose time is over, are in nobody's way.
func TestArrivalsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHall(t)
		ctx, leave := context.WithCancel(t.Context())
		h.waits(ctx, "a", nil, "k")
		h.waits(t.Context(), "b", time.After(2*time.Second), "k")
		h.waits(t.Context(), "c", nil, "k")
		h.since()
		time.Sleep(time.Second)
		leave()
		synctest.Wait()
		h.happened(fmt.Sprintf("1s a ends: %d", Left), "1s b has none")
		time.Sleep(time.Second)
		synctest.Wait()
		h.happened(fmt.Sprintf("2s b ends: %d", Over), "2s c has none")
		h.puts("k", 1)
		time.Sleep(time.Second)
		h.happened("2.0005s c has k")
		h.empty()
	})
}

// Where some masters are not watched it is tried each second, where too few are it polls, and where
// the masters were changed another alarm is set.
func TestArrivalsUnwatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHall(t)
		h.waits(t.Context(), "a", nil, "k")
		time.Sleep(time.Second)
		h.shows("k", wake.View{Verdict: wake.Held, Partly: true})
		h.since()
		time.Sleep(2*time.Second + time.Millisecond)
		synctest.Wait()
		h.happened("2s a has none", "3s a has none")
		h.shows("k", wake.View{})
		h.since()
		time.Sleep(time.Second)
		if n := len(h.since()); n < 25 || n > 40 {
			t.Errorf("%d tries in a second", n)
		}
		h.mu.Lock()
		h.alarms["k"][0].ended = true
		h.things["k"]++
		h.mu.Unlock()
		time.Sleep(time.Second)
		h.empty()
	})
}

// A change that few masters tell of is given a moment, in which it comes to stand.
func TestArrivalsGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHall(t)
		h.waits(t.Context(), "a", nil, "k")
		time.Sleep(time.Second)
		h.since()
		h.shows("k", wake.View{Verdict: wake.Changed, Stirred: true})
		h.happened()
		time.Sleep(grace / 2)
		h.puts("k", 1)
		h.happened(fmt.Sprintf("%v a has k", time.Second+grace/2))
		h.empty()
	})
}
