package queue

import "time"

const (
	// longestTurn limits how long the waiters of one process may hand a lock on to each other while
	// other processes want it. The turn also ends when all waiters from its start have had the
	// lock.
	longestTurn = 2 * time.Second
	// askPause is the pause between two questions whether other processes want the lock. If a lock
	// changes hands 3,000 times a second, that is one question in thirty hand-overs. This process
	// learns of a new waiter in another process within this time.
	askPause = 10 * time.Millisecond
	// contentionTime is the period after another process had the lock in which this process asks
	// each time, because the clients of the other process probably lock again soon.
	contentionTime = 100 * time.Millisecond
	// maxLeaveTime limits how long the lock is left to another process that does not take it. Such
	// a process has stopped, or is far away or slow.
	maxLeaveTime = 50 * time.Millisecond
	// absencePause is the time without questions after a process did not take the lock, because its
	// mark may remain.
	absencePause = time.Second
)

// turn holds the state of a lock's turn at this process. A turn is the time in which the waiters of
// this process hand the lock on to each other.
type turn struct {
	// grantCount is the number of grants in this turn, maxGrants their limit, and firstGrant the
	// time of the first grant.
	grantCount, maxGrants int
	firstGrant            time.Time
	// peerWaits is set if this process knows that another process waits for the lock.
	peerWaits bool
	// lastAsked is the time at which this process last asked whether another process waits, or a
	// later time, until which it asks no questions.
	// lastContended is the time at which another process last had the lock, or at which the lock
	// was last left to another process.
	lastAsked, lastContended time.Time
	// free is set from a release until the lock is granted again or found held by another process.
	// Meanwhile leaveEnd is the time until which the lock is left to another process, or zero.
	// leaveTarget is the ID of that process, or empty if this process does not know it yet.
	free        bool
	leaveEnd    time.Time
	leaveTarget string
}

// shouldAsk reports whether a take of the head should come with the question whether other
// processes wait. It should if the take is the last of the turn, and a question is due. waiterCount
// is the number of waiters behind the head.
func (t *turn) shouldAsk(waiterCount int, now time.Time) bool {
	last := t.grantCount == 0 && waiterCount == 0 || t.grantCount > 0 && (t.grantCount+1 >= t.maxGrants || now.Sub(t.firstGrant) > longestTurn)
	if t.peerWaits || !t.leaveEnd.IsZero() || !last || !t.isAskDue(now) {
		return false
	}
	t.lastAsked = now
	return true
}

func (t *turn) isAskDue(now time.Time) bool {
	return now.Sub(t.lastAsked) >= askPause || now.Sub(t.lastContended) < contentionTime
}

// recordGrant records a grant to the head, with this number of waiters behind it.
func (t *turn) recordGrant(waiterCount int, now time.Time) {
	if !t.leaveEnd.IsZero() {
		// The process to which the lock was left did not take it.
		t.peerWaits, t.lastAsked, t.lastContended = false, now.Add(absencePause), time.Time{}
	}
	if t.grantCount == 0 {
		t.maxGrants, t.firstGrant = waiterCount+1, now
	}
	t.grantCount++
	t.free, t.leaveEnd, t.leaveTarget = false, time.Time{}, ""
}

// recordRelease records a release in this process with this number of waiters. alone means that
// this process knows no other process. The signal is for the head, if notify is set. passToPeer
// means that this process must try to leave the lock to another process. This is so if it knows
// that another process waits, or if no client of this process waits and a question is due.
func (t *turn) recordRelease(waiterCount int, alone bool, now time.Time) (signal Signal, passToPeer, notify bool) {
	if t.isLeftToPeer() {
		return 0, false, false
	}
	t.free = true
	if alone || t.grantCount == 0 || !t.hasEnded(now) || !t.peerWaits && (waiterCount > 0 || !t.isAskDue(now)) {
		return TryNow, false, true
	}
	t.grantCount, t.peerWaits, t.lastAsked, t.leaveEnd, t.leaveTarget = 0, false, now, now.Add(maxLeaveTime), ""
	return LeaveToPeer, true, true
}

// leaveToPeer records the process to which the lock was left; an empty ID means that no process
// waits. The signal is for the head, if notify is set.
func (t *turn) leaveToPeer(to string, now time.Time) (signal Signal, notify bool) {
	switch {
	case !t.isLeftToPeer():
		return 0, false
	case to == "":
		t.leaveEnd = time.Time{}
		return TryNow, true
	}
	t.leaveTarget, t.lastContended = to, now
	return LeaveToPeer, true
}

// signalOnEntry returns the signal for a waiter that becomes the head without a grant to a former
// head: it has entered an empty queue, or the former head has left.
func (t *turn) signalOnEntry(now time.Time) Signal {
	if now.Before(t.leaveEnd) {
		return LeaveToPeer
	}
	return TryNow
}

// hasEnded reports whether the turn has ended.
func (t *turn) hasEnded(now time.Time) bool {
	return t.grantCount >= t.maxGrants || now.Sub(t.firstGrant) > longestTurn
}

// isHeldByOwnClient reports whether this process knows that one of its clients holds the lock.
func (t *turn) isHeldByOwnClient() bool { return t.grantCount > 0 && !t.free }

// isLeftToPeer reports whether this process left the lock to another process, and does not know
// that the other process has had it.
func (t *turn) isLeftToPeer() bool { return t.free && !t.leaveEnd.IsZero() }

// recordLockFromPeer records that another process had the lock and left it to this process.
func (t *turn) recordLockFromPeer(now time.Time) {
	t.grantCount, t.peerWaits, t.lastContended, t.leaveEnd, t.leaveTarget = 0, false, now, time.Time{}, ""
}

// recordPeerDone records that the process to which the lock was left has had the lock, or no longer
// wants it.
func (t *turn) recordPeerDone() { t.leaveEnd, t.leaveTarget = time.Time{}, "" }

// recordHeld records that the head found the lock held. The holder is another process, unless this
// process knows that one of its own clients holds the lock.
func (t *turn) recordHeld(now time.Time) {
	if !t.isHeldByOwnClient() {
		t.grantCount, t.peerWaits, t.lastContended = 0, false, now
	}
	t.free, t.leaveEnd, t.leaveTarget = false, time.Time{}, ""
}
