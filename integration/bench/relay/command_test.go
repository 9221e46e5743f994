package relay

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"redlock-proxy/integration/bench/suite"
	"redlock-proxy/integration/harness"
	"redlock-proxy/internal/redistest"
)

func parseSettings(args ...string) (settings, error) {
	return suite.ParseSettings(Command(), settingsOf, args...)
}

func TestParseSettings(t *testing.T) {
	set, err := parseSettings("-contenders", "haproxy,direct", "-requests", "7", "-connects", "3", "-settle", "1s")
	if err != nil || len(set.contenders) != 2 || set.requests != 7 || set.connects != 3 || set.settleTime != time.Second ||
		len(set.measurements()) != 1 {
		t.Errorf("%+v, %v", set, err)
	}
	for _, args := range [][]string{{"-contenders", "x"}, {"-rounds", "0"}, {"-connects", "-1"}, {"-threads", "0"},
		{"-settle", "-1s"}, {"extra"}, {"-x"}} {
		if set, err := parseSettings(args...); err == nil {
			t.Errorf("%v: %+v; want an error", args, set)
		}
	}
}

const csvHeader = `"test","rps","avg_latency_ms","min_latency_ms","p50_latency_ms","p95_latency_ms","p99_latency_ms","max_latency_ms"` + "\n"

func TestParseFigure(t *testing.T) {
	got, err := parseFigure(csvHeader+`"SET","1.5","9","9","9","9","9","9"`+"\n"+`"GET","25641.03","1.168","0.032","0.855","3.111","3.775","4.727"`+"\n", "GET")
	if want := (figure{rate: 25641.03, p50: 0.855, p99: 3.775}); got != want || err != nil {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	for _, text := range []string{
		"", csvHeader, csvHeader + `"SET","1","1","1","1","1","1","1"`, csvHeader + `"GET","1","1"`,
		csvHeader + `"GET","x","1","1","1","1","1","1"`,
		csvHeader + `"GET","0","1","1","1","1","1","1"`, "\"test\",\"other\"\n\"GET\",\"1\"\n",
	} {
		if got, err := parseFigure(text, "GET"); err == nil {
			t.Errorf("%q: %+v; want an error", text, got)
		}
	}
}

func TestOtherCores(t *testing.T) {
	begin := time.Now()
	before := cpuReading{at: begin, fleet: 1 * time.Second, machine: 10 * time.Second}
	after := cpuReading{at: begin.Add(2 * time.Second), fleet: 2 * time.Second, machine: 13 * time.Second}
	if got := otherCores(before, after, 500*time.Millisecond); got != 0.75 {
		t.Errorf("others took %v cores; want 0.75: 3 s, 1 s and 0.5 s of which were ours, in 2 s", got)
	}
	if got := otherCores(before, after, time.Minute); got != 0 {
		t.Errorf("others took %v cores; want none: the clocks differ by a tick at most", got)
	}
}

func TestRunConcurrently(t *testing.T) {
	var runningCount, maxRunning, doneCount atomic.Int32
	runConcurrently(t.Context(), 100, 3, func(int) {
		if n := runningCount.Add(1); n > maxRunning.Load() {
			maxRunning.Store(n)
		}
		time.Sleep(time.Millisecond) // the duration of the request
		runningCount.Add(-1)
		doneCount.Add(1)
	})
	if doneCount.Load() != 100 || maxRunning.Load() > 3 {
		t.Errorf("%d were done, %d at a time; want 100, 3 at most", doneCount.Load(), maxRunning.Load())
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	runConcurrently(ctx, 100, 3, func(int) { t.Error("was done although the context had ended") })
}

// TestRunWithoutOtherProxies checks that every measurement runs, for a moment, with this proxy, but
// without the proxies that only benchmarks need.
func TestRunWithoutOtherProxies(t *testing.T) {
	redistest.SkipShort(t)
	if _, err := exec.LookPath("redis-benchmark"); err != nil {
		redistest.SkipMissing(t, errNoBenchmark.Error())
	}
	speed := runCommand(t, "-rounds", "2", "-requests", "1000", "-contenders", "direct,proxy")
	wantTimes(t, speed, map[string]int{"### GET, -P 16": 1, "| direct |": 4, "| proxy |": 4, "| haproxy |": 0,
		"not measured": 17})
	anew := runCommand(t, "-rounds", "1", "-requests", "200", "-reconnect", "-contenders", "direct,proxy")
	wantTimes(t, anew, map[string]int{"### GET, -k 0": 1, "| direct |": 1, "| proxy |": 1, "### Goals": 0})
	rest := runCommand(t, "-idle", "-idlers", "20", "-settle", "10ms", "-connects", "200", "-contenders", "proxy")
	wantTimes(t, rest, map[string]int{"### 20 idle clients": 1, "ERRORS": 0, "| 200 |": 1, "| ≤ 2 | met |": 1})
	// The proxy has two descriptors for each client. The total may differ by one, because of parked
	// connections or a probe that has ended.
	if each := regexp.MustCompile(`KB \| (1\.9|2\.0)[05] \|`); !each.MatchString(rest) {
		t.Errorf("not two descriptors per client:\n%s", rest)
	}
}

func runCommand(t *testing.T, args ...string) string {
	t.Helper()
	var out, log bytes.Buffer
	err := suite.Run(t.Context(), Command(), &out, &log, args...)
	if errors.Is(err, redistest.ErrNoRedis) {
		redistest.SkipMissing(t, err.Error())
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, &log)
	}
	return out.String()
}

func wantTimes(t *testing.T, text string, parts map[string]int) {
	t.Helper()
	for part, times := range parts {
		if got := strings.Count(text, part); got != times {
			t.Errorf("%q is there %d times; want %d:\n%s", part, got, times, text)
		}
	}
}

func TestMissingProxy(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := startOtherProxy("no-such-proxy", nil)
	if !errors.Is(err, harness.ErrNoProgram) || !strings.Contains(err.Error(), "apt-get install no-such-proxy") {
		t.Errorf("%v; want to be told how to install it", err)
	}
}
