package proxy_test

import (
	"crypto/sha1"
	"fmt"
	"strings"
	"testing"
	"time"

	"redlock-proxy/commands"
	"redlock-proxy/internal/redistest"
	"redlock-proxy/proxy"
)

// expectOnMasters fails unless a lock key is held on the masters, and the upstream has no key of
// this name.
func (r *testProxy) expectOnMasters(server *redistest.Server, key string) {
	r.Helper()
	if r.locks.holder(0, key) == "" {
		r.Errorf("%s is not on the masters", key)
	}
	expectNoKeys(r.T, server, key)
}

// TestScriptsThatNameALockKeyAndOtherKeys checks that a script that gets other keys, and also names
// a lock key, runs on the masters. The name may be in the script, in its arguments, or composed of
// both.
func TestScriptsThatNameALockKeyAndOtherKeys(t *testing.T) {
	r, server := startWithLockKeys(t)
	p := r.connect()
	for i, body := range []string{
		"return redis.call('set','lock:%d','1','NX','PX',30000)",
		"return redis.call('set',ARGV[1],'1','NX','PX',30000)",
		"return redis.call('set','lock:'..ARGV[2],'1','NX','PX',30000)",
		"return redis.call('set','lo'..'ck:'..ARGV[2],'1','NX','PX',30000)",
		"return redis.call('set',ARGV[3]..'ck:'..ARGV[2],'1','NX','PX',30000)",
		"return redis.call('set',KEYS[2]..':'..ARGV[2],'1','NX','PX',30000)",
		"local name = 'lock:'..ARGV[2] return redis.call('set',name,'1','NX','PX',30000)",
		"local set = redis.call local name = ARGV[1] return set('SET',name,'1','NX','PX',30000)",
		"local redis = redis return redis.pcall('set',ARGV[1],'1','NX','PX',30000)",
		"local function take(name) return redis.call('set',name,'1','NX','PX',30000) end return take(ARGV[1])",
		"local words = {'set',ARGV[1],'1','NX','PX',30000} return redis.call(unpack(words))",
		"return redis[ARGV[4]]('set',ARGV[1],'1','NX','PX',30000)",
		"local ok = pcall(redis.call,'set',ARGV[1],'1','NX','PX',30000) return redis.status_reply('OK')",
		"for i, name in ipairs(ARGV) do if i == 1 then return redis.call('set',name,'1','NX','PX',30000) end end",
		"return redis.call('SET\\0x' and 'set',ARGV[1],'1','NX','PX',30000)",
	} {
		if strings.Contains(body, "%d") {
			body = fmt.Sprintf(body, i)
		}
		p.send(array("EVAL", body, "2", "foo", "lock", fmt.Sprintf("lock:%d", i), fmt.Sprint(i), "lo", "call"))
		if got := p.readReply(); got != ok {
			t.Errorf("%s: %q", body, got)
		}
		r.expectOnMasters(server, fmt.Sprintf("lock:%d", i))
	}
}

// TestScriptsWithLockKeysAsDataRunOnTheUpstream checks that scripts that use lock keys only as data
// run on the upstream.
func TestScriptsWithLockKeysAsDataRunOnTheUpstream(t *testing.T) {
	r, server := startWithLockKeys(t)
	p := r.connect()
	for i, body := range []string{
		"return redis.call('rpush',KEYS[1],ARGV[1])",
		"redis.call('publish','lock:c',ARGV[1]) return redis.call('rpush',KEYS[1],ARGV[1])",
		"local call = redis.call if ARGV[1] == 'lock:x' then return call('RPUSH',KEYS[1]..':'..ARGV[2],ARGV[1]) end",
		"local n = 0 for i, v in ipairs(ARGV) do n = redis.call('rpush',KEYS[1],v) end return n - 1",
		"return redis.call('rpush',KEYS[1],unpack(ARGV)) - 1",
		"local t = redis.call('time') local k = KEYS[#KEYS] return redis.call('rpush',k,'lock:x')",
		"return #redis.call('sort',KEYS[1]) + 1",
	} {
		list := fmt.Sprintf("list%d", i)
		p.send(array("EVAL", body, "1", list, "lock:x", "y"))
		p.expect(":1\r\n")
		if i == 6 {
			continue
		}
		if i == 2 {
			list += ":y"
		}
		dial(t, server.Addr()).check("LINDEX "+list+" 0", bulk("lock:x"))
	}
}

// TestUnknownScriptIsNotForwarded checks that the proxy does not forward the hash of a script that
// was loaded only at the upstream. Such a script may do anything.
func TestUnknownScriptIsNotForwarded(t *testing.T) {
	r, server := startWithLockKeys(t)
	const body = "return redis.call('set','lock:'..'sha','1','NX','PX',30000)"
	sha := dial(t, server.Addr()).load(body)
	p := r.connect()
	for _, line := range []string{"EVALSHA " + sha + " 0", "EVALSHA " + sha + " 1 foo",
		"evalsha_ro " + strings.ToUpper(sha) + " 1 foo"} {
		p.check(line, noScript)
	}
	p.send(array("EVALSHA", sha, "1", "foo", strings.Repeat("v", 2<<20)) + cmd("PING"))
	p.expect(noScript + "+PONG\r\n")
	p.runExchanges([]exchange{{"MULTI", ok}, {"SET a 1", queued}, {"EVALSHA " + sha + " 1 foo", queued},
		{"EXEC", "*2\r\n+OK\r\n" + noScript}})
	p.runExchanges([]exchange{{"SUBSCRIBE c", "*3\r\n" + bulk("subscribe") + bulk("c") + ":1\r\n"},
		{"EVALSHA " + sha + " 1 foo",
			"-ERR Can't execute 'evalsha': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context\r\n"}, {"RESET", "+RESET\r\n"}})
	expectNoKeys(t, server, "lock:sha")
	p.send(array("EVAL", body, "1", "foo"))
	p.expect(ok)
	r.expectOnMasters(server, "lock:sha")
	p.check("EVALSHA "+sha+" 1 foo", "$-1\r\n")
}

// TestScriptThatIsLoadedInATransaction checks that the proxy knows a script after it was loaded
// within a transaction. A SCRIPT LOAD with replies off does not disturb later replies.
func TestScriptThatIsLoadedInATransaction(t *testing.T) {
	r, server := startWithLockKeys(t)
	p := r.connect()
	const body = "return redis.call('set',KEYS[1],'v')"
	sha := dial(t, startRedis(t).Addr()).load(body)
	p.send(cmd("MULTI") + array("SCRIPT", "LOAD", body) + cmd("EVALSHA "+sha+" 1 a") + cmd("EXEC"))
	p.expect(ok + queued + queued + "*2\r\n" + bulk(sha) + ok)
	dial(t, server.Addr()).check("GET a", bulk("v"))
	p.send(cmd("CLIENT REPLY OFF") + array("SCRIPT", "LOAD", body+" ") + cmd("CLIENT REPLY ON"))
	p.expect(ok)
	p.send(array("EVAL", "return 1", "0"))
	p.expect(":1\r\n")
}

// TestScriptThatWasEvicted loads other scripts until the proxy's cache evicts a script. It checks
// that clients that send the hash of this script get NOSCRIPT.
func TestScriptThatWasEvicted(t *testing.T) {
	const otherScripts = 100
	r, server := startWithLockKeys(t)
	r.server.Table().Apply(commands.Settings{MaxTTL: time.Hour, ScriptMemory: 20_000})
	p := r.connect()
	const body = "return redis.call('set','lock:'..ARGV[1],'1','NX','PX',30000)"
	sha := p.load(body)
	for i := range otherScripts {
		p.send(array("EVAL", fmt.Sprintf("return %d", i), "1", "foo"))
	}
	for i := range otherScripts {
		p.expect(fmt.Sprintf(":%d\r\n", i))
	}
	p.check("EVALSHA "+sha+" 1 foo out", noScript)
	expectNoKeys(t, server, "lock:out")
}

const lockingLibrary = `#!lua name=%s
local function take(keys, args) return redis.call('set', 'lock:'..args[1], 'me', 'NX', 'PX', 30000) end
redis.register_function('%s', take)
`

const harmlessLibrary = `#!lua name=%s
local function push(keys, args)
  local n = 0
  for _, v in ipairs(args) do n = redis.call('RPUSH', keys[1], v) end
  return n
end
redis.register_function{function_name='%s', callback=push}
`

// TestFunctionsThatNameALockKey checks that a function is not called if its library names a lock
// key. This holds whether the library was loaded through the proxy or not. Other functions are
// called.
func TestFunctionsThatNameALockKey(t *testing.T) {
	r, server := startWithLockKeys(t)
	direct, p := dial(t, server.Addr()), r.connect()
	for _, loader := range []*peer{direct, p} {
		name := map[bool]string{true: "direct", false: "relayed"}[loader == direct]
		loader.send(array("FUNCTION", "LOAD", fmt.Sprintf(lockingLibrary, name, name)))
		loader.expect(bulk(name))
	}
	direct.send(array("FUNCTION", "LOAD", fmt.Sprintf(harmlessLibrary, "good", "push")))
	direct.expect(bulk("good"))
	for _, line := range []string{"FCALL direct 0 x", "fcall relayed 0 x", "FCALL DIRECT 1 foo x",
		"FCALL_RO direct 0 x"} {
		if got := p.ask(line); !strings.Contains(got, "cannot use lock keys") {
			t.Errorf("%s: %q", line, got)
		}
	}
	p.runExchanges([]exchange{
		{"MULTI", ok}, {"SET a 1", queued}, {"FCALL direct 0 x", lateFcallError}, {"EXEC", execAbort},
		{"FCALL push 1 list lock:x", ":1\r\n"}, {"FCALL push 1 list lock:x", ":2\r\n"},
		{"MULTI", ok}, {"FCALL push 1 list v", queued}, {"EXEC", "*1\r\n:3\r\n"},
		{"FCALL nosuch 0", "-ERR Function not found\r\n"},
	})
	p.send(array("FCALL", "push", "1", "list", strings.Repeat("v", 2<<20)))
	p.expect(":4\r\n")
	expectNoKeys(t, server, "lock:x")
}

// TestUnknownCodeOfASilentClient checks that functions that name a lock key, and scripts that only
// the upstream knows, do not run for a client without replies. The client may be in a transaction,
// or subscribed with an unknown protocol.
func TestUnknownCodeOfASilentClient(t *testing.T) {
	r, server := startWithLockKeys(t)
	direct := dial(t, server.Addr())
	direct.send(array("FUNCTION", "LOAD", fmt.Sprintf(lockingLibrary, "direct", "direct")))
	direct.expect(bulk("direct"))
	const source = "return redis.call('set', 'lock:x', 'x')"
	sha := fmt.Sprintf("%x", sha1.Sum([]byte(source)))
	direct.send(array("SCRIPT", "LOAD", source))
	direct.expect(bulk(sha))
	for _, line := range []string{"FCALL direct 0 x", "EVALSHA " + sha + " 0"} {
		p := r.connect()
		p.send(lines("CLIENT REPLY SKIP", "MULTI", line, "EXEC"))
		p.expectAll("")
		p = r.connect()
		p.send(lines("CLIENT REPLY OFF", "MULTI", "SET a 1", line, "EXEC", "CLIENT REPLY ON"))
		p.expectAll("")
		p = r.connect()
		p.send(lines("CLIENT REPLY SKIP", "HELLO 3", "SUBSCRIBE c"))
		p.expect(">3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n")
		if got := p.ask(line); !strings.Contains(got, "cannot use lock keys") && !strings.HasPrefix(got, "-NOSCRIPT") {
			t.Errorf("%s: %q", line, got)
		}
	}
	expectNoKeys(t, server, "lock:x", "a")
}

const lateFcallError = "-ERR 'fcall' on a lock key cannot be part of a transaction on other keys: lock keys are on the lock masters; send two transactions\r\n"

// TestFunctionsThatCannotBeRead checks that the proxy calls no functions if it cannot read the
// upstream's functions.
func TestFunctionsThatCannotBeRead(t *testing.T) {
	r, server := startWithLockKeys(t)
	direct := dial(t, server.Addr())
	direct.send(array("FUNCTION", "LOAD", fmt.Sprintf(lockingLibrary, "l", "take")))
	direct.expect(bulk("l"))
	direct.check("ACL SETUSER default -function", ok)
	if got := r.connect().ask("FCALL take 0 x"); !strings.HasPrefix(got,
		"-ERR cannot check whether 'fcall' of 'take' uses lock keys") || !strings.Contains(got, "NOPERM") {
		t.Errorf("%q", got)
	}
	expectNoKeys(t, server, "lock:x")
}

// TestZeroBytesHideNoLockKey checks that the proxy, like Redis, compares names and options up to a
// zero byte.
func TestZeroBytesHideNoLockKey(t *testing.T) {
	r, server := startWithLockKeys(t)
	p := r.connect()
	for i := range 2000 { // Redis treats about one of 250 such names as SET
		p.send(array(fmt.Sprintf("SET\x00%d", i), "lock:a", "1"))
	}
	for i := range 2000 {
		if got := p.readReply(); !strings.HasPrefix(got, "-ERR unknown command 'SET'") {
			t.Fatalf("SET\\0%d: %q", i, got)
		}
	}
	p.send(cmd("RPUSH l 1") + array("MULTI\x00"+strings.Repeat("x", 100)) + array("SORT", "l", "STORE\x00", "lock:b") +
		array("GEORADIUS", "g", "0", "0", "1", "m", "STORE\x00x", "lock:c") +
		array("XREADGROUP", "GROUP", "g", "c", "STREAMS\x00", "lock:d", ">"))
	p.expect(":1\r\n-ERR unknown command 'MULTI', with args beginning with: \r\n")
	for _, key := range []string{"lock:b", "lock:c", "lock:d"} {
		if got := p.readReply(); !strings.HasPrefix(got, "-ERR ") || !strings.Contains(got, "'"+key+"'") {
			t.Errorf("%q", got)
		}
	}
	expectNoKeys(t, server, "lock:a", "lock:b", "lock:c")
}

// TestUnknownCommandsAndLockKeys checks that a command that the proxy does not know is refused on
// lock keys.
func TestUnknownCommandsAndLockKeys(t *testing.T) {
	r, server := startWithLockKeys(t, "--rename-command", "SET", "PUT")
	p := r.connect()
	p.runExchanges([]exchange{{"PUT a 1", ok}, {"put lock:a 1",
		"-ERR 'put' cannot run on lock key 'lock:a': lock keys support only string, hash, list, set and sorted-set commands; use another key\r\n"}})
	p.send(array("PUT", strings.Repeat("x", 2<<20), "lock:a"))
	if got := p.readAll(); !strings.Contains(got, "it names lock key 'lock:a'") {
		t.Errorf("%.100q", got)
	}
	expectNoKeys(t, server, "lock:a")
}

// TestLongKeys checks that a key that is too long to buffer, and may match a glob, is refused.
func TestLongKeys(t *testing.T) {
	r, server := startWithLockKeys(t)
	long := strings.Repeat("x", 1<<20)
	p := r.connect()
	p.send(array("SET", "lock:"+long, "v") + array("SET", long+long, "v") + cmd("PING"))
	p.expect(tooLongRefusal + ok + "+PONG\r\n")
	for _, words := range [][]string{{"MSET", "a", "1", "lock:" + long, "v"}, {"DEL", long, "lock:" + long},
		{"SETNX", "lock:" + long, "v"}} {
		q := r.connect()
		q.send(array(words...) + cmd("QUIT"))
		if got := q.readAll(); !strings.HasPrefix(got, "-ERR") {
			t.Errorf("%s: %q", words[0], got)
		}
	}
	dial(t, server.Addr()).check("DBSIZE", ":1\r\n")
	script := "return redis.call('set', ARGV[1], 'v')"
	p.send(array("EVAL", script, "1", "foo", "lock:"+long) + cmd("PING"))
	if got := p.readAll(); !strings.HasPrefix(got, "-ERR") {
		t.Errorf("an argument: %q", got)
	}
	dial(t, server.Addr()).check("DBSIZE", ":1\r\n")
}

// TestLongCommandNames checks that a command whose name is too long to buffer is refused as unknown,
// also if its user has few permissions.
func TestLongCommandNames(t *testing.T) {
	r, server := startWithLockKeys(t)
	withUsers, _, _, _ := startWithUsers(t, testUsers)
	p, restricted := r.connect(), withUsers.connect()
	restricted.check("AUTH app wonder", ok)
	long := strings.Repeat("a", 2_000_000)
	direct := dial(t, server.Addr())
	direct.send(array(long))
	unknown := direct.readReply()
	for _, q := range []*peer{p, restricted} {
		q.send(array(long) + array("SET\x00"+long, "lock:a", "1") + cmd("PING"))
		q.expect(unknown + "-ERR unknown command 'SET', with args beginning with: \r\n+PONG\r\n")
		q.send(cmd("MULTI") + array(long) + cmd("EXEC") + cmd("PING"))
		q.expect(ok + unknown + execAbort + "+PONG\r\n")
	}
	expectNoKeys(t, server, "lock:a")
}

const tooLongRefusal = "-ERR command too long: commands that the proxy itself runs are limited to 1048576 bytes\r\n"

// TestLongKeysThatEndAsLockKeys checks that a key that is too long to buffer is refused if only its
// end decides whether it matches.
func TestLongKeysThatEndAsLockKeys(t *testing.T) {
	server := startRedis(t)
	r := startProxyWith(t, server.URL(), proxy.Options{}, []string{"*:lock"})
	long := strings.Repeat("x", 1<<20) + ":lock"
	p := r.connect()
	p.send(array("SET", long, "v") + cmd("PING"))
	p.expect(tooLongRefusal + "+PONG\r\n")
	p.send(array("MSET", "a", "1", long, "v"))
	if got := p.readAll(); !strings.HasPrefix(got, "-ERR") {
		t.Errorf("%.100q", got)
	}
	dial(t, server.Addr()).check("DBSIZE", ":0\r\n")
}

// TestScriptThatCannotBeRead checks that a script that the proxy cannot parse runs nowhere.
func TestScriptThatCannotBeRead(t *testing.T) {
	r, server := startWithLockKeys(t)
	p := r.connect()
	// This script is too long for the proxy's parser, but not for Redis.
	longer := "return redis.call('set','lock:a',1" + strings.Repeat("+1", 3000) + ")"
	for _, body := range []string{longer, "return redis.call('set','lock:a'",
		"#!lua flags=some-new-flag\nreturn redis.call('set','lock:a','1')"} {
		p.send(array("EVAL", body, "1", "foo"))
		if got := p.readReply(); !strings.HasPrefix(got, "-ERR ") {
			t.Errorf("%q", got)
		}
	}
	expectNoKeys(t, server, "lock:a")
}
