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
	tryLocks(t, []dialect{
		{name: "by-hand", taken: "true", owned: true, extends: true},
		{name: "redlock-gem", taken: `"OK"`, owned: true, extends: true, more: redlockGem},
		{name: "redis-mutex", taken: "true", owned: true, endless: true},
		{name: "redis-objects", taken: "true", endless: true},
		{name: "suo", taken: "true", owned: true, extends: true, endless: true},
	}, rubyLocks(t)...)
}

func rubyLocks(t *testing.T) []string {
	return []string{clientNamed(t, "ruby").interpreter(t), inFolder("ruby/locks.rb")}
}

// redlockGem tests requests for the remaining time, and the option retake for a lost lock.
func redlockGem(s *side, d dialect) {
	s.t.Helper()
	key := d.key("more")
	s.take(s.a, d, key, longLease)
	s.say(s.a, d, "left", key, "10")
	s.say(s.b, d, "left", key, "10")
	s.say(s.a, d, "retake", key, kit.Millis(longerLease))
	s.remaining(d, key, longLease, longerLease)
	s.say(s.a, d, "release", key)
	s.say(s.a, d, "left", key, "10")
	s.say(s.a, d, "extend", key, kit.Millis(longLease))
	s.say(s.a, d, "retake", key, kit.Millis(longLease))
	s.say(s.b, d, "take", key, kit.Millis(longLease))
	s.say(s.a, d, "release", key)
}
