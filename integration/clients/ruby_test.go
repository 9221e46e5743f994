//go:build integration

package clients

import (
	"testing"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// TestRubyLocks tests the commands of Ruby libraries.
func TestRubyLocks(t *testing.T) {
	redistest.SkipShort(t)
	compareLocks(t, []dialect{
		{name: "by-hand", grantOutput: "true", holderOnly: true, canExtend: true},
		{name: "redlock-gem", grantOutput: `"OK"`, holderOnly: true, canExtend: true, extraCheck: checkRedlockGem},
		{name: "redis-mutex", grantOutput: "true", holderOnly: true, withoutTTL: true},
		{name: "redis-objects", grantOutput: "true", withoutTTL: true},
		{name: "suo", grantOutput: "true", holderOnly: true, canExtend: true, withoutTTL: true},
	}, rubyLocks(t)...)
}

func rubyLocks(t *testing.T) []string {
	return []string{findProgram(t, "ruby").interpreter(t), programPath("ruby/locks.rb")}
}

// checkRedlockGem tests requests for the remaining time, and the option retake for a lost lock.
func checkRedlockGem(s *lockService, d dialect) {
	s.t.Helper()
	key := d.key("more")
	s.wantGrant(s.a, d, key, longLease)
	s.run(s.a, d, "left", key, "10")
	s.run(s.b, d, "left", key, "10")
	s.run(s.a, d, "retake", key, kit.Millis(longerLease))
	s.wantRemaining(d, key, longLease, longerLease)
	s.run(s.a, d, "release", key)
	s.run(s.a, d, "left", key, "10")
	s.run(s.a, d, "extend", key, kit.Millis(longLease))
	s.run(s.a, d, "retake", key, kit.Millis(longLease))
	s.run(s.b, d, "take", key, kit.Millis(longLease))
	s.run(s.a, d, "release", key)
}
