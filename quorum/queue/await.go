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
	// Read reads the key on the masters that are not known to hold a lock. ReadAll reads it on all
	// masters.
	Read(now time.Time)
	ReadAll()
	// Ended reports whether the alarm gets no more reports, so that a new one must be set.
	Ended() bool
	// Stop removes the alarm.
	Stop()
}

// Waiting describes a wait for a lock.
type Waiting[K comparable] struct {
	Key K
	// Over ends the wait; nil: only the context ends it.
	Over <-chan time.Time
	// Try is called while the waiter is the head of the queue.
	Try func() TryResult
	// Quorum returns a channel that is closed when a majority of the masters votes again, or nil if
	// a majority votes, as far as this process knows.
	Quorum func() <-chan struct{}
	// Alarm sets an alarm for the key. It is called only if the head has to wait for another
	// process.
	Alarm func() Alarm
	// Rand returns numbers in [0, 1).
	Rand func() float64
}

// TryResult is the result of a try for a lock.
type TryResult byte

const (
	// Failed means that the try ends the wait.
	Failed TryResult = iota
	// Taken means that the try ends the wait, and the next waiter waits for the release.
	Taken
	// Refused means that another client holds the lock.
	Refused
	// Unknown means that too few masters replied to determine the holder.
	Unknown
)

// WaitResult is the way in which a wait ended.
type WaitResult byte

const (
	// Done means that the last Try ended the wait.
	Done WaitResult = iota
	// Over means that the time limit was reached while another client held the lock, or no value
	// was put under the key.
	Over
	// Open means that the time limit was reached while the state of the lock was unknown.
	Open
	// Left means that the context ended.
	Left
)

// Await waits in the queue of a key until it is the head, and then tries whenever the lock may be
// free.
func (q *Queues[K]) Await(ctx context.Context, w Waiting[K]) WaitResult {
	a := &lockWait[K]{Waiting: w, queues: q, place: q.Enter(w.Key), head: NewHead(w.Rand),
		timer: time.NewTimer(time.Hour)}
	var tried TryResult
	defer func() {
		a.timer.Stop()
		stop(&a.alarm)
		a.stopMarks()
		q.Leave(a.place, tried == Taken)
	}()
	for {
		switch {
		case !a.isDue(time.Now()):
			if ended := a.wait(ctx); ended != Done {
				return ended
			}
		case a.step() == Try:
			// the other process may no longer wait
			if a.peerAlarm != nil && a.peerAlarm.View(time.Now()).Verdict != watch.Held {
				q.peerDone(a.place)
			}
			a.stopMarks()
			releases := q.beginTry(a.place)
			if tried = w.Try(); tried == Taken {
				q.Taking(w.Key, callIfSet) // a try by ballot has not called Taking
			}
			if tried == Failed || tried == Taken {
				return Done
			}
			a.onFailedTry(tried, releases, time.Now())
		default:
			a.look(time.Now())
		}
	}
}

// callIfSet is the send of Queues.Taking if no take follows.
func callIfSet(and func()) {
	if and != nil {
		and()
	}
}

// lockWait is one call of Queues.Await.
type lockWait[K comparable] struct {
	Waiting[K]
	queues *Queues[K]
	place  *Ticket[K]
	head   *Head
	timer  *time.Timer
	alarm  Alarm // nil: not set
	// mark is the mark of this process, or nil. peerAlarm watches the mark of the process to which
	// the lock was left, and is nil if the lock was left to none.
	mark      Mark
	peerAlarm Alarm
	// quorum is the channel to wait for while too few masters vote.
	quorum <-chan struct{}
}

// onFailedTry handles a try that took nothing. The try began after this number of releases.
func (a *lockWait[K]) onFailedTry(tried TryResult, releases uint64, now time.Time) {
	a.queues.setUndecided(a.place, tried == Unknown)
	switch {
	case tried == Refused && a.queues.foundHeld(a.place, releases):
		a.head.OnSignal(TryNow, time.Time{}, now)
		return
	case tried == Refused:
		a.head.Failed(now)
		a.putMark()
		return
	}
	if a.quorum = a.Quorum(); a.quorum == nil {
		a.head.TryUndetermined(now)
	} else {
		a.head.schedule(Rest, time.Time{})
	}
}

func (a *lockWait[K]) step() Step {
	step, _ := a.head.Next()
	return step
}

func (a *lockWait[K]) isDue(now time.Time) bool {
	step, at := a.head.Next()
	return step != Rest && !at.After(now)
}

// wait waits until something happens. It returns Done if the wait continues.
func (a *lockWait[K]) wait(ctx context.Context) WaitResult {
	var due <-chan time.Time
	if step, at := a.head.Next(); step != Rest {
		a.timer.Reset(time.Until(at))
		due = a.timer.C
	}
	bell, peerBell := a.activeBell(a.alarm), a.activeBell(a.peerAlarm)
	var passed <-chan struct{}
	if a.mark != nil {
		passed = a.activeBell(a.mark)
	}
	select {
	case <-ctx.Done():
		return Left
	case <-a.Over:
		if a.Quorum() != nil || a.queues.isUndecided(a.place) {
			return Open
		}
		return Over
	case cue := <-a.place.Turn():
		a.quorum = nil
		a.onSignal(cue, time.Now())
	case <-a.quorum:
		a.quorum = nil
		a.head.OnSignal(TryNow, time.Time{}, time.Now())
	case <-bell:
		a.updateView()
	case <-passed:
		a.onMarkChange()
	case <-peerBell:
		a.onPeerMarkChange()
	case <-due:
	}
	return Done
}

// onSignal handles a signal. If the lock is left to another process, onSignal puts this process's
// mark. Once that process is known, onSignal looks at its mark, and then at the lock. The order
// matters: a process removes its mark when it takes the lock, so once the mark is gone, the state
// of the lock is newer.
func (a *lockWait[K]) onSignal(cue Signal, now time.Time) {
	to, gap := a.queues.leftTo(a.place)
	if a.head.OnSignal(cue, gap, now); cue != LeaveToPeer {
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
	if a.step() == LookAnew {
		a.alarm.ReadAll()
	} else {
		a.alarm.Read(now)
	}
	a.head.Looked(now)
	a.updateView()
}

func (a *lockWait[K]) updateView() {
	now := time.Now()
	a.head.Sees(a.alarm.View(now), now)
}

// putMark shows other processes that this process waits.
func (a *lockWait[K]) putMark() {
	if !a.queues.needsMark(a.place) {
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
		a.queues.receivedFromPeer(a.place)
		a.head.OnSignal(TryNow, time.Time{}, now)
	}
}

// onPeerMarkChange looks at the lock once the process to which it was left has tried for it or no
// longer waits.
func (a *lockWait[K]) onPeerMarkChange() {
	now := time.Now()
	if v := a.peerAlarm.View(now).Verdict; v == watch.Free || v == watch.Changed {
		stop(&a.peerAlarm)
		a.queues.peerDone(a.place)
		a.head.PeerDone(now)
	}
}

func stop(a *Alarm) {
	if *a != nil {
		(*a).Stop()
		*a = nil
	}
}

// activeBell returns the bell of an alarm, or nil while too few masters vote: then reports cannot
// be relied on.
func (a *lockWait[K]) activeBell(alarm Alarm) <-chan struct{} {
	if alarm == nil || a.quorum != nil {
		return nil
	}
	return alarm.Changes()
}
