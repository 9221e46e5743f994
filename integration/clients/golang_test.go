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
	compareLocks(t, []dialect{
		{name: "redsync", grantOutput: "granted", holderOnly: true, canExtend: true, fixedLease: true, wholeSeconds: true, extraCheck: checkRedsync},
		{name: "redsync-retake", grantOutput: "granted", holderOnly: true, canExtend: true, fixedLease: true, wholeSeconds: true},
		{name: "redislock", grantOutput: "granted", holderOnly: true, canExtend: true, extraCheck: checkRedislock},
		{name: "redislock", variant: "three-keys", grantOutput: "granted", holderOnly: true, canExtend: true, keyCount: 3,
			extraCheck: checkOverlappingKeys},
		{name: "go-zero", grantOutput: "OK", holderOnly: true, canExtend: true},
		{name: "stackexchange", grantOutput: "true", holderOnly: true, canExtend: true, extraCheck: checkStackExchange},
		{name: "redlock.net", grantOutput: "OK", holderOnly: true, canExtend: true},
		{name: "elixir-redlock", grantOutput: "OK", holderOnly: true, canExtend: true, extraCheck: checkExtensionTTL},
		{name: "redlock-rs", grantOutput: "OK", holderOnly: true},
		{name: "rslock", grantOutput: "OK", holderOnly: true, canExtend: true},
		{name: "rueidislock", grantOutput: "[OK true]", holderOnly: true, canExtend: true},
	}, buildProgram(t, "golang/locks"))
}

// checkRedsync tests waiting, and the library's check of a lock's validity.
func checkRedsync(s *lockService, d dialect) {
	s.t.Helper()
	key := d.key("more")
	s.wantGrant(s.a, d, key, longLease)
	s.run(s.a, d, "valid", key)
	s.run(s.b, d, "wait", key, kit.Millis(coarseLease)) // client b gives up after all its attempts
	s.run(s.b, d, "valid", key)
	s.handOver(d, key)
	s.run(s.b, d, "valid", key)
}

// checkRedislock tests the remaining time, metadata, and taking a lock again with the same token.
func checkRedislock(s *lockService, d dialect) {
	s.t.Helper()
	key := d.key("more")
	s.run(s.a, d, "left", key, "0")
	s.run(s.a, d, "take-as", key, kit.Millis(longLease), "token", "beside-the-token")
	s.note("value: %v", s.values(d, key))
	s.run(s.a, d, "metadata", key)
	s.run(s.a, d, "left", key, "1000")
	s.wantUnchanged(d, key, func() { s.run(s.b, d, "take-as", key, kit.Millis(longLease), "another", "of-b") })
	s.run(s.b, d, "take-as", key, kit.Millis(longerLease), "token", "of-b")
	s.note("value: %v", s.values(d, key))
	s.wantRemaining(d, key, longLease, longerLease)
	s.run(s.a, d, "release", key)
	s.run(s.b, d, "release", key)
	s.run(s.b, d, "left", key, "0")
}

// checkOverlappingKeys tests that a request for several keys is refused while another client holds
// one of them. A refused request takes none of the keys.
func checkOverlappingKeys(s *lockService, d dialect) {
	s.t.Helper()
	one, two, three := d.keyName("one"), d.keyName("two"), d.keyName("three")
	s.wantGrant(s.a, d, one+","+two, longLease)
	for _, keys := range []string{two + "," + three, three + "," + two, two} {
		s.wantRefusal(s.b, d, keys)
		s.note("value: %v", s.values(d, three))
	}
	s.wantGrant(s.b, d, three, longLease)
	s.run(s.a, d, "release", one+","+two)
	s.wantGrant(s.b, d, one+","+two, longLease)
	for _, keys := range []string{one + "," + two, three} {
		s.run(s.b, d, "release", keys)
	}
	s.note("after all: %v", s.values(d, one+","+two+","+three))
}

// checkStackExchange tests locks of many threads over one connection.
func checkStackExchange(s *lockService, d dialect) {
	s.t.Helper()
	key := d.key("threads")
	s.wantGrant(s.a, d, key, longLease)
	s.run(s.b, d, "query", key)
	s.run(s.a, d, "release", key)
	s.run(s.b, d, "query", key)
	s.run(s.a, d, "threads", key, "8")
	checkLockWithoutTTL(s, d)
}

// checkExtensionTTL tests that an extension never shortens a lock.
func checkExtensionTTL(s *lockService, d dialect) {
	s.t.Helper()
	key := d.key("more")
	s.wantGrant(s.a, d, key, longerLease)
	s.run(s.a, d, "extend", key, kit.Millis(longLease))
	s.wantRemaining(d, key, longLease, longerLease)
	s.run(s.a, d, "extend", key, kit.Millis(2*longerLease))
	s.wantRemaining(d, key, longerLease, 2*longerLease)
	s.run(s.a, d, "release", key)
}
