package redistest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestVersions checks that each fetched version is found, starts, and reports the version in its
// name.
func TestVersions(t *testing.T) {
	for _, version := range Versions() {
		kind, number, _ := strings.Cut(version, "-")
		reply, err := dial(t, New(t, Options{Version: version}).Addr()).Do("INFO", "server")
		check(t, err)
		if text, _ := reply.(string); !strings.Contains(text, kind+"_version:"+number+"\r\n") {
			t.Errorf("%s says %v", version, reply)
		}
	}
}

// TestOldestAndNewest checks that OldestAndNewest and NewestOf order versions by their numbers, not
// alphabetically.
func TestOldestAndNewest(t *testing.T) {
	root := t.TempDir()
	t.Setenv("REDLOCK_SERVERS", root)
	for _, version := range []string{"redis-8.0.2", "valkey-9.1.2", "redis-10.0.1", "redis-6.0.16"} {
		check(t, os.Mkdir(filepath.Join(root, version), 0o700))
		check(t, os.WriteFile(filepath.Join(root, version, "version"), []byte(version+"\n"), 0o600))
	}
	if got := OldestAndNewest(); !slices.Equal(got, []string{"redis-6.0.16", "redis-10.0.1", "valkey-9.1.2"}) {
		t.Errorf("of %v: %v", Versions(), got)
	}
	if got := NewestOf(t, "redis"); got != "redis-10.0.1" {
		t.Errorf("the newest Redis is %s", got)
	}
}

// skipper records that a test would be skipped.
type skipper struct {
	testing.TB
	reason string
}

func (s *skipper) Helper() {}

func (s *skipper) Skipf(format string, args ...any) { s.reason += fmt.Sprintf(format, args...) }

// TestRequireFeature checks that RequireFeature skips a test if one of the servers lacks the
// feature. The reason for the skip names that server. Valkey lacks no feature of Redis 7.2.
func TestRequireFeature(t *testing.T) {
	for _, c := range []struct{ servers, minVersion, lackingServer string }{
		{"", "7.0", ""}, {"installed", "7.0", ""}, {"redis-6.0.16", "7.0", "redis-6.0.16"}, {"redis-6.0.16", "6.0", ""},
		{"redis-10.0.1", "7.0", ""},
		{"valkey-8.1.1,redis-8.0.2,redis-6.0.16", "6.2", "redis-6.0.16"}, {"installed,valkey-8.1.1", "7.2", ""},
	} {
		t.Setenv("REDLOCK_TEST_SERVERS", c.servers)
		var s skipper
		if RequireFeature(&s, "THIS", c.minVersion); !strings.Contains(s.reason, c.lackingServer) || (s.reason == "") != (c.lackingServer == "") {
			t.Errorf("%q, since %s: skipped for %q", c.servers, c.minVersion, s.reason)
		}
	}
}
