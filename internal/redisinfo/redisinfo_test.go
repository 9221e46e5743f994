package redisinfo_test

import (
	"slices"
	"testing"

	"redlock-proxy/internal/redisinfo"
)

// TestParse: of a whole reply, with the lines that are no fields.
func TestParse(t *testing.T) {
	fields := redisinfo.Parse("$99\r\n# Server\r\nredis_version:7.4.1\r\nexecutable:/a:b\r\n\r\n# Keyspace\r\ndb10:keys=1,expires=1\r\ndb2:keys=3,expires=0\r\ndbsize:1\r\n\r\n")
	for name, want := range map[string]string{"redis_version": "7.4.1", "executable": "/a:b", "db2": "keys=3,expires=0", "# Server": "", "run_id": ""} {
		if got := fields[name]; got != want {
			t.Errorf("%s: %q, not %q", name, got, want)
		}
	}
	if got := fields.Databases(); !slices.Equal(got, []int{2, 10}) {
		t.Errorf("databases %v", got)
	}
}
