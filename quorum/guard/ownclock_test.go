package guard

import (
	"testing"
	"time"

	"redlock-proxy/quorum/vote"
)

// TestOnlyAMinorityIsBlamed checks that one proxy never takes the vote from a majority.
func TestOnlyAMinorityIsBlamed(t *testing.T) {
	for n := 1; n <= 9; n++ {
		already := 0
		for isMinority(n, already) {
			already++
		}
		if n-already != vote.Majority(n) {
			t.Errorf("of %d it takes the vote from %d", n, already)
		}
	}
}

func TestSuspicionEnds(t *testing.T) {
	now := time.Now()
	d := clockSuspicion{nonce: "n", serverTime: time.Hour, since: now}
	sure := Proxy{Guards: true, ClockSince: time.Minute, At: time.Hour + time.Millisecond}
	with := func(change func(p *Proxy)) []Proxy {
		p := sure
		change(&p)
		return []Proxy{p}
	}
	for _, c := range []struct {
		name    string
		nonce   string
		proxies []Proxy
		after   time.Duration
		want    bool
	}{
		{"still", "n", nil, 0, false},
		{"after every lease", "n", nil, leaseWait(time.Minute), true},
		{"admitted anew", "o", nil, 0, true},
		{"another proxy saw the clock fit all the time", "n", []Proxy{sure}, 0, true},
		{"it has not looked since", "n", with(func(p *Proxy) { p.At = time.Hour }), 0, false},
		{"it does not know", "n", with(func(p *Proxy) { p.ClockSince = 0 }), 0, false},
		{"it has only just begun", "n", with(func(p *Proxy) { p.ClockSince = time.Hour }), 0, false},
		{"it has no guard", "n", with(func(p *Proxy) { p.Guards = false }), 0, false},
	} {
		if got := d.isOver(c.nonce, c.proxies, time.Minute, now.Add(c.after)); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
	if !(clockSuspicion{}).isOver("n", nil, time.Minute, now) {
		t.Error("no doubt is over")
	}
}

// TestLateAnswerIsNoStep checks that a reply to a request from before a step was judged is no
// evidence about the clock since.
func TestLateAnswerIsNoStep(t *testing.T) {
	began := time.Now()
	at := func(sent, got, serverTime time.Duration) Sighting {
		return Sighting{Sent: began.Add(sent), Got: began.Add(got), ServerTime: time.Hour + serverTime}
	}
	s := NewSet(Options{SinceBoot: func() time.Duration { return 0 }},
		[]Master{{Wake: func() {}, IsDown: func() bool { return false }}})
	g := s.guards[0]
	g.observeClock(at(0, time.Millisecond, 0))
	g.resetClock(at(3*time.Second, 3*time.Second+time.Millisecond, time.Minute)) // the clock has stepped
	if g.observeClock(at(time.Second, 4*time.Second, time.Second)) || !g.step.At.IsZero() {
		t.Errorf("an answer from before: step %+v", g.step)
	}
	if g.observeClock(at(5*time.Second, 5*time.Second+time.Millisecond, 0)) || g.step.At.IsZero() {
		t.Error("a step after it is not seen")
	}
}

// TestSuspicionIsJudgedAgain checks that a step can be judged later, when another master with a
// known clock has been checked.
func TestSuspicionIsJudgedAgain(t *testing.T) {
	began := time.Now()
	step := clockStep{At: began.Add(time.Second), Moved: 10 * time.Minute, Number: 1}
	at := func(since time.Duration, serverTime time.Duration) Sighting {
		return Sighting{Sent: began.Add(since), Got: began.Add(since + time.Millisecond),
			ServerTime: time.Hour + serverTime}
	}
	for _, c := range []struct {
		name   string
		others []Sighting // of one other master, in turn
		blamed bool       // whether that master is blamed
		want   bool
	}{
		{"the other was not looked at since", []Sighting{at(0, 0)}, false, false},
		{"the other fits", []Sighting{at(0, 0), at(2*time.Second, 2*time.Second)}, false, true},
		{"the other fits, but was asked before", []Sighting{at(0, 0), {Sent: step.At.Add(-time.Millisecond),
			Got: step.At.Add(time.Second), ServerTime: time.Hour + time.Second}}, false, false},
		{"the other fits, but is known only since", []Sighting{at(2*time.Second, 0), at(3*time.Second, time.Second)},
			false, false},
		{"the other stepped, too", []Sighting{at(0, 0), at(2*time.Second, time.Minute)}, false, false},
		{"the other is blamed already", []Sighting{at(0, 0), at(2*time.Second, 2*time.Second)}, true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			master := Master{Wake: func() {}, IsDown: func() bool { return false }}
			s := NewSet(Options{SinceBoot: func() time.Duration { return 0 }}, []Master{master, master, master})
			s.sightings.Store(step.Number - 1)
			other := s.guards[1]
			for _, sighting := range c.others {
				other.observeClock(sighting)
			}
			other.blamed = c.blamed
			if got := s.mayQuarantineForClock(s.guards[0], step); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}
