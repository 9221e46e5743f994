package queue

import "time"

const (
	// longestStreak is how long the waiters of one process may hand a lock on to
	// each other without a gap, as far as it is known that nobody else wants it.
	longestStreak = 300 * time.Millisecond
	// longestTurn is how long they may where others want it, if not all who waited were served before.
	longestTurn = 2 * time.Second
)

// turn is the time in which the waiters of one process hand a lock on to each other.
type turn struct {
	// served is how many were granted it, gate for how many it is, and began when it was granted first.
	served, gate int
	began        time.Time
	// shared is set where another process had the lock, or took it when it last could; contended only for the latter: others wait
	// for it as well.
	shared, contended bool
	// free is set from a release until the lock was granted or is in other hands, gap where others may take it meanwhile.
	free, gap bool
}

// granted is for a lock that the head got; so many wait behind it.
func (t *turn) granted(waiting int, now time.Time) {
	if t.gap {
		t.shared, t.contended = false, false // nobody wanted it
	}
	if t.served == 0 {
		t.gate, t.began = waiting+1, now
	}
	t.served++
	t.free, t.gap = false, false
}

// released is for a lock that one of this process gave back. It says what the head does, if that is not
// known already. alone reports whether no other process is known, nil: one may be there.
func (t *turn) released(now time.Time, alone func() bool) (cue Cue, told bool) {
	if t.free && t.gap {
		return 0, false
	}
	t.free = true
	if t.served == 0 || !t.isOver(now) || !t.shared && alone != nil && alone() {
		return TryNow, true
	}
	t.served, t.gap = 0, true
	return Yield, true
}

// releasedAlone is released where nobody of this process waits.
func (t *turn) releasedAlone(now time.Time) {
	if t.shared {
		t.released(now, nil)
	} else {
		*t = turn{free: true}
	}
}

// entered is for one who waits alone. It says what that one does.
func (t *turn) entered() Cue {
	if t.gap {
		return Yield
	}
	return TryNow
}

// isOver reports whether others come first now.
func (t *turn) isOver(now time.Time) bool {
	if t.shared {
		return t.served >= t.gate || now.Sub(t.began) > longestTurn
	}
	return now.Sub(t.began) > longestStreak
}

// lost is for a lock that the head found in other hands: in those of another process, unless one of this process was granted it
// and has not given it back.
func (t *turn) lost() {
	t.contended = t.contended || t.free
	if t.free || t.served == 0 {
		t.shared, t.served = true, 0
	}
	t.free, t.gap = false, false
}
