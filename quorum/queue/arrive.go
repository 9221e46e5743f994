package queue

import (
	"context"
	"slices"
	"time"

	"redlock-proxy/internal/pacing"
	"redlock-proxy/quorum/wake"
)

// partRest is after how long one tries again where some masters are not watched: what the others
// tell may not be all.
const partRest = time.Second

// Attempt is what came of trying to take something.
type Attempt byte

const (
	// InVain: nothing is there.
	InVain Attempt = iota
	// Overtaken: others were quicker, and it is worth trying again soon.
	Overtaken
	// Unlooked: too few masters answered to tell whether anything is there.
	Unlooked
	// Made: the wait is over.
	Made
)

// ChangeAlarm tells of changes of a key on the masters; *wake.Alarm is one.
type ChangeAlarm interface {
	// View is what is known.
	View(now time.Time) wake.View
	// Arm has those masters tell of the next change that would not, LookAnew all.
	Arm()
	LookAnew()
	// Ended reports whether it will know nothing any more: then another one is set.
	Ended() bool
	// Stop ends it.
	Stop()
}

// Arrival is how one waits until something is put under one of some keys.
type Arrival[K comparable] struct {
	// Keys are distinct.
	Keys []K
	// Over ends the wait; nil: nothing does but the context.
	Over <-chan time.Time
	// Try is called once at first, then whenever something may be there. It may take what is under
	// those of the keys that are its own: nobody came before for them.
	Try func(own []bool) Attempt
	// Alarm sets one for a key that rings a bell at each change. It is called while this one is the
	// head of the key's queue.
	Alarm func(key K, bell chan struct{}) ChangeAlarm
	// Quorum is that of Waiting.
	Quorum func() <-chan struct{}
	// Rand gives numbers in [0, 1).
	Rand func() float64
}

// Await stands in the queues of the keys until a Try was not in vain. While nothing changes nothing
// is tried.
func (l *Lines[K]) Await(ctx context.Context, a Arrival[K]) Ended {
	w := &arriving[K]{
		Arrival: a, lines: l, member: l.enter(a.Keys), alarms: make([]ChangeAlarm, len(a.Keys)), timer: time.NewTimer(time.Hour),
		polls: pacing.Pauses{Shortest: shortestPoll, Longest: longestPoll, Rand: a.Rand},
		looks: pacing.Pauses{Shortest: shortestLook, Longest: longestLook, Rand: a.Rand},

		puzzles: pacing.Pauses{Shortest: longestPoll, Longest: longestPuzzle, Rand: a.Rand},
	}
	defer w.end()
	if w.came = a.Try(l.heads(w.member)); w.came != Made {
		l.wait(w.member)
	}
	for w.came != Made {
		if ended := w.arm(ctx); ended != Done {
			return ended
		}
		w.came = InVain
		if slices.Contains(w.own, true) {
			w.came = a.Try(w.own)
			w.tried = time.Now()
		}
		if w.came == Made {
			break
		}
		if ended := w.rest(ctx); ended != Done {
			return ended
		}
	}
	return Done
}

// arriving is one who waits.
type arriving[K comparable] struct {
	Arrival[K]
	lines  *Lines[K]
	member *member[K]
	own    []bool        // of each key: it is the head of its queue
	alarms []ChangeAlarm // of each key that is its own; else nil
	timer  *time.Timer
	// tried is when it tried last; polls and looks space what follows.
	tried                 time.Time
	came                  Attempt // of the last Try
	polls, looks, puzzles pacing.Pauses
}

func (w *arriving[K]) end() {
	w.timer.Stop()
	for _, alarm := range w.alarms {
		if alarm != nil {
			alarm.Stop()
		}
	}
	w.lines.leave(w.member)
}

// arm has the masters tell of the next change of each key that is its own, from before the next try
// on.
func (w *arriving[K]) arm(ctx context.Context) Ended {
	for {
		w.own = w.lines.heads(w.member)
		for i, own := range w.own {
			if own {
				w.set(i)
			}
		}
		if ended := w.until(ctx, lookTime, func() bool { return !w.some(func(v wake.View) bool { return v.Asking }) }); ended != Done {
			return ended
		}
		select {
		case <-w.member.bell: // for what the next try sees
		default:
		}
		if slices.Equal(w.own, w.lines.heads(w.member)) {
			return Done
		}
	}
}

// set arms the alarm of a key.
func (w *arriving[K]) set(i int) {
	if a := w.alarms[i]; a != nil && a.Ended() {
		a.Stop()
		w.alarms[i] = nil
	}
	if w.alarms[i] == nil {
		w.alarms[i] = w.Alarm(w.Keys[i], w.member.bell)
	}
	w.alarms[i].Arm()
}

// some reports whether something is true of what is known of some key.
func (w *arriving[K]) some(is func(wake.View) bool) bool {
	now := time.Now()
	return slices.ContainsFunc(w.alarms, func(a ChangeAlarm) bool { return a != nil && is(a.View(now)) })
}

// rest waits until it is worth trying again.
func (w *arriving[K]) rest(ctx context.Context) Ended {
	if w.came == Unlooked {
		return w.restOpen(ctx)
	}
	w.puzzles.Reset()
	pause := w.pause()
	var due <-chan time.Time
	if pause >= 0 {
		w.timer.Reset(pause)
		due = w.timer.C
	}
	select {
	case <-ctx.Done():
		return Left
	case <-w.Over:
		return w.over()
	case <-w.member.bell:
	case <-due:
		if pause >= longestRest {
			w.lookAnew()
		}
	}
	if ended := w.space(ctx); ended != Done {
		return ended
	}
	// The others tell of the same change in a moment. What is tried before may get in the way of
	// who makes it.
	return w.until(ctx, grace, func() bool { return !w.some(func(v wake.View) bool { return v.Stirred }) })
}

// restOpen waits until a majority of the masters votes again, or for a while where one does.
func (w *arriving[K]) restOpen(ctx context.Context) Ended {
	var due <-chan time.Time
	quorum := w.Quorum()
	if quorum == nil {
		w.timer.Reset(w.puzzles.Next())
		due = w.timer.C
	}
	select {
	case <-ctx.Done():
		return Left
	case <-w.Over:
		return Open
	case <-quorum:
	case <-due:
	}
	return Done
}

// over is how a wait ended whose time was over.
func (w *arriving[K]) over() Ended {
	if w.came == Unlooked || w.Quorum() != nil {
		return Open
	}
	return Over
}

// space waits a little where the key changes all the time.
func (w *arriving[K]) space(ctx context.Context) Ended {
	since := time.Since(w.tried)
	if since >= calm {
		w.looks.Reset()
		return Done
	}
	return w.until(ctx, w.looks.Next()-since, func() bool { return false })
}

// pause is how long it waits if nothing is told; below zero: without an end.
func (w *arriving[K]) pause() time.Duration {
	is := func(verdict wake.Verdict) func(wake.View) bool {
		return func(v wake.View) bool { return v.Verdict == verdict }
	}
	switch {
	case !slices.Contains(w.own, true):
		return -1
	case w.came == Overtaken, w.some(is(wake.Unclear)):
		return w.polls.Next()
	}
	w.polls.Reset()
	switch {
	case w.some(is(wake.Changed)):
		return 0
	case w.some(func(v wake.View) bool { return v.Partly || v.Asking }):
		return partRest
	}
	return longestRest
}

func (w *arriving[K]) lookAnew() {
	for _, alarm := range w.alarms {
		if alarm != nil {
			alarm.LookAnew()
		}
	}
}

// until waits until something is so, for a limited time; whoever calls it tries afterwards.
func (w *arriving[K]) until(ctx context.Context, limit time.Duration, met func() bool) Ended {
	if ctx.Err() != nil {
		return Left
	}
	if met() {
		return Done
	}
	w.timer.Reset(limit)
	for {
		select {
		case <-ctx.Done():
			return Left
		case <-w.Over:
			return w.over()
		case <-w.timer.C:
			return Done
		case <-w.member.bell:
			if met() {
				return Done
			}
		}
	}
}
