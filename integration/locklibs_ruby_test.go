//go:build integration

package integration

import "testing"

// TestRubyLocks tries what libraries of Ruby send.
func TestRubyLocks(t *testing.T) {
	tryLocks(t, []dialect{
		{name: "by-hand", taken: "true", owned: true, extends: true},
		{name: "redlock-gem", taken: `"OK"`, owned: true, extends: true, more: redlockGem},
		{name: "redis-mutex", taken: "true", owned: true, endless: true},
		{name: "redis-objects", taken: "true", endless: true},
		{name: "redis-lock", taken: "true", owned: true, extends: true, endless: true, stored: ownerAndEnd},
		{name: "suo", taken: "true", owned: true, extends: true, endless: true},
	}, clientNamed(t, "ruby").interpreter(t), "ruby/locks.rb")
}

// ownerAndEnd are two keys for one lock.
func ownerAndEnd(key string) []string { return []string{"lock:owner:" + key, "lock:expire:" + key} }

// redlockGem asks for the time that is left, and takes again what is gone if it is told so.
func redlockGem(s *side, d dialect) {
	s.t.Helper()
	key := d.key("more")
	s.take(s.a, d, key, longLease)
	s.say(s.a, d, "left", key, "10")
	s.say(s.b, d, "left", key, "10")
	s.say(s.a, d, "retake", key, millis(longerLease))
	s.remaining(d, key, longLease, longerLease)
	s.say(s.a, d, "release", key)
	s.say(s.a, d, "left", key, "10")
	s.say(s.a, d, "extend", key, millis(longLease))
	s.say(s.a, d, "retake", key, millis(longLease))
	s.say(s.b, d, "take", key, millis(longLease))
	s.say(s.a, d, "release", key)
}
