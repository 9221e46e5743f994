//go:build integration

package clients

import (
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// TestPHPLocks tests Laravel's locks, PHP's session locks, and the commands of other PHP libraries.
func TestPHPLocks(t *testing.T) {
	redistest.SkipShort(t)
	compareLocks(t, []dialect{
		{name: "by-hand", grantOutput: "true", holderOnly: true, canExtend: true},
		{name: "by-hand-predis", grantOutput: "true", holderOnly: true, canExtend: true},
		{name: "redlock-php", grantOutput: "true", holderOnly: true},
		{name: "laravel", grantOutput: "true", holderOnly: true, wholeSeconds: true, extraCheck: checkLaravel},
		{name: "laravel-predis", grantOutput: "true", holderOnly: true, wholeSeconds: true, extraCheck: checkLaravel},
		{name: "laravel-13", grantOutput: "true", holderOnly: true, canExtend: true, wholeSeconds: true, extraCheck: checkPersist},
		{name: "laravel-6", grantOutput: "true", holderOnly: true, wholeSeconds: true, extraCheck: checkLockWithoutTTL},
		{name: "symfony-4", grantOutput: "'granted'", holderOnly: true, canExtend: true, extraCheck: checkRetake},
		{name: "symfony", grantOutput: "true", holderOnly: true},
		{name: "session", storedKeys: sessionLockKeys, soleCheck: checkSessions},
	}, phpLocks(t)...)
}

// phpLocks returns the command of the PHP program, with Debian's libraries.
func phpLocks(t *testing.T) []string {
	t.Helper()
	program := findProgram(t, "php")
	program.probe = []string{"-r",
		`foreach (["Illuminate/Cache", "Illuminate/Redis", "Predis", "Symfony/Component/Lock"] as $package) {
		require "$package/autoload.php";
	}
	exit(extension_loaded("redis") ? 0 : 1);`}
	program.installHint = "apt-get install php-cli php-redis php-predis php-illuminate-cache php-illuminate-redis php-symfony-lock"
	return []string{program.interpreter(t), programPath("php/locks.php")}
}

// sessionLockKeys returns the key of phpredis for the lock of a session.
func sessionLockKeys(key string) []string {
	return []string{"PHPREDIS_SESSION:" + strings.ReplaceAll(key, ":", "-") + "_LOCK"}
}

// checkSessions tests that a client that opens a session waits until the other client has closed
// it. Without its lock, a session cannot be written.
func checkSessions(s *lockService, d dialect) {
	s.t.Helper()
	s.checkSession(d, d.key("life"), longLease)
	kit.Must(s.t, s.killMinority())
	s.checkSession(d, d.key("killed"), longLease)
	kit.Must(s.t, s.restartMinority())
	s.checkSession(d, d.key("back"), longLease)
	key := d.key("expiry")
	s.run(s.a, d, "open", key, kit.Millis(coarseLease))
	s.run(s.b, d, "open", key, kit.Millis(longLease)) // waits until the other client's lock expires
	s.run(s.a, d, "close", key)
	s.run(s.b, d, "close", key)
}

func (s *lockService) checkSession(d dialect, key string, ttl time.Duration) {
	s.t.Helper()
	s.run(s.a, d, "open", key, kit.Millis(ttl))
	s.wantOnMasters(d, key)
	s.run(s.b, d, "try", key, kit.Millis(ttl))
	s.run(s.b, d, "close", key)
	kit.Must(s.t, s.b.send(d.name, "open", key, kit.Millis(ttl)))
	s.run(s.a, d, "close", key)
	reply, err := s.b.awaitReply()
	kit.Must(s.t, err)
	s.note("b: open %s: %s", key, reply)
	s.run(s.b, d, "close", key)
	s.note("after all: %v", s.values(d, key))
}

// checkLaravel tests repeated requests, a second process with the owner's name, a forced release,
// and waiting.
func checkLaravel(s *lockService, d dialect) {
	s.t.Helper()
	key := d.key("more")
	s.wantGrant(s.a, d, key, longLease)
	s.run(s.a, d, "again", key)
	s.run(s.b, d, "release-as", key, "nobody")
	s.run(s.b, d, "wait", key, kit.Millis(longLease), "0")
	s.handOver(d, key)
	s.run(s.a, d, "take-as", key, kit.Millis(longLease), "owner-of-a")
	s.run(s.b, d, "take-as", key, kit.Millis(longLease), "owner-of-a")
	s.run(s.b, d, "release-as", key, "owner-of-a")
	s.wantGrant(s.a, d, key, longLease)
	s.run(s.b, d, "force-release", key)
	s.run(s.a, d, "release", key)
	checkLockWithoutTTL(s, d)
}

// checkPersist tests that a refresh with a lease of 0 removes the TTL.
func checkPersist(s *lockService, d dialect) {
	s.t.Helper()
	key := d.key("persists")
	s.wantGrant(s.a, d, key, longLease)
	s.wantUnchanged(d, key, func() { s.run(s.b, d, "extend", key, "0") })
	s.run(s.a, d, "extend", key, "0")
	s.notePTTL(key)
	s.wantRefusal(s.b, d, key)
	s.run(s.a, d, "release", key)
	checkLockWithoutTTL(s, d)
}

// checkRetake tests that the holder of a lock can take it again, which extends it.
func checkRetake(s *lockService, d dialect) {
	s.t.Helper()
	key := d.key("more")
	s.wantGrant(s.a, d, key, longLease)
	s.run(s.a, d, "take", key, kit.Millis(longerLease))
	s.wantRemaining(d, key, longLease, longerLease)
	s.run(s.a, d, "exists", key)
	s.run(s.b, d, "exists", key)
	s.run(s.a, d, "release", key)
	s.run(s.a, d, "exists", key)
}
