package guard

import "time"

// A vote counts only if the master's clock runs like this machine's. GUARD.md proves that the two
// tolerances stay within vote.DriftMargin, even with many small steps.
const (
	// clockRate is the tolerated difference in speed between a master's clock and this machine's
	// clock, as a fraction.
	clockRate = 0.006
	// clockNoise is the tolerated step of a master's clock in addition to clockRate.
	clockNoise = time.Millisecond
)

// ClockReading holds one reading of a master's clock. The clock showed ServerTime, in nanoseconds
// since 1970, at some moment between SentAt and ReceivedAt by this machine's monotonic clock. So a
// reading proves a state after a given moment only if SentAt is after that moment.
type ClockReading struct {
	SentAt, ReceivedAt time.Time
	ServerTime         time.Duration
}

// IsZero reports whether the master replied without a time.
func (s ClockReading) IsZero() bool { return s.ServerTime == 0 }

// masterClock holds the known range of the distance between a master's clock and this machine's
// monotonic clock. At the time rangeAt, the distance was between low and high. Every reading
// narrows the range. Elapsed time widens it only by clockRate, so many small steps add up to a
// large step.
type masterClock struct {
	first     ClockReading
	rangeAt   time.Time
	low, high time.Duration
}

// Observe narrows the range by a reading. If the reading does not fit, fits is false, and the range
// stays unchanged. Then stepSize is the smallest step that the master's clock must have made
// (negative: backward).
func (c *masterClock) Observe(s ClockReading) (stepSize time.Duration, fits bool) {
	if c.first.IsZero() {
		c.Restart(s)
		return 0, true
	}
	low, high := s.ServerTime-s.ReceivedAt.Sub(c.first.SentAt), s.ServerTime-s.SentAt.Sub(c.first.SentAt)
	slack := maxDrift(s.ReceivedAt.Sub(c.rangeAt))
	wasLow, wasHigh := c.low-slack, c.high+slack
	// The clocks also drift apart during the round trip. This drift does not widen the range,
	// because many connections may measure the same time.
	noise := clockNoise + maxDrift(s.ReceivedAt.Sub(s.SentAt))
	switch {
	case low > wasHigh+noise:
		return low - wasHigh, false
	case high < wasLow-noise:
		return high - wasLow, false
	}
	// If the reading is within the noise, but outside the range, the range shrinks to its edge. So
	// the range moves no faster than by the slack.
	c.low, c.high = min(max(low, wasLow), wasHigh), max(min(high, wasHigh), wasLow)
	if s.ReceivedAt.After(c.rangeAt) {
		c.rangeAt = s.ReceivedAt
	}
	return 0, true
}

// maxDrift returns how far two clocks may drift apart in a time of d.
func maxDrift(d time.Duration) time.Duration {
	return time.Duration(clockRate * float64(max(0, d)))
}

// Restart discards the range, and starts a new one with this reading.
func (c *masterClock) Restart(s ClockReading) {
	c.first, c.rangeAt = s, s.ReceivedAt
	c.low, c.high = s.ServerTime-s.ReceivedAt.Sub(s.SentAt), s.ServerTime
}

// MayPrecede reports whether a reading may be older than the first reading. If such a reading does
// not fit, it shows no new step: the step before the first reading has been judged already.
func (c *masterClock) MayPrecede(s ClockReading) bool { return s.SentAt.Before(c.first.ReceivedAt) }

// WouldReveal reports whether a step of this size would show in this clock: the range began before
// the step, and is narrower than the step.
func (c *masterClock) WouldReveal(s clockStep) bool {
	return !c.first.IsZero() && c.first.SentAt.Before(s.At) && s.Size.Abs() > c.high-c.low+clockNoise
}

// Offset returns how far the master's clock is ahead of this machine's wall clock: the middle of
// the range. known is false without a reading.
func (c *masterClock) Offset(now time.Time) (offset time.Duration, known bool) {
	if c.first.IsZero() {
		return 0, false
	}
	serverTime := now.Sub(c.first.SentAt) + c.low + (c.high-c.low)/2
	return serverTime - time.Duration(now.UnixNano()), true
}

// LatestLocalTime returns the latest moment by this machine's clock at which the master's clock can
// show serverTime.
func (c *masterClock) LatestLocalTime(serverTime time.Duration) time.Time {
	return c.first.SentAt.Add(serverTime - c.low + maxDrift(time.Since(c.rangeAt)))
}

// LatestServerTime returns the latest time that the master's clock can show at the moment t of this
// machine's clock.
func (c *masterClock) LatestServerTime(t time.Time) time.Duration {
	return t.Sub(c.first.SentAt) + c.high + maxDrift(time.Since(c.rangeAt))
}

// clockStep describes a step that a clock reading showed because it did not fit.
type clockStep struct {
	// At is the time by this machine's clock at which the reading arrived.
	At time.Time
	// Size is the time by which the clock moved; negative for a backward step.
	Size time.Duration
	// Number is the position of the step among the clock readings of all masters.
	Number uint64
	// SuspendedFor is the time for which this machine was suspended since the last reading that
	// fitted.
	SuspendedFor time.Duration
	// Judged is set once the guard has decided which clock stepped.
	Judged bool
}

// SteppedBefore reports whether the step in a reading certainly came before the master's clock
// showed serverTime. lastFit is the last reading that fitted. If the step is no larger than the
// time between both readings, SteppedBefore cannot tell, and returns false. That time begins when
// the request of lastFit was sent: its reply may have come after the step.
func (s ClockReading) SteppedBefore(serverTime, stepSize time.Duration, lastFit ClockReading) bool {
	within := s.ReceivedAt.Sub(lastFit.SentAt)
	within += maxDrift(within) + 2*clockNoise
	elapsed := s.ServerTime - serverTime
	return serverTime > 0 && stepSize.Abs() > within && 0 <= elapsed && elapsed <= within
}
