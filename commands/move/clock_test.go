package move

import (
	"testing"
	"time"
)

// TestClockConversion checks that a move to the upstream or to the masters never shortens
// a lease, however long the reply to TIME took.
func TestClockConversion(t *testing.T) {
	const clockOffset = time.Hour // of the upstream's clock
	sent := time.Unix(1000, 0)
	for _, latency := range []struct{ outbound, inbound time.Duration }{
		{0, 0}, {time.Millisecond, 200 * time.Millisecond}, {200 * time.Millisecond, time.Millisecond},
	} {
		readAt := sent.Add(latency.outbound)
		c := clock{serverTime: readAt.Add(clockOffset), sendTime: sent, receiveTime: readAt.Add(latency.inbound)}
		limit := latency.outbound + latency.inbound
		end := sent.Add(time.Minute)
		if excess := c.toUpstream(end).Sub(end.Add(clockOffset)); excess < 0 || excess > limit {
			t.Errorf("%v: to the upstream by %v, want 0 to %v", latency, excess, limit)
		}
		moment := sent.Add(time.Second)
		if excess := c.toLocal(moment.Add(clockOffset), sent, moment.Add(time.Second)).Sub(moment); excess < 0 || excess > limit {
			t.Errorf("%v: from the upstream by %v, want 0 to %v", latency, excess, limit)
		}
		if !c.isSteady(moment.Add(clockOffset), moment, moment) {
			t.Errorf("%v: the clock seems to have changed", latency)
		}
		if step := limit + 2*maxClockDrift; c.isSteady(moment.Add(clockOffset+step), moment, moment) ||
			c.isSteady(moment.Add(clockOffset-step), moment, moment) {
			t.Errorf("%v: a step by %v is not noticed", latency, step)
		}
	}
}
