package queue

import (
	"context"
	"time"

	"redlock-proxy/quorum/wake"
)

// Alarm tells what is known of a key on the masters; *wake.Alarm is one.
type Alarm interface {
	// Bell rings when the View may be another.
	Bell() <-chan struct{}
	// View is what is known.
	View(now time.Time) wake.View
	// Look asks those masters of which it is not known that they hold a lock, LookAnew all.
	Look(now time.Time)
	LookAnew()
	// Ended reports whether it will know nothing any more: then another one is set.
	Ended() bool
	// Stop ends it.
	Stop()
}

// Waiting is how one waits for a key.
type Waiting[K comparable] struct {
	Key K
	// Over ends the wait; nil: nothing does but the context.
	Over <-chan time.Time
	// Try is called while this one is the head of the queue.
	Try func() Tried
	// Quorum is closed when a majority of the masters votes again; nil: one does, as far as is
	// known.
	Quorum func() <-chan struct{}
	// Alarm sets one for the key. It is not called unless the head has to wait for others.
	Alarm func() Alarm
	// Rand gives numbers in [0, 1).
	Rand func() float64
}

// Tried is what came of a try for a lock.
type Tried byte

const (
	// Failed: it ends the wait.
	Failed Tried = iota
	// Taken: it ends the wait, and the next one waits until the lock is released.
	Taken
	// Refused: another holds the lock.
	Refused
	// Unknown: that is not known, because too few masters answered.
	Unknown
)

// Ended is how a wait ended.
type Ended byte

const (
	// Done: the last Try ended it.
	Done Ended = iota
	// Over: its time was over, while another held the lock or nothing was put there.
	Over
	// Open: its time was over while that was not known.
	Open
	// Left: the context ended.
	Left
)

// Await stands in the queue of a key until it is the head of it, then tries whenever the lock may
// be free.
func (q *Queues[K]) Await(ctx context.Context, w Waiting[K]) Ended {
	a := &awaiting[K]{Waiting: w, queues: q, place: q.Enter(w.Key), head: NewHead(w.Rand), timer: time.NewTimer(time.Hour)}
	var tried Tried
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
			if a.left != nil && a.left.View(time.Now()).Verdict != wake.Held { // it is not known that they still wait
				q.gone(a.place)
			}
			a.stopMarks()
			releases := q.tries(a.place)
			if tried = w.Try(); tried == Taken {
				q.Taking(w.Key, withNoTake) // where it was taken by ballot
			}
			if tried == Failed || tried == Taken {
				return Done
			}
			a.failed(tried, releases, time.Now())
		default:
			a.look(time.Now())
		}
	}
}

// withNoTake sends nothing but what would go with a take.
func withNoTake(and func()) {
	if and != nil {
		and()
	}
}

// awaiting is one who waits.
type awaiting[K comparable] struct {
	Waiting[K]
	queues *Queues[K]
	place  *Place[K]
	head   *Head
	timer  *time.Timer
	alarm  Alarm // nil: none is set
	// mark is that of this process, left that of the one to which the lock was left; nil: there is
	// none.
	mark Mark
	left Alarm
	// quorum is what is waited for instead while too few masters vote.
	quorum <-chan struct{}
}

// failed is for a try that took nothing, begun after so many releases.
func (a *awaiting[K]) failed(tried Tried, releases uint64, now time.Time) {
	a.queues.opened(a.place, tried == Unknown)
	switch {
	case tried == Refused && a.queues.lost(a.place, releases):
		a.head.Told(TryNow, time.Time{}, now)
		return
	case tried == Refused:
		a.head.Failed(now)
		a.putMark()
		return
	}
	if a.quorum = a.Quorum(); a.quorum == nil {
		a.head.Puzzled(now)
	} else {
		a.head.will(Rest, time.Time{})
	}
}

func (a *awaiting[K]) step() Step {
	step, _ := a.head.Next()
	return step
}

func (a *awaiting[K]) isDue(now time.Time) bool {
	step, at := a.head.Next()
	return step != Rest && !at.After(now)
}

// wait waits until something happens. Done: it goes on.
func (a *awaiting[K]) wait(ctx context.Context) Ended {
	var due <-chan time.Time
	if step, at := a.head.Next(); step != Rest {
		a.timer.Reset(time.Until(at))
		due = a.timer.C
	}
	bell, left := a.bellOf(a.alarm), a.bellOf(a.left)
	var passed <-chan struct{}
	if a.mark != nil {
		passed = a.bellOf(a.mark)
	}
	select {
	case <-ctx.Done():
		return Left
	case <-a.Over:
		if a.Quorum() != nil || a.queues.isOpen(a.place) {
			return Open
		}
		return Over
	case cue := <-a.place.Turn():
		a.quorum = nil
		a.told(cue, time.Now())
	case <-a.quorum:
		a.quorum = nil
		a.head.Told(TryNow, time.Time{}, time.Now())
	case <-bell:
		a.sees()
	case <-passed:
		a.seesTurn()
	case <-left:
		a.seesLeft()
	case <-due:
	}
	return Done
}

// told is for a cue. Where the lock is left to others it puts its mark, and, once it is known to
// whom, it looks at the mark of that one and at the lock, in this order: whoever has taken the lock
// has removed its mark with that, so where the mark is gone what the lock shows is news.
func (a *awaiting[K]) told(cue Cue, now time.Time) {
	to, gap := a.queues.leftTo(a.place)
	if a.head.Told(cue, gap, now); cue != Yield {
		return
	}
	if a.mark == nil {
		a.putMark()
	}
	if to != "" && a.left == nil {
		a.left = a.queues.Others.Left(a.Key, to)
		a.left.LookAnew()
		a.setAlarm()
		a.alarm.LookAnew()
	}
}

// setAlarm sees to it that there is an alarm for the lock.
func (a *awaiting[K]) setAlarm() {
	if a.alarm != nil && a.alarm.Ended() {
		stop(&a.alarm)
	}
	if a.alarm == nil {
		a.alarm = a.Alarm()
	}
}

// look asks the masters.
func (a *awaiting[K]) look(now time.Time) {
	a.setAlarm()
	if a.step() == LookAnew {
		a.alarm.LookAnew()
	} else {
		a.alarm.Look(now)
	}
	a.head.Looked(now)
	a.sees()
}

func (a *awaiting[K]) sees() {
	now := time.Now()
	a.head.Sees(a.alarm.View(now), now)
}

// putMark has others know that this process waits.
func (a *awaiting[K]) putMark() {
	if !a.queues.marks(a.place) {
		return
	}
	if a.mark == nil {
		a.mark = a.queues.Others.Mark(a.Key)
	}
	a.mark.Put()
}

// stopMarks is for a try, which removes the mark.
func (a *awaiting[K]) stopMarks() {
	if a.mark != nil {
		a.mark.Stop()
		a.mark = nil
	}
	stop(&a.left)
}

// seesTurn tries where the lock was left to this process.
func (a *awaiting[K]) seesTurn() {
	now := time.Now()
	if v := a.mark.View(now).Verdict; v == wake.Free || v == wake.Changed {
		a.queues.passed(a.place)
		a.head.Told(TryNow, time.Time{}, now)
	}
}

// seesLeft looks at the lock once the process to which it was left has tried for it, or waits no
// more.
func (a *awaiting[K]) seesLeft() {
	now := time.Now()
	if v := a.left.View(now).Verdict; v == wake.Free || v == wake.Changed {
		stop(&a.left)
		a.queues.gone(a.place)
		a.head.Gone(now)
	}
}

// stop ends an alarm, if there is one.
func stop(a *Alarm) {
	if *a != nil {
		(*a).Stop()
		*a = nil
	}
}

// bellOf is the bell of an alarm that is heeded now: what masters report that do not vote is
// nothing to go by.
func (a *awaiting[K]) bellOf(alarm Alarm) <-chan struct{} {
	if alarm == nil || a.quorum != nil {
		return nil
	}
	return alarm.Bell()
}
