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
	compareLocks(t, []dialect{
		{name: "redlock-cpp", grantOutput: "OK", holderOnly: true, canExtend: true, extraCheck: checkTokenRotation},
		{name: "redis-plus-plus", grantOutput: "OK", holderOnly: true, canExtend: true},
	}, BuildWithHiredis(t, "c/locks.c"))
}

// checkTokenRotation tests that each extension sets a new token, and that the previous token
// becomes invalid.
func checkTokenRotation(s *lockService, d dialect) {
	s.t.Helper()
	key := d.key("rotated")
	s.wantGrant(s.a, d, key, longLease)
	for range 3 {
		s.run(s.a, d, "extend", key, kit.Millis(longerLease))
		s.note("value: %v", s.values(d, key))
	}
	s.run(s.a, d, "release", key)
	s.run(s.a, d, "extend", key, kit.Millis(longLease)) // takes the free lock
	s.note("value: %v", s.values(d, key))
	s.run(s.a, d, "release", key)
}
