package queue

import (
	"time"

	"redlock-proxy/internal/pacing"
	"redlock-proxy/quorum/wake"
)

const (
	// shortestPoll and longestPoll bound the pause between two tries of a head that nothing is
	// told.
	shortestPoll = 2 * time.Millisecond
	longestPoll  = 32 * time.Millisecond
	// calm is how long nothing was done for the lock before a change that is tried at once.
	calm = longestPoll
	// brief is how long somebody has to have had the lock for its change to be tried at once: where
	// it is handed on faster, each would cost the masters a try.
	brief = 2 * time.Millisecond
	// shortestLook and longestLook bound the pause between two looks at a lock that changes hands
	// all the time.
	shortestLook = time.Millisecond / 2
	longestLook  = 4 * time.Millisecond
	// grace is how long other masters may take to tell of the same change.
	grace = 5 * time.Millisecond
	// lookTime is how long the answers to a look are waited for before the masters are asked by a
	// try.
	lookTime = 20 * time.Millisecond
	// starved is after what time of looks in vain it tries all the same: who has the lock may not
	// leave it to others at all, as one who locks on the masters themselves.
	starved = 250 * time.Millisecond
	// endSpread is over what time the heads of several processes try a lock that ends by itself.
	endSpread = 2 * time.Millisecond
	// longestRest is after how long one looks at a lock that has no end.
	longestRest = time.Minute
	// longestPuzzle bounds the pause between two tries that do not tell who holds the lock although
	// a majority votes.
	longestPuzzle = time.Second
)

// Step is what a head does.
type Step byte

const (
	// Rest: nothing.
	Rest Step = iota
	// Try for the lock.
	Try
	// Look at the masters of which it is not known that they hold a lock.
	Look
	// LookAnew at all masters.
	LookAnew
)

// Head decides what the head of a queue does next.
type Head struct {
	rand         func() float64
	polls, looks pacing.Pauses
	// puzzles space the tries that do not tell who holds the lock.
	puzzles pacing.Pauses

	// step is what it does, at that time.
	step Step
	at   time.Time
	// gap is until when the lock is left to others; zero: it is not.
	gap time.Time
	// tried is set where it tried in vain: then what others gave up is looked at first, for they
	// may have handed it on.
	tried bool
	// since is since when it was not calm.
	since time.Time
	// acted is when it tried or looked last, pollAt and lookAt when it may again.
	acted, pollAt, lookAt time.Time
}

// NewHead makes one that was told nothing yet; rand gives numbers in [0, 1).
func NewHead(rand func() float64) *Head {
	return &Head{
		rand:  rand,
		polls: pacing.Pauses{Shortest: shortestPoll, Longest: longestPoll, Rand: rand},
		looks: pacing.Pauses{Shortest: shortestLook, Longest: longestLook, Rand: rand},

		puzzles: pacing.Pauses{Shortest: longestPoll, Longest: longestPuzzle, Rand: rand},
	}
}

// Next is what it does, and when.
func (h *Head) Next() (Step, time.Time) { return h.step, h.at }

func (h *Head) will(step Step, at time.Time) { h.step, h.at = step, at }

// Told takes a cue; with Yield others have until the end of their gap.
func (h *Head) Told(c Cue, gap, now time.Time) {
	h.gap = time.Time{}
	switch c {
	case TryNow:
		h.polls.Reset()
		h.will(Try, now)
	case TryLater:
		h.will(Look, now.Add(pacing.Jittered(longestPoll, h.rand)))
	case Yield:
		h.gap = gap
		h.will(Try, gap)
	}
}

// Gone is for others to whom the lock was left: they have had it, or want it no more.
func (h *Head) Gone(now time.Time) {
	h.gap = time.Time{}
	h.will(Look, now)
}

// Failed is for a try that found the lock in other hands.
func (h *Head) Failed(now time.Time) {
	h.gap, h.tried = time.Time{}, true
	h.puzzles.Reset()
	h.acts(now)
	h.pollAt = now.Add(h.polls.Next())
	h.will(Look, now)
}

// Puzzled is for a try that did not tell who holds the lock, although a majority of the masters
// votes.
func (h *Head) Puzzled(now time.Time) {
	h.gap = time.Time{}
	h.acts(now)
	h.pollAt = now.Add(h.puzzles.Next())
	h.will(Try, h.pollAt)
}

// Looked is for a look that was begun.
func (h *Head) Looked(now time.Time) {
	h.acts(now)
	h.will(Rest, time.Time{})
}

func (h *Head) acts(now time.Time) {
	if now.Sub(h.acted) >= calm {
		h.looks.Reset()
		h.since = now
	}
	h.acted, h.lookAt = now, now.Add(h.looks.Next())
}

// Sees takes what is known of the lock.
func (h *Head) Sees(v wake.View, now time.Time) {
	if !h.gap.IsZero() {
		return
	}
	switch v.Verdict {
	case wake.Held:
		h.polls.Reset()
		h.pollAt = time.Time{}
		h.rests(v, now)
	case wake.Changed:
		h.changed(now)
	case wake.Free:
		h.will(Try, later(now, h.pollAt))
	default:
		h.polling(v, now)
	}
}

// changed is for a lock that others gave up, or handed on.
func (h *Head) changed(now time.Time) {
	switch {
	case !h.tried, now.Sub(h.acted) >= brief:
		h.will(Try, later(now, h.pollAt))
	case now.Sub(h.since) >= starved:
		h.will(Try, later(now, later(h.pollAt, h.lookAt)))
	default:
		h.will(Look, later(now, h.lookAt))
	}
}

// rests waits for the end of a lock that others hold.
func (h *Head) rests(v wake.View, now time.Time) {
	switch {
	case v.Stirred:
		h.looksSoon(now)
	case v.End.IsZero():
		h.will(LookAnew, now.Add(longestRest))
	default:
		h.will(Try, v.End.Add(pacing.Jittered(endSpread, h.rand)))
	}
}

// polling is where too little is known.
func (h *Head) polling(v wake.View, now time.Time) {
	switch {
	case v.Asking:
		h.will(Try, later(h.pollAt, h.acted.Add(lookTime)))
	case v.Stirred:
		h.looksSoon(now)
	default:
		h.will(Try, later(now, h.pollAt))
	}
}

// looksSoon looks at what has changed when the other masters have had time to tell.
func (h *Head) looksSoon(now time.Time) {
	at := later(now.Add(grace), h.lookAt)
	if h.step == Look && h.at.Before(at) {
		at = h.at
	}
	h.will(Look, at)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
