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
	// quietTime is the time without tries and reads after which the pauses begin with
	// shortestBurstPause again.
	quietTime = longestPollPause
	// shortHold is the minimum time between the last action of a head and a change of the lock
	// after which the head tries at once. If the lock changes earlier, the head reads it first.
	// Otherwise each hand-over within another process could cost the masters a try.
	shortHold = 2 * time.Millisecond
	// shortestBurstPause and longestBurstPause limit the pause between two reads of a lock, or two
	// tries for a value, that changes hands all the time.
	shortestBurstPause = time.Millisecond / 2
	longestBurstPause  = 4 * time.Millisecond
	// reportGrace is the time that the other masters have to report a change that some masters
	// reported.
	reportGrace = 5 * time.Millisecond
	// readTimeout limits the wait for the replies to a read. After that time the head tries.
	readTimeout = 20 * time.Millisecond
	// starvationTime is the time of unsuccessful reads after which the head tries anyway. Some
	// holders never leave the lock to another process, for example a client that locks on the
	// masters directly.
	starvationTime = 250 * time.Millisecond
	// maxExpiryDelay is the time over which the heads of several processes spread their tries for a
	// lock that expires.
	maxExpiryDelay = 2 * time.Millisecond
	// longestSleep is the time after which a head reads a lock without expiry, or tries to take a
	// value, although no change was reported.
	longestSleep = time.Minute
	// longestUndecidedPause limits the pause between two tries after which the holder is unknown
	// although a majority votes.
	longestUndecidedPause = time.Second
)

// Step is an action of a head.
type Step byte

const (
	// StepIdle means that the head only waits for signals and reports.
	StepIdle Step = iota
	// StepTry means that the head requests the lock from the masters.
	StepTry
	// StepRead means that the head reads the key on the masters, but skips a master that holds a
	// lock, as far as its alarm knows.
	StepRead
	// StepReadAll means that the head reads the key on all masters.
	StepReadAll
)

// Head decides the next step of the waiter at the head of a queue.
type Head struct {
	rand                    func() float64
	pollPauses, burstPauses pacing.Pauses
	// undecidedPauses space the tries after which the holder is unknown.
	undecidedPauses pacing.Pauses

	// step is the next step, and stepAt its time.
	step   Step
	stepAt time.Time
	// leaveEnd is the time until which the lock is left to another process, or zero.
	leaveEnd time.Time
	// wasRefused is set after a refused try. Then a head reads the lock first when another process
	// gives it up, because the lock may have been handed on.
	wasRefused bool
	// busySince is the start of the current period of tries and reads without a quiet time.
	busySince time.Time
	// lastAction is the time at which the head last tried or read. pollAt and readAt are the
	// times from which it may try or read again.
	lastAction, pollAt, readAt time.Time
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

// NextStep returns the next step, and its time.
func (h *Head) NextStep() (Step, time.Time) { return h.step, h.stepAt }

func (h *Head) schedule(step Step, stepAt time.Time) { h.step, h.stepAt = step, stepAt }

// OnSignal handles a signal. With LeaveToPeer the lock is left to another process until leaveEnd.
func (h *Head) OnSignal(c Signal, leaveEnd, now time.Time) {
	h.leaveEnd = time.Time{}
	switch c {
	case TryNow:
		h.pollPauses.Reset()
		h.schedule(StepTry, now)
	case TryLater:
		h.schedule(StepRead, now.Add(pacing.Jitter(longestPollPause, h.rand)))
	case LeaveToPeer:
		h.leaveEnd = leaveEnd
		h.schedule(StepTry, leaveEnd)
	}
}

// OnPeerDone records that the process to which the lock was left has had the lock, or no longer
// wants it.
func (h *Head) OnPeerDone(now time.Time) {
	h.leaveEnd = time.Time{}
	h.schedule(StepRead, now)
}

// OnRefused records a try that found the lock held by another process.
func (h *Head) OnRefused(now time.Time) {
	h.leaveEnd, h.wasRefused = time.Time{}, true
	h.undecidedPauses.Reset()
	h.recordAction(now)
	h.pollAt = now.Add(h.pollPauses.Next())
	h.schedule(StepRead, now)
}

// OnUndecided records a try after which the holder is unknown, although a majority votes.
func (h *Head) OnUndecided(now time.Time) {
	h.leaveEnd = time.Time{}
	h.recordAction(now)
	h.pollAt = now.Add(h.undecidedPauses.Next())
	h.schedule(StepTry, h.pollAt)
}

// OnRead records that a read has begun.
func (h *Head) OnRead(now time.Time) {
	h.recordAction(now)
	h.schedule(StepIdle, time.Time{})
}

func (h *Head) recordAction(now time.Time) {
	if now.Sub(h.lastAction) >= quietTime {
		h.burstPauses.Reset()
		h.busySince = now
	}
	h.lastAction, h.readAt = now, now.Add(h.burstPauses.Next())
}

// OnView updates the next step by the known state of the lock.
func (h *Head) OnView(v watch.View, now time.Time) {
	if !h.leaveEnd.IsZero() {
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
		h.schedule(StepTry, laterOf(now, h.pollAt))
	default:
		h.onUnclear(v, now)
	}
}

// onChange schedules the next step after another process has given up the lock or handed it on.
func (h *Head) onChange(now time.Time) {
	switch {
	case !h.wasRefused, now.Sub(h.lastAction) >= shortHold:
		h.schedule(StepTry, laterOf(now, h.pollAt))
	case now.Sub(h.busySince) >= starvationTime:
		h.schedule(StepTry, laterOf(now, laterOf(h.pollAt, h.readAt)))
	default:
		h.schedule(StepRead, laterOf(now, h.readAt))
	}
}

// sleepUntilExpiry schedules a try for the expiry of a lock that another process holds.
func (h *Head) sleepUntilExpiry(v watch.View, now time.Time) {
	switch {
	case v.SomeChanged:
		h.readSoon(now)
	case v.Expiry.IsZero():
		h.schedule(StepReadAll, now.Add(longestSleep))
	default:
		h.schedule(StepTry, v.Expiry.Add(pacing.Jitter(maxExpiryDelay, h.rand)))
	}
}

// onUnclear schedules the next step if the view tells too little about the lock.
func (h *Head) onUnclear(v watch.View, now time.Time) {
	switch {
	case v.Reading:
		h.schedule(StepTry, laterOf(h.pollAt, h.lastAction.Add(readTimeout)))
	case v.SomeChanged:
		h.readSoon(now)
	default:
		h.schedule(StepTry, laterOf(now, h.pollAt))
	}
}

// readSoon schedules a read after a change, when the other masters have had time to report it.
func (h *Head) readSoon(now time.Time) {
	at := laterOf(now.Add(reportGrace), h.readAt)
	if h.step == StepRead && h.stepAt.Before(at) {
		at = h.stepAt
	}
	h.schedule(StepRead, at)
}

func laterOf(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
