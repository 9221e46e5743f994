package guard

import (
	"testing"
	"time"

	"redlock-proxy/quorum/guard/marker"
	"redlock-proxy/quorum/guard/script"
)

// TestIsVoteValid checks that a vote counts if its sequence continued, its canary lives, its clock
// fits, and the vote was not withdrawn meanwhile. A reply to a batch that was sent before the
// master's quarantine does not count after the master is admitted again.
func TestIsVoteValid(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	clockReading := ClockReading{SentAt: now, ReceivedAt: now.Add(time.Millisecond), ServerTime: time.Hour}
	term3 := trust{Marker: marker.Marker{Nonce: "n"}, term: 3}
	term4 := trust{Marker: marker.Marker{Nonce: "n"}, term: 4}
	liveCanary := canary{value: "c", aliveUntil: now.Add(time.Second)}
	good := probe{
		writes: true, field: "n@0", floor: script.FirstSeq + 7, knownCanary: liveCanary,
		sequence: script.FirstSeq + 8, hasSequence: true, canary: "c", clockReading: clockReading,
	}
	changed := func(change func(p *probe)) probe {
		p := good
		change(&p)
		return p
	}
	for _, c := range []struct {
		name                    string
		current, trustAtSending trust
		probe                   probe
		want, keepsVote         bool
	}{
		{"all is well", term3, term3, good, true, true},
		{"another proxy's batch was in between", term3, term3, changed(func(p *probe) { p.sequence += 5 }), true, true},
		{"the sequence stands", term3, term3, changed(func(p *probe) { p.sequence-- }), false, false},
		{"the sequence stands, and it only reads", term3, term3, changed(func(p *probe) { p.sequence--; p.writes = false }), true, true},
		{"the sequence went back", term3, term3, changed(func(p *probe) { p.sequence -= 2; p.writes = false }), false, false},
		{"the sequence begins anew", term3, term3, changed(func(p *probe) { p.sequence = 1 }), false, false},
		{"no number", term3, term3, changed(func(p *probe) { p.hasSequence = false }), false, false},
		{"no answer", term3, term3, changed(func(p *probe) { p.hasSequence, p.clockReading = false, ClockReading{} }), false, false},
		{"the canary is gone", term3, term3, changed(func(p *probe) { p.canary = "" }), false, false},
		{"another canary", term3, term3, changed(func(p *probe) { p.canary = "d" }), false, false},
		{"the canary is gone, which ended before it was renewed", term3, term3,
			changed(func(p *probe) { p.canary, p.knownCanary.aliveUntil = "", now }), false, false},
		{"the canary was made after the batch left", term3, term3, changed(func(p *probe) { p.canary, p.knownCanary = "", canary{} }),
			true, true},
		{"a canary that had ended, and another since", term3, term3, changed(func(p *probe) {
			p.canary, p.knownCanary = "",
				canary{value: "b", aliveUntil: now}
		}), true, true},
		{"a database without a canary as yet", term3, term3, changed(func(p *probe) {
			p.db, p.canary, p.knownCanary = 3, "",
				canary{}
		}), true, true},
		{"in quarantine when it was sent", term3, trust{}, good, false, true},
		{"in quarantine since", trust{}, term3, good, false, false},
		{"suspended meanwhile", term4, term3, good, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newGuard(NewSet(Options{TimeSinceBoot: func() time.Duration { return 0 }}, nil), 0,
				Master{Wake: func() {}})
			g.trust = c.current
			g.canaries[0] = liveCanary
			if got := g.isVoteValid(c.trustAtSending, &c.probe); got != c.want || (g.trust.Nonce != "") != c.keepsVote {
				t.Errorf("counts: %v, still votes: %v, want %v, %v", got, g.trust.Nonce != "", c.want, c.keepsVote)
			}
		})
	}
}

// TestVoteOfEndedEra checks that the replies of a master whose era has ended prove its
// data, but are not votes. As votes, they would contradict a marker of the next era on that master.
func TestVoteOfEndedEra(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	for _, eraEnded := range []bool{false, true} {
		g := newGuard(NewSet(Options{TimeSinceBoot: func() time.Duration { return 0 }}, nil), 0, Master{Wake: func() {}})
		g.grantVote(marker.Marker{Nonce: "n"}, eraEnded)
		w := &Check{guard: g, trust: g.currentTrust(), probe: probe{
			field: "n@0", floor: script.FirstSeq, sequence: script.FirstSeq + 1, hasSequence: true,
			clockReading: ClockReading{SentAt: now, ReceivedAt: now, ServerTime: time.Hour},
		}}
		if cause := g.Evaluate(w); (cause != nil) != eraEnded || g.lastVote.IsZero() != eraEnded || g.currentTrust().Nonce != "n" {
			t.Errorf("over %v: cause %v, voted %v", eraEnded, cause, g.lastVote)
		}
	}
}

// TestMedianClock checks the median of the masters' clocks, and the machine's own clock if fewer
// than a majority are known.
func TestMedianClock(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	wall := time.Duration(now.UnixNano())
	for _, c := range []struct {
		name         string
		clockOffsets []time.Duration // of the known clocks
		want         time.Duration
	}{
		{"none is known", nil, 0},
		{"a minority is known", []time.Duration{time.Hour, time.Hour}, 0},
		{"three of five", []time.Duration{time.Hour, time.Minute, -time.Hour}, time.Minute},
		{"one is in another century", []time.Duration{time.Second, 100 * 365 * 24 * time.Hour, 2 * time.Second, 0,
			3 * time.Second}, 2 * time.Second},
		{"the lower of the two in the middle", []time.Duration{4, 3, 2, 1}, 2},
	} {
		s := NewSet(Options{}, make([]Master, 5))
		for i, ahead := range c.clockOffsets {
			s.guards[i].clock.Restart(ClockReading{SentAt: now, ReceivedAt: now, ServerTime: wall + ahead})
		}
		if got := s.Clock(now) - wall; got != c.want {
			t.Errorf("%s: %v ahead, want %v", c.name, got, c.want)
		}
	}
}

func TestWithdrawnVoteInRunningBatch(t *testing.T) {
	g := newGuard(NewSet(Options{}, nil), 0, Master{Wake: func() {}})
	g.grantVote(marker.Marker{Nonce: "n"}, false)
	before := g.currentTrust()
	g.Withdraw()
	g.grantVote(marker.Marker{Nonce: "n"}, false)
	if after := g.currentTrust(); after.Nonce != "n" || after.term == before.term {
		t.Errorf("before %+v, after %+v", before, after)
	}
}

func TestWriteSeqs(t *testing.T) {
	knownSeqs := writeSeqs{"n@0": 10, "n@3": 5, "other@0": 99}
	for _, c := range []struct {
		ownSeqs writeSeqs
		behind  bool
	}{
		{writeSeqs{"n@0": 10, "n@3": 5}, false},
		{writeSeqs{"n@0": 11, "n@3": 9, "n@4": 1}, false},
		{writeSeqs{"n@0": 9, "n@3": 5}, true},
		{writeSeqs{"n@0": 10, "n@3": 4}, true},
		{writeSeqs{"n@0": 10}, true},
	} {
		if got := c.ownSeqs.isBehind(knownSeqs, "n"); got != c.behind {
			t.Errorf("%v: older %v", c.ownSeqs, got)
		}
	}
	for _, c := range []struct {
		masters   int
		knownSeqs writeSeqs
		want      bool
	}{{2, writeSeqs{"n@0": 10}, true}, {1, writeSeqs{"n@0": 10}, false}, {4, writeSeqs{"n@0": 11}, false},
		{2, writeSeqs{}, true}} {
		if got := (peerSeqs{c.masters, c.knownSeqs}).supports(writeSeqs{"n@0": 10}, "n", 5); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
	published, now := publishedSeqs{}, time.Now()
	if pairs := published.takeDuePairs(writeSeqs{"n@0": 10}, now); len(pairs) != 2 {
		t.Errorf("first: %v", pairs)
	}
	if pairs := published.takeDuePairs(writeSeqs{"n@0": 10}, now); pairs != nil {
		t.Errorf("again: %v", pairs)
	}
	if pairs := published.takeDuePairs(writeSeqs{"n@0": 11}, now); len(pairs) != 2 {
		t.Errorf("grown: %v", pairs)
	}
	if pairs := published.takeDuePairs(writeSeqs{"n@0": 11}, now.Add(2*seqRenewal)); len(pairs) != 2 {
		t.Errorf("old: %v", pairs)
	}
}

func TestMissedCanary(t *testing.T) {
	sent := time.Now()
	c := newCanary("c", sent)
	for _, x := range []struct {
		value string
		delay time.Duration
		want  bool
	}{
		{"c", time.Second, false}, {"", time.Second, true}, {"d", time.Second, true},
		{"", canaryTTL, false}, {"", canaryTTL - canaryTTL/100 - 4*time.Millisecond, true},
	} {
		if got := c.isMissed(x.value, sent.Add(x.delay)); got != x.want {
			t.Errorf("%q after %v: %v", x.value, x.delay, got)
		}
	}
	if (canary{}).isMissed("", sent) {
		t.Error("an unknown canary is missed")
	}
}
