package conf

import (
	"strings"
	"testing"
)

// TestFormerNames checks that a source may use a former name, with a warning, but not both names.
func TestFormerNames(t *testing.T) {
	for name, src := range map[string]struct {
		Source
		where string
	}{
		"file":        {Source{File: writeFile(t, "no-ttl: refuse\n")}, "conf.yaml:1: no-ttl"},
		"environment": {Source{Environ: []string{"REDLOCK_NO_TTL=refuse"}}, "REDLOCK_NO_TTL"},
		"flag":        {Source{Flags: map[string][]string{"no-ttl": {"refuse"}}}, "--no-ttl"},
		"stronger": {Source{File: writeFile(t, "locks-without-ttl: allow\n"),
			Environ: []string{"REDLOCK_NO_TTL=refuse"}}, "REDLOCK_NO_TTL"},
	} {
		c, err := Read(src.Source)
		if err != nil || c.LocksWithoutTTL != "refuse" {
			t.Errorf("%s: got %q, %v", name, c.LocksWithoutTTL, err)
		}
		want := src.where + ": former name of locks-without-ttl; it works until 0.5"
		if warnings := c.Warnings(); len(warnings) != 1 || !strings.HasSuffix(warnings[0], want) {
			t.Errorf("%s: warned of %q, want %q", name, warnings, want)
		}
	}
	for name, src := range map[string]Source{
		"file":        {File: writeFile(t, "no-ttl: refuse\nlocks-without-ttl: allow\n")},
		"environment": {Environ: []string{"REDLOCK_NO_TTL=refuse", "REDLOCK_LOCKS_WITHOUT_TTL=allow"}},
		"flags":       {Flags: map[string][]string{"no-ttl": {"refuse"}, "locks-without-ttl": {"allow"}}},
	} {
		if _, err := Read(src); err == nil || !strings.Contains(err.Error(), "given twice, first at ") {
			t.Errorf("both names in the %s: got %v", name, err)
		}
	}
}
