package guard

import (
	"testing"
	"time"

	"redlock-proxy/quorum/guard/marker"
	"redlock-proxy/quorum/guard/script"
)

// TestVotesThatCount checks that a vote counts if its sequence continued, its canary lives, its
// clock fits, and the vote was not withdrawn meanwhile. A reply from before the master lost data
// and was admitted again is too late.
func TestVotesThatCount(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	sighting := Sighting{Sent: now, Got: now.Add(time.Millisecond), ServerTime: time.Hour}
	on := trust{Marker: marker.Marker{Nonce: "n"}, term: 3}
	again := trust{Marker: marker.Marker{Nonce: "n"}, term: 4}
	alive := canary{value: "c", until: now.Add(time.Second)}
	well := look{
		writes: true, field: "n@0", floor: script.FirstSeq + 7, known: alive,
		sequence: script.FirstSeq + 8, number: true, canary: "c", sighting: sighting,
	}
	with := func(change func(p *look)) look {
		p := well
		change(&p)
		return p
	}
	for _, c := range []struct {
		name          string
		known, expect trust
		part          look
		want, stays   bool
	}{
		{"all is well", on, on, well, true, true},
		{"another proxy's batch was in between", on, on, with(func(p *look) { p.sequence += 5 }), true, true},
		{"the sequence stands", on, on, with(func(p *look) { p.sequence-- }), false, false},
		{"the sequence stands, and it only reads", on, on, with(func(p *look) { p.sequence--; p.writes = false }), true, true},
		{"the sequence went back", on, on, with(func(p *look) { p.sequence -= 2; p.writes = false }), false, false},
		{"the sequence begins anew", on, on, with(func(p *look) { p.sequence = 1 }), false, false},
		{"no number", on, on, with(func(p *look) { p.number = false }), false, false},
		{"no answer", on, on, with(func(p *look) { p.number, p.sighting = false, Sighting{} }), false, false},
		{"the canary is gone", on, on, with(func(p *look) { p.canary = "" }), false, false},
		{"another canary", on, on, with(func(p *look) { p.canary = "d" }), false, false},
		{"the canary is gone, which ended before it was renewed", on, on,
			with(func(p *look) { p.canary, p.known.until = "", now }), false, false},
		{"the canary was made after the batch left", on, on, with(func(p *look) { p.canary, p.known = "", canary{} }),
			true, true},
		{"a canary that had ended, and another since", on, on, with(func(p *look) {
			p.canary, p.known = "",
				canary{value: "b", until: now}
		}), true, true},
		{"a database without a canary as yet", on, on, with(func(p *look) {
			p.db, p.canary, p.known = 3, "",
				canary{}
		}), true, true},
		{"in quarantine when it was sent", on, trust{}, well, false, true},
		{"in quarantine since", trust{}, on, well, false, false},
		{"suspended meanwhile", again, on, well, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newGuard(NewSet(Options{SinceBoot: func() time.Duration { return 0 }}, nil), 0,
				Master{Wake: func() {}})
			g.trust = c.known
			g.canaries[0] = alive
			if got := g.voteCounts(c.expect, &c.part); got != c.want || (g.trust.Nonce != "") != c.stays {
				t.Errorf("counts: %v, still votes: %v, want %v, %v", got, g.trust.Nonce != "", c.want, c.stays)
			}
		})
	}
}

// TestOnlyWhatCountsIsAVote checks that replies of a master whose era has ended prove its data, but
// are not votes. Otherwise they would contradict a marker of the next era on that master.
func TestOnlyWhatCountsIsAVote(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	for _, over := range []bool{false, true} {
		g := newGuard(NewSet(Options{SinceBoot: func() time.Duration { return 0 }}, nil), 0, Master{Wake: func() {}})
		g.grantVote(marker.Marker{Nonce: "n"}, over)
		w := &Check{guard: g, trust: g.trusted(), look: look{
			field: "n@0", floor: script.FirstSeq, sequence: script.FirstSeq + 1, number: true,
			sighting: Sighting{Sent: now, Got: now, ServerTime: time.Hour},
		}}
		if cause := g.Evaluate(w); (cause != nil) != over || g.voted.IsZero() != over || g.trusted().Nonce != "n" {
			t.Errorf("over %v: cause %v, voted %v", over, cause, g.voted)
		}
	}
}

// TestMedianClock checks the median of the masters' clocks, and the machine's own clock if fewer
// than a majority are known.
func TestMedianClock(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	wall := time.Duration(now.UnixNano())
	for _, c := range []struct {
		name  string
		ahead []time.Duration // of the known clocks
		want  time.Duration
	}{
		{"none is known", nil, 0},
		{"a minority is known", []time.Duration{time.Hour, time.Hour}, 0},
		{"three of five", []time.Duration{time.Hour, time.Minute, -time.Hour}, time.Minute},
		{"one is in another century", []time.Duration{time.Second, 100 * 365 * 24 * time.Hour, 2 * time.Second, 0,
			3 * time.Second}, 2 * time.Second},
		{"the lower of the two in the middle", []time.Duration{4, 3, 2, 1}, 2},
	} {
		s := NewSet(Options{}, make([]Master, 5))
		for i, ahead := range c.ahead {
			s.guards[i].clock.Anchor(Sighting{Sent: now, Got: now, ServerTime: wall + ahead})
		}
		if got := s.Clock(now) - wall; got != c.want {
			t.Errorf("%s: %v ahead, want %v", c.name, got, c.want)
		}
	}
}

func TestWithdrawnVoteDoesNotComeBackForWhatIsUnderWay(t *testing.T) {
	g := newGuard(NewSet(Options{}, nil), 0, Master{Wake: func() {}})
	g.grantVote(marker.Marker{Nonce: "n"}, false)
	before := g.trusted()
	g.Withdraw()
	g.grantVote(marker.Marker{Nonce: "n"}, false)
	if after := g.trusted(); after.Nonce != "n" || after.term == before.term {
		t.Errorf("before %+v, after %+v", before, after)
	}
}

func TestWriteSeqs(t *testing.T) {
	seen := writeSeqs{"n@0": 10, "n@3": 5, "other@0": 99}
	for _, c := range []struct {
		has   writeSeqs
		older bool
	}{
		{writeSeqs{"n@0": 10, "n@3": 5}, false},
		{writeSeqs{"n@0": 11, "n@3": 9, "n@4": 1}, false},
		{writeSeqs{"n@0": 9, "n@3": 5}, true},
		{writeSeqs{"n@0": 10, "n@3": 4}, true},
		{writeSeqs{"n@0": 10}, true},
	} {
		if got := c.has.isBehind(seen, "n"); got != c.older {
			t.Errorf("%v: older %v", c.has, got)
		}
	}
	for _, c := range []struct {
		masters int
		seen    writeSeqs
		want    bool
	}{{2, writeSeqs{"n@0": 10}, true}, {1, writeSeqs{"n@0": 10}, false}, {4, writeSeqs{"n@0": 11}, false},
		{2, writeSeqs{}, true}} {
		if got := (peerSeqs{c.masters, c.seen}).supports(writeSeqs{"n@0": 10}, "n", 5); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
	left, now := publishedSeqs{}, time.Now()
	if words := left.due(writeSeqs{"n@0": 10}, now); len(words) != 2 {
		t.Errorf("first: %v", words)
	}
	if words := left.due(writeSeqs{"n@0": 10}, now); words != nil {
		t.Errorf("again: %v", words)
	}
	if words := left.due(writeSeqs{"n@0": 11}, now); len(words) != 2 {
		t.Errorf("grown: %v", words)
	}
	if words := left.due(writeSeqs{"n@0": 11}, now.Add(2*seqRenewal)); len(words) != 2 {
		t.Errorf("old: %v", words)
	}
}

func TestCanaryIsMissed(t *testing.T) {
	sent := time.Now()
	c := renewedAt("c", sent)
	for _, x := range []struct {
		value string
		after time.Duration
		want  bool
	}{
		{"c", time.Second, false}, {"", time.Second, true}, {"d", time.Second, true},
		{"", canaryLife, false}, {"", canaryLife - canaryLife/100 - 4*time.Millisecond, true},
	} {
		if got := c.isMissed(x.value, sent.Add(x.after)); got != x.want {
			t.Errorf("%q after %v: %v", x.value, x.after, got)
		}
	}
	if (canary{}).isMissed("", sent) {
		t.Error("what was never seen is missed")
	}
}
