package queue

import "time"

const (
	// longestTurn is how long the waiters of one process may hand a lock on to each other where
	// others want it, if not all who waited were served before.
	longestTurn = 2 * time.Second
	// askPause is the time between two questions whether others want it: a lock that changes hands
	// 3,000 times a second is asked about after every thirtieth time, and who begins to wait is
	// known of in that time.
	askPause = 10 * time.Millisecond
	// contendedFor is for how long after others had it that is asked each time: they come back
	// soon, as those of this process do.
	contendedFor = 100 * time.Millisecond
	// longestGap bounds for how long it is left to others who are known to wait, but do not come:
	// they have stopped, or are far away or slow.
	longestGap = 50 * time.Millisecond
	// absence is for how long nobody is asked after one did not come: its mark may still be there.
	absence = time.Second
)

// turn is the time in which the waiters of one process hand a lock on to each other.
type turn struct {
	// served is how many were granted it, gate for how many it is, and began when it was granted
	// first.
	served, gate int
	began        time.Time
	// wanted is set where another process waits for it, as far as is known.
	wanted bool
	// asked is when it was asked for last whether one does, contended when others had it, or it was
	// left to them, last.
	asked, contended time.Time
	// free is set from a release until the lock was granted or is in other hands; gap is until when
	// it is left to others meanwhile, or zero, and to is to which process, once that is known.
	free bool
	gap  time.Time
	to   string
}

// asks reports whether it is to be asked for if others wait, as the head tries for a lock of which
// so many wait behind it: if that one is the last of the turn, and it is due.
func (t *turn) asks(waiting int, now time.Time) bool {
	last := t.served == 0 && waiting == 0 || t.served > 0 && (t.served+1 >= t.gate || now.Sub(t.began) > longestTurn)
	if t.wanted || !t.gap.IsZero() || !last || !t.isDue(now) {
		return false
	}
	t.asked = now
	return true
}

// isDue reports whether it is time to ask if others wait.
func (t *turn) isDue(now time.Time) bool {
	return now.Sub(t.asked) >= askPause || now.Sub(t.contended) < contendedFor
}

// granted is for a lock that the head got; so many wait behind it.
func (t *turn) granted(waiting int, now time.Time) {
	if !t.gap.IsZero() {
		t.wanted, t.asked, t.contended = false, now.Add(absence), time.Time{} // it did not come
	}
	if t.served == 0 {
		t.gate, t.began = waiting+1, now
	}
	t.served++
	t.free, t.gap, t.to = false, time.Time{}, ""
}

// released is for a lock that one of this process gave back, while so many wait; alone: no other
// process is known. It says what the head does, if that is not known already, and whether the lock
// is to be left to another process: one waits, as far as is known, or may, and nobody does here.
func (t *turn) released(waiting int, alone bool, now time.Time) (cue Cue, passes, told bool) {
	if t.isLeft() {
		return 0, false, false
	}
	t.free = true
	if alone || t.served == 0 || !t.isOver(now) || !t.wanted && (waiting > 0 || !t.isDue(now)) {
		return TryNow, false, true
	}
	t.served, t.wanted, t.asked, t.gap, t.to = 0, false, now, now.Add(longestGap), ""
	return Yield, true, true
}

// left is for a lock that was to be left to another process: it waits, or, if it has no ID, none
// does. It says what the head does, if that was not known.
func (t *turn) left(to string, now time.Time) (cue Cue, told bool) {
	switch {
	case !t.isLeft():
		return 0, false
	case to == "":
		t.gap = time.Time{}
		return TryNow, true
	}
	t.to, t.contended = to, now
	return Yield, true
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

// isLeft reports whether the lock was left to another process, which has not had it yet, as far as
// is known.
func (t *turn) isLeft() bool { return t.free && !t.gap.IsZero() }

// returned is for a lock that another process had, and has left to this one.
func (t *turn) returned(now time.Time) {
	t.served, t.wanted, t.contended, t.gap, t.to = 0, false, now, time.Time{}, ""
}

// gone is for a lock that another process, to which it was left, has had or wants no more.
func (t *turn) gone() { t.gap, t.to = time.Time{}, "" }

// lost is for a lock that the head found in other hands: in those of another process, unless it is
// ours.
func (t *turn) lost(now time.Time) {
	if !t.isOurs() {
		t.served, t.wanted, t.contended = 0, false, now
	}
	t.free, t.gap, t.to = false, time.Time{}, ""
}
