package proxy_test

import (
	"crypto/sha1"
	"fmt"
	"strings"
	"testing"

	"redlock-proxy/proxy"
)

// releaseScript is the usual script that releases a lock, without blanks, so that a test's line can
// contain it.
const releaseScript = "if\tredis.call('get',KEYS[1])==ARGV[1]\tthen\treturn\tredis.call('del',KEYS[1])\telse\treturn\t0\tend"

// directLockCounts returns the counts of direct locks and releases in a proxy's PROXY INFO.
func directLockCounts(p *peer) (locks, releases int) {
	p.Helper()
	p.send(cmd("PROXY INFO"))
	p.send(cmd("ECHO end"))
	for line := range strings.SplitSeq(readUpTo(p, bulk("end")), "\r\n") {
		_, _ = fmt.Sscanf(line, "redlock_uncovered_locks_total:%d", &locks)
		_, _ = fmt.Sscanf(line, "redlock_uncovered_releases_total:%d", &releases)
	}
	return locks, releases
}

// TestDirectLocksAreCounted checks that a command that looks like a lock on a key that is no
// lock key is counted, with and without lock keys. The command is forwarded as usual.
func TestDirectLocksAreCounted(t *testing.T) {
	digest := fmt.Sprintf("%x", sha1.Sum([]byte(releaseScript)))
	for _, lockKeys := range [][]string{nil, {"lock:*"}} {
		t.Run(fmt.Sprint(lockKeys), func(t *testing.T) {
			server := startRedis(t)
			r := startProxyWith(t, server.URL(), proxy.Options{}, lockKeys)
			p := r.connect()
			p.runExchanges([]exchange{
				{"SET job:1 me NX PX 30000", "+OK\r\n"},
				{"SET job:1 you NX PX 30000", "$-1\r\n"},
				{"GET job:1", bulk("me")},
				{"EVAL " + releaseScript + " 1 job:1 me", ":1\r\n"},
				{"EVALSHA " + digest + " 1 job:1 me", ":0\r\n"},
				{"SET job:1 me PX 30000 XX GET", "$-1\r\n"},
				{"SET job:1 x PX 30000", "+OK\r\n"},
			})
			p.send("SET job:2 me EX 30 NX\r\n") // an inline command
			p.expect("+OK\r\n")
			if locks, releases := directLockCounts(p); locks != 3 || releases != 2 {
				t.Errorf("counted %d locks and %d releases, want 3 and 2", locks, releases)
			}
			if lockKeys == nil {
				return
			}
			p.runExchanges([]exchange{
				{"SET lock:1 me NX PX 30000", "+OK\r\n"},
				{"EVAL " + releaseScript + " 1 lock:1 me", ":1\r\n"},
			})
			if locks, releases := directLockCounts(p); locks != 3 || releases != 2 {
				t.Errorf("with lock keys counted %d locks and %d releases, want 3 and 2 as before", locks, releases)
			}
		})
	}
}

// TestDirectReleaseBySHA checks that a loaded script is recognized by its SHA-1.
func TestDirectReleaseBySHA(t *testing.T) {
	for _, lockKeys := range [][]string{nil, {"lock:*"}} {
		server := startRedis(t)
		p := startProxyWith(t, server.URL(), proxy.Options{}, lockKeys).connect()
		digest := fmt.Sprintf("%x", sha1.Sum([]byte(releaseScript)))
		p.runExchanges([]exchange{
			{"SCRIPT LOAD " + releaseScript, bulk(digest)},
			{"EVALSHA " + digest + " 1 job:1 me", ":0\r\n"},
		})
		if _, releases := directLockCounts(p); releases != 1 {
			t.Errorf("lock keys %v: counted %d releases, want 1", lockKeys, releases)
		}
	}
}

// TestDirectReleaseBySHAInATransaction checks that a script loaded within a transaction is
// recognized, too.
func TestDirectReleaseBySHAInATransaction(t *testing.T) {
	for _, lockKeys := range [][]string{nil, {"lock:*"}} {
		server := startRedis(t)
		p := startProxyWith(t, server.URL(), proxy.Options{}, lockKeys).connect()
		digest := fmt.Sprintf("%x", sha1.Sum([]byte(releaseScript)))
		p.runExchanges([]exchange{
			{"MULTI", ok}, {"SCRIPT LOAD " + releaseScript, queued}, {"EXEC", "*1\r\n" + bulk(digest)},
			{"EVALSHA " + digest + " 1 job:1 me", ":0\r\n"},
		})
		if _, releases := directLockCounts(p); releases != 1 {
			t.Errorf("lock keys %v: counted %d releases, want 1", lockKeys, releases)
		}
	}
}

// TestDirectLocksInPieces checks that a command that arrives in pieces is forwarded as it
// arrives, and still counted, wherever it is split.
func TestDirectLocksInPieces(t *testing.T) {
	for _, lockKeys := range [][]string{nil, {"lock:*"}} {
		server := startRedis(t)
		p := startProxyWith(t, server.URL(), proxy.Options{}, lockKeys).connect()
		whole, n := cmd("SET job:1 me PX 30000 NX GET"), 0
		want := "$-1\r\n"
		for at := 1; at < len(whole); at += 3 {
			p.send(cmd("ECHO before") + whole[:at])
			p.expect(bulk("before")) // so that the rest arrives in a later read
			p.send(whole[at:])
			p.expect(want)
			want = bulk("me")
			n++
		}
		for _, word := range strings.SplitAfter(whole, "\n") {
			p.send(word)
		}
		p.expect(want)
		if locks, _ := directLockCounts(p); locks != n+1 {
			t.Errorf("lock keys %v: counted %d locks, want %d", lockKeys, locks, n+1)
		}
	}
}

// TestLargeValuesAreNoTokens checks that a large value does not count as a token, and is not kept.
func TestLargeValuesAreNoTokens(t *testing.T) {
	server := startRedis(t)
	p := startProxyWith(t, server.URL(), proxy.Options{}, nil).connect()
	p.check("SET big "+strings.Repeat("x", 3<<20)+" PX 30000 NX", "+OK\r\n")
	p.check("SET job:1 me PX 30000 NX", "+OK\r\n")
	if locks, _ := directLockCounts(p); locks != 1 {
		t.Errorf("counted %d locks, want 1", locks)
	}
}
