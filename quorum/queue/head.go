package queue

import (
	"time"

	"redlock-proxy/internal/pacing"
	"redlock-proxy/quorum/watch"
)

const (
	// shortestPoll and longestPoll limit the pause between two tries of a head without reports.
	shortestPoll = 2 * time.Millisecond
	longestPoll  = 32 * time.Millisecond
	// quietTime is the inactivity after which a head tries at once when the lock changes.
	quietTime = longestPoll
	// shortHold is the minimum time for which a lock must have been held for a change to be tried
	// at once. If the lock is handed on faster, each hand-over would cost the masters a try.
	shortHold = 2 * time.Millisecond
	// shortestLook and longestLook limit the pause between two looks at a lock that changes hands
	// all the time.
	shortestLook = time.Millisecond / 2
	longestLook  = 4 * time.Millisecond
	// grace is how long other masters may take to report the same change.
	grace = 5 * time.Millisecond
	// lookTimeout limits the wait for the replies to a look. After it the head tries.
	lookTimeout = 20 * time.Millisecond
	// starvationTime is the time of unsuccessful looks after which the head tries regardless. The
	// holder may never leave the lock to another process, for example a client that locks on the
	// masters directly.
	starvationTime = 250 * time.Millisecond
	// endSpread is the time over which the heads of several processes spread their tries for a lock
	// that expires.
	endSpread = 2 * time.Millisecond
	// longestSleep is the time after which a head looks at a lock without expiry.
	longestSleep = time.Minute
	// longestUndecidedPause limits the pause between two tries that leave it unknown who holds the
	// lock although a majority votes.
	longestUndecidedPause = time.Second
)

// Step is an action of a head.
type Step byte

const (
	// Rest is to do nothing.
	Rest Step = iota
	// Try is to send a request for the lock to the masters.
	Try
	// Look is to read the key on the masters that are not known to hold a lock.
	Look
	// ReadAll is to read the key on all masters.
	LookAnew
)

// Head decides what the head of a queue does next.
type Head struct {
	rand         func() float64
	polls, looks pacing.Pauses
	// undecidedPauses space the tries that leave it unknown who holds the lock.
	undecidedPauses pacing.Pauses

	// step is the next step, and at its time.
	step Step
	at   time.Time
	// leftUntil is the time until which the lock is left to another process, or zero.
	leftUntil time.Time
	// tried is set after a refused try. Then a head looks first when another process gives up the
	// lock, which may have been handed on.
	tried bool
	// busySince is the start of the current period without a quiet time.
	busySince time.Time
	// lastAction is when the head last tried or looked. pollAt and lookAt are when it may try or
	// look again.
	lastAction, pollAt, lookAt time.Time
}

// NewHead returns a head without information. rand returns numbers in [0, 1).
func NewHead(rand func() float64) *Head {
	return &Head{
		rand:  rand,
		polls: pacing.Pauses{Shortest: shortestPoll, Longest: longestPoll, Rand: rand},
		looks: pacing.Pauses{Shortest: shortestLook, Longest: longestLook, Rand: rand},

		undecidedPauses: pacing.Pauses{Shortest: longestPoll, Longest: longestUndecidedPause, Rand: rand},
	}
}

// Next returns the next step, and its time.
func (h *Head) Next() (Step, time.Time) { return h.step, h.at }

func (h *Head) schedule(step Step, at time.Time) { h.step, h.at = step, at }

// OnSignal handles a signal. With LeaveToPeer the lock is left to another process until gap.
func (h *Head) OnSignal(c Signal, gap, now time.Time) {
	h.leftUntil = time.Time{}
	switch c {
	case TryNow:
		h.polls.Reset()
		h.schedule(Try, now)
	case TryLater:
		h.schedule(Look, now.Add(pacing.Jittered(longestPoll, h.rand)))
	case LeaveToPeer:
		h.leftUntil = gap
		h.schedule(Try, gap)
	}
}

// PeerDone records that the process to which the lock was left has had it, or no longer wants it.
func (h *Head) PeerDone(now time.Time) {
	h.leftUntil = time.Time{}
	h.schedule(Look, now)
}

// Failed records a try that found the lock held by another process.
func (h *Head) Failed(now time.Time) {
	h.leftUntil, h.tried = time.Time{}, true
	h.undecidedPauses.Reset()
	h.recordAction(now)
	h.pollAt = now.Add(h.polls.Next())
	h.schedule(Look, now)
}

// TryUndetermined records a try that left it unknown who holds the lock, although a majority votes.
func (h *Head) TryUndetermined(now time.Time) {
	h.leftUntil = time.Time{}
	h.recordAction(now)
	h.pollAt = now.Add(h.undecidedPauses.Next())
	h.schedule(Try, h.pollAt)
}

// Looked records that a look has begun.
func (h *Head) Looked(now time.Time) {
	h.recordAction(now)
	h.schedule(Rest, time.Time{})
}

func (h *Head) recordAction(now time.Time) {
	if now.Sub(h.lastAction) >= quietTime {
		h.looks.Reset()
		h.busySince = now
	}
	h.lastAction, h.lookAt = now, now.Add(h.looks.Next())
}

// Sees updates the next step by the known state of the lock.
func (h *Head) Sees(v watch.View, now time.Time) {
	if !h.leftUntil.IsZero() {
		return
	}
	switch v.Verdict {
	case watch.Held:
		h.polls.Reset()
		h.pollAt = time.Time{}
		h.sleepUntilEnd(v, now)
	case watch.Changed:
		h.onChange(now)
	case watch.Free:
		h.schedule(Try, laterOf(now, h.pollAt))
	default:
		h.onUnclear(v, now)
	}
}

// onChange schedules the next step after another process has given up the lock or handed it on.
func (h *Head) onChange(now time.Time) {
	switch {
	case !h.tried, now.Sub(h.lastAction) >= shortHold:
		h.schedule(Try, laterOf(now, h.pollAt))
	case now.Sub(h.busySince) >= starvationTime:
		h.schedule(Try, laterOf(now, laterOf(h.pollAt, h.lookAt)))
	default:
		h.schedule(Look, laterOf(now, h.lookAt))
	}
}

// sleepUntilEnd schedules a try for the expiry of a lock that another process holds.
func (h *Head) sleepUntilEnd(v watch.View, now time.Time) {
	switch {
	case v.SomeChanged:
		h.lookSoon(now)
	case v.End.IsZero():
		h.schedule(LookAnew, now.Add(longestSleep))
	default:
		h.schedule(Try, v.End.Add(pacing.Jittered(endSpread, h.rand)))
	}
}

// onUnclear schedules the next step if too little is known.
func (h *Head) onUnclear(v watch.View, now time.Time) {
	switch {
	case v.Asking:
		h.schedule(Try, laterOf(h.pollAt, h.lastAction.Add(lookTimeout)))
	case v.SomeChanged:
		h.lookSoon(now)
	default:
		h.schedule(Try, laterOf(now, h.pollAt))
	}
}

// lookSoon schedules a look at a change, after the other masters have had time to report it.
func (h *Head) lookSoon(now time.Time) {
	at := laterOf(now.Add(grace), h.lookAt)
	if h.step == Look && h.at.Before(at) {
		at = h.at
	}
	h.schedule(Look, at)
}

func laterOf(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
