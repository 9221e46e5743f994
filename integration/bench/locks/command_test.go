package locks

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"redlock-proxy/integration/bench/suite"
	"redlock-proxy/internal/redistest"
)

func parseSettings(args ...string) (settings, error) {
	return suite.ParseSettings(Command(), settingsOf, args...)
}

func TestParseSettings(t *testing.T) {
	set, err := parseSettings("-client", "both", "-seconds", "0.5", "-scenarios", "one-key,c1", "-contenders", "direct")
	if err != nil {
		t.Fatal(err)
	}
	if len(set.clients) != 2 || set.window != 500*ms || len(set.contenders) != 1 {
		t.Errorf("%+v", set)
	}
	if len(set.scenarios) != 2 || set.scenarios[0].name != "c1" || set.scenarios[1].name != "one-key" {
		t.Errorf("scenarios %+v; want c1 and one-key in this order", set.scenarios)
	}
	for _, args := range [][]string{
		{"-client", "x"}, {"-contenders", ""}, {"-scenarios", "c1,c2"}, {"-rounds", "0"}, {"-seconds", "-1"},
		{"-think", "-1s"}, {"extra"}, {"-x"},
	} {
		if set, err := parseSettings(args...); err == nil {
			t.Errorf("%v: %+v; want an error", args, set)
		}
	}
}

func TestGoalRatios(t *testing.T) {
	known := map[string]bool{}
	for _, kind := range ratioKinds() {
		known[kind.title] = true
	}
	for _, s := range allScenarios() {
		for _, g := range s.goals {
			if !known[g.ratio] {
				t.Errorf("%s: no ratio is called %q", s.name, g.ratio)
			}
		}
	}
}

func TestClientKeys(t *testing.T) {
	own := clientKeys(scenario{clients: 2}, "p:")
	shared := clientKeys(scenario{clients: 2, shared: true}, "p:")
	if own[0] == own[1] || shared[0] != shared[1] {
		t.Errorf("own %v, shared %v", own, shared)
	}
}

// TestRunWithoutTheProxy checks that redsync and direct run on real masters, for a moment, with
// both clients.
func TestRunWithoutTheProxy(t *testing.T) {
	redistest.SkipShort(t)
	var out, log bytes.Buffer
	args := []string{"-rounds", "1", "-seconds", "3", "-masters", "3", "-client", "both", "-contenders",
		"redsync,direct", "-scenarios", "c1,one-key"}
	err := suite.Run(t.Context(), Command(), &out, &log, args...)
	if errors.Is(err, redistest.ErrNoRedis) {
		redistest.SkipMissing(t, err.Error())
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, &log)
	}
	text := out.String()
	for part, times := range map[string]int{
		"### 1 client, goredis client": 1, "### 64 clients, one key, raw client": 1, "| redsync |": 6, "| direct |": 6,
		"ERRORS": 0, " 0 | 0.000 |": 0,
	} {
		if got := strings.Count(text, part); got != times {
			t.Errorf("%q is there %d times; want %d:\n%s", part, got, times, text)
		}
	}
}
