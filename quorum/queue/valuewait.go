package queue

import (
	"context"
	"slices"
	"time"

	"redlock-proxy/internal/pacing"
	"redlock-proxy/quorum/watch"
)

// partlyWatchedPause is the pause between tries while some masters are not watched, or have not
// answered a read: the other masters may not report every change.
const partlyWatchedPause = time.Second

// PopResult is the result of a try to take a value.
type PopResult byte

const (
	// PopNothingStored means that there was no value.
	PopNothingStored PopResult = iota
	// PopOvertaken means that another client was faster, and another try soon is worthwhile.
	PopOvertaken
	// PopUndetermined means that too few masters replied to determine whether there is a value.
	PopUndetermined
	// PopEnded means that the wait has ended.
	PopEnded
)

// ChangeAlarm reports any change of a key on the masters. An alarm of watch.Watcher.NewChangeAlarm
// implements it.
type ChangeAlarm interface {
	// View returns the known state of the key.
	View(now time.Time) watch.View
	// Arm makes the masters report the next change: it reads the key on each master that would
	// not report a change otherwise. ReadAll reads the key on all masters.
	Arm()
	ReadAll()
	// HasEnded reports whether the alarm gets no more reports, so that the waiter must set a new
	// alarm.
	HasEnded() bool
	// Stop removes the alarm.
	Stop()
}

// ValueWaitOptions describes a wait until a client puts a value under one of several keys.
type ValueWaitOptions[K comparable] struct {
	// Keys are distinct.
	Keys []K
	// Timeout ends the wait; nil: only the context ends it.
	Timeout <-chan time.Time
	// Try tries to take a value. Await calls it once at the start, and then whenever there may be a
	// value. isHead reports for each key whether the waiter is the head of the key's queue. Try may
	// take only a value of a key for which isHead is true.
	Try func(isHead []bool) PopResult
	// Alarm sets an alarm for a key. The alarm sends on wakeup at each change of the key. Await
	// calls Alarm while the waiter is the head of the key's queue.
	Alarm func(key K, wakeup chan struct{}) ChangeAlarm
	// QuorumRegained has the same meaning as LockWaitOptions.QuorumRegained.
	QuorumRegained func() <-chan struct{}
	// Rand returns numbers in [0, 1).
	Rand func() float64
}

// Await waits in the queues of the keys until a Try returns PopEnded. While all masters are watched
// and report no change, Await tries at most once a minute.
func (l *ValueQueues[K]) Await(ctx context.Context, a ValueWaitOptions[K]) WaitResult {
	w := &valueWait[K]{
		ValueWaitOptions: a, queues: l, waiter: l.enter(a.Keys), alarms: make([]ChangeAlarm, len(a.Keys)),
		timer:       time.NewTimer(time.Hour),
		pollPauses:  pacing.Pauses{MinPause: shortestPollPause, MaxPause: longestPollPause, Rand: a.Rand},
		burstPauses: pacing.Pauses{MinPause: shortestBurstPause, MaxPause: longestBurstPause, Rand: a.Rand},

		undecidedPauses: pacing.Pauses{MinPause: longestPollPause, MaxPause: longestUndecidedPause, Rand: a.Rand},
	}
	defer w.stop()
	if w.result = a.Try(l.heads(w.waiter)); w.result != PopEnded {
		l.startWaiting(w.waiter)
	}
	for w.result != PopEnded {
		if result := w.armHeadAlarms(ctx); result != WaitDone {
			return result
		}
		w.result = PopNothingStored
		if slices.Contains(w.isHead, true) {
			w.result = a.Try(w.isHead)
			w.lastTry = time.Now()
		}
		if w.result == PopEnded {
			break
		}
		if result := w.waitForChange(ctx); result != WaitDone {
			return result
		}
	}
	return WaitDone
}

// valueWait holds the state of one call of ValueQueues.Await.
type valueWait[K comparable] struct {
	ValueWaitOptions[K]
	queues *ValueQueues[K]
	waiter *waiter[K]
	isHead []bool        // by key: whether the waiter is the head of the queue
	alarms []ChangeAlarm // by key; nil unless the waiter is the head
	timer  *time.Timer
	// lastTry is the time of the last try. pollPauses, burstPauses and undecidedPauses space
	// further tries.
	lastTry                                  time.Time
	result                                   PopResult // of the last Try
	pollPauses, burstPauses, undecidedPauses pacing.Pauses
}

func (w *valueWait[K]) stop() {
	w.timer.Stop()
	for _, alarm := range w.alarms {
		if alarm != nil {
			alarm.Stop()
		}
	}
	w.queues.leave(w.waiter)
}

// armHeadAlarms makes the masters report the next change of each key of which the waiter is the
// head, before the next try.
func (w *valueWait[K]) armHeadAlarms(ctx context.Context) WaitResult {
	for {
		w.isHead = w.queues.heads(w.waiter)
		for i, head := range w.isHead {
			if head {
				w.setAlarm(i)
			}
		}
		allReplied := func() bool { return !w.hasView(func(v watch.View) bool { return v.Reading }) }
		if result := w.waitUntil(ctx, readTimeout, allReplied); result != WaitDone {
			return result
		}
		select {
		case <-w.waiter.wakeup: // the next try includes this change
		default:
		}
		if slices.Equal(w.isHead, w.queues.heads(w.waiter)) {
			return WaitDone
		}
	}
}

func (w *valueWait[K]) setAlarm(i int) {
	if a := w.alarms[i]; a != nil && a.HasEnded() {
		a.Stop()
		w.alarms[i] = nil
	}
	if w.alarms[i] == nil {
		w.alarms[i] = w.Alarm(w.Keys[i], w.waiter.wakeup)
	}
	w.alarms[i].Arm()
}

// hasView reports whether a condition holds for the view of any key.
func (w *valueWait[K]) hasView(cond func(watch.View) bool) bool {
	now := time.Now()
	return slices.ContainsFunc(w.alarms, func(a ChangeAlarm) bool { return a != nil && cond(a.View(now)) })
}

// waitForChange waits until another try is worthwhile.
func (w *valueWait[K]) waitForChange(ctx context.Context) WaitResult {
	if w.result == PopUndetermined {
		return w.waitForQuorum(ctx)
	}
	w.undecidedPauses.Reset()
	pause := w.pauseBeforeTry()
	var dueTimer <-chan time.Time
	if pause >= 0 {
		w.timer.Reset(pause)
		dueTimer = w.timer.C
	}
	select {
	case <-ctx.Done():
		return WaitCanceled
	case <-w.Timeout:
		return w.timeoutResult()
	case <-w.waiter.wakeup:
	case <-dueTimer:
		if pause >= longestSleep {
			w.readAll()
		}
	}
	if result := w.waitBetweenTries(ctx); result != WaitDone {
		return result
	}
	// Wait a moment until the other masters report the same change. An earlier try could disturb
	// the client that makes the change.
	return w.waitUntil(ctx, reportGrace, func() bool { return !w.hasView(func(v watch.View) bool { return v.SomeChanged }) })
}

// waitForQuorum waits until a majority of the masters votes again, or for a pause if a majority
// votes already.
func (w *valueWait[K]) waitForQuorum(ctx context.Context) WaitResult {
	var due <-chan time.Time
	quorum := w.QuorumRegained()
	if quorum == nil {
		w.timer.Reset(w.undecidedPauses.Next())
		due = w.timer.C
	}
	select {
	case <-ctx.Done():
		return WaitCanceled
	case <-w.Timeout:
		return WaitTimedOutUndecided
	case <-quorum:
	case <-due:
	}
	return WaitDone
}

// timeoutResult returns the result of a wait that reached its time limit.
func (w *valueWait[K]) timeoutResult() WaitResult {
	if w.result == PopUndetermined || w.QuorumRegained() != nil {
		return WaitTimedOutUndecided
	}
	return WaitTimedOut
}

// waitBetweenTries waits a little if the last try was recent, because the key may change all the
// time.
func (w *valueWait[K]) waitBetweenTries(ctx context.Context) WaitResult {
	elapsed := time.Since(w.lastTry)
	if elapsed >= quietTime {
		w.burstPauses.Reset()
		return WaitDone
	}
	return w.waitUntil(ctx, w.burstPauses.Next()-elapsed, func() bool { return false })
}

// pauseBeforeTry returns the time to wait if no change is reported; negative: no limit.
func (w *valueWait[K]) pauseBeforeTry() time.Duration {
	hasVerdict := func(verdict watch.Verdict) func(watch.View) bool {
		return func(v watch.View) bool { return v.Verdict == verdict }
	}
	switch {
	case !slices.Contains(w.isHead, true):
		return -1
	case w.result == PopOvertaken, w.hasView(hasVerdict(watch.Unclear)):
		return w.pollPauses.Next()
	}
	w.pollPauses.Reset()
	switch {
	case w.hasView(hasVerdict(watch.Changed)):
		return 0
	case w.hasView(func(v watch.View) bool { return v.PartlyWatched || v.Reading }):
		return partlyWatchedPause
	}
	return longestSleep
}

func (w *valueWait[K]) readAll() {
	for _, alarm := range w.alarms {
		if alarm != nil {
			alarm.ReadAll()
		}
	}
}

// waitUntil waits until a condition is met or the limit is reached. It returns WaitDone in both
// cases.
func (w *valueWait[K]) waitUntil(ctx context.Context, limit time.Duration, isMet func() bool) WaitResult {
	if ctx.Err() != nil {
		return WaitCanceled
	}
	if isMet() {
		return WaitDone
	}
	w.timer.Reset(limit)
	for {
		select {
		case <-ctx.Done():
			return WaitCanceled
		case <-w.Timeout:
			return w.timeoutResult()
		case <-w.timer.C:
			return WaitDone
		case <-w.waiter.wakeup:
			if isMet() {
				return WaitDone
			}
		}
	}
}
