package wake

import (
	"sync"
	"time"
)

// Alarm rings for one who waits for a key.
type Alarm struct {
	waker   *Waker
	key     string
	quorum  int
	judge   func(seen []sighting, quorum int, now time.Time) View
	watches []*watch // one for each master; nil where the waker has closed
	bell    chan struct{}

	mu   sync.Mutex
	seen []sighting
	told View // at the last ring
	put  bool // by Put
}

// Bell rings when there is another View.
func (a *Alarm) Bell() <-chan struct{} { return a.bell }

// View is what is known now.
func (a *Alarm) View(now time.Time) View {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.told = a.judge(a.seen, a.quorum, now)
	return a.told
}

// Look asks the masters what stands under the key, but for those of which that is known: they hold
// a lock, and told of no change.
func (a *Alarm) Look(now time.Time) {
	a.look(func(s sighting) bool {
		return s.state != asked && (s.state != held || !s.end.IsZero() && !s.end.After(now))
	})
}

// Arm asks those masters that would tell of no change: they told of one already, or are not
// watched.
func (a *Alarm) Arm() {
	a.look(func(s sighting) bool { return s.state == changed || s.state == unknown })
}

// LookAnew asks all masters.
func (a *Alarm) LookAnew() { a.look(func(sighting) bool { return true }) }

// look asks those masters of which there are such sightings.
func (a *Alarm) look(which func(sighting) bool) {
	for i, w := range a.watches {
		a.mu.Lock()
		wanted := which(a.seen[i])
		if wanted {
			a.seen[i] = sighting{state: asked}
		}
		a.mu.Unlock()
		if wanted && !w.ask(look{key: a.key}) {
			a.see(i, sighting{state: unknown})
		}
	}
}

// Put has all masters put a value under the key, which stays for so long unless somebody changes
// it, and looks at it in the same step. It returns the masters that are not watched, which do
// neither.
func (a *Alarm) Put(value string, last time.Duration) (unwatched []int) {
	for i := range a.seen {
		a.mu.Lock()
		a.put, a.seen[i] = true, sighting{state: asked}
		a.mu.Unlock()
		if i >= len(a.watches) || !a.watches[i].ask(look{a.key, value, last}) {
			unwatched = append(unwatched, i)
			a.see(i, sighting{state: unknown})
		}
	}
	return unwatched
}

// see takes what is known of a master, and rings if that changes the view. Where it has put
// something there, a change of before that is none.
func (a *Alarm) see(master int, s sighting) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.put && a.seen[master].state == asked && s.state == changed && !s.stale {
		return
	}
	a.seen[master] = s
	if v := a.judge(a.seen, a.quorum, time.Now()); v != a.told {
		a.told = v
		a.ring()
	}
}

func (a *Alarm) ring() {
	select {
	case a.bell <- struct{}{}:
	default:
	}
}

// Ended reports whether its Waker has closed, so that it will know nothing any more.
func (a *Alarm) Ended() bool { return a.waker.ctx.Err() != nil }

// Stop ends it. Nothing rings any more.
func (a *Alarm) Stop() {
	for _, w := range a.watches {
		w.remove(a.key, a)
	}
}
