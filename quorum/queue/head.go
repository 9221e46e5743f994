package queue

import (
	"time"

	"redlock-proxy/internal/pacing"
	"redlock-proxy/quorum/watch"
)

const (
	// shortestPollPause and longestPollPause limit the pause between two tries of a head without
	// reports.
	shortestPollPause = 2 * time.Millisecond
	longestPollPause  = 32 * time.Millisecond
	// quietTime is the time without tries and looks after which the burst pauses begin with the
	// shortest pause again.
	quietTime = longestPollPause
	// shortHold is the minimum time between the last action of a head and a change of the lock at
	// which the head tries at once. After a shorter time the head looks first. Otherwise each
	// hand-over within another process could cost the masters a try.
	shortHold = 2 * time.Millisecond
	// shortestBurstPause and longestBurstPause limit the pause between two looks at a lock, or two
	// tries for a value, that changes hands all the time.
	shortestBurstPause = time.Millisecond / 2
	longestBurstPause  = 4 * time.Millisecond
	// reportGrace is the time that the other masters have to report a change that some masters
	// reported.
	reportGrace = 5 * time.Millisecond
	// lookTimeout limits the wait for the replies to a look. After that time the head tries.
	lookTimeout = 20 * time.Millisecond
	// starvationTime is the time of unsuccessful looks after which the head tries anyway. Some
	// holders never leave the lock to another process, for example a client that locks on the
	// masters directly.
	starvationTime = 250 * time.Millisecond
	// expirySpread is the time over which the heads of several processes spread their tries for a
	// lock that expires.
	expirySpread = 2 * time.Millisecond
	// longestSleep is the time after which a head looks at a lock without expiry.
	longestSleep = time.Minute
	// longestUndecidedPause limits the pause between two tries after which the holder is unknown
	// although a majority votes.
	longestUndecidedPause = time.Second
)

// Step is an action of a head.
type Step byte

const (
	// Idle means that the head only waits for signals and reports.
	Idle Step = iota
	// Try means that the head requests the lock from the masters.
	Try
	// Look means that the head reads the key on the masters, but skips a master that holds a lock,
	// as far as its alarm knows.
	Look
	// LookAll means that the head reads the key on all masters.
	LookAll
)

// Head decides the next step of the head of a queue.
type Head struct {
	rand                    func() float64
	pollPauses, burstPauses pacing.Pauses
	// undecidedPauses space the tries after which the holder is unknown.
	undecidedPauses pacing.Pauses

	// step is the next step, and stepAt its time.
	step   Step
	stepAt time.Time
	// leftUntil is the time until which the lock is left to another process, or zero.
	leftUntil time.Time
	// wasRefused is set after a refused try. Then a head looks first when another process gives up
	// the lock, because the lock may have been handed on.
	wasRefused bool
	// busySince is the start of the current period of tries and looks without a quiet time.
	busySince time.Time
	// lastAction is the time at which the head last tried or looked. pollAt and lookAt are the
	// times from which it may try or look again.
	lastAction, pollAt, lookAt time.Time
}

// NewHead returns a head without information. rand returns numbers in [0, 1).
func NewHead(rand func() float64) *Head {
	return &Head{
		rand:        rand,
		pollPauses:  pacing.Pauses{MinPause: shortestPollPause, MaxPause: longestPollPause, Rand: rand},
		burstPauses: pacing.Pauses{MinPause: shortestBurstPause, MaxPause: longestBurstPause, Rand: rand},

		undecidedPauses: pacing.Pauses{MinPause: longestPollPause, MaxPause: longestUndecidedPause, Rand: rand},
	}
}

// Next returns the next step, and its time.
func (h *Head) Next() (Step, time.Time) { return h.step, h.stepAt }

func (h *Head) schedule(step Step, at time.Time) { h.step, h.stepAt = step, at }

// OnSignal handles a signal. With LeaveToPeer the lock is left to another process until leftUntil.
func (h *Head) OnSignal(c Signal, leftUntil, now time.Time) {
	h.leftUntil = time.Time{}
	switch c {
	case TryNow:
		h.pollPauses.Reset()
		h.schedule(Try, now)
	case TryLater:
		h.schedule(Look, now.Add(pacing.Jittered(longestPollPause, h.rand)))
	case LeaveToPeer:
		h.leftUntil = leftUntil
		h.schedule(Try, leftUntil)
	}
}

// OnPeerDone records that the process to which the lock was left has had the lock, or no longer
// wants it.
func (h *Head) OnPeerDone(now time.Time) {
	h.leftUntil = time.Time{}
	h.schedule(Look, now)
}

// OnRefused records a try that found the lock held by another process.
func (h *Head) OnRefused(now time.Time) {
	h.leftUntil, h.wasRefused = time.Time{}, true
	h.undecidedPauses.Reset()
	h.recordAction(now)
	h.pollAt = now.Add(h.pollPauses.Next())
	h.schedule(Look, now)
}

// OnUndecided records a try after which the holder is unknown, although a majority votes.
func (h *Head) OnUndecided(now time.Time) {
	h.leftUntil = time.Time{}
	h.recordAction(now)
	h.pollAt = now.Add(h.undecidedPauses.Next())
	h.schedule(Try, h.pollAt)
}

// OnLook records that a look has begun.
func (h *Head) OnLook(now time.Time) {
	h.recordAction(now)
	h.schedule(Idle, time.Time{})
}

func (h *Head) recordAction(now time.Time) {
	if now.Sub(h.lastAction) >= quietTime {
		h.burstPauses.Reset()
		h.busySince = now
	}
	h.lastAction, h.lookAt = now, now.Add(h.burstPauses.Next())
}

// OnView updates the next step by the known state of the lock.
func (h *Head) OnView(v watch.View, now time.Time) {
	if !h.leftUntil.IsZero() {
		return
	}
	switch v.Verdict {
	case watch.Held:
		h.pollPauses.Reset()
		h.pollAt = time.Time{}
		h.sleepUntilExpiry(v, now)
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
	case !h.wasRefused, now.Sub(h.lastAction) >= shortHold:
		h.schedule(Try, laterOf(now, h.pollAt))
	case now.Sub(h.busySince) >= starvationTime:
		h.schedule(Try, laterOf(now, laterOf(h.pollAt, h.lookAt)))
	default:
		h.schedule(Look, laterOf(now, h.lookAt))
	}
}

// sleepUntilExpiry schedules a try for the expiry of a lock that another process holds.
func (h *Head) sleepUntilExpiry(v watch.View, now time.Time) {
	switch {
	case v.SomeChanged:
		h.lookSoon(now)
	case v.Expiry.IsZero():
		h.schedule(LookAll, now.Add(longestSleep))
	default:
		h.schedule(Try, v.Expiry.Add(pacing.Jittered(expirySpread, h.rand)))
	}
}

// onUnclear schedules the next step if the view tells too little about the lock.
func (h *Head) onUnclear(v watch.View, now time.Time) {
	switch {
	case v.Looking:
		h.schedule(Try, laterOf(h.pollAt, h.lastAction.Add(lookTimeout)))
	case v.SomeChanged:
		h.lookSoon(now)
	default:
		h.schedule(Try, laterOf(now, h.pollAt))
	}
}

// lookSoon schedules a look at a change, after the other masters have had time to report it.
func (h *Head) lookSoon(now time.Time) {
	at := laterOf(now.Add(reportGrace), h.lookAt)
	if h.step == Look && h.stepAt.Before(at) {
		at = h.stepAt
	}
	h.schedule(Look, at)
}

func laterOf(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
