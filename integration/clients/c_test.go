//go:build integration

package clients

import (
	"testing"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// TestCLocks tests the commands of C++ libraries.
func TestCLocks(t *testing.T) {
	redistest.SkipShort(t)
	tryLocks(t, []dialect{
		{name: "redlock-cpp", taken: "OK", owned: true, extends: true, more: rotated},
		{name: "redis-plus-plus", taken: "OK", owned: true, extends: true},
	}, BuildWithHiredis(t, "c/locks.c"))
}

// rotated tests that each extension sets a new token, and that the previous one becomes invalid.
func rotated(s *side, d dialect) {
	s.t.Helper()
	key := d.key("rotated")
	s.take(s.a, d, key, longLease)
	for range 3 {
		s.say(s.a, d, "extend", key, kit.Millis(longerLease))
		s.note("value: %v", s.values(d, key))
	}
	s.say(s.a, d, "release", key)
	s.say(s.a, d, "extend", key, kit.Millis(longLease)) // takes the lock
	s.note("value: %v", s.values(d, key))
	s.say(s.a, d, "release", key)
}
