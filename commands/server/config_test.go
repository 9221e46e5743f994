package server

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"redlock-proxy/commands/command"
)

// TestConfigGetNames checks the names under which CONFIG GET shows settings. The first pattern that
// matches a setting determines the name.
func TestConfigGetNames(t *testing.T) {
	settings := [][2]string{{"save", ""}, {"slave-read-only", "yes"}, {"timeout", "0"}}
	for patterns, want := range map[string]string{
		"save": "map[save:save]", "SAVE *": "map[save:SAVE slave-read-only:slave-read-only timeout:timeout]",
		"s[a-l]*": "map[save:save slave-read-only:slave-read-only]", "S* SAVE": "map[save:save slave-read-only:slave-read-only]",
		`sa\ve`: "map[]", "x*": "map[]",
	} {
		shown := map[string]string{}
		for _, p := range strings.Fields(patterns) {
			addMatches(p, settings, shown)
		}
		if got := fmt.Sprint(shown); got != want {
			t.Errorf("%s: %s, want %s", patterns, got, want)
		}
	}
}

// TestLongGlobs checks that CONFIG GET and COMMAND LIST parse a long set once, not once for each
// byte of each name.
func TestLongGlobs(t *testing.T) {
	glob := "*[" + strings.Repeat("x", 1<<20) + "]*!"
	start := time.Now()
	settings := make([][2]string, 1000)
	for i := range settings {
		settings[i][0] = fmt.Sprint("notify-keyspace-events", i)
	}
	addMatches(glob, settings, map[string]string{})
	passes := compileFilter([][]byte{[]byte("filterby"), []byte("pattern"), []byte(glob)})
	for range 1000 {
		if passes(&command.Command{Name: "forceunlock"}) {
			t.Fatal("it matches")
		}
	}
	if elapsed := time.Since(start); elapsed > 5*time.Second {
		t.Errorf("it took %v", elapsed)
	}
}
