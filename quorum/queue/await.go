package queue

import (
	"context"
	"time"

	"redlock-proxy/quorum/watch"
)

// Alarm reports the known state of a key on the masters; *watch.Alarm and *watch.KeyAlarm implement
// it.
type Alarm interface {
	// Changes returns a channel that gets a value when the View may have changed.
	Changes() <-chan struct{}
	// View returns the known state of the key.
	View(now time.Time) watch.View
	// Read reads the key on the masters, but skips a master that holds a lock, as far as the alarm
	// knows. ReadAll reads the key on all masters.
	Read(now time.Time)
	ReadAll()
	// HasEnded reports whether the alarm gets no more reports, so that the waiter must set a new
	// alarm.
	HasEnded() bool
	// Stop removes the alarm.
	Stop()
}

// LockWaitOptions describes a wait for a lock of one or several keys.
type LockWaitOptions[K comparable] struct {
	// Keys are distinct.
	Keys []K
	// Slots is the number of clients that may hold the lock together, negative for any number, or 0
	// for an exclusive lock. It is 0 for several keys.
	Slots int
	// Timeout ends the wait; nil: only the context ends it.
	Timeout <-chan time.Time
	// Try tries to take all keys. If the result is TryRefused, key is the index of a key that
	// another client holds, or negative if no key is known to be held. If it is TryTaken, and
	// several clients may hold the lock, freeSlots is the number of clients that may join, negative
	// for any number. Await calls Try only while the waiter is the head of all its queues, or
	// behind waiters that try at the same time, because all of them may get the lock. Before it
	// returns WaitTimedOut, Await also calls Try if no other waiter knows that a key is held.
	Try func() (result TryResult, key, freeSlots int)
	// QuorumRegained returns a channel that is closed when a majority of the masters votes again,
	// or nil if a majority votes, as far as this process knows.
	QuorumRegained func() <-chan struct{}
	// Alarm sets an alarm for a key. Await calls it only if the head has to wait for another
	// process.
	Alarm func(key K) Alarm
	// Rand returns numbers in [0, 1).
	Rand func() float64
}

// TryResult is the result of a try for a lock.
type TryResult byte

const (
	// TryFailed means that the try ends the wait without a lock.
	TryFailed TryResult = iota
	// TryTaken means that the try took the lock. It ends the wait, and the next waiter waits for
	// the release.
	TryTaken
	// TryRefused means that another client holds the lock.
	TryRefused
	// TryUnknown means that too few masters replied to determine the holder.
	TryUnknown
)

// WaitResult is the result of a wait.
type WaitResult byte

const (
	// WaitDone means that the last Try ended the wait.
	WaitDone WaitResult = iota
	// WaitTimedOut means that the time limit was reached while another client held the lock, or
	// before a client put a value under the key.
	WaitTimedOut
	// WaitTimedOutUndecided means that the time limit was reached while too few masters voted, or
	// while the state of the lock was unknown.
	WaitTimedOutUndecided
	// WaitCanceled means that the context ended.
	WaitCanceled
)

// Await waits in the queues of the keys until it is the head of all of them, and then tries
// whenever the lock may be free. After a try that was refused, it waits until the key that refused
// may be free.
func (q *Queues[K]) Await(ctx context.Context, w LockWaitOptions[K]) WaitResult {
	a := &lockWait[K]{LockWaitOptions: w, queues: q, tickets: q.EnterAll(w.Keys, w.Slots), head: NewHead(w.Rand),
		timer: time.NewTimer(time.Hour)}
	defer func() {
		a.timer.Stop()
		stop(&a.alarm)
		a.stopMarks()
		q.LeaveAll(a.tickets, a.result == TryTaken)
	}()
	if waitResult := a.becomeHead(ctx); waitResult != WaitDone {
		return a.tryOnceAfterTimeout(waitResult)
	}
	for {
		switch {
		case !a.isDue(time.Now()):
			if waitResult := a.wait(ctx); waitResult != WaitDone {
				return a.tryOnceAfterTimeout(waitResult)
			}
		case a.step() == StepTry:
			// If the mark of the process to which the lock was left is gone, that process no
			// longer waits.
			if a.peerAlarm != nil && a.peerAlarm.View(time.Now()).Verdict != watch.Held {
				q.recordPeerDone(a.ticket())
			}
			a.stopMarks()
			a.dropSignals()
			q.beginTry(a.tickets...)
			key := a.try()
			if a.result == TryFailed || a.result == TryTaken {
				a.finishTake()
				return WaitDone
			}
			a.onFailedTry(key, time.Now())
		default:
			a.read(time.Now())
		}
	}
}

// try tries to take all keys. It returns the index of the key that refused, or a negative number.
func (a *lockWait[K]) try() (key int) {
	a.result, key, a.ticket().freeSlots = a.Try()
	return key
}

// finishTake removes the mark, and asks for waiters, after a take that did not call SendTake, such
// as a take by ballot.
func (a *lockWait[K]) finishTake() {
	if a.result != TryTaken {
		return
	}
	for _, key := range a.Keys {
		a.queues.SendTake(key, callIfSet)
	}
}

// tryOnceAfterTimeout returns the result of a wait. A waiter that timed out behind other waiters
// tries once if none of them knows that a key is held: they may wait for different keys.
func (a *lockWait[K]) tryOnceAfterTimeout(r WaitResult) WaitResult {
	if r != WaitTimedOut || a.isHead || !a.queues.mayBeFree(a.tickets) {
		return r
	}
	a.try()
	switch a.result {
	case TryRefused:
		return WaitTimedOut
	case TryUnknown:
		return WaitTimedOutUndecided
	default:
		return WaitDone
	}
}

// callIfSet calls a function, unless it is nil. It is the argument of Queues.SendTake if the take
// has been sent already.
func callIfSet(then func()) {
	if then != nil {
		then()
	}
}

// lockWait holds the state of one call of Queues.Await.
type lockWait[K comparable] struct {
	LockWaitOptions[K]
	queues *Queues[K]
	// tickets holds one ticket for each key. The waiter acts on the ticket with index active only.
	tickets []*Ticket[K]
	active  int
	// isHead is set once the waiter is the head of all its queues, or tries together with the head.
	// result is the result of the last try.
	isHead bool
	result TryResult
	head   *Head
	timer  *time.Timer
	alarm  Alarm // nil: not set
	// mark is the mark of this process, or nil. peerAlarm watches the mark of the process to which
	// the lock was left, or is nil.
	mark      WaiterMark
	peerAlarm Alarm
	// quorum is the channel to wait for while too few masters vote.
	quorum <-chan struct{}
}

// ticket returns the ticket on which the waiter acts.
func (a *lockWait[K]) ticket() *Ticket[K] { return a.tickets[a.active] }

// becomeHead waits until a waiter for several keys is the head of all its queues. A waiter for one
// key needs no such wait: it is the head when it gets its first signal.
func (a *lockWait[K]) becomeHead(ctx context.Context) WaitResult {
	if len(a.tickets) == 1 {
		return WaitDone
	}
	signals := make([]Signal, len(a.tickets))
	for i, ticket := range a.tickets {
		select {
		case <-ctx.Done():
			return WaitCanceled
		case <-a.Timeout:
			return a.timedOut()
		case signals[i] = <-ticket.Signals():
		}
	}
	active := 0
	for i, ticket := range a.tickets {
		select {
		case signals[i] = <-ticket.Signals():
		default:
		}
		if signals[i] != TryNow { // this key was just granted, or left to another process
			active = i
		}
	}
	a.actOn(active)
	a.onSignal(signals[active], time.Now())
	return WaitDone
}

// dropSignals drops earlier signals of all tickets except the active ticket. They are outdated,
// because the next try covers all keys.
func (a *lockWait[K]) dropSignals() {
	for i, ticket := range a.tickets {
		if i == a.active {
			continue
		}
		select {
		case <-ticket.Signals():
		default:
		}
	}
}

// actOn makes the waiter act on the ticket with this index.
func (a *lockWait[K]) actOn(active int) {
	if active != a.active {
		stop(&a.alarm)
		a.queues.dropMark(a.ticket())
		a.head = NewHead(a.Rand)
	}
	a.active = active
	a.queues.actOn(a.ticket(), a.tickets)
}

// onFailedTry handles a try that did not take the lock. key is the key that refused, or negative.
func (a *lockWait[K]) onFailedTry(key int, now time.Time) {
	isHead := a.queues.endTry(a.tickets, a.result == TryUnknown)
	if a.result == TryRefused && key >= 0 && key != a.active {
		a.actOn(key)
	}
	switch {
	case !isHead:
		a.head.schedule(StepIdle, time.Time{})
		return
	case a.result == TryRefused && a.queues.recordHeld(a.ticket()):
		a.head.OnSignal(TryNow, time.Time{}, now)
		return
	case a.result == TryRefused:
		a.head.OnRefused(now)
		a.putMark()
		return
	}
	if a.quorum = a.QuorumRegained(); a.quorum == nil {
		a.head.OnUndecided(now)
	} else {
		a.head.schedule(StepIdle, time.Time{})
	}
}

func (a *lockWait[K]) step() Step {
	step, _ := a.head.NextStep()
	return step
}

func (a *lockWait[K]) isDue(now time.Time) bool {
	step, at := a.head.NextStep()
	return step != StepIdle && !at.After(now)
}

// wait waits for the next event. It returns WaitDone if the wait continues.
func (a *lockWait[K]) wait(ctx context.Context) WaitResult {
	var dueTimer <-chan time.Time
	if step, at := a.head.NextStep(); step != StepIdle {
		a.timer.Reset(time.Until(at))
		dueTimer = a.timer.C
	}
	changes, peerChanges := a.activeChanges(a.alarm), a.activeChanges(a.peerAlarm)
	var markChanges <-chan struct{}
	if a.mark != nil {
		markChanges = a.activeChanges(a.mark)
	}
	select {
	case <-ctx.Done():
		return WaitCanceled
	case <-a.Timeout:
		return a.timedOut()
	case signal := <-a.ticket().Signals():
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
	case <-dueTimer:
	}
	return WaitDone
}

// timedOut returns the result of a wait that reached its time limit.
func (a *lockWait[K]) timedOut() WaitResult {
	if a.QuorumRegained() != nil || a.queues.isUndecided(a.tickets) {
		return WaitTimedOutUndecided
	}
	return WaitTimedOut
}

// onSignal handles a signal. If the lock is left to another process, onSignal puts this process's
// mark. Once this process knows the ID of the other process, onSignal reads the mark of that
// process, and then the lock. The order matters: a process removes its mark when it takes the
// lock. So a read of the lock that follows the removal shows the state after that take.
func (a *lockWait[K]) onSignal(signal Signal, now time.Time) {
	a.isHead = true
	to, leftUntil := a.queues.leaveTarget(a.ticket())
	if a.head.OnSignal(signal, leftUntil, now); signal != LeaveToPeer {
		return
	}
	if a.mark == nil {
		a.putMark()
	}
	if to != "" && a.peerAlarm == nil {
		a.peerAlarm = a.queues.Peers.WatchPeer(a.ticket().key, to)
		a.peerAlarm.ReadAll()
		a.setAlarm()
		a.alarm.ReadAll()
	}
}

func (a *lockWait[K]) setAlarm() {
	if a.alarm != nil && a.alarm.HasEnded() {
		stop(&a.alarm)
	}
	if a.alarm == nil {
		a.alarm = a.Alarm(a.ticket().key)
	}
}

func (a *lockWait[K]) read(now time.Time) {
	a.setAlarm()
	if a.step() == StepReadAll {
		a.alarm.ReadAll()
	} else {
		a.alarm.Read(now)
	}
	a.head.OnRead(now)
	a.updateView()
}

func (a *lockWait[K]) updateView() {
	now := time.Now()
	a.head.OnView(a.alarm.View(now), now)
}

// putMark shows other processes that this process waits.
func (a *lockWait[K]) putMark() {
	if !a.queues.needsMark(a.ticket()) {
		return
	}
	if a.mark == nil {
		a.mark = a.queues.Peers.WaiterMark(a.ticket().key)
	}
	a.mark.Put()
}

// stopMarks stops the alarms for the mark of this process and for the mark of the other process. It
// removes no mark from the masters: a take or Queues.LeaveAll does so.
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
		a.queues.recordLockFromPeer(a.ticket())
		a.head.OnSignal(TryNow, time.Time{}, now)
	}
}

// onPeerMarkChange reads the lock once the process to which it was left has tried to take it, or no
// longer waits.
func (a *lockWait[K]) onPeerMarkChange() {
	now := time.Now()
	if v := a.peerAlarm.View(now).Verdict; v == watch.Free || v == watch.Changed {
		stop(&a.peerAlarm)
		a.queues.recordPeerDone(a.ticket())
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
