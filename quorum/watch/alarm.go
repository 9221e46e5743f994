package watch

import (
	"sync"
	"time"
)

// Alarm observes a key on all masters for one waiter, and notifies the waiter of changes. It learns
// of changes by reads, and by the reports of masters on which it has read the key.
type Alarm struct {
	watcher  *Watcher
	key      string
	quorum   int
	evaluate func(observations []observation, quorum int, now time.Time) View
	watches  []*watch // one for each master; nil if the watcher has closed
	wakeup   chan struct{}

	mu           sync.Mutex
	observations []observation
	lastView     View // the View at the last notification or call of View
	hasPut       bool // Put was called
}

// Changes returns a channel that gets a value when the View has changed.
func (a *Alarm) Changes() <-chan struct{} { return a.wakeup }

// View returns the known state of the key.
func (a *Alarm) View(now time.Time) View {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lastView = a.evaluate(a.observations, a.quorum, now)
	return a.lastView
}

// Read reads the key on the masters. It skips a master if a read is in progress, or if the
// master holds an unexpired lock and has reported no change.
func (a *Alarm) Read(now time.Time) {
	a.readMatching(func(s observation) bool {
		return s.state != stateReading && (s.state != stateHeld || !s.expiry.IsZero() && !s.expiry.After(now))
	})
}

// Arm reads the key on the masters that would not report the next change: they have already
// reported a change, or are not watched.
func (a *Alarm) Arm() {
	a.readMatching(func(s observation) bool { return s.state == stateChanged || s.state == stateUnknown })
}

// ReadAll reads the key on all masters.
func (a *Alarm) ReadAll() { a.readMatching(func(observation) bool { return true }) }

// readMatching reads the key on the masters whose observations match.
func (a *Alarm) readMatching(matches func(observation) bool) {
	for i, w := range a.watches {
		a.mu.Lock()
		needsRead := matches(a.observations[i])
		if needsRead {
			a.observations[i] = observation{state: stateReading}
		}
		a.mu.Unlock()
		if needsRead && !w.ask(readRequest{key: a.key}) {
			a.update(i, observation{state: stateUnknown})
		}
	}
}

// Put writes a value under the key on all masters, and then reads the key. The value expires after
// ttl. Put writes nothing on masters that are not watched, and returns the indexes of these
// masters.
func (a *Alarm) Put(value string, ttl time.Duration) (unwatchedMasters []int) {
	for i := range a.observations {
		a.mu.Lock()
		a.hasPut, a.observations[i] = true, observation{state: stateReading}
		a.mu.Unlock()
		if i >= len(a.watches) || !a.watches[i].ask(readRequest{a.key, value, ttl}) {
			unwatchedMasters = append(unwatchedMasters, i)
			a.update(i, observation{state: stateUnknown})
		}
	}
	return unwatchedMasters
}

// update stores the state of the key on a master, and notifies the waiter if that changes the view.
// After a Put it ignores changes reported before the reply, because they precede the new value.
func (a *Alarm) update(master int, s observation) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.hasPut && a.observations[master].state == stateReading && s.state == stateChanged && !s.stale {
		return
	}
	a.observations[master] = s
	if v := a.evaluate(a.observations, a.quorum, time.Now()); v != a.lastView {
		a.lastView = v
		a.notify()
	}
}

func (a *Alarm) notify() {
	select {
	case a.wakeup <- struct{}{}:
	default:
	}
}

// HasEnded reports whether the Watcher has closed, so that the alarm gets no more reports.
func (a *Alarm) HasEnded() bool { return a.watcher.ctx.Err() != nil }

// Stop removes the alarm, which sends no more notifications.
func (a *Alarm) Stop() {
	for _, w := range a.watches {
		w.remove(a.key, a)
	}
}
