package guard

import (
	"testing"
	"time"

	"redlock-proxy/quorum/guard/peer"
	"redlock-proxy/quorum/vote"
)

// TestMayCondemn: one proxy never takes the vote from more than leave a majority.
func TestMayCondemn(t *testing.T) {
	for n := 1; n <= 9; n++ {
		already := 0
		for mayQuarantine(n, already) {
			already++
		}
		if n-already != vote.Majority(n) {
			t.Errorf("of %d it takes the vote from %d", n, already)
		}
	}
}

func TestDoubtIsOver(t *testing.T) {
	now := time.Now()
	d := doubt{nonce: "n", told: time.Hour, since: now}
	sure := peer.Proxy{Guards: true, ClockSince: time.Minute, At: time.Hour + time.Millisecond}
	with := func(change func(p *peer.Proxy)) []peer.Proxy {
		p := sure
		change(&p)
		return []peer.Proxy{p}
	}
	for _, c := range []struct {
		name    string
		nonce   string
		proxies []peer.Proxy
		after   time.Duration
		want    bool
	}{
		{"still", "n", nil, 0, false},
		{"after every lease", "n", nil, leaseWait(time.Minute), true},
		{"admitted anew", "o", nil, 0, true},
		{"another proxy saw the clock fit all the time", "n", []peer.Proxy{sure}, 0, true},
		{"it has not looked since", "n", with(func(p *peer.Proxy) { p.At = time.Hour }), 0, false},
		{"it does not know", "n", with(func(p *peer.Proxy) { p.ClockSince = 0 }), 0, false},
		{"it has only just begun", "n", with(func(p *peer.Proxy) { p.ClockSince = time.Hour }), 0, false},
		{"it has no guard", "n", with(func(p *peer.Proxy) { p.Guards = false }), 0, false},
	} {
		if got := d.isOver(c.nonce, c.proxies, time.Minute, now.Add(c.after)); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
	if !(doubt{}).isOver("n", nil, time.Minute, now) {
		t.Error("no doubt is over")
	}
}
