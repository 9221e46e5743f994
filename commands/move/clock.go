package move

import (
	"context"
	"errors"
	"strconv"
	"time"
)

// clock relates the upstream's clock to the proxy's: when the upstream's clock showed time, the
// proxy's clock showed at least sent, and at most at. Remaining times are converted with it, so that
// the time that commands and replies take on a busy machine does not count. What is unknown makes a
// lease longer, never shorter.
type clock struct{ time, sent, at time.Time }

const (
	// clockReadings is how often the clock is read. The reading with the fastest reply is used.
	clockReadings = 5
	// maxClockDrift is the largest deviation that does not count as a change of the clock.
	maxClockDrift = 20 * time.Millisecond
)

// readClock reads the clock of the upstream.
func readClock(ctx context.Context, conn Connection) (best clock, err error) {
	shortest := time.Duration(-1)
	for range clockReadings {
		sent := time.Now()
		replies, err := ask(ctx, conn, []string{"TIME"})
		if err != nil {
			return clock{}, err
		}
		at := time.Now()
		then, ok := timeOf(replies[0])
		if !ok {
			return clock{}, errors.New("unexpected reply from the upstream to TIME")
		}
		if took := at.Sub(sent); shortest < 0 || took < shortest {
			best, shortest = clock{then, sent, at}, took
		}
	}
	return best, nil
}

// timeOf parses a reply to TIME.
func timeOf(reply any) (now time.Time, ok bool) {
	words := stringsOf(reply)
	if len(words) != 2 {
		return time.Time{}, false
	}
	s, err1 := strconv.ParseInt(words[0], 10, 64)
	us, err2 := strconv.ParseInt(words[1], 10, 64)
	return time.Unix(s, us*1000), err1 == nil && err2 == nil
}

// toLocal converts a time of the upstream's clock to the proxy's. The result is between sent and
// received, even if the upstream's clock was changed.
func (c clock) toLocal(then, sent, received time.Time) time.Time {
	switch at := c.at.Add(then.Sub(c.time)); {
	case at.Before(sent):
		return sent
	case at.After(received):
		return received
	default:
		return at
	}
}

// toUpstream converts a time of the proxy's clock to the upstream's: to the latest that it may be.
func (c clock) toUpstream(at time.Time) time.Time { return c.time.Add(at.Sub(c.sent)) }

// isSteady reports whether the clock was not changed: then may lie between sent and received.
func (c clock) isSteady(then, sent, received time.Time) bool {
	since := then.Sub(c.time)
	return !c.at.Add(since).Before(sent.Add(-maxClockDrift)) && !c.sent.Add(since).After(received.Add(maxClockDrift))
}
