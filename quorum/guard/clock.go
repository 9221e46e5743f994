package guard

import "time"

// A vote counts only if the master's clock runs like ours. GUARD.md proves that these two
// tolerances stay within vote.DriftMargin, however many small steps there are.
const (
	// clockRate is the tolerated difference in speed between a master's clock and ours, as a
	// fraction.
	clockRate = 0.006
	// clockNoise is the tolerated step of a master's clock in addition to clockRate.
	clockNoise = time.Millisecond
)

// Sighting is a reading of a master's clock: the clock showed ServerTime, in nanoseconds since
// 1970, at some moment between Sent and Got by our monotonic clock. So it proves a state after a
// given moment only if it was sent after that moment.
type Sighting struct {
	Sent, Got  time.Time
	ServerTime time.Duration
}

// IsZero reports whether the master replied without a time.
func (s Sighting) IsZero() bool { return s.ServerTime == 0 }

// masterClock holds the known range of the distance between a master's clock and our monotonic
// clock: at the time at, the distance was between low and high. Every sighting narrows the range.
// Elapsed time widens it by clockRate and no more, so many small steps add up to a large one.
type masterClock struct {
	first     Sighting
	at        time.Time
	low, high time.Duration
}

// See takes a sighting. If it does not fit, fits is false, moved is the smallest step that the
// master's clock must have made (negative: backward), and the range stays unchanged.
func (c *masterClock) See(s Sighting) (moved time.Duration, fits bool) {
	if c.first.IsZero() {
		c.Anchor(s)
		return 0, true
	}
	low, high := s.ServerTime-s.Got.Sub(c.first.Sent), s.ServerTime-s.Sent.Sub(c.first.Sent)
	slack := drifted(s.Got.Sub(c.at))
	wasLow, wasHigh := c.low-slack, c.high+slack
	// The round trip takes time, too. But many connections may measure the same time, so the range
	// is not widened by it.
	noise := clockNoise + drifted(s.Got.Sub(s.Sent))
	switch {
	case low > wasHigh+noise:
		return low - wasHigh, false
	case high < wasLow-noise:
		return high - wasLow, false
	}
	// The sighting is within the noise, but outside the range: stay at the edge, so that the range
	// moves no faster than by the slack.
	c.low, c.high = min(max(low, wasLow), wasHigh), max(min(high, wasHigh), wasLow)
	if s.Got.After(c.at) {
		c.at = s.Got
	}
	return 0, true
}

// drifted returns how far two clocks may drift apart in a time of d.
func drifted(d time.Duration) time.Duration {
	return time.Duration(clockRate * float64(max(0, d)))
}

// Anchor discards the range, and starts a new one with this sighting.
func (c *masterClock) Anchor(s Sighting) {
	c.first, c.at = s, s.Got
	c.low, c.high = s.ServerTime-s.Got.Sub(s.Sent), s.ServerTime
}

// MayPrecede reports whether a sighting may be older than the first one. If such a sighting does
// not fit, it shows no new step: the step before the first sighting has been judged already.
func (c *masterClock) MayPrecede(s Sighting) bool { return s.Sent.Before(c.first.Got) }

// Since returns the master's time at the first sighting.
func (c *masterClock) Since() time.Duration { return c.first.ServerTime }

// WouldShow reports whether this step would move the clock out of its range.
func (c *masterClock) WouldShow(s clockStep) bool {
	return !c.first.IsZero() && c.first.Sent.Before(s.At) && s.Moved.Abs() > c.high-c.low+clockNoise
}

// Offset returns how far the master's clock is ahead of this machine's wall clock: the middle of
// the range. known is false without a sighting.
func (c *masterClock) Offset(now time.Time) (offset time.Duration, known bool) {
	if c.first.IsZero() {
		return 0, false
	}
	then := now.Sub(c.first.Sent) + c.low + (c.high-c.low)/2
	return then - time.Duration(now.UnixNano()), true
}

// Latest returns the latest moment by our clock at which the master's clock shows the time then.
func (c *masterClock) Latest(then time.Duration) time.Time {
	return c.first.Sent.Add(then - c.low + drifted(time.Since(c.at)))
}

// ServerTime returns the latest time that the master's clock can show at the moment t of our clock.
func (c *masterClock) ServerTime(t time.Time) time.Duration {
	return t.Sub(c.first.Sent) + c.high + drifted(time.Since(c.at))
}

// clockStep is a sighting that did not fit: when it was made, and how far the clock had moved.
type clockStep struct {
	At time.Time
	// Moved is negative for a backward step.
	Moved time.Duration
	// Number is the position of the step among the sightings of all masters.
	Number uint64
	// Missed is how much the machine's clock that includes suspended time gained on our monotonic
	// clock since the last sighting that fitted.
	Missed time.Duration
	// Judged is set once the guard has decided which clock stepped.
	Judged bool
}

// SteppedBefore reports whether the step in a sighting certainly came before the master's clock
// showed the time then. fitted is the last sighting before the step. If the step is no larger than
// the time between both sightings, SteppedBefore cannot tell, and returns false. That time begins
// when fitted was sent: its reply may have come after the step.
func (s Sighting) SteppedBefore(then, moved time.Duration, fitted Sighting) bool {
	within := s.Got.Sub(fitted.Sent)
	within += drifted(within) + 2*clockNoise
	since := s.ServerTime - then
	return then > 0 && moved.Abs() > within && 0 <= since && since <= within
}
