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

	"redlock-proxy/quorum/watch"
)

// simulation simulates waits for values under keys. It is used in one synctest bubble.
type simulation struct {
	*testing.T
	lines ValueQueues[string]
	begun time.Time
	// quorum, if it is set, is closed when a majority votes again.
	quorum chan struct{}

	mu     sync.Mutex
	things map[string]int
	alarms map[string][]*simAlarm // the alarms in use
	// events is the log of events.
	events []string
}

// simAlarm shows a view of its key.
type simAlarm struct {
	sim   *simulation
	key   string
	bell  chan struct{}
	view  watch.View
	ended bool
}

func (a *simAlarm) View(time.Time) watch.View {
	a.sim.mu.Lock()
	defer a.sim.mu.Unlock()
	return a.view
}

func (a *simAlarm) Arm() {
	a.sim.mu.Lock()
	defer a.sim.mu.Unlock()
	if a.view.Verdict == watch.Changed {
		a.view = watch.View{Verdict: watch.Held}
	}
}

func (a *simAlarm) ReadAll() {
	a.sim.mu.Lock()
	defer a.sim.mu.Unlock()
	a.sim.note("looks anew at " + a.key)
}

func (a *simAlarm) Ended() bool {
	a.sim.mu.Lock()
	defer a.sim.mu.Unlock()
	return a.ended
}

func (a *simAlarm) Stop() {
	a.sim.mu.Lock()
	defer a.sim.mu.Unlock()
	a.sim.alarms[a.key] = slices.DeleteFunc(a.sim.alarms[a.key], func(other *simAlarm) bool { return other == a })
}

func newSimulation(t *testing.T) *simulation {
	return &simulation{T: t, things: map[string]int{}, alarms: map[string][]*simAlarm{}, begun: time.Now()}
}

// note is called with mu held.
func (h *simulation) note(what string) {
	h.events = append(h.events, fmt.Sprintf("%v %s", time.Since(h.begun), what))
}

// waits starts a wait for a value under one of some keys.
func (h *simulation) waits(ctx context.Context, name string, over <-chan time.Time, keys ...string) {
	go func() {
		ended := h.lines.Await(ctx, Arrival[string]{
			Keys: keys, Over: over, Rand: func() float64 { return 1 },
			Alarm: func(key string, bell chan struct{}) ChangeAlarm {
				h.mu.Lock()
				defer h.mu.Unlock()
				a := &simAlarm{sim: h, key: key, bell: bell, view: watch.View{Verdict: watch.Held}}
				h.alarms[key] = append(h.alarms[key], a)
				return a
			},
			Quorum: func() <-chan struct{} { h.mu.Lock(); defer h.mu.Unlock(); return h.quorum },
			Try: func(own []bool) PopResult {
				h.mu.Lock()
				defer h.mu.Unlock()
				if h.quorum != nil {
					h.note(name + " cannot tell")
					return Undetermined
				}
				for i, key := range keys {
					if own[i] && h.things[key] > 0 {
						h.things[key]--
						h.note(name + " has " + key)
						return Made
					}
				}
				h.note(name + " has none")
				return NothingStored
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

// puts adds n values under a key, and rings its alarms.
func (h *simulation) puts(key string, n int) {
	h.mu.Lock()
	h.things[key] += n
	h.mu.Unlock()
	h.shows(key, watch.View{Verdict: watch.Changed})
}

func (h *simulation) shows(key string, v watch.View) {
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

// happened fails the test unless these events have happened since the last call.
func (h *simulation) happened(want ...string) {
	h.Helper()
	if told := h.since(); !slices.Equal(told, want) {
		h.Errorf("it came to\n  %s\nwant\n  %s", strings.Join(told, "\n  "), strings.Join(want, "\n  "))
	}
}

// since returns the events since the last call.
func (h *simulation) since() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	told := h.events
	h.events = nil
	return told
}

// empty fails the test if any waiter remains.
func (h *simulation) empty() {
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

// TestArrivals: while nothing changes there is no try, except after a minute. The first waiter
// takes a new value at once.
func TestArrivals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newSimulation(t)
		h.waits(t.Context(), "a", nil, "k")
		h.happened("0s a has none", "0s a has none") // the second one after the alarm is armed
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

// TestArrivalsOfSeveral: a waiter for several keys takes values only under keys of which it is the
// head, and is notified when it becomes the head.
func TestArrivalsOfSeveral(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newSimulation(t)
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

// TestArrivalsEnd: waiters that leave or time out do not block other waiters.
func TestArrivalsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newSimulation(t)
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

// TestArrivalsUnwatched: if some masters are not watched there is a try each second. If too few are
// watched the waiter polls. If the masters have changed, a new alarm is set.
func TestArrivalsUnwatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newSimulation(t)
		h.waits(t.Context(), "a", nil, "k")
		time.Sleep(time.Second)
		h.shows("k", watch.View{Verdict: watch.Held, Partly: true})
		h.since()
		time.Sleep(2*time.Second + time.Millisecond)
		synctest.Wait()
		h.happened("2s a has none", "3s a has none")
		h.shows("k", watch.View{})
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

// TestArrivalsGrace: after a change that few masters report, the waiter gives the other masters a
// moment.
func TestArrivalsGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newSimulation(t)
		h.waits(t.Context(), "a", nil, "k")
		time.Sleep(time.Second)
		h.since()
		h.shows("k", watch.View{Verdict: watch.Changed, SomeChanged: true})
		h.happened()
		time.Sleep(grace / 2)
		h.puts("k", 1)
		h.happened(fmt.Sprintf("%v a has k", time.Second+grace/2))
		h.empty()
	})
}
