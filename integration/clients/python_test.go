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
	compareLocks(t, []dialect{
		{name: "redis-py", grantOutput: "True", holderOnly: true, canExtend: true, extraCheck: checkRedisPy},
		{name: "redis-py-asyncio", grantOutput: "True", holderOnly: true, canExtend: true},
		{name: "redis-py-2-scripts", grantOutput: "True", holderOnly: true, canExtend: true, extraCheck: checkLockWithoutTTL},
		{name: "redis-py-2-transactions", grantOutput: "True", holderOnly: true, canExtend: true, extraCheck: checkInterruptedTransaction},
		{name: "python-redis-lock", grantOutput: "True", holderOnly: true, canExtend: true, wholeSeconds: true, extraCheck: checkSignals},
		{name: "by-hand", grantOutput: "True", holderOnly: true, canExtend: true},
		{name: "by-hand-told", grantOutput: "True", holderOnly: true, canExtend: true},
		{name: "by-hand-literal", grantOutput: "True", holderOnly: true, canExtend: true},
		{name: "setnx-expire", grantOutput: "True", holderOnly: true, canExtend: true, wholeSeconds: true},
		{name: "redlock-py", grantOutput: "True", holderOnly: true},
		{name: "pottery", grantOutput: "True", holderOnly: true, canExtend: true, extraCheck: checkPottery},
		{name: "aioredlock", grantOutput: "b'OK'", holderOnly: true, canExtend: true, extraCheck: checkAioredlock},
		{name: "celery-once", grantOutput: "True", extraCheck: checkCeleryOnce},
	}, findProgram(t, "python").interpreter(t), programPath("python/locks.py"))
}

// checkRedisPy tests further operations of the library, and its exceptions.
func checkRedisPy(s *lockService, d dialect) {
	s.t.Helper()
	key := d.key("more")
	s.wantGrant(s.a, d, key, longLease)
	s.run(s.a, d, "pose", d.key("nobody's"), kit.Millis(longLease))
	s.run(s.a, d, "locked", d.key("nobody's"))
	s.run(s.a, d, "release", d.key("nobody's"))
	s.run(s.a, d, "owned", key)
	s.run(s.a, d, "locked", key)
	s.run(s.a, d, "extend-by", key, kit.Millis(longLease))
	s.wantRemaining(d, key, longLease, 2*longLease)
	s.run(s.a, d, "reacquire", key)
	s.wantRemaining(d, key, 0, longLease)
	s.wantUnchanged(d, key, func() {
		for _, operation := range [][]string{{"owned"}, {"extend", "1000"}, {"extend-by", "1000"}, {"reacquire"},
			{"release"}} {
			s.run(s.b, d, "pose", key, kit.Millis(longLease))
			s.run(s.b, d, operation[0], key, operation[1:]...)
		}
		s.run(s.b, d, "wait", key, kit.Millis(longLease), "50")
		s.run(s.b, d, "with-statement", key, kit.Millis(longLease))
	})
	s.handOver(d, key)
	s.run(s.b, d, "with-statement", key, kit.Millis(longLease))
	checkLockWithoutTTL(s, d)
}

// handOver lets client B wait for a lock that client A holds, and lets A release it.
func (s *lockService) handOver(d dialect, key string) {
	s.t.Helper()
	request := []string{d.name, "wait", key, kit.Millis(longLease), kit.Millis(longLease)}
	kit.Must(s.t, s.b.send(request...))
	s.run(s.a, d, "release", key)
	reply, err := s.b.awaitReply()
	kit.Must(s.t, err)
	s.note("%s: %s: %s", s.b.name, strings.Join(request, " "), reply)
	if reply != d.grantOutput {
		s.t.Errorf("%s: client b waited for %s and got %s, want %s", d.name, key, reply, d.grantOutput)
	}
	s.run(s.b, d, "release", key)
}

// checkLockWithoutTTL tests a lock without a TTL.
func checkLockWithoutTTL(s *lockService, d dialect) {
	s.t.Helper()
	key := d.key("endless")
	s.wantGrant(s.a, d, key, 0)
	s.notePTTL(key)
	s.wantRefusal(s.b, d, key)
	s.checkNonHolder(d, key)
	if d.canExtend {
		s.run(s.a, d, "extend", key, kit.Millis(longLease))
	}
	s.run(s.a, d, "release", key)
	s.wantGrant(s.b, d, key, longLease)
	s.run(s.b, d, "release", key)
}

// checkInterruptedTransaction tests that a transaction has no effect if another client has written
// its key.
func checkInterruptedTransaction(s *lockService, d dialect) {
	s.t.Helper()
	key := d.key("interrupted")
	s.wantGrant(s.a, d, key, longLease)
	s.run(s.a, d, "interrupted", key)
	s.note("after it: %v", s.values(d, key))
	checkLockWithoutTTL(s, d)
}

// checkSignals tests that a release and a reset wake the waiter.
func checkSignals(s *lockService, d dialect) {
	s.t.Helper()
	key := d.key("signalled")
	for _, operation := range []string{"release", "reset"} {
		s.wantGrant(s.a, d, key, longLease)
		s.run(s.a, d, "take", key, kit.Millis(longLease)) // the client already holds the lock
		s.run(s.a, d, "locked", key)
		s.run(s.b, d, "locked", key)
		kit.Must(s.t, s.b.send(d.name, "wait", key, kit.Millis(longLease), kit.Millis(longLease)))
		kit.AwaitShortly(s.t, func() error { return checkBlocked(s.dataServer) })
		s.run(s.a, d, operation, key)
		releasedAt := time.Now()
		reply, err := s.b.awaitReply()
		kit.Must(s.t, err)
		s.note("after %s, client b: %s", operation, reply)
		if reply != d.grantOutput || time.Since(releasedAt) > longLease/2 {
			s.t.Errorf("after %s client b got %s after %v, want it woken and granted", operation, reply, time.Since(releasedAt))
		}
		s.run(s.b, d, "release", key)
	}
	// The last signal may or may not still be stored; both are correct.
	s.run(s.b, d, "wait", key, kit.Millis(longLease), kit.Millis(longLease))
	s.run(s.b, d, "release", key)
	checkLockWithoutTTL(s, d)
}

// checkPottery tests requests for the remaining time, and the fourth extension of a lock, which the
// library refuses.
func checkPottery(s *lockService, d dialect) {
	s.t.Helper()
	key := d.key("more")
	s.wantGrant(s.a, d, key, longLease)
	s.run(s.a, d, "locked", key, "1000")
	s.run(s.b, d, "locked", key, "0")
	for range 4 {
		s.run(s.a, d, "extend", key, kit.Millis(longLease))
	}
	s.run(s.a, d, "release", key)
	s.run(s.a, d, "locked", key, "0")
}

// checkCeleryOnce tests that a process can query the remaining time of another process' lock, and
// can release that lock.
func checkCeleryOnce(s *lockService, d dialect) {
	s.t.Helper()
	key := d.key("more")
	s.run(s.b, d, "left", key, "0")
	s.wantGrant(s.a, d, key, longLease)
	s.run(s.b, d, "left", key, "0")
	s.run(s.b, d, "release", key)
	s.wantGrant(s.b, d, key, longLease)
	s.run(s.a, d, "release", key)
}

// checkAioredlock tests that the holder can take its lock again and query the remaining time, that
// another client can do neither, and that the library works after SCRIPT FLUSH.
func checkAioredlock(s *lockService, d dialect) {
	s.t.Helper()
	key := d.key("more")
	s.wantGrant(s.a, d, key, longLease)
	s.wantGrant(s.a, d, key, longLease) // extends the lock
	s.run(s.a, d, "left", key, "10")
	s.run(s.b, d, "left", key, "10")
	s.run(s.a, d, "release", key)
	s.run(s.a, d, "left", key, "10")
	s.run(s.b, d, "release", key)
	kit.Do(s.t, s.reader, "SCRIPT", "FLUSH")
	s.wantGrant(s.a, d, key, longLease)
	s.run(s.a, d, "release", key)
}
