package guard

import (
	"sync"
	"time"
)

// freshDecision is the decision about a master without a marker.
type freshDecision int

const (
	freshRefuse freshDecision = iota // quarantine
	freshWait                        // wait until all masters have been reached for long enough
	freshAdmit                       // all masters are fresh: let the master vote at once
)

// FreshStartTime is the time for which a proxy must see all masters empty before a fresh start.
const FreshStartTime = allCheckedTime

const (
	// freshTimeout is the time limit for reaching all masters.
	freshTimeout = 30 * time.Second
	// mixedTimeout limits the time in which some masters have a marker while the remaining masters
	// have none: another proxy may be doing its fresh start.
	mixedTimeout = time.Second
	// freshPause is the wait between two checks during a fresh start.
	freshPause = 50 * time.Millisecond
)

// freshStart decides, once in the life of a proxy, whether all masters are empty and unmarked, so
// that none can have lost data. The masters must stay empty until every running proxy has reached
// them: a proxy that knows of locks writes a record, which ends the fresh start. A master that
// restarts meanwhile ends it, too.
type freshStart struct {
	mu         sync.Mutex
	masters    int
	ended      bool
	start      time.Time
	mixedSince time.Time
	// allEmptySince is the time since which this proxy has seen all masters empty.
	allEmptySince time.Time
	// emptyRunIDs holds the run_ids of the masters seen empty, by index. markedMasters holds the
	// masters that were admitted or have a marker.
	emptyRunIDs   map[int]string
	markedMasters map[int]bool
}

func newFreshStart(masters int, wanted bool) *freshStart {
	return &freshStart{masters: masters, ended: !wanted, emptyRunIDs: map[int]string{}, markedMasters: map[int]bool{}}
}

// noteMarked records that a master was admitted or has a marker.
func (f *freshStart) noteMarked(i int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.markedMasters[i] = true
}

// end ends the fresh start, because a master is neither empty nor has a vote.
func (f *freshStart) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended = true
}

// hasEnded reports whether there is no fresh start, or it has ended.
func (f *freshStart) hasEnded() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ended
}

// decide returns the decision about a master without a marker. If the master has a record, the
// reason of the record must be Empty.
func (f *freshStart) decide(i int, runID string, isEmpty bool, now time.Time) freshDecision {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.start.IsZero() {
		f.start = now
	}
	emptyRunID, seenEmpty := f.emptyRunIDs[i]
	switch {
	case f.ended || f.markedMasters[i]:
		return freshRefuse
	case !isEmpty || seenEmpty && emptyRunID != runID:
		f.ended = true
		return freshRefuse
	}
	f.emptyRunIDs[i] = runID
	if f.allEmptySince.IsZero() && len(f.emptyRunIDs) == f.masters {
		f.allEmptySince = now
	}
	if !f.allEmptySince.IsZero() && now.Sub(f.allEmptySince) >= FreshStartTime {
		return freshAdmit
	}
	if len(f.markedMasters) == 0 {
		f.mixedSince = now
	}
	if now.Sub(f.start) > freshTimeout || now.Sub(f.mixedSince) > mixedTimeout {
		f.ended = true
		return freshRefuse
	}
	return freshWait
}
