package watch

import (
	"sync"
	"time"
)

// Alarm notifies a waiter of changes of a key.
type Alarm struct {
	watcher  *Watcher
	key      string
	quorum   int
	evaluate func(seen []sighting, quorum int, now time.Time) View
	watches  []*watch // one for each master; nil if the watcher has closed
	bell     chan struct{}

	mu       sync.Mutex
	seen     []sighting
	lastView View // the View at the last ring
	hasPut   bool // Put was called
}

// Changes returns a channel that gets a value when the View has changed.
func (a *Alarm) Changes() <-chan struct{} { return a.bell }

// View returns the known state of the key.
func (a *Alarm) View(now time.Time) View {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lastView = a.evaluate(a.seen, a.quorum, now)
	return a.lastView
}

// Read looks at the key on the masters, except on masters that hold a lock and have reported no
// change.
func (a *Alarm) Read(now time.Time) {
	a.look(func(s sighting) bool {
		return s.state != asked && (s.state != held || !s.end.IsZero() && !s.end.After(now))
	})
}

// Arm looks at the key on the masters that would not report a change: they have reported one, or
// are not watched.
func (a *Alarm) Arm() {
	a.look(func(s sighting) bool { return s.state == changed || s.state == unknown })
}

// ReadAll looks at the key on all masters.
func (a *Alarm) ReadAll() { a.look(func(sighting) bool { return true }) }

// look looks at the key on the masters whose sightings match.
func (a *Alarm) look(which func(sighting) bool) {
	for i, w := range a.watches {
		a.mu.Lock()
		wanted := which(a.seen[i])
		if wanted {
			a.seen[i] = sighting{state: asked}
		}
		a.mu.Unlock()
		if wanted && !w.ask(look{key: a.key}) {
			a.update(i, sighting{state: unknown})
		}
	}
}

// Put writes a value under the key on all masters, and looks at it in the same step. The value
// expires after ttl unless it is changed earlier. Put returns the masters that are not watched,
// which do neither.
func (a *Alarm) Put(value string, ttl time.Duration) (unwatched []int) {
	for i := range a.seen {
		a.mu.Lock()
		a.hasPut, a.seen[i] = true, sighting{state: asked}
		a.mu.Unlock()
		if i >= len(a.watches) || !a.watches[i].ask(look{a.key, value, ttl}) {
			unwatched = append(unwatched, i)
			a.update(i, sighting{state: unknown})
		}
	}
	return unwatched
}

// update stores the state of the key on a master, and rings if that changes the view. After a Put
// it ignores changes reported before the reply, because they precede the new value.
func (a *Alarm) update(master int, s sighting) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.hasPut && a.seen[master].state == asked && s.state == changed && !s.stale {
		return
	}
	a.seen[master] = s
	if v := a.evaluate(a.seen, a.quorum, time.Now()); v != a.lastView {
		a.lastView = v
		a.ring()
	}
}

func (a *Alarm) ring() {
	select {
	case a.bell <- struct{}{}:
	default:
	}
}

// Ended reports whether the Watcher has closed, so that the alarm gets no more reports.
func (a *Alarm) Ended() bool { return a.watcher.ctx.Err() != nil }

// Stop removes the alarm, which no longer rings.
func (a *Alarm) Stop() {
	for _, w := range a.watches {
		w.remove(a.key, a)
	}
}
