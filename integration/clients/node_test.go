//go:build integration

package clients

import (
	"strings"
	"testing"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// TestNodeLocks tests the commands of Node.js libraries.
func TestNodeLocks(t *testing.T) {
	redistest.SkipShort(t)
	tryLocks(t, []dialect{
		{name: "by-hand", taken: `"OK"`, owned: true, extends: true},
		{name: "by-hand-transaction", taken: `"OK"`, owned: true, extends: true},
		{name: "ioredis-defined", taken: `"OK"`, owned: true, extends: true, more: forgotten},
		{name: "redlock-3", taken: `"OK"`, owned: true, extends: true},
		{name: "redlock-5", taken: `"granted"`, owned: true, extends: true},
		{name: "redlock-5", variant: "-several", taken: `"granted"`, owned: true, extends: true, keys: 3, more: partOfKeys},
	}, clientNamed(t, "node").interpreter(t), inFolder("node/locks.js"))
}

// forgotten tests that the client sends its scripts again if the server has forgotten them.
func forgotten(s *side, d dialect) {
	s.t.Helper()
	key := d.key("forgotten")
	s.take(s.a, d, key, longLease)
	s.say(s.a, d, "forget", key)
	s.say(s.a, d, "extend", key, kit.Millis(longerLease))
	s.say(s.a, d, "forget", key)
	s.say(s.a, d, "release", key)
}

// partOfKeys tests that a lock that has lost one of its keys can be released, but not extended.
func partOfKeys(s *side, d dialect) {
	s.t.Helper()
	overlappingKeys(s, d)
	key := d.key("part")
	for lost := range strings.SplitSeq(key, ",") {
		s.take(s.a, d, key, longLease)
		s.note("DEL %s: %v", lost, kit.Do(s.t, s.raw, "DEL", lost))
		s.say(s.a, d, "extend", key, kit.Millis(longerLease))
		s.say(s.b, d, "release", key)
		s.say(s.a, d, "release", key)
		s.note("after it: %v", s.values(d, key))
	}
}
