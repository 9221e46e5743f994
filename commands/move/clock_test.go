package move

import (
	"testing"
	"time"
)

// TestClockErrsTowardsLonger checks that a lease is never shorter at the upstream, or at the
// masters, than where it was, however long the reply to TIME took.
func TestClockErrsTowardsLonger(t *testing.T) {
	const ahead = time.Hour // of the upstream's clock
	sent := time.Unix(1000, 0)
	for _, took := range []struct{ there, back time.Duration }{
		{0, 0}, {time.Millisecond, 200 * time.Millisecond}, {200 * time.Millisecond, time.Millisecond},
	} {
		read := sent.Add(took.there)
		c := clock{time: read.Add(ahead), sent: sent, at: read.Add(took.back)}
		limit := took.there + took.back
		end := sent.Add(time.Minute)
		if longer := c.toUpstream(end).Sub(end.Add(ahead)); longer < 0 || longer > limit {
			t.Errorf("%v: to the upstream by %v, want 0 to %v", took, longer, limit)
		}
		then := sent.Add(time.Second)
		if longer := c.toLocal(then.Add(ahead), sent, then.Add(time.Second)).Sub(then); longer < 0 || longer > limit {
			t.Errorf("%v: from the upstream by %v, want 0 to %v", took, longer, limit)
		}
		if !c.isSteady(then.Add(ahead), then, then) {
			t.Errorf("%v: the clock seems to have changed", took)
		}
		if step := limit + 2*maxClockDrift; c.isSteady(then.Add(ahead+step), then, then) ||
			c.isSteady(then.Add(ahead-step), then, then) {
			t.Errorf("%v: a step by %v is not noticed", took, step)
		}
	}
}
