//go:build integration

package clients

import (
	"testing"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// TestGoLocks tests redsync and redislock, and the commands of libraries of .NET, Elixir and Rust.
func TestGoLocks(t *testing.T) {
	redistest.SkipShort(t)
	tryLocks(t, []dialect{
		{name: "redsync", taken: "granted", owned: true, extends: true, fixed: true, coarse: true, more: redsyncMore},
		{name: "redsync-retake", taken: "granted", owned: true, extends: true, fixed: true, coarse: true},
		{name: "redislock", taken: "granted", owned: true, extends: true, more: redislockMore},
		{name: "redislock", variant: "three-keys", taken: "granted", owned: true, extends: true, keys: 3,
			more: overlappingKeys},
		{name: "go-zero", taken: "OK", owned: true, extends: true},
		{name: "stackexchange", taken: "true", owned: true, extends: true, more: stackExchange},
		{name: "redlock.net", taken: "OK", owned: true, extends: true},
		{name: "elixir-redlock", taken: "OK", owned: true, extends: true, more: greaterOnly},
		{name: "redlock-rs", taken: "OK", owned: true},
		{name: "rslock", taken: "OK", owned: true, extends: true},
		{name: "rueidislock", taken: "[OK true]", owned: true, extends: true},
	}, buildProgram(t, "golang/locks"))
}

// redsyncMore tests waiting, and the check whether the lock is still held.
func redsyncMore(s *side, d dialect) {
	s.t.Helper()
	key := d.key("more")
	s.take(s.a, d, key, longLease)
	s.say(s.a, d, "valid", key)
	s.say(s.b, d, "wait", key, kit.Millis(coarseLease)) // it gives up after all its attempts
	s.say(s.b, d, "valid", key)
	s.handsOver(d, key)
	s.say(s.b, d, "valid", key)
}

// redislockMore tests the remaining time, metadata, and taking a lock again with the same token.
func redislockMore(s *side, d dialect) {
	s.t.Helper()
	key := d.key("more")
	s.say(s.a, d, "left", key, "0")
	s.say(s.a, d, "take-as", key, kit.Millis(longLease), "token", "beside-the-token")
	s.note("value: %v", s.values(d, key))
	s.say(s.a, d, "metadata", key)
	s.say(s.a, d, "left", key, "1000")
	s.undisturbed(d, key, func() { s.say(s.b, d, "take-as", key, kit.Millis(longLease), "another", "of-b") })
	s.say(s.b, d, "take-as", key, kit.Millis(longerLease), "token", "of-b")
	s.note("value: %v", s.values(d, key))
	s.remaining(d, key, longLease, longerLease)
	s.say(s.a, d, "release", key)
	s.say(s.b, d, "release", key)
	s.say(s.b, d, "left", key, "0")
}

// overlappingKeys tests that a lock of several keys is refused while one of them is held, and then
// takes none of the other keys.
func overlappingKeys(s *side, d dialect) {
	s.t.Helper()
	one, two, three := d.base("one"), d.base("two"), d.base("three")
	s.take(s.a, d, one+","+two, longLease)
	for _, keys := range []string{two + "," + three, three + "," + two, two} {
		s.refuse(s.b, d, keys)
		s.note("value: %v", s.values(d, three))
	}
	s.take(s.b, d, three, longLease)
	s.say(s.a, d, "release", one+","+two)
	s.take(s.b, d, one+","+two, longLease)
	for _, keys := range []string{one + "," + two, three} {
		s.say(s.b, d, "release", keys)
	}
	s.note("after all: %v", s.values(d, one+","+two+","+three))
}

// stackExchange tests locks of many threads over one connection.
func stackExchange(s *side, d dialect) {
	s.t.Helper()
	key := d.key("threads")
	s.take(s.a, d, key, longLease)
	s.say(s.b, d, "query", key)
	s.say(s.a, d, "release", key)
	s.say(s.b, d, "query", key)
	s.say(s.a, d, "threads", key, "8")
	endless(s, d)
}

// greaterOnly tests that an extension never shortens a lock.
func greaterOnly(s *side, d dialect) {
	s.t.Helper()
	key := d.key("more")
	s.take(s.a, d, key, longerLease)
	s.say(s.a, d, "extend", key, kit.Millis(longLease))
	s.remaining(d, key, longLease, longerLease)
	s.say(s.a, d, "extend", key, kit.Millis(2*longerLease))
	s.remaining(d, key, longerLease, 2*longerLease)
	s.say(s.a, d, "release", key)
}
