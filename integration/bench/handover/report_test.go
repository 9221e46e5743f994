package handover

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/bench/suite"
	"redlock-proxy/internal/redistest"
)

func TestSettingsOfHandover(t *testing.T) {
	set, err := suite.ParseSettings(Command(), settingsOf, "-clients", "8", "-proxies", "3")
	if err != nil || set.clients != 8 || set.proxies != 3 {
		t.Errorf("%+v, %v", set, err)
	}
	for _, args := range [][]string{{"-clients", "1"}, {"-proxies", "0"}, {"-hold", "-1s"}, {"-seconds", "0"}, {"-seconds", "58"},
		{"-x"}} {
		if set, err := suite.ParseSettings(Command(), settingsOf, args...); err == nil {
			t.Errorf("%v: %+v; want an error", args, set)
		}
	}
}

// TestOutcome checks that a hand-over is a grant to a different client than before. A client
// without a grant counts as waiting for the whole window.
func TestOutcome(t *testing.T) {
	const ms = time.Millisecond
	set := settings{clients: 3, window: time.Second}
	o := outcomeOf([]grant{
		{client: 0, requestTime: -20 * ms, grantTime: -10 * ms, releaseTime: -5 * ms}, // before the window
		{client: 0, requestTime: 0, grantTime: 10 * ms, releaseTime: 15 * ms},
		{client: 1, requestTime: 0, grantTime: 30 * ms, releaseTime: 30 * ms},
		{client: 1, requestTime: 35 * ms, grantTime: 40 * ms, releaseTime: 45 * ms},
		{client: 0, requestTime: 20 * ms, grantTime: 50 * ms, releaseTime: 60 * ms},
		{client: 2, requestTime: 0, grantTime: 2 * time.Second}, // after the window
	}, set)
	if o.handoverRate != 2 || o.grantRate != 4 {
		t.Errorf("%v hand-overs, %v grants; want 2 and 4", o.handoverRate, o.grantRate)
	}
	if o.handoverP50 != 5*ms || o.handoverP99 != 15*ms || math.Round(1000*o.freeShare) != 35 {
		t.Errorf("hand-overs %v and %v, free %v", o.handoverP50, o.handoverP99, o.freeShare)
	}
	if o.shortestMeanWait != 17500*time.Microsecond || o.longestMeanWait != time.Second || math.Round(o.meanWaitRatio()) != 57 {
		t.Errorf("mean waits %v to %v, %v apart", o.shortestMeanWait, o.longestMeanWait, o.meanWaitRatio())
	}
	if o.fewestGrants != 0 || o.mostGrants != 2 {
		t.Errorf("%d to %d grants", o.fewestGrants, o.mostGrants)
	}
}

// TestProxyIndex checks that each client has a proxy. With uneven, the first proxy gets an eighth
// of the clients.
func TestProxyIndex(t *testing.T) {
	count := func(set settings) [2]int {
		var n [2]int
		for i := range 64 {
			n[set.proxyIndex(i)]++
		}
		return n
	}
	if even, uneven := count(settings{proxies: 2}), count(settings{proxies: 2, uneven: true}); even != [2]int{32, 32} ||
		uneven != [2]int{8, 56} {
		t.Errorf("even %v, uneven %v", even, uneven)
	}
}

// TestRun checks that the whole benchmark runs, for a moment, and reports both contenders.
func TestRun(t *testing.T) {
	redistest.SkipShort(t)
	var out, log bytes.Buffer
	err := suite.Run(t.Context(), Command(), &out, &log, "-rounds", "1", "-seconds", "0.3", "-masters", "3", "-clients", "4")
	if errors.Is(err, redistest.ErrNoRedis) {
		redistest.SkipMissing(t, err.Error())
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, &log)
	}
	if text := out.String(); !strings.Contains(text, "| proxies |") || !strings.Contains(text, "| redsync |") {
		t.Errorf("a contender is missing:\n%s", text)
	}
}
