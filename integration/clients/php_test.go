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
	tryLocks(t, []dialect{
		{name: "by-hand", taken: "true", owned: true, extends: true},
		{name: "by-hand-predis", taken: "true", owned: true, extends: true},
		{name: "redlock-php", taken: "true", owned: true},
		{name: "laravel", taken: "true", owned: true, coarse: true, more: laravel},
		{name: "laravel-predis", taken: "true", owned: true, coarse: true, more: laravel},
		{name: "laravel-13", taken: "true", owned: true, extends: true, coarse: true, more: persists},
		{name: "laravel-6", taken: "true", owned: true, coarse: true, more: endless},
		{name: "symfony-4", taken: "'granted'", owned: true, extends: true, more: reentrant},
		{name: "symfony", taken: "true", owned: true},
		{name: "session", stored: sessionLock, only: sessions},
	}, phpLocks(t)...)
}

// phpLocks returns the command of the PHP program, with Debian's libraries.
func phpLocks(t *testing.T) []string {
	t.Helper()
	program := clientNamed(t, "php")
	program.probe = []string{"-r",
		`foreach (["Illuminate/Cache", "Illuminate/Redis", "Predis", "Symfony/Component/Lock"] as $package) {
		require "$package/autoload.php";
	}
	exit(extension_loaded("redis") ? 0 : 1);`}
	program.install = "apt-get install php-cli php-redis php-predis php-illuminate-cache php-illuminate-redis php-symfony-lock"
	return []string{program.interpreter(t), inFolder("php/locks.php")}
}

// sessionLock returns the key of phpredis for the lock of a session.
func sessionLock(key string) []string {
	return []string{"PHPREDIS_SESSION:" + strings.ReplaceAll(key, ":", "-") + "_LOCK"}
}

// sessions tests that a client that opens a session waits until the other client has closed it.
// Without its lock, a session cannot be written.
func sessions(s *side, d dialect) {
	s.t.Helper()
	s.session(d, d.key("life"), longLease)
	kit.Must(s.t, s.killMinority())
	s.session(d, d.key("killed"), longLease)
	kit.Must(s.t, s.restartMinority())
	s.session(d, d.key("back"), longLease)
	key := d.key("expiry")
	s.say(s.a, d, "open", key, kit.Millis(coarseLease))
	s.say(s.b, d, "open", key, kit.Millis(longLease)) // waits until the other client's lock expires
	s.say(s.a, d, "close", key)
	s.say(s.b, d, "close", key)
}

func (s *side) session(d dialect, key string, ttl time.Duration) {
	s.t.Helper()
	s.say(s.a, d, "open", key, kit.Millis(ttl))
	s.wantOnMasters(d, key)
	s.say(s.b, d, "try", key, kit.Millis(ttl))
	s.say(s.b, d, "close", key)
	kit.Must(s.t, s.b.send(d.name, "open", key, kit.Millis(ttl)))
	s.say(s.a, d, "close", key)
	reply, err := s.b.answer()
	kit.Must(s.t, err)
	s.note("b: open %s: %s", key, reply)
	s.say(s.b, d, "close", key)
	s.note("after all: %v", s.values(d, key))
}

// laravel tests repeated requests, a second process with the owner's name, forced release, waiting.
func laravel(s *side, d dialect) {
	s.t.Helper()
	key := d.key("more")
	s.take(s.a, d, key, longLease)
	s.say(s.a, d, "again", key)
	s.say(s.b, d, "release-as", key, "nobody")
	s.say(s.b, d, "wait", key, kit.Millis(longLease), "0")
	s.handsOver(d, key)
	s.say(s.a, d, "take-as", key, kit.Millis(longLease), "owner-of-a")
	s.say(s.b, d, "take-as", key, kit.Millis(longLease), "owner-of-a")
	s.say(s.b, d, "release-as", key, "owner-of-a")
	s.take(s.a, d, key, longLease)
	s.say(s.b, d, "force-release", key)
	s.say(s.a, d, "release", key)
	endless(s, d)
}

// persists tests that a refresh with a lease of 0 removes the TTL.
func persists(s *side, d dialect) {
	s.t.Helper()
	key := d.key("persists")
	s.take(s.a, d, key, longLease)
	s.undisturbed(d, key, func() { s.say(s.b, d, "extend", key, "0") })
	s.say(s.a, d, "extend", key, "0")
	s.endless(key)
	s.refuse(s.b, d, key)
	s.say(s.a, d, "release", key)
	endless(s, d)
}

// reentrant tests that the holder of a lock can take it again, which extends it.
func reentrant(s *side, d dialect) {
	s.t.Helper()
	key := d.key("more")
	s.take(s.a, d, key, longLease)
	s.say(s.a, d, "take", key, kit.Millis(longerLease))
	s.remaining(d, key, longLease, longerLease)
	s.say(s.a, d, "exists", key)
	s.say(s.b, d, "exists", key)
	s.say(s.a, d, "release", key)
	s.say(s.a, d, "exists", key)
}
