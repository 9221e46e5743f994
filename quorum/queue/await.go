package queue

import (
	"context"
	"time"

	"redlock-proxy/quorum/watch"
)

// Alarm reports the known state of a key on the masters; *watch.Alarm implements it.
type Alarm interface {
	// Changes returns a channel that gets a value when the View may have changed.
	Changes() <-chan struct{}
	// View returns the known state of the key.
	View(now time.Time) watch.View
	// Read reads the key on the masters, but skips a master that holds a lock, as far as the alarm
	// knows. ReadAll reads the key on all masters.
	Read(now time.Time)
	ReadAll()
	// Ended reports whether the alarm gets no more reports, so that the waiter must set a new
	// alarm.
	Ended() bool
	// Stop removes the alarm.
	Stop()
}

// LockWaitOptions describes a wait for a lock.
type LockWaitOptions[K comparable] struct {
	Key K
	// Slots is the number of clients that may hold the lock together, negative for any number, or 0
	// for an exclusive lock.
	Slots int
	// Timeout ends the wait; nil: only the context ends it.
	Timeout <-chan time.Time
	// Try tries to take the lock. Await calls it only while the waiter is the head of the queue, or
	// behind waiters that try at the same time, because any number of clients may hold the lock.
	Try func() TryResult
	// Quorum returns a channel that is closed when a majority of the masters votes again, or nil if
	// a majority votes, as far as this process knows.
	Quorum func() <-chan struct{}
	// Alarm sets an alarm for the key. Await calls it only if the head has to wait for another
	// process.
	Alarm func() Alarm
	// Rand returns numbers in [0, 1).
	Rand func() float64
}

// TryResult is the result of a try for a lock.
type TryResult byte

const (
	// Failed means that the try ends the wait without a lock.
	Failed TryResult = iota
	// Taken means that the try took the lock. It ends the wait, and the next waiter waits for the
	// release.
	Taken
	// Refused means that another client holds the lock.
	Refused
	// Unknown means that too few masters replied to determine the holder.
	Unknown
)

// WaitResult is the result of a wait.
type WaitResult byte

const (
	// Done means that the last Try ended the wait.
	Done WaitResult = iota
	// TimedOut means that the time limit was reached while another client held the lock, or before
	// a client put a value under the key.
	TimedOut
	// TimedOutUndecided means that the time limit was reached while the state of the lock was
	// unknown.
	TimedOutUndecided
	// Canceled means that the context ended.
	Canceled
)

// Await waits in the queue of a key until it is the head, and then tries whenever the lock may be
// free.
func (q *Queues[K]) Await(ctx context.Context, w LockWaitOptions[K]) WaitResult {
	a := &lockWait[K]{LockWaitOptions: w, queues: q, ticket: q.Enter(w.Key, w.Slots), head: NewHead(w.Rand),
		timer: time.NewTimer(time.Hour)}
	var result TryResult
	defer func() {
		a.timer.Stop()
		stop(&a.alarm)
		a.stopMarks()
		q.Leave(a.ticket, result == Taken)
	}()
	for {
		switch {
		case !a.isDue(time.Now()):
			if waitResult := a.wait(ctx); waitResult != Done {
				return waitResult
			}
		case a.step() == Try:
			// If the peer's mark is gone, the process to which the lock was left no longer waits.
			if a.peerAlarm != nil && a.peerAlarm.View(time.Now()).Verdict != watch.Held {
				q.peerDone(a.ticket)
			}
			a.stopMarks()
			releases := q.beginTry(a.ticket)
			if result = w.Try(); result == Taken {
				q.SendTake(w.Key, callIfSet) // a try by ballot has not called SendTake
			}
			if result == Failed || result == Taken {
				return Done
			}
			a.onFailedTry(result, releases, time.Now())
		default:
			a.look(time.Now())
		}
	}
}

// callIfSet calls a function, unless it is nil. It is the argument send of Queues.SendTake if no
// take follows.
func callIfSet(then func()) {
	if then != nil {
		then()
	}
}

// lockWait holds the state of one call of Queues.Await.
type lockWait[K comparable] struct {
	LockWaitOptions[K]
	queues *Queues[K]
	ticket *Ticket[K]
	head   *Head
	timer  *time.Timer
	alarm  Alarm // nil: not set
	// mark is the mark of this process, or nil. peerAlarm watches the mark of the process to which
	// the lock was left, or is nil.
	mark      Mark
	peerAlarm Alarm
	// quorum is the channel to wait for while too few masters vote.
	quorum <-chan struct{}
}

// onFailedTry handles a try that did not take the lock. releases is the number of releases before
// the try.
func (a *lockWait[K]) onFailedTry(result TryResult, releases uint64, now time.Time) {
	switch isHead := a.queues.endTry(a.ticket, result == Unknown); {
	case !isHead:
		a.head.schedule(Idle, time.Time{})
		return
	case result == Refused && a.queues.foundHeld(a.ticket, releases):
		a.head.OnSignal(TryNow, time.Time{}, now)
		return
	case result == Refused:
		a.head.OnRefused(now)
		a.putMark()
		return
	}
	if a.quorum = a.Quorum(); a.quorum == nil {
		a.head.OnUndecided(now)
	} else {
		a.head.schedule(Idle, time.Time{})
	}
}

func (a *lockWait[K]) step() Step {
	step, _ := a.head.Next()
	return step
}

func (a *lockWait[K]) isDue(now time.Time) bool {
	step, at := a.head.Next()
	return step != Idle && !at.After(now)
}

// wait waits for the next event. It returns Done if the wait continues.
func (a *lockWait[K]) wait(ctx context.Context) WaitResult {
	var due <-chan time.Time
	if step, at := a.head.Next(); step != Idle {
		a.timer.Reset(time.Until(at))
		due = a.timer.C
	}
	changes, peerChanges := a.activeChanges(a.alarm), a.activeChanges(a.peerAlarm)
	var markChanges <-chan struct{}
	if a.mark != nil {
		markChanges = a.activeChanges(a.mark)
	}
	select {
	case <-ctx.Done():
		return Canceled
	case <-a.Timeout:
		if a.Quorum() != nil || a.queues.isUndecided(a.ticket) {
			return TimedOutUndecided
		}
		return TimedOut
	case signal := <-a.ticket.Signals():
		a.quorum = nil
		a.onSignal(signal, time.Now())
	case <-a.quorum:
		a.quorum = nil
		a.head.OnSignal(TryNow, time.Time{}, time.Now())
	case <-changes:
		a.updateView()
	case <-markChanges:
		a.onMarkChange()
	case <-peerChanges:
		a.onPeerMarkChange()
	case <-due:
	}
	return Done
}

// onSignal handles a signal. If the lock is left to another process, onSignal puts this process's
// mark. Once this process knows the ID of the other process, onSignal looks at the mark of that
// process, and then at the lock. The order matters: a process removes its mark when it takes the
// lock. So a look at the lock after the mark is gone shows the state after that take.
func (a *lockWait[K]) onSignal(signal Signal, now time.Time) {
	to, leftUntil := a.queues.leftTo(a.ticket)
	if a.head.OnSignal(signal, leftUntil, now); signal != LeaveToPeer {
		return
	}
	if a.mark == nil {
		a.putMark()
	}
	if to != "" && a.peerAlarm == nil {
		a.peerAlarm = a.queues.Peers.WatchPeer(a.Key, to)
		a.peerAlarm.ReadAll()
		a.setAlarm()
		a.alarm.ReadAll()
	}
}

func (a *lockWait[K]) setAlarm() {
	if a.alarm != nil && a.alarm.Ended() {
		stop(&a.alarm)
	}
	if a.alarm == nil {
		a.alarm = a.Alarm()
	}
}

func (a *lockWait[K]) look(now time.Time) {
	a.setAlarm()
	if a.step() == LookAll {
		a.alarm.ReadAll()
	} else {
		a.alarm.Read(now)
	}
	a.head.OnLook(now)
	a.updateView()
}

func (a *lockWait[K]) updateView() {
	now := time.Now()
	a.head.OnView(a.alarm.View(now), now)
}

// putMark shows other processes that this process waits.
func (a *lockWait[K]) putMark() {
	if !a.queues.needsMark(a.ticket) {
		return
	}
	if a.mark == nil {
		a.mark = a.queues.Peers.Mark(a.Key)
	}
	a.mark.Put()
}

// stopMarks forgets the marks before a try, which removes the mark of this process.
func (a *lockWait[K]) stopMarks() {
	if a.mark != nil {
		a.mark.Stop()
		a.mark = nil
	}
	stop(&a.peerAlarm)
}

// onMarkChange tries at once if another process has left the lock to this process.
func (a *lockWait[K]) onMarkChange() {
	now := time.Now()
	if v := a.mark.View(now).Verdict; v == watch.Free || v == watch.Changed {
		a.queues.receivedFromPeer(a.ticket)
		a.head.OnSignal(TryNow, time.Time{}, now)
	}
}

// onPeerMarkChange looks at the lock once the process to which it was left has tried for it or no
// longer waits.
func (a *lockWait[K]) onPeerMarkChange() {
	now := time.Now()
	if v := a.peerAlarm.View(now).Verdict; v == watch.Free || v == watch.Changed {
		stop(&a.peerAlarm)
		a.queues.peerDone(a.ticket)
		a.head.OnPeerDone(now)
	}
}

func stop(a *Alarm) {
	if *a != nil {
		(*a).Stop()
		*a = nil
	}
}

// activeChanges returns the Changes of an alarm. It returns nil while too few masters vote, because
// the waiter cannot rely on reports then.
func (a *lockWait[K]) activeChanges(alarm Alarm) <-chan struct{} {
	if alarm == nil || a.quorum != nil {
		return nil
	}
	return alarm.Changes()
}
