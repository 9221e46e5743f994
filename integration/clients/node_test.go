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
	compareLocks(t, []dialect{
		{name: "by-hand", grantOutput: `"OK"`, holderOnly: true, canExtend: true},
		{name: "by-hand-transaction", grantOutput: `"OK"`, holderOnly: true, canExtend: true},
		{name: "ioredis-defined", grantOutput: `"OK"`, holderOnly: true, canExtend: true, extraCheck: checkForgottenScripts},
		{name: "redlock-3", grantOutput: `"OK"`, holderOnly: true, canExtend: true},
		{name: "redlock-5", grantOutput: `"granted"`, holderOnly: true, canExtend: true},
		{name: "redlock-5", variant: "-several", grantOutput: `"granted"`, holderOnly: true, canExtend: true, keyCount: 3, extraCheck: checkLostKey},
	}, findProgram(t, "node").interpreter(t), programPath("node/locks.js"))
}

// checkForgottenScripts tests that the client sends its scripts again if the server has forgotten
// them.
func checkForgottenScripts(s *lockService, d dialect) {
	s.t.Helper()
	key := d.key("forgotten")
	s.wantGrant(s.a, d, key, longLease)
	s.run(s.a, d, "forget", key)
	s.run(s.a, d, "extend", key, kit.Millis(longerLease))
	s.run(s.a, d, "forget", key)
	s.run(s.a, d, "release", key)
}

// checkLostKey tests that a lock that has lost one of its keys can be released, but not extended.
func checkLostKey(s *lockService, d dialect) {
	s.t.Helper()
	checkOverlappingKeys(s, d)
	key := d.key("part")
	for lostKey := range strings.SplitSeq(key, ",") {
		s.wantGrant(s.a, d, key, longLease)
		s.note("DEL %s: %v", lostKey, kit.Do(s.t, s.reader, "DEL", lostKey))
		s.run(s.a, d, "extend", key, kit.Millis(longerLease))
		s.run(s.b, d, "release", key)
		s.run(s.a, d, "release", key)
		s.note("after it: %v", s.values(d, key))
	}
}
