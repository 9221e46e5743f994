package redistest

import (
	"errors"
	"strconv"
	"testing"
	"time"
)

// serverTime returns the time of the server's clock.
func serverTime(t *testing.T, client *Client) time.Time {
	t.Helper()
	reply, err := client.Do("TIME")
	check(t, err)
	fields, _ := reply.([]any)
	if len(fields) != 2 {
		t.Fatalf("TIME: %v", reply)
	}
	s, err := strconv.ParseInt(fields[0].(string), 10, 64)
	check(t, err)
	us, err := strconv.ParseInt(fields[1].(string), 10, 64)
	check(t, err)
	return time.Unix(s, us*1000)
}

func newClock(t *testing.T) *Clock {
	t.Helper()
	clock, err := NewClock(t.TempDir())
	if errors.Is(err, ErrNoFakeTime) {
		SkipMissing(t, err.Error())
	}
	check(t, err)
	return clock
}

// TestClockSet checks that a running server uses the time that Set sets, and that a key that has
// expired by that time is gone.
func TestClockSet(t *testing.T) {
	clock := newClock(t)
	client := dial(t, New(t, Options{Clock: clock}).Addr())
	want(t, client, "OK", "SET", "k", "v", "PX", "60000")
	for _, ahead := range []time.Duration{0, 90 * time.Second, -2 * time.Hour, 0} {
		check(t, clock.Set(ahead))
		if deviation := time.Until(serverTime(t, client)) - ahead; deviation.Abs() > time.Second {
			t.Errorf("set to %v, and off by %v", ahead, deviation)
		}
		if ahead > 0 {
			want(t, client, nil, "GET", "k")
		}
	}
}

func TestClockDrift(t *testing.T) {
	clock := newClock(t)
	check(t, clock.Drift(2))
	client := dial(t, New(t, Options{Clock: clock}).Addr())
	beforeFirst := time.Now()
	serverStart := serverTime(t, client)
	afterFirst := time.Now()
	time.Sleep(4 * quietTime) // the test compares how fast the two clocks advance
	beforeLast := time.Now()
	advance := serverTime(t, client).Sub(serverStart).Seconds()
	afterLast := time.Now()
	minRate, maxRate := advance/afterLast.Sub(beforeFirst).Seconds(), advance/beforeLast.Sub(afterFirst).Seconds()
	if maxRate < 1.9 || minRate > 2.1 {
		t.Errorf("it goes %.2f to %.2f times as fast; want 2", minRate, maxRate)
	}
}
