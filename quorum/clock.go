package quorum

import "time"

const (
	// clockNoise is by how much a master's clock may seem to step before it counts
	// as one: it is less than the fixed allowance and the hundredth of a TTL of half
	// a second.
	clockNoise = 5 * time.Millisecond
	// clockRate is how much faster or slower than ours, of 1, a master's clock may run.
	clockRate = 0.001
)

// sighting is a look at a master's clock: it told the time, as nanoseconds since
// 1970, at some moment between sent and got by our monotonic clock.
type sighting struct {
	sent, got time.Time
	told      time.Duration
}

// isZero is true where the master did not tell.
func (s sighting) isZero() bool { return s.told == 0 }

// clock is what is known of the distance between a master's clock and our monotonic
// one: it lies between low and high, and was so at a certain time. Every sighting
// narrows that, and time that passes widens it by clockRate and no more. So many small
// steps add up to a large one.
type clock struct {
	epoch     time.Time
	at        time.Time
	low, high time.Duration
}

// see takes a sighting. If it does not fit, fits is false, moved is the least that
// the master's clock must have stepped (negative: backward), and nothing is learned.
func (c *clock) see(s sighting) (moved time.Duration, fits bool) {
	if c.epoch.IsZero() {
		c.anchor(s)
		return 0, true
	}
	low, high := s.told-s.got.Sub(c.epoch), s.told-s.sent.Sub(c.epoch)
	slack := time.Duration(clockRate * float64(max(0, s.got.Sub(c.at))))
	wasLow, wasHigh := c.low-slack, c.high+slack
	switch {
	case low > wasHigh+clockNoise:
		return low - wasHigh, false
	case high < wasLow-clockNoise:
		return high - wasLow, false
	}
	// Within the noise, but outside of what can be: stay at the edge, and follow no
	// faster than by the slack.
	c.low, c.high = min(max(low, wasLow), wasHigh), max(min(high, wasHigh), wasLow)
	if s.got.After(c.at) {
		c.at = s.got
	}
	return 0, true
}

// anchor forgets what was known, and begins with this sighting.
func (c *clock) anchor(s sighting) {
	c.epoch, c.at = s.sent, s.got
	c.low, c.high = s.told-s.got.Sub(s.sent), s.told
}
