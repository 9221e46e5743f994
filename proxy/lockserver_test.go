package proxy_test

import (
	"strings"
	"testing"
	"time"

	"redlock-proxy/commands"
	"redlock-proxy/proxy"
)

// newLockServer returns a proxy without an upstream whose lock keys are lock:*.
func newLockServer(t *testing.T) *testProxy {
	t.Helper()
	r := &testProxy{T: t, locks: newMemoryLocks(), serveDone: make(chan struct{})}
	r.server = proxy.NewServer(proxy.Options{Table: commands.NewTable(commands.Options{
		Locks: memoryLocker{r.locks}, Register: r.locks, AllKeys: r.locks, LockKeys: []string{"lock:*"},
		Settings: commands.Settings{MaxTTL: time.Hour},
	})})
	r.server.SetNow(frozenClock())
	return r
}

// lockServer starts the proxy that newLockServer returns.
func lockServer(t *testing.T) *testProxy {
	t.Helper()
	r := newLockServer(t)
	r.serve(listen(t))
	return r
}

// TestLockServerAnswersCommandsOnLockKeys checks that, without an upstream, commands on lock keys
// work, and commands on other keys are refused.
func TestLockServerAnswersCommandsOnLockKeys(t *testing.T) {
	noUpstream := func(key string) string {
		return "-ERR no upstream: key '" + key +
			"' is not a lock key; set --upstream, or cover the key by --lock-keys\r\n"
	}
	unknown := "-ERR unknown command 'FOO', with args beginning with: 'lock:a' \r\n"
	script := []exchange{
		{"SET lock:a me NX PX 1000", ok}, {"GET lock:a", bulk("me")}, {"SET a 1", noUpstream("a")},
		{"MGET b lock:a",
			"-ERR 'mget' mixes lock keys and other keys: 'lock:a' is on the lock masters, 'b' on the upstream; send two commands\r\n"},
		{"MGET b a", noUpstream("b")}, {"GET", "-ERR wrong number of arguments for 'get' command\r\n"},
		{"FOO lock:a", unknown}, {"KEYS *", "*1\r\n" + bulk("lock:a")},
		{"RANDOMKEY", "-ERR unknown command 'RANDOMKEY', with args beginning with: (no upstream; set --upstream)\r\n"},
		{"EVAL return 0",
			"-ERR no upstream: 'eval' names no lock key; set --upstream, or cover its key by --lock-keys\r\n"},
		{"XADD lock:a * f x",
			"-ERR 'xadd' cannot run on lock key 'lock:a': lock keys support only string, hash, list, set and sorted-set commands; use another key\r\n"},
		{"WATCH a", noUpstream("a")},
		{"WATCH lock:a a",
			"-ERR 'watch' mixes lock keys and other keys: 'lock:a' is on the lock masters, 'a' on the upstream; send two commands\r\n"},
		{"WATCH", "-ERR wrong number of arguments for 'watch' command\r\n"}, {"EXEC", "-ERR EXEC without MULTI\r\n"},
		{"DISCARD", "-ERR DISCARD without MULTI\r\n"},
		{"WATCH lock:a", ok}, {"MULTI", ok}, {"MULTI", nestedMulti}, {"DEL lock:a", queued}, {"EXEC", "*1\r\n:1\r\n"},
		{"UNWATCH", ok},
		{"MULTI", ok}, {"SET lock:a x", queued}, {"FOO lock:a", unknown}, {"EXEC", execAbort},
		{"MULTI", ok}, {"SET lock:a x", queued}, {"SET a 1", otherSetError}, {"EXEC", execAbort},
		{"MULTI", ok}, {"SET lock:a x", queued}, {"PING", queued},
		{"DBSIZE", "-ERR 'DBSIZE' cannot be part of a transaction on lock keys: it is not a command on lock keys; send it before MULTI or after EXEC\r\n"},
		{"DISCARD", ok},
		{"MULTI", ok}, {"LOCK lock:a x PX 10", notInMulti("LOCK")}, {"EXEC", execAbort},
		{"MULTI", ok}, {"SET lock:a x", queued}, {"RESET", "+RESET\r\n"}, {"EXEC", "-ERR EXEC without MULTI\r\n"},
		{"GET lock:a", "$-1\r\n"},
		{"SELECT 3", ok}, {"SET lock:a three", ok}, {"SELECT 0", ok}, {"EXISTS lock:a", ":0\r\n"},
		{"CLIENT REPLY OFF", ""}, {"SET lock:a x", ""}, {"MULTI", ""}, {"APPEND lock:a y", ""}, {"EXEC", ""},
		{"CLIENT REPLY ON", ok}, {"GET lock:a", bulk("xy")},
		{"MULTI", ok}, {"SET lock:a z", queued}, {"QUIT", ok},
	}
	r := lockServer(t)
	r.connect().runExchanges(script)
	r = lockServer(t)
	p := r.connect()
	for _, e := range script {
		p.runExchanges([]exchange{e})
	}
	p = r.connect()
	mega := strings.Repeat("v", 1<<20)
	tooLong := "-ERR command too long: commands that the proxy itself runs are limited to 1048576 bytes\r\n"
	p.send(array("SET", "lock:a", mega) + cmd("MULTI") + array("SET", "lock:a", mega) +
		array(strings.Repeat("x", 100)) + lines("EXEC", "GET lock:a"))
	p.expect(tooLong + ok + tooLong + "-ERR unknown command '" + strings.Repeat("x", 100) +
		"', with args beginning with: \r\n" + execAbort + bulk("xy"))
}
