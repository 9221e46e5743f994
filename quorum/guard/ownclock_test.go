package guard

import (
	"testing"
	"time"

	"redlock-proxy/quorum/vote"
)

// TestBlameLimit checks that one proxy blames at most a minority of the masters.
func TestBlameLimit(t *testing.T) {
	for n := 1; n <= 9; n++ {
		blamed := 0
		for staysMinority(n, blamed) {
			blamed++
		}
		if n-blamed != vote.Majority(n) {
			t.Errorf("of %d it takes the vote from %d", n, blamed)
		}
	}
}

func TestEndOfSuspicion(t *testing.T) {
	now := time.Now()
	d := clockSuspicion{nonce: "n", serverTime: time.Hour, startedAt: now}
	witness := Proxy{GuardOn: true, ClockFitStart: time.Minute, ClockFitEnd: time.Hour + time.Millisecond}
	changed := func(change func(p *Proxy)) []Proxy {
		p := witness
		change(&p)
		return []Proxy{p}
	}
	for _, c := range []struct {
		name    string
		nonce   string
		proxies []Proxy
		delay   time.Duration
		want    bool
	}{
		{"still", "n", nil, 0, false},
		{"after every lease", "n", nil, leaseWait(time.Minute), true},
		{"admitted anew", "o", nil, 0, true},
		{"another proxy saw the clock fit all the time", "n", []Proxy{witness}, 0, true},
		{"it has not checked since", "n", changed(func(p *Proxy) { p.ClockFitEnd = time.Hour }), 0, false},
		{"it does not know", "n", changed(func(p *Proxy) { p.ClockFitStart = 0 }), 0, false},
		{"it has only just begun", "n", changed(func(p *Proxy) { p.ClockFitStart = time.Hour }), 0, false},
		{"it has no guard", "n", changed(func(p *Proxy) { p.GuardOn = false }), 0, false},
	} {
		if got := d.hasExpired(c.nonce, c.proxies, time.Minute, now.Add(c.delay)); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
	if !(clockSuspicion{}).hasExpired("n", nil, time.Minute, now) {
		t.Error("an absent suspicion is not over")
	}
}

// TestStepCheckOfLateReply checks a late reply to a request that was sent before a step was judged.
// The reply must not count as a new step.
func TestStepCheckOfLateReply(t *testing.T) {
	start := time.Now()
	at := func(sentAt, receivedAt, serverTime time.Duration) ClockReading {
		return ClockReading{SentAt: start.Add(sentAt), ReceivedAt: start.Add(receivedAt), ServerTime: time.Hour + serverTime}
	}
	s := NewSet(Options{TimeSinceBoot: func() time.Duration { return 0 }},
		[]Master{{Wake: func() {}, IsDown: func() bool { return false }}})
	g := s.guards[0]
	g.observeClock(at(0, time.Millisecond, 0))
	// The clock has stepped.
	g.resetClock(at(3*time.Second, 3*time.Second+time.Millisecond, time.Minute))
	if g.observeClock(at(time.Second, 4*time.Second, time.Second)) || !g.lastStep.At.IsZero() {
		t.Errorf("an answer from before: step %+v", g.lastStep)
	}
	if g.observeClock(at(5*time.Second, 5*time.Second+time.Millisecond, 0)) || g.lastStep.At.IsZero() {
		t.Error("a step after it is not seen")
	}
}

// TestReconsideredSuspicion checks that a proxy can judge a step later, after a check of another
// master with a known clock.
func TestReconsideredSuspicion(t *testing.T) {
	start := time.Now()
	step := clockStep{At: start.Add(time.Second), Size: 10 * time.Minute, Number: 1}
	at := func(elapsed time.Duration, serverTime time.Duration) ClockReading {
		return ClockReading{SentAt: start.Add(elapsed), ReceivedAt: start.Add(elapsed + time.Millisecond),
			ServerTime: time.Hour + serverTime}
	}
	for _, c := range []struct {
		name     string
		readings []ClockReading // of another master, in turn
		blamed   bool           // whether this other master is blamed
		want     bool
	}{
		{"the other was not checked since", []ClockReading{at(0, 0)}, false, false},
		{"the other fits", []ClockReading{at(0, 0), at(2*time.Second, 2*time.Second)}, false, true},
		{"the other fits, but was asked before", []ClockReading{at(0, 0), {SentAt: step.At.Add(-time.Millisecond),
			ReceivedAt: step.At.Add(time.Second), ServerTime: time.Hour + time.Second}}, false, false},
		{"the other fits, but is known only since", []ClockReading{at(2*time.Second, 0), at(3*time.Second, time.Second)},
			false, false},
		{"the other stepped, too", []ClockReading{at(0, 0), at(2*time.Second, time.Minute)}, false, false},
		{"the other is blamed already", []ClockReading{at(0, 0), at(2*time.Second, 2*time.Second)}, true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			master := Master{Wake: func() {}, IsDown: func() bool { return false }}
			s := NewSet(Options{TimeSinceBoot: func() time.Duration { return 0 }}, []Master{master, master, master})
			s.clockReadings.Store(step.Number - 1)
			other := s.guards[1]
			for _, reading := range c.readings {
				other.observeClock(reading)
			}
			other.clockBlamed = c.blamed
			if got := s.mayQuarantineForClock(s.guards[0], step); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}
