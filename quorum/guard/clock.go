package guard

import "time"

// A vote counts only if the master's clock went as ours did. GUARD.md shows that what these
// two constants allow is within vote.Allowance, however many small steps there are.
const (
	// clockRate is how much faster or slower than ours, of 1, a master's clock may run.
	clockRate = 0.006
	// clockNoise is by how much a master's clock may seem to step beyond that.
	clockNoise = time.Millisecond
)

// Sighting is a look at a master's clock: it showed this time, as nanoseconds since 1970, at some
// moment between Sent and Got by our monotonic clock. So it is evidence of what was true after a
// moment only if it was sent after that moment.
type Sighting struct {
	Sent, Got  time.Time
	ServerTime time.Duration
}

// IsZero is true where the master did not answer with a time.
func (s Sighting) IsZero() bool { return s.ServerTime == 0 }

// masterClock is what is known of the distance between a master's clock and our monotonic
// one: it lies between low and high, and was so at a certain time. Every sighting
// narrows that, and time that passes widens it by that rate and no more. So many small
// steps add up to a large one.
type masterClock struct {
	first     Sighting
	at        time.Time
	low, high time.Duration
}

// See takes a sighting. If it does not fit, fits is false, moved is the least that
// the master's clock must have stepped (negative: backward), and nothing is learned.
func (c *masterClock) See(s Sighting) (moved time.Duration, fits bool) {
	if c.first.IsZero() {
		c.Anchor(s)
		return 0, true
	}
	low, high := s.ServerTime-s.Got.Sub(c.first.Sent), s.ServerTime-s.Sent.Sub(c.first.Sent)
	slack := drifted(s.Got.Sub(c.at))
	wasLow, wasHigh := c.low-slack, c.high+slack
	// The way there and back is time, too; but it may be the same time for many lanes, so
	// nothing widens by it.
	noise := clockNoise + drifted(s.Got.Sub(s.Sent))
	switch {
	case low > wasHigh+noise:
		return low - wasHigh, false
	case high < wasLow-noise:
		return high - wasLow, false
	}
	// Within the noise, but outside of what can be: stay at the edge, and follow no
	// faster than by the slack.
	c.low, c.high = min(max(low, wasLow), wasHigh), max(min(high, wasHigh), wasLow)
	if s.Got.After(c.at) {
		c.at = s.Got
	}
	return 0, true
}

// drifted is how far two clocks may drift apart in a time.
func drifted(d time.Duration) time.Duration {
	return time.Duration(clockRate * float64(max(0, d)))
}

// Anchor forgets what was known, and begins with this sighting.
func (c *masterClock) Anchor(s Sighting) {
	c.first, c.at = s, s.Got
	c.low, c.high = s.ServerTime-s.Got.Sub(s.Sent), s.ServerTime
}

// MayPrecede reports whether a sighting may be older than the first one. If it does not fit, it
// shows no new step: the step that came before the first sighting is judged already.
func (c *masterClock) MayPrecede(s Sighting) bool { return s.Sent.Before(c.first.Got) }

// Since returns the master's time at the first sighting.
func (c *masterClock) Since() time.Duration { return c.first.ServerTime }

// WouldShow reports whether a step would not fit what was known before it: whether a clock that
// made it would show it.
func (c *masterClock) WouldShow(s clockStep) bool {
	return !c.first.IsZero() && c.first.Sent.Before(s.At) && s.Moved.Abs() > c.high-c.low+clockNoise
}

// Offset is by how much the master's clock is ahead of the wall clock of this machine, in the
// middle of what is known of it; known is false where nothing is.
func (c *masterClock) Offset(now time.Time) (offset time.Duration, known bool) {
	if c.first.IsZero() {
		return 0, false
	}
	then := now.Sub(c.first.Sent) + c.low + (c.high-c.low)/2
	return then - time.Duration(now.UnixNano()), true
}

// Latest is the latest moment by our clock at which the master's shows such a time.
func (c *masterClock) Latest(then time.Duration) time.Time {
	return c.first.Sent.Add(then - c.low + drifted(time.Since(c.at)))
}

// ServerTime is the most that the master's clock can show at a moment of ours.
func (c *masterClock) ServerTime(t time.Time) time.Duration {
	return t.Sub(c.first.Sent) + c.high + drifted(time.Since(c.at))
}

// clockStep is a sighting that did not fit: when it was, and by how much the clock had moved.
type clockStep struct {
	At time.Time
	// Moved is negative for a step back.
	Moved time.Duration
	// Number is its number among the sightings of all masters.
	Number uint64
	// Missed is how much longer than our monotonic clock that of the machine (which counts
	// the time that it was suspended) ran since the last sighting that fitted.
	Missed time.Duration
	// Judged is set once it is known whose clock it was.
	Judged bool
}

// SteppedBefore reports whether the step that a sighting shows surely came before the master's
// clock showed the time then. fitted is the last sighting before the step. If the step is no larger
// than the time between both, this cannot be known. That time begins when fitted was sent: its
// answer may have come after the step.
func (s Sighting) SteppedBefore(then, moved time.Duration, fitted Sighting) bool {
	within := s.Got.Sub(fitted.Sent)
	within += drifted(within) + 2*clockNoise
	since := s.ServerTime - then
	return then > 0 && moved.Abs() > within && 0 <= since && since <= within
}
