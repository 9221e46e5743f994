package move

import (
	"context"
	"errors"
	"strconv"
	"time"
)

// clock is how the clock of the upstream is to ours: at was no earlier than its time. What replies
// and commands need for their way, on a machine that has much to do, is not to be taken for a
// lock's time.
type clock struct{ time, at time.Time }

const (
	// looks is how often a clock is read: the quickest reply is the best.
	looks = 5
	// steady is how far a clock may be from what it was.
	steady = 20 * time.Millisecond
)

// readClock reads the clock of the upstream.
func readClock(ctx context.Context, conn Connection) (best clock, err error) {
	shortest := time.Duration(-1)
	for range looks {
		sent := time.Now()
		replies, err := asked(ctx, conn, []string{"TIME"})
		if err != nil {
			return clock{}, err
		}
		at := time.Now()
		then, ok := timeOf(replies[0])
		if !ok {
			return clock{}, errors.New("TIME at the upstream: an unknown reply")
		}
		if took := at.Sub(sent); shortest < 0 || took < shortest {
			best, shortest = clock{then, at}, took
		}
	}
	return best, nil
}

// timeOf reads a reply to TIME.
func timeOf(reply any) (now time.Time, ok bool) {
	words := texts(reply)
	if len(words) != 2 {
		return time.Time{}, false
	}
	s, err1 := strconv.ParseInt(words[0], 10, 64)
	us, err2 := strconv.ParseInt(words[1], 10, 64)
	return time.Unix(s, us*1000), err1 == nil && err2 == nil
}

// ours is a time of the upstream's clock by ours; it was between two moments, whatever that clock
// did.
func (c clock) ours(then, sent, received time.Time) time.Time {
	switch at := c.at.Add(then.Sub(c.time)); {
	case at.Before(sent):
		return sent
	case at.After(received):
		return received
	default:
		return at
	}
}

// theirs is a time of ours by the upstream's clock.
func (c clock) theirs(at time.Time) time.Time { return c.time.Add(at.Sub(c.at)) }

// isSteady reports whether the upstream's clock goes on as it did: it told a time between two
// moments.
func (c clock) isSteady(then, sent, received time.Time) bool {
	at := c.at.Add(then.Sub(c.time))
	return !at.Before(sent.Add(-steady)) && !at.After(received.Add(steady))
}
