package queue

import "time"

const (
	// longestTurn limits how long the waiters of one process may hand a lock on to each other while
	// other processes want it. The turn also ends when all waiters from its start have been served.
	longestTurn = 2 * time.Second
	// askPause is the pause between two questions whether other processes want the lock. If a lock
	// changes hands 3,000 times a second, that is one question in thirty hand-overs. A new waiter
	// in another process is known within this time.
	askPause = 10 * time.Millisecond
	// contendedFor is how long after another process had the lock the question is asked each time,
	// because its clients will soon come back.
	contendedFor = 100 * time.Millisecond
	// maxLeaveTime limits how long the lock is left to a process that is known to wait but does not
	// take it: it has stopped, or is far away or slow.
	maxLeaveTime = 50 * time.Millisecond
	// absencePause is how long no question is asked after a process did not take the lock, because
	// its mark may remain.
	absencePause = time.Second
)

// turn is the time in which the waiters of one process hand a lock on to each other.
type turn struct {
	// served is the number of grants in this turn, quota their limit, and began the time of the
	// first.
	served, quota int
	began         time.Time
	// wanted is set if another process is known to wait for the lock.
	wanted bool
	// asked is when the process last asked whether another one waits. contended is when another
	// process last had the lock, or it was left to one.
	asked, contended time.Time
	// free is set from a release until the lock is granted again or found held by another process.
	// Meanwhile leftUntil is the time until which it is left to another process, or zero, and
	// leftTo is that process, once it is known.
	free      bool
	leftUntil time.Time
	leftTo    string
}

// shouldAsk reports whether to ask if other processes wait, as the head tries for a lock with this
// number of waiters behind it: if this is the last take of the turn, and a question is due.
func (t *turn) shouldAsk(waiting int, now time.Time) bool {
	last := t.served == 0 && waiting == 0 || t.served > 0 && (t.served+1 >= t.quota || now.Sub(t.began) > longestTurn)
	if t.wanted || !t.leftUntil.IsZero() || !last || !t.askIsDue(now) {
		return false
	}
	t.asked = now
	return true
}

func (t *turn) askIsDue(now time.Time) bool {
	return now.Sub(t.asked) >= askPause || now.Sub(t.contended) < contendedFor
}

// granted records a grant to the head, with this number of waiters behind it.
func (t *turn) granted(waiting int, now time.Time) {
	if !t.leftUntil.IsZero() {
		t.wanted, t.asked, t.contended = false, now.Add(absencePause), time.Time{} // that process did not take the lock
	}
	if t.served == 0 {
		t.quota, t.began = waiting+1, now
	}
	t.served++
	t.free, t.leftUntil, t.leftTo = false, time.Time{}, ""
}

// released records a release in this process with this number of waiters. alone means that no other
// process is known. The signal is for the head, if told is set. passes means that the lock must be
// left to another process: one is known to wait, or one may wait and no client of this process
// does.
func (t *turn) released(waiting int, alone bool, now time.Time) (signal Signal, passes, notify bool) {
	if t.isLeftToPeer() {
		return 0, false, false
	}
	t.free = true
	if alone || t.served == 0 || !t.isOver(now) || !t.wanted && (waiting > 0 || !t.askIsDue(now)) {
		return TryNow, false, true
	}
	t.served, t.wanted, t.asked, t.leftUntil, t.leftTo = 0, false, now, now.Add(maxLeaveTime), ""
	return LeaveToPeer, true, true
}

// leaveToPeer records the process to which the lock was left; an empty ID means that no process
// waits. The signal is for the head, if told is set.
func (t *turn) leaveToPeer(to string, now time.Time) (signal Signal, told bool) {
	switch {
	case !t.isLeftToPeer():
		return 0, false
	case to == "":
		t.leftUntil = time.Time{}
		return TryNow, true
	}
	t.leftTo, t.contended = to, now
	return LeaveToPeer, true
}

// signalOnEntry returns the signal for a waiter that enters an empty queue.
func (t *turn) signalOnEntry(now time.Time) Signal {
	if now.Before(t.leftUntil) {
		return LeaveToPeer
	}
	return TryNow
}

// isOver reports whether the turn has ended.
func (t *turn) isOver(now time.Time) bool {
	return t.served >= t.quota || now.Sub(t.began) > longestTurn
}

// isOurs reports whether a client of this process is known to hold the lock.
func (t *turn) isOurs() bool { return t.served > 0 && !t.free }

// isLeftToPeer reports whether the lock was left to another process that is not known to have had
// it.
func (t *turn) isLeftToPeer() bool { return t.free && !t.leftUntil.IsZero() }

// receivedFromPeer records that another process had the lock and left it to this process.
func (t *turn) receivedFromPeer(now time.Time) {
	t.served, t.wanted, t.contended, t.leftUntil, t.leftTo = 0, false, now, time.Time{}, ""
}

// peerDone records that the process to which the lock was left has had it, or no longer wants it.
func (t *turn) peerDone() { t.leftUntil, t.leftTo = time.Time{}, "" }

// foundHeld records that the head found the lock held: by another process, unless a client of this
// process holds it.
func (t *turn) foundHeld(now time.Time) {
	if !t.isOurs() {
		t.served, t.wanted, t.contended = 0, false, now
	}
	t.free, t.leftUntil, t.leftTo = false, time.Time{}, ""
}
