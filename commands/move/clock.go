package move

import (
	"context"
	"errors"
	"strconv"
	"time"
)

// clock relates the upstream's clock to the proxy's. When the upstream's clock showed serverTime,
// the proxy's clock showed at least sendTime, and at most receiveTime. A move converts times by
// this relation, so that slow commands and replies do not shorten a lease. If the relation is
// uncertain, a lease gets longer, never shorter.
type clock struct{ serverTime, sendTime, receiveTime time.Time }

const (
	// clockReadings is the number of readings of the clock. readClock uses the reading with the
	// fastest reply.
	clockReadings = 5
	// maxClockDrift is the largest deviation that does not count as a change of the clock.
	maxClockDrift = 20 * time.Millisecond
)

// readClock reads the clock of the upstream.
func readClock(ctx context.Context, conn Connection) (bestClock clock, err error) {
	shortest := time.Duration(-1)
	for range clockReadings {
		sent := time.Now()
		replies, err := ask(ctx, conn, []string{"TIME"})
		if err != nil {
			return clock{}, err
		}
		received := time.Now()
		upstreamTime, ok := timeOf(replies[0])
		if !ok {
			return clock{}, errors.New("unexpected reply from the upstream to TIME")
		}
		if elapsed := received.Sub(sent); shortest < 0 || elapsed < shortest {
			bestClock, shortest = clock{upstreamTime, sent, received}, elapsed
		}
	}
	return bestClock, nil
}

// timeOf parses a reply to TIME.
func timeOf(reply any) (serverTime time.Time, ok bool) {
	words := stringsOf(reply)
	if len(words) != 2 {
		return time.Time{}, false
	}
	s, err1 := strconv.ParseInt(words[0], 10, 64)
	us, err2 := strconv.ParseInt(words[1], 10, 64)
	return time.Unix(s, us*1000), err1 == nil && err2 == nil
}

// toLocal converts a time of the upstream's clock to the proxy's. The result is between sendTime
// and receiveTime, even if the upstream's clock was changed.
func (c clock) toLocal(upstreamTime, sendTime, receiveTime time.Time) time.Time {
	switch local := c.receiveTime.Add(upstreamTime.Sub(c.serverTime)); {
	case local.Before(sendTime):
		return sendTime
	case local.After(receiveTime):
		return receiveTime
	default:
		return local
	}
}

// toUpstream converts a time of the proxy's clock to the latest corresponding time of the
// upstream's clock.
func (c clock) toUpstream(localTime time.Time) time.Time {
	return c.serverTime.Add(localTime.Sub(c.sendTime))
}

// isSteady reports whether upstreamTime, which was read between sendTime and receiveTime, fits the
// relation. If it does not, the upstream's clock was changed.
func (c clock) isSteady(upstreamTime, sendTime, receiveTime time.Time) bool {
	elapsed := upstreamTime.Sub(c.serverTime)
	return !c.receiveTime.Add(elapsed).Before(sendTime.Add(-maxClockDrift)) && !c.sendTime.Add(elapsed).After(receiveTime.Add(maxClockDrift))
}
