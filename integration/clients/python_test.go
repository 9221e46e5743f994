//go:build integration

package clients

import (
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/kit"
)

// TestPythonLocks tests redis-py's Lock, and the commands of other Python libraries.
func TestPythonLocks(t *testing.T) {
	tryLocks(t, []dialect{
		{name: "redis-py", taken: "True", owned: true, extends: true, more: redisPy},
		{name: "redis-py-asyncio", taken: "True", owned: true, extends: true},
		{name: "redis-py-2-scripts", taken: "True", owned: true, extends: true, more: endless},
		{name: "redis-py-2-transactions", taken: "True", owned: true, extends: true, more: interrupted},
		{name: "python-redis-lock", taken: "True", owned: true, extends: true, coarse: true, more: signalled},
		{name: "by-hand", taken: "True", owned: true, extends: true},
		{name: "by-hand-told", taken: "True", owned: true, extends: true},
		{name: "by-hand-literal", taken: "True", owned: true, extends: true},
		{name: "setnx-expire", taken: "True", owned: true, extends: true, coarse: true},
		{name: "redlock-py", taken: "True", owned: true},
		{name: "pottery", taken: "True", owned: true, extends: true, more: pottery},
		{name: "aioredlock", taken: "b'OK'", owned: true, extends: true, more: aioredlock},
		{name: "celery-once", taken: "True", more: celeryOnce},
	}, clientNamed(t, "python").interpreter(t), inFolder("python/locks.py"))
}

// redisPy tests further operations of the library, and its exceptions.
func redisPy(s *side, d dialect) {
	s.t.Helper()
	key := d.key("more")
	s.take(s.a, d, key, longLease)
	s.say(s.a, d, "pose", d.key("nobody's"), kit.Millis(longLease))
	s.say(s.a, d, "locked", d.key("nobody's"))
	s.say(s.a, d, "release", d.key("nobody's"))
	s.say(s.a, d, "owned", key)
	s.say(s.a, d, "locked", key)
	s.say(s.a, d, "extend-by", key, kit.Millis(longLease))
	s.remaining(d, key, longLease, 2*longLease)
	s.say(s.a, d, "reacquire", key)
	s.remaining(d, key, 0, longLease)
	s.undisturbed(d, key, func() {
		for _, operation := range [][]string{{"owned"}, {"extend", "1000"}, {"extend-by", "1000"}, {"reacquire"},
			{"release"}} {
			s.say(s.b, d, "pose", key, kit.Millis(longLease))
			s.say(s.b, d, operation[0], key, operation[1:]...)
		}
		s.say(s.b, d, "wait", key, kit.Millis(longLease), "50")
		s.say(s.b, d, "with-statement", key, kit.Millis(longLease))
	})
	s.handsOver(d, key)
	s.say(s.b, d, "with-statement", key, kit.Millis(longLease))
	endless(s, d)
}

// handsOver lets client B wait for a lock that client A holds, and lets A release it.
func (s *side) handsOver(d dialect, key string) {
	s.t.Helper()
	request := []string{d.name, "wait", key, kit.Millis(longLease), kit.Millis(longLease)}
	kit.Must(s.t, s.b.send(request...))
	s.say(s.a, d, "release", key)
	reply, err := s.b.answer()
	kit.Must(s.t, err)
	s.note("%s: %s: %s", s.b.name, strings.Join(request, " "), reply)
	if reply != d.taken {
		s.t.Errorf("%s: client b waited for %s and got %s, want %s", d.name, key, reply, d.taken)
	}
	s.say(s.b, d, "release", key)
}

// endless tests a lock without a TTL.
func endless(s *side, d dialect) {
	s.t.Helper()
	key := d.key("endless")
	s.take(s.a, d, key, 0)
	s.endless(key)
	s.refuse(s.b, d, key)
	s.strangers(d, key)
	if d.extends {
		s.say(s.a, d, "extend", key, kit.Millis(longLease))
	}
	s.say(s.a, d, "release", key)
	s.take(s.b, d, key, longLease)
	s.say(s.b, d, "release", key)
}

// interrupted tests that a transaction has no effect if another client has written its key.
func interrupted(s *side, d dialect) {
	s.t.Helper()
	key := d.key("interrupted")
	s.take(s.a, d, key, longLease)
	s.say(s.a, d, "interrupted", key)
	s.note("after it: %v", s.values(d, key))
	endless(s, d)
}

// signalled tests that a release and a reset wake the waiter.
func signalled(s *side, d dialect) {
	s.t.Helper()
	key := d.key("signalled")
	for _, way := range []string{"release", "reset"} {
		s.take(s.a, d, key, longLease)
		s.say(s.a, d, "take", key, kit.Millis(longLease)) // the client already holds the lock
		s.say(s.a, d, "locked", key)
		s.say(s.b, d, "locked", key)
		kit.Must(s.t, s.b.send(d.name, "wait", key, kit.Millis(longLease), kit.Millis(longLease)))
		kit.Settles(s.t, func() error { return blocks(s.data) })
		s.say(s.a, d, way, key)
		woken := time.Now()
		reply, err := s.b.answer()
		kit.Must(s.t, err)
		s.note("after %s, client b: %s", way, reply)
		if reply != d.taken || time.Since(woken) > longLease/2 {
			s.t.Errorf("after %s client b got %s after %v, want it woken and granted", way, reply, time.Since(woken))
		}
		s.say(s.b, d, "release", key)
	}
	// The last signal may or may not still be stored; both are correct.
	s.say(s.b, d, "wait", key, kit.Millis(longLease), kit.Millis(longLease))
	s.say(s.b, d, "release", key)
	endless(s, d)
}

// pottery tests requests for the remaining time. A lock can be extended at most three times.
func pottery(s *side, d dialect) {
	s.t.Helper()
	key := d.key("more")
	s.take(s.a, d, key, longLease)
	s.say(s.a, d, "locked", key, "1000")
	s.say(s.b, d, "locked", key, "0")
	for range 4 {
		s.say(s.a, d, "extend", key, kit.Millis(longLease))
	}
	s.say(s.a, d, "release", key)
	s.say(s.a, d, "locked", key, "0")
}

// celeryOnce tests requests for the remaining time, and releases, of another process' lock.
func celeryOnce(s *side, d dialect) {
	s.t.Helper()
	key := d.key("more")
	s.say(s.b, d, "left", key, "0")
	s.take(s.a, d, key, longLease)
	s.say(s.b, d, "left", key, "0")
	s.say(s.b, d, "release", key)
	s.take(s.b, d, key, longLease)
	s.say(s.a, d, "release", key)
}

// aioredlock tests that the library reports an error if another client holds the lock.
func aioredlock(s *side, d dialect) {
	s.t.Helper()
	key := d.key("more")
	s.take(s.a, d, key, longLease)
	s.take(s.a, d, key, longLease) // extends the lock
	s.say(s.a, d, "left", key, "10")
	s.say(s.b, d, "left", key, "10")
	s.say(s.a, d, "release", key)
	s.say(s.a, d, "left", key, "10")
	s.say(s.b, d, "release", key)
	kit.Do(s.t, s.raw, "SCRIPT", "FLUSH")
	s.take(s.a, d, key, longLease)
	s.say(s.a, d, "release", key)
}
