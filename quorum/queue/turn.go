package queue

import "time"

const (
	// longestTurn is how long the waiters of one process may hand a lock on to each other where others want it, if not all who waited were
	// served before.
	longestTurn = 2 * time.Second
	// askPause is the time between two questions whether others want it: a lock that changes hands 3,000 times a second is asked about after
	// every thirtieth time, and who begins to wait is known of in that time.
	askPause = 10 * time.Millisecond
	// contendedFor is for how long after others had it that is asked each time: they come back soon, as those of this process do.
	contendedFor = 100 * time.Millisecond
	// longestGap bounds for how long it is left to others who are known to wait, but do not come: they have stopped, or are far away or slow.
	longestGap = 50 * time.Millisecond
	// absence is for how long nobody is asked after one did not come: its mark may still be there.
	absence = time.Second
)

// turn is the time in which the waiters of one process hand a lock on to each other.
type turn struct {
	// served is how many were granted it, gate for how many it is, and began when it was granted first.
	served, gate int
	began        time.Time
	// next is the process that waits for it and comes next, as far as is known, or empty.
	next string
	// asked is when it was asked for last whether they do, contended when they had it, or it was left to them, last.
	asked, contended time.Time
	// free is set from a release until the lock was granted or is in other hands; gap is until when it is left to others meanwhile, or zero.
	free bool
	gap  time.Time
}

// granted is for a lock that the head got; so many wait behind it. It reports whether it is to be asked for if others wait.
func (t *turn) granted(waiting int, now time.Time) (asks bool) {
	if !t.gap.IsZero() {
		t.next, t.asked, t.contended = "", now.Add(absence), time.Time{} // it did not come
	}
	if t.served == 0 {
		t.gate, t.began = waiting+1, now
	}
	t.served++
	t.free, t.gap = false, time.Time{}
	asks = t.next == "" && t.isOver(now) && (now.Sub(t.asked) >= askPause || now.Sub(t.contended) < contendedFor)
	if asks {
		t.asked = now
	}
	return asks
}

// released is for a lock that one of this process gave back. It says what the head does, if that is not
// known already, and to which process the lock is left, if any.
func (t *turn) released(now time.Time) (cue Cue, to string, told bool) {
	if t.isLeft() {
		return 0, "", false
	}
	t.free = true
	if t.served == 0 || t.next == "" || !t.isOver(now) {
		return TryNow, "", true
	}
	return Yield, t.leave(now), true
}

// leave leaves the lock, which is free, to the next process.
func (t *turn) leave(now time.Time) (to string) {
	to, t.next = t.next, ""
	t.served, t.gap, t.contended = 0, now.Add(longestGap), now
	return to
}

// entered is for one who waits alone. It says what that one does.
func (t *turn) entered(now time.Time) Cue {
	if now.Before(t.gap) {
		return Yield
	}
	return TryNow
}

// isOver reports whether others come first now.
func (t *turn) isOver(now time.Time) bool {
	return t.served >= t.gate || now.Sub(t.began) > longestTurn
}

// isOurs reports whether one of this process has the lock, as far as is known.
func (t *turn) isOurs() bool { return t.served > 0 && !t.free }

// isLeft reports whether the lock was left to another process, which has not had it yet, as far as is known.
func (t *turn) isLeft() bool { return t.free && !t.gap.IsZero() }

// answered takes which other process waits and comes next, if any. It returns what the head does, if that changes, and to which process the lock
// is left, if any: where it was released before the answer came, and nobody here can be trying for it.
func (t *turn) answered(next string, waiting int, now time.Time) (cue Cue, to string, told bool) {
	switch {
	case next != "" && t.isLeft():
		return Yield, "", true
	case next != "" && t.served > 0:
		t.next = next
		if t.free && waiting == 0 && t.isOver(now) {
			return Yield, t.leave(now), true
		}
	case next == "" && t.isLeft():
		t.gap = time.Time{}
		return LookNow, "", true
	}
	return 0, "", false
}

// refused is for a lock that was left to one who did not wait any more. It says what the head does, if that is another thing now.
func (t *turn) refused() (cue Cue, told bool) {
	if !t.isLeft() {
		return 0, false
	}
	t.gap = time.Time{}
	return TryNow, true
}

// returned is for a lock that another process had, and has left to this one.
func (t *turn) returned(now time.Time) {
	t.served, t.next, t.contended, t.gap = 0, "", now, time.Time{}
}

// lost is for a lock that the head found in other hands: in those of another process, unless it is ours.
func (t *turn) lost(now time.Time) {
	if !t.isOurs() {
		t.served, t.next, t.contended = 0, "", now
	}
	t.free, t.gap = false, time.Time{}
}
