package guard

import (
	"sync"
	"time"
)

// freshAnswer says what to do about a master that nothing is known of.
type freshAnswer int

const (
	freshNo   freshAnswer = iota // it goes into quarantine
	freshWait                    // not all masters have been reached, or not for long enough
	freshGo                      // all are fresh: it votes at once
)

// FreshStartTime is how long all masters must be seen empty for a fresh start.
const FreshStartTime = allLooked

const (
	// freshPatience is how long all masters have to be reached for a fresh start.
	freshPatience = 30 * time.Second
	// mixedPatience is how long some may have a marker and others none: another proxy may
	// be at its fresh start.
	mixedPatience = time.Second
	// freshPause is the wait between two looks meanwhile.
	freshPause = 50 * time.Millisecond
)

// freshStart decides, once in the life of a proxy, whether all masters are empty and
// unmarked, so that none can have forgotten anything. They must stay so until every
// proxy that lives has reached them: one that knows of locks puts a record there, which ends
// the fresh start, as does a master that restarts meanwhile.
type freshStart struct {
	mu      sync.Mutex
	masters int
	over    bool
	began   time.Time
	mixed   time.Time
	// all is since when all masters have been seen empty.
	all time.Time
	// empty are the masters seen empty, by their number, with their run_id; done those
	// that were let in or have a marker.
	empty map[int]string
	done  map[int]bool
}

func newFreshStart(masters int, wanted bool) *freshStart {
	return &freshStart{masters: masters, over: !wanted, empty: map[int]string{}, done: map[int]bool{}}
}

// noteMarked notes that master i has a marker.
func (f *freshStart) noteMarked(i int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.done[i] = true
}

// end is for a master that is neither empty nor votes.
func (f *freshStart) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.over = true
}

// isOver reports whether there is none, or no longer.
func (f *freshStart) isOver() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.over
}

// ask is for master i, which has no marker, and no record but that it had none before.
func (f *freshStart) ask(i int, runID string, empty bool, now time.Time) freshAnswer {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.began.IsZero() {
		f.began = now
	}
	known, seen := f.empty[i]
	switch {
	case f.over || f.done[i]:
		return freshNo
	case !empty || seen && known != runID:
		f.over = true
		return freshNo
	}
	f.empty[i] = runID
	if f.all.IsZero() && len(f.empty) == f.masters {
		f.all = now
	}
	if !f.all.IsZero() && now.Sub(f.all) >= FreshStartTime {
		return freshGo
	}
	if len(f.done) == 0 {
		f.mixed = now
	}
	if now.Sub(f.began) > freshPatience || now.Sub(f.mixed) > mixedPatience {
		f.over = true
		return freshNo
	}
	return freshWait
}
