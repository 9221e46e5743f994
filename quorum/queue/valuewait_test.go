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

// simulation simulates waits for values under keys, in one synctest bubble.
type simulation struct {
	*testing.T
	queues ValueQueues[string]
	start  time.Time
	// quorum, if it is set, is closed when a majority votes again.
	quorum chan struct{}

	mu     sync.Mutex
	values map[string]int
	alarms map[string][]*simAlarm // the alarms in use
	// events is the log of events.
	events []string
}

// simAlarm shows a view of its key.
type simAlarm struct {
	sim    *simulation
	key    string
	wakeup chan struct{}
	view   watch.View
	ended  bool
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
	a.sim.record("reads again " + a.key)
}

func (a *simAlarm) HasEnded() bool {
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
	return &simulation{T: t, values: map[string]int{}, alarms: map[string][]*simAlarm{}, start: time.Now()}
}

// record adds an event. Callers hold mu.
func (h *simulation) record(text string) {
	h.events = append(h.events, fmt.Sprintf("%v %s", time.Since(h.start), text))
}

// startWaiter starts a wait for a value under any of the keys.
func (h *simulation) startWaiter(ctx context.Context, name string, timeout <-chan time.Time, keys ...string) {
	go func() {
		result := h.queues.Await(ctx, ValueWaitOptions[string]{
			Keys: keys, Timeout: timeout, Rand: func() float64 { return 1 },
			Alarm: func(key string, wakeup chan struct{}) ChangeAlarm {
				h.mu.Lock()
				defer h.mu.Unlock()
				a := &simAlarm{sim: h, key: key, wakeup: wakeup, view: watch.View{Verdict: watch.Held}}
				h.alarms[key] = append(h.alarms[key], a)
				return a
			},
			QuorumRegained: func() <-chan struct{} { h.mu.Lock(); defer h.mu.Unlock(); return h.quorum },
			Try: func(isHead []bool) PopResult {
				h.mu.Lock()
				defer h.mu.Unlock()
				if h.quorum != nil {
					h.record(name + " cannot tell")
					return PopUndetermined
				}
				for i, key := range keys {
					if isHead[i] && h.values[key] > 0 {
						h.values[key]--
						h.record(name + " has " + key)
						return PopEnded
					}
				}
				h.record(name + " has none")
				return PopNothingStored
			},
		})
		h.mu.Lock()
		defer h.mu.Unlock()
		if result != WaitDone {
			h.record(fmt.Sprintf("%s ends: %d", name, result))
		}
	}()
	synctest.Wait()
}

// putValues adds n values under a key, and notifies its alarms.
func (h *simulation) putValues(key string, n int) {
	h.mu.Lock()
	h.values[key] += n
	h.mu.Unlock()
	h.setView(key, watch.View{Verdict: watch.Changed})
}

func (h *simulation) setView(key string, v watch.View) {
	h.mu.Lock()
	for _, a := range h.alarms[key] {
		a.view = v
		select {
		case a.wakeup <- struct{}{}:
		default:
		}
	}
	h.mu.Unlock()
	synctest.Wait()
}

// expectEvents fails the test unless these events have happened since the last call.
func (h *simulation) expectEvents(want ...string) {
	h.Helper()
	if events := h.takeEvents(); !slices.Equal(events, want) {
		h.Errorf("events:\n  %s\nwant\n  %s", strings.Join(events, "\n  "), strings.Join(want, "\n  "))
	}
}

// takeEvents returns the events since the last call.
func (h *simulation) takeEvents() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	events := h.events
	h.events = nil
	return events
}

// expectEmpty fails the test if any waiter remains.
func (h *simulation) expectEmpty() {
	h.Helper()
	synctest.Wait()
	if n := h.queues.Len(); n > 0 || len(h.queues.byKey) > 0 {
		h.Errorf("%d waiters in %d queues", n, len(h.queues.byKey))
	}
	for key, alarms := range h.alarms {
		if len(alarms) > 0 {
			h.Errorf("an alarm for %s is set", key)
		}
	}
}

// TestValueWait checks that a waiter does not try while nothing changes, except once a minute. The
// first waiter takes a new value at once.
func TestValueWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newSimulation(t)
		h.startWaiter(t.Context(), "a", nil, "k")
		h.expectEvents("0s a has none", "0s a has none") // the second try after the alarm is armed
		h.startWaiter(t.Context(), "b", nil, "k")
		h.startWaiter(t.Context(), "c", nil, "k")
		h.expectEvents("0s b has none", "0s c has none")
		if n := len(h.alarms["k"]); n != 1 {
			t.Errorf("%d alarms are set", n)
		}
		time.Sleep(59 * time.Second)
		h.putValues("k", 2)
		h.expectEvents("59s a has k", "59s b has k", "59s c has none")
		time.Sleep(time.Minute)
		synctest.Wait()
		h.expectEvents("1m59s reads again k", "1m59s c has none")
		h.putValues("k", 1)
		time.Sleep(longestBurstPause)
		synctest.Wait()
		h.expectEvents("1m59.0005s c has k")
		h.expectEmpty()
	})
}

// TestValueWaitSeveralKeys checks that a waiter for several keys takes values only under keys of
// which it is the head. It is notified when it becomes the head.
func TestValueWaitSeveralKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newSimulation(t)
		h.startWaiter(t.Context(), "a", nil, "k")
		h.startWaiter(t.Context(), "b", nil, "k", "l")
		h.startWaiter(t.Context(), "c", nil, "l", "m")
		time.Sleep(time.Second)
		h.takeEvents()
		h.putValues("l", 1)
		time.Sleep(time.Second)
		h.expectEvents("1s b has l", "1s c has none")
		h.putValues("k", 1)
		h.expectEvents("2s a has k")
		h.putValues("m", 1)
		h.expectEvents("2s c has m")
		h.expectEmpty()
	})
}

// TestEndOfValueWait checks that waiters that leave or time out do not block other waiters.
func TestEndOfValueWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newSimulation(t)
		ctx, cancel := context.WithCancel(t.Context())
		h.startWaiter(ctx, "a", nil, "k")
		h.startWaiter(t.Context(), "b", time.After(2*time.Second), "k")
		h.startWaiter(t.Context(), "c", nil, "k")
		h.takeEvents()
		time.Sleep(time.Second)
		cancel()
		synctest.Wait()
		h.expectEvents(fmt.Sprintf("1s a ends: %d", WaitCanceled), "1s b has none")
		time.Sleep(time.Second)
		synctest.Wait()
		h.expectEvents(fmt.Sprintf("2s b ends: %d", WaitTimedOut), "2s c has none")
		h.putValues("k", 1)
		time.Sleep(time.Second)
		h.expectEvents("2.0005s c has k")
		h.expectEmpty()
	})
}

// TestUnwatchedValueWait checks that the waiter tries each second if some masters are not watched.
// If too few masters are watched, the waiter polls. If the masters have changed, it sets a new
// alarm.
func TestUnwatchedValueWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newSimulation(t)
		h.startWaiter(t.Context(), "a", nil, "k")
		time.Sleep(time.Second)
		h.setView("k", watch.View{Verdict: watch.Held, PartlyWatched: true})
		h.takeEvents()
		time.Sleep(2*time.Second + time.Millisecond)
		synctest.Wait()
		h.expectEvents("2s a has none", "3s a has none")
		h.setView("k", watch.View{})
		h.takeEvents()
		time.Sleep(time.Second)
		if n := len(h.takeEvents()); n < 25 || n > 40 {
			t.Errorf("%d tries in a second", n)
		}
		h.mu.Lock()
		h.alarms["k"][0].ended = true
		h.values["k"]++
		h.mu.Unlock()
		time.Sleep(time.Second)
		h.expectEmpty()
	})
}

// TestValueWaitGrace checks that, after a change that few masters report, the waiter gives the
// other masters a moment to report it.
func TestValueWaitGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newSimulation(t)
		h.startWaiter(t.Context(), "a", nil, "k")
		time.Sleep(time.Second)
		h.takeEvents()
		h.setView("k", watch.View{Verdict: watch.Changed, SomeChanged: true})
		h.expectEvents()
		time.Sleep(reportGrace / 2)
		h.putValues("k", 1)
		h.expectEvents(fmt.Sprintf("%v a has k", time.Second+reportGrace/2))
		h.expectEmpty()
	})
}
