package commands

import (
	"context"
	"crypto/sha1"
	"errors"
	"fmt"
	"strings"
	"testing"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/internal/fakeregister"
	"redlock-proxy/quorum"

	"github.com/hashicorp/go-multierror"
)

// Scripts with the same effects as the scripts of lock libraries.
const (
	takePlain   = `return redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])`
	takeAndGet  = `local won = redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PXAT', ARGV[2]); redis.call('GET', KEYS[1]); return won`
	takeTwoStep = `if redis.call('setnx', KEYS[1], ARGV[1]) == 1 then if ARGV[2] ~= '' then redis.call('pexpire', KEYS[1], ARGV[2]) end return 1 end return 0`
	takeOrRenew = `local owner = redis.call('GET', KEYS[1])
		if owner == ARGV[1] then redis.call('PEXPIRE', KEYS[1], ARGV[2]) return true
		elseif not owner then redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2]) return true end
		return false`
	takeOrError = `local v = redis.call('get', KEYS[1]) if not v or v == ARGV[1] then return redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2]) end return redis.error_reply('ERROR')`
	takeMany    = `for _, k in ipairs(KEYS) do if redis.call('exists', k) == 1 then return 0 end end
		for _, k in ipairs(KEYS) do redis.call('set', k, ARGV[1], 'PX', ARGV[2]) end
		return #KEYS`
	takeByMSetNX = `local pairs_ = {} for i, k in ipairs(KEYS) do pairs_[2 * i - 1] = k pairs_[2 * i] = ARGV[1] end
		if redis.call('msetnx', unpack(pairs_)) == 0 then return nil end
		for _, k in ipairs(KEYS) do redis.call('pexpire', k, ARGV[2]) end
		return redis.status_reply('OK')`
	takeOrExtend = `if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2])
		elseif redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2], 'NX') then return 1 else return 0 end`
	takeByToken = `if redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[3]) then return redis.status_reply('OK') end
		if redis.call('getrange', KEYS[1], 0, tonumber(ARGV[2]) - 1) == string.sub(ARGV[1], 1, tonumber(ARGV[2])) then
			return redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[3]) end`

	releaseScript   = `if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) else return 0 end`
	releaseThreeWay = `local v = redis.call('GET', KEYS[1]) if v == ARGV[1] then return redis.call('DEL', KEYS[1]) elseif v == false then return -1 end return 0`
	releaseOrOK     = `local v = redis.call('get', KEYS[1]) if v == ARGV[1] then return redis.call('del', KEYS[1]) elseif not v then return {ok = 'OK'} else return {err = 'ERROR'} end`
	releaseAsText   = `if redis.call('get', KEYS[1]) == ARGV[1] then return tostring(redis.call('del', KEYS[1]) == 1) end return 'false'`
	releaseMany     = `local n = 0 for _, k in ipairs(KEYS) do if redis.call('get', k) == ARGV[1] then n = n + redis.call('del', k) end end return n`
	releaseSignal   = `if redis.call('get', KEYS[1]) ~= ARGV[1] then return 1 end
		redis.call('del', KEYS[2]) redis.call('lpush', KEYS[2], 1) redis.call('pexpire', KEYS[2], ARGV[2]) redis.call('del', KEYS[1]) return 0`
	releasePublish = `if redis.call('GET', KEYS[1]) == ARGV[1] then if redis.call('UNLINK', KEYS[1]) == 1 then redis.call('PUBLISH', ARGV[2], KEYS[1]) return true end end return false`
	releaseLiteral = `if redis.call('get', 'lock:job') == 'me' then return redis.call('del', 'lock:job') end return 0`

	extendScript    = `if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("pexpire", KEYS[1], ARGV[2]) else return 0 end`
	extendSeconds   = `if redis.call('get', KEYS[1]) ~= ARGV[1] then return 1 elseif redis.call('ttl', KEYS[1]) < 0 then return 2 else redis.call('expire', KEYS[1], ARGV[2]) return 0 end`
	extendTo        = `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIREAT', KEYS[1], ARGV[2]) end return 0`
	extendBySet     = `if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end if redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2]) then return 1 end return 0`
	extendLonger    = `if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2], 'GT') end return redis.error_reply('NOT LOCKED')`
	extendOrPersist = `if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end if tonumber(ARGV[2]) > 0 then return redis.call('expire', KEYS[1], ARGV[2]) end return redis.call('persist', KEYS[1])`
	extendBy        = `if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end
		local left = redis.call('pttl', KEYS[1]) if left < 0 then return 0 end
		local new = tonumber(ARGV[2]) if ARGV[3] == '0' then new = new + left end
		redis.call('pexpire', KEYS[1], new) return 1`
	extendOrRetake = `local v = redis.call('get', KEYS[1]) if v == ARGV[1] then redis.call('pexpire', KEYS[1], ARGV[2]) return 1
		elseif not v then redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2]) return 1 end return -1`
	rotateScript = `if redis.call('get', KEYS[1]) == ARGV[1] then redis.call('del', KEYS[1]) end return redis.call('set', KEYS[1], ARGV[2], 'PX', ARGV[3], 'NX')`

	remainingScript = `if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pttl', KEYS[1]) end return -3`
	valueAndTTL     = `return {redis.call('get', KEYS[1]), redis.call('pttl', KEYS[1])}`
	forceScript     = `return redis.call('del', KEYS[1])`
)

// TestLockScripts runs each kind of lock script on a key that is free, held by the client itself,
// and held by another client. The table has the reply, and the number of round trips of the first
// run and of a later run.
func TestLockScripts(t *testing.T) {
	const freeKey, ownLock, foreignLock = ".", "me:500", "x:600"
	tests := []struct {
		name, script, before, args string // the only key is k
		reply                      string
		after                      string
		first, later               int // round trips
	}{
		{"take", takePlain, freeKey, "me 900", "OK", "me:900", 1, 1},
		{"take", takePlain, foreignLock, "me 900", "(nil)", foreignLock, 1, 1},
		{"take", takePlain, ownLock, "me 900", "(nil)", ownLock, 1, 1},
		{"take and tell", takeAndGet, freeKey, "me 1700000000900", "OK", "me:900", 1, 1},
		{"take and tell", takeAndGet, foreignLock, "me 1700000000900", "(nil)", foreignLock, 1, 1},
		{"in two steps", takeTwoStep, freeKey, "me 900", "1", "me:900", 1, 1},
		{"in two steps", takeTwoStep, foreignLock, "me 900", "0", foreignLock, 1, 1},
		{"again", takeOrRenew, freeKey, "me 900", "1", "me:900", 2, 1},
		{"again", takeOrRenew, ownLock, "me 900", "1", "me:900", 1, 1},
		{"again", takeOrRenew, foreignLock, "me 900", "(nil)", foreignLock, 1, 1},
		{"or error", takeOrError, freeKey, "me 900", "OK", "me:900", 2, 1},
		{"or error", takeOrError, ownLock, "me 900", "OK", "me:900", 1, 1},
		{"or error", takeOrError, foreignLock, "me 900", "ERR ERROR", foreignLock, 1, 1},
		{"or extend", takeOrExtend, freeKey, "me 900", "1", "me:900", 2, 1},
		{"or extend", takeOrExtend, ownLock, "me 900", "1", "me:900", 1, 1},
		{"or extend", takeOrExtend, foreignLock, "me 900", "0", foreignLock, 1, 1},
		{"by token", takeByToken, freeKey, "me+data 2 900", "OK", "me+data:900", 2, 1},
		{"by token", takeByToken, ownLock, "me+data 2 900", "OK", "me+data:900", 2, 2},
		{"by token", takeByToken, foreignLock, "me+data 2 900", "(nil)", foreignLock, 1, 1},

		{"release", releaseScript, ownLock, "me", "1", ".", 1, 1},
		{"release", releaseScript, foreignLock, "me", "0", foreignLock, 1, 1},
		{"release", releaseScript, freeKey, "me", "0", ".", 1, 1},
		{"release of three ways", releaseThreeWay, ownLock, "me", "1", ".", 1, 1},
		{"release of three ways", releaseThreeWay, foreignLock, "me", "0", foreignLock, 1, 1},
		{"release of three ways", releaseThreeWay, freeKey, "me", "-1", ".", 1, 1},
		{"release or OK", releaseOrOK, ownLock, "me", "1", ".", 1, 1},
		{"release or OK", releaseOrOK, foreignLock, "me", "ERROR", foreignLock, 1, 1},
		{"release or OK", releaseOrOK, freeKey, "me", "OK", ".", 1, 1},
		{"release in words", releaseAsText, ownLock, "me", `"true"`, ".", 1, 1},
		{"release in words", releaseAsText, foreignLock, "me", `"false"`, foreignLock, 1, 1},

		{"extend", extendScript, ownLock, "me 900", "1", "me:900", 1, 1},
		{"extend", extendScript, foreignLock, "me 900", "0", foreignLock, 1, 1},
		{"extend", extendScript, freeKey, "me 900", "0", ".", 1, 1},
		{"extend to", extendTo, ownLock, "me 1700000000900", "1", "me:900", 1, 1},
		{"extend by SET", extendBySet, ownLock, "me 900", "1", "me:900", 1, 1},
		{"extend by SET", extendBySet, foreignLock, "me 900", "0", foreignLock, 1, 1},
		{"extend in seconds", extendSeconds, ownLock, "me 9", "0", "me:9000", 2, 2},
		{"extend in seconds", extendSeconds, foreignLock, "me 9", "1", foreignLock, 1, 1},
		{"extend in seconds", extendSeconds, "me:-1", "me 9", "2", "me", 1, 1},
		{"extend to longer", extendLonger, ownLock, "me 900", "1", "me:900", 2, 2},
		{"extend to longer", extendLonger, ownLock, "me 400", "0", ownLock, 1, 1},
		{"extend to longer", extendLonger, foreignLock, "me 900", "NOT LOCKED", foreignLock, 1, 1},
		{"extend or endure", extendOrPersist, ownLock, "me 9", "1", "me:9000", 1, 1},
		{"extend or endure", extendOrPersist, ownLock, "me 0", "1", "me", 2, 2},
		{"extend by", extendBy, ownLock, "me 900 0", "1", "me:1400", 2, 2},
		{"extend by", extendBy, ownLock, "me 900 1", "1", "me:900", 2, 2},
		{"extend by", extendBy, foreignLock, "me 900 0", "0", foreignLock, 1, 1},
		{"extend or retake", extendOrRetake, freeKey, "me 900", "1", "me:900", 2, 1},
		{"extend or retake", extendOrRetake, foreignLock, "me 900", "-1", foreignLock, 1, 1},
		{"rotate", rotateScript, ownLock, "me you 900", "OK", "you:900", 1, 1},
		{"rotate", rotateScript, freeKey, "me you 900", "OK", "you:900", 1, 1},
		{"rotate", rotateScript, foreignLock, "me you 900", "(nil)", foreignLock, 1, 1},

		{"remaining", remainingScript, ownLock, "me", "500", ownLock, 1, 1},
		{"remaining", remainingScript, foreignLock, "me", "-3", foreignLock, 1, 1},
		{"tell all", valueAndTTL, ownLock, "me", `["me" 500]`, ownLock, 1, 1},
		{"tell all", valueAndTTL, freeKey, "me", "[(nil) -2]", ".", 1, 1},
		{"force", forceScript, foreignLock, "me", "1", ".", 2, 2},
		{"force", forceScript, freeKey, "me", "0", ".", 1, 1},
	}
	for _, test := range tests {
		t.Run(test.name+" of "+test.before, func(t *testing.T) {
			b := newRegisterFixture(t)
			words := append([]string{"EVAL", test.script, "1", "k"}, strings.Split(test.args, " ")...)
			for _, rounds := range []int{test.first, test.later} {
				b.masters.Entries = fakeregister.NewRegister().Entries
				if value, ms, ok := strings.Cut(test.before, ":"); ok {
					n, _ := syntax.Int(ms)
					b.masters.Put("k", value, int(n))
				}
				b.masters.Rounds = nil
				if got := b.run(words...); got != test.reply {
					t.Errorf("%s, want %s", got, test.reply)
				}
				b.expectValue("k", test.after)
				if got := len(b.masters.Rounds); got != rounds {
					t.Errorf("%d round trips, want %d:\n  %s", got, rounds, strings.Join(b.masters.Rounds, "\n  "))
				}
			}
		})
	}
}

func TestScriptsOfSeveralKeys(t *testing.T) {
	b := newRegisterFixture(t)
	expect := func(script, args, want string, rounds ...string) {
		t.Helper()
		words := append([]string{"EVAL", script, "2", "k1", "k2"}, strings.Split(args, " ")...)
		if got := b.run(words...); got != want {
			t.Errorf("%s, want %s", got, want)
		}
		b.expectRounds(rounds...)
	}
	expect(takeMany, "me 900", "2", "take 0/k1 me:900, 0/k2 me:900")
	expect(takeMany, "you 900", "0", "take 0/k1 you:900, 0/k2 you:900", "read 0/k1 0/k2")
	expect(releaseMany, "you", "0", "read 0/k1 0/k2")
	expect(releaseMany, "me", "2", "read 0/k1 0/k2", "release 0/k1 me", "release 0/k2 me")
	expect(takeByMSetNX, "me 900", "OK", "take 0/k1 me:900, 0/k2 me:900")
	expect(takeByMSetNX, "you 900", "(nil)", "take 0/k1 you:900, 0/k2 you:900", "read 0/k1 0/k2")
	b.masters.Put("k2", "you", 500)
	expect(releaseMany, "me", "1", "read 0/k1 0/k2", "release 0/k1 me")
	b.expectValue("k1", ".")
	b.expectValue("k2", "you:500")
}

// TestGuessesOfSeveralKeys checks that a wrong guess about one key changes no other key.
func TestGuessesOfSeveralKeys(t *testing.T) {
	const releaseIfAll = `for _, key in ipairs(KEYS) do
  if redis.call('get', key) ~= ARGV[1] then return 0 end
end
return redis.call('del', unpack(KEYS))`
	const releaseIfEqual = `if redis.call('get', KEYS[1]) == redis.call('get', KEYS[2]) then return redis.call('del', KEYS[1]) end return 0`
	for _, script := range []string{releaseIfAll, releaseIfEqual} {
		b := newRegisterFixture(t)
		b.masters.Put("k1", "me", 500)
		b.masters.Put("k2", "you", 500)
		if got := b.run("EVAL", script, "2", "k1", "k2", "me"); got != "0" {
			t.Errorf("%s: %s, want 0", script, got)
		}
		b.expectValue("k1", "me:500")
		b.expectValue("k2", "you:500")
	}
}

// TestReleaseMessage checks that the message of a release goes to the upstream once, after the
// commit.
func TestReleaseMessage(t *testing.T) {
	b := newRegisterFixture(t)
	b.masters.Put("k", "me", 500)
	if got := b.run("EVAL", releaseSignal, "2", "k", "signal:k", "me", "1000"); got != "0" {
		t.Error(got)
	}
	b.expectRounds("release 0/k me")
	b.expectSideEffects("0: del signal:k", "0: lpush signal:k 1", "0: pexpire signal:k 1000")

	if got := b.run("EVAL", releaseSignal, "2", "k", "signal:k", "me", "1000"); got != "1" {
		t.Error(got)
	}
	b.expectSideEffects()

	b.masters.Put("k", "me", 500)
	b.client.DB = 0
	if got := b.run("EVAL", releasePublish, "1", "k", "me", "chan"); got != "1" {
		t.Error(got)
	}
	b.expectSideEffects("0: PUBLISH chan k")
}

// expectSideEffects fails unless the upstream got these commands since the last call.
func (b *registerFixture) expectSideEffects(want ...string) {
	b.Helper()
	if got := b.sideEffects.executedCommands; strings.Join(got, "|") != strings.Join(want, "|") {
		b.Errorf("the upstream got %q, want %q", got, want)
	}
	b.sideEffects.executedCommands = nil
}

// TestMessageOfRepeatedScript checks that a script that runs again sends its message once. A script
// that commits nothing sends its message, too.
func TestMessageOfRepeatedScript(t *testing.T) {
	b := newRegisterFixture(t)
	b.masters.BeforeRound = func(round int) {
		if round < 3 {
			b.masters.Put("k", fmt.Sprint("other", round), 500)
		}
	}
	if got := b.run("EVAL", `redis.call('publish', 'c', redis.call('get', KEYS[1])) return redis.call('del', KEYS[1])`,
		"1", "k"); got != "1" {
		t.Error(got)
	}
	b.expectSideEffects("0: publish c other2")
	if got := b.run("EVAL", `return redis.call('publish', 'c', 'x')`, "1", "k"); got != "1" {
		t.Error(got)
	}
	b.expectSideEffects("0: publish c x")
}

// TestLostReleaseMessage checks that, if a message is lost after the release, the error reports
// that the release took effect. A counter counts the lost message.
func TestLostReleaseMessage(t *testing.T) {
	var log strings.Builder
	b := newRegisterFixture(t, func(o *Options) { o.Logger = textLogger(&log) })
	b.sideEffects.runErr = errors.New("connection refused")
	b.masters.Put("k", "me", 500)
	got := b.run("EVAL", releasePublish, "1", "k", "me", "chan")
	if want := "ERR lock key 'k' was changed, but side effects of the command failed, at least in part: connection refused"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	b.expectValue("k", ".")
	if _, n := b.table.lockKeys.Counts(); n != 1 || !strings.Contains(log.String(), "connection refused") {
		t.Errorf("%d counted; %s", n, log.String())
	}
}

func TestReleaseMessageWithoutUpstream(t *testing.T) {
	b := newRegisterFixture(t)
	b.client.Upstream = nil
	b.masters.Put("k", "me", 500)
	got := b.run("EVAL", releasePublish, "1", "k", "me", "chan")
	if want := "ERR 'publish' to 'chan' cannot be called by a script on lock keys: there is no upstream"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	b.expectValue("k", "me:500")
	got = b.run("EVAL", releaseSignal, "2", "k", "signal:k", "me", "1000")
	if want := "ERR 'del' of 'signal:k' cannot be called by a script on lock keys: the key is not a lock key, and there is no upstream"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	b.expectValue("k", "me:500")
}

// TestScriptRefused checks that a command that cannot run on lock keys ends the script, even inside
// a pcall. The proxy then commits nothing of the script.
func TestScriptRefused(t *testing.T) {
	const typeError = ": lock keys support only string, hash, list, set and sorted-set commands; use another key"
	for call, want := range map[string]string{
		`'xadd', KEYS[1], '*', 'f', 'v'`:   "ERR 'xadd' cannot run on lock key 'k'" + typeError,
		`'XDEL', KEYS[1], '1'`:             "ERR 'xdel' cannot run on lock key 'k'" + typeError,
		`'pfadd', KEYS[1], 'v'`:            "ERR 'pfadd' cannot run on lock key 'k'" + typeError,
		`'get', 'data'`:                    "ERR 'get' of 'data' cannot be called by a script on lock keys: on keys of the upstream it can only call DEL, UNLINK, LPUSH, RPUSH, EXPIRE and PEXPIRE",
		`'hget', 'data', 'f'`:              "ERR 'hget' of 'data' cannot be called by a script on lock keys: on keys of the upstream it can only call DEL, UNLINK, LPUSH, RPUSH, EXPIRE and PEXPIRE",
		`'mget', 'data', KEYS[1]`:          "ERR 'mget' mixes lock keys and other keys: 'k' is on the lock masters, 'data' on the upstream; send two commands",
		`'keys', '*'`:                      "ERR 'keys' of '*' cannot be called by a script on lock keys: the pattern may match keys on the upstream; use a pattern that lock-keys covers",
		`'dbsize'`:                         "ERR 'dbsize' of '*' cannot be called by a script on lock keys: the pattern may match keys on the upstream; use a pattern that lock-keys covers",
		`'select', 3`:                      "ERR SELECT of database 3 cannot be called by a script on lock keys: its lock keys are in database 0; use one script for each database",
		`'flushall'`:                       "ERR 'flushall' cannot be called by a script: it must also remove the lock keys; send it by itself",
		`'LOCK', KEYS[1], 't', 'PX', 5`:    "ERR 'lock' cannot be called by a script: it is a command of the proxy; send it by itself",
		`'config', 'get', 'x'`:             "ERR 'config' cannot be called by a script on lock keys: it is not a command on keys; send it by itself",
		`'rename', KEYS[1], 'k2'`:          "ERR lock keys 'k2' and 'k' cannot be changed together: one command can take, extend or remove several lock keys, but not change them otherwise; give them the same hash tag (lock-tags)",
		`'set', KEYS[1], 'v', 'EX', 99999`: "ERR invalid expire time in 'set' command: the TTL exceeds max-ttl (86400000 ms)",
	} {
		for _, function := range []string{"call", "pcall"} {
			b := newRegisterFixture(t)
			script := fmt.Sprintf(`redis.call('set', KEYS[1], 'before', 'PX', 500) redis.%s(%s) return 1`, function,
				call)
			if got := b.run("EVAL", script, "1", "k"); got != want {
				t.Errorf("redis.%s(%s):\n got %s\nwant %s", function, call, got, want)
			}
			b.expectValue("k", ".")
			b.expectSideEffects()
		}
	}
}

// TestScriptOverLimit checks that a script that reaches a limit commits nothing.
func TestScriptOverLimit(t *testing.T) {
	b := newRegisterFixture(t)
	got := b.run("EVAL", `redis.call('set', KEYS[1], 'v', 'PX', 500) while true do redis.call('get', KEYS[1]) end`,
		"1", "k")
	// On a busy machine, the time limit comes first.
	if !strings.HasPrefix(got, "ERR script called more than 10000 commands script: ") &&
		!strings.HasPrefix(got, "ERR script ran for longer than 1s script: ") {
		t.Error(got)
	}
	b.expectValue("k", ".")
}

// TestScriptFailure checks that changes before an error of a script take effect, as in Redis.
func TestScriptFailure(t *testing.T) {
	b := newRegisterFixture(t)
	got := b.run("EVAL", `redis.call('set', KEYS[1], 'v', 'PX', 500) return redis.call('incr', KEYS[1])`, "1", "k")
	if !strings.HasPrefix(got, "ERR value is not an integer or out of range script: ") {
		t.Error(got)
	}
	b.expectValue("k", "v:500")
}

// TestKeysOutsideKEYS checks that a lock key may be outside KEYS, and unknown before the run.
func TestKeysOutsideKEYS(t *testing.T) {
	b := newRegisterFixture(t)
	b.masters.Put("lock:job", "me", 500)
	if got := b.run("EVAL", releaseLiteral, "0"); got != "1" {
		t.Error(got)
	}
	b.expectValue("lock:job", ".")
	if n := len(b.masters.Rounds); n > 2 {
		t.Errorf("%d round trips", n)
	}

	b.masters.Put("k1", "k2", 500)
	b.masters.Put("k2", "found", 500)
	b.masters.Rounds = nil
	if got := b.run("EVAL", `return redis.call('get', redis.call('get', KEYS[1]))`, "1", "k1"); got != `"found"` {
		t.Error(got)
	}
	b.expectRounds("read 0/k1", "read 0/k1 0/k2")

	if got := b.run("EVAL", `return redis.call('set', ARGV[1], 'v', 'NX', 'PX', 500)`, "0", "lock:arg"); got != "OK" {
		t.Error(got)
	}
	b.expectValue("lock:arg", "v:500")
}

// TestMSETEXWithoutLastValue checks that MSETEX with too few words gets an error.
func TestMSETEXWithoutLastValue(t *testing.T) {
	b := newRegisterFixture(t)
	b.expectRun("MSETEX 2 lock:a 1 lock:b", "ERR syntax error")
}

// TestScriptWithoutKeys checks that a script that uses no key asks no master.
func TestScriptWithoutKeys(t *testing.T) {
	b := newRegisterFixture(t)
	b.masters.RoundErr = fakeregister.ErrTooFewMasters()
	for script, want := range map[string]string{
		`return 1`:                          "1",
		`return redis.call('time')[1]`:      `"1700000000"`,
		`return {KEYS[1], ARGV[1]}`:         `["k" "x"]`,
		`return redis.call('get')`:          "ERR Wrong number of args calling Redis command from script",
		`return redis.status_reply('fine')`: "fine",
		`if redis.call('time')[1] ~= redis.call('time')[1] then return 0 end`: "(nil)",
	} {
		if got := b.run("EVAL", script, "1", "k", "x"); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s, want %s", script, got, want)
		}
	}
	b.expectRounds()
}

func TestReadOnlyScripts(t *testing.T) {
	b := newRegisterFixture(t)
	b.masters.Put("k", "me", 500)
	if got := b.run("EVAL_RO", valueAndTTL, "1", "k"); got != `["me" 500]` {
		t.Error(got)
	}
	for _, call := range []string{"'del', KEYS[1]", "'publish', 'c', 'm'", "'lpush', 'signal:k', '1'"} {
		got := b.run("EVAL_RO", "return redis.call("+call+")", "1", "k")
		if !strings.HasPrefix(got, "ERR Write commands are not allowed from read-only scripts") {
			t.Errorf("%s: %s", call, got)
		}
	}
	b.expectValue("k", "me:500")
	b.expectSideEffects()
}

func TestEvalErrors(t *testing.T) {
	b := newRegisterFixture(t)
	for line, want := range map[string]string{
		"EVAL":          "ERR wrong number of arguments for 'eval' command",
		"EVALSHA_RO x":  "ERR wrong number of arguments for 'evalsha_ro' command",
		"EVAL x y k":    "ERR value is not an integer or out of range",
		"EVAL x 2 k":    "ERR Number of keys can't be greater than number of args",
		"EVAL x -1 k":   "ERR Number of keys can't be negative",
		"EVALSHA x 1 k": syntax.NoScript,
		"EVALSHA x y k": syntax.NoScript,
		"EVALSHA " + strings.Repeat("f", 40) + " 1 k":    syntax.NoScript,
		"EVALSHA " + strings.Repeat("f", 40) + " 2 k":    "ERR Number of keys can't be greater than number of args",
		"EVALSHA_RO " + strings.Repeat("f", 40) + " 1 k": syntax.NoScript,
	} {
		b.expectRun(line, want)
	}
	if got := b.run("EVAL", "return (", "1", "k"); !strings.HasPrefix(got, "ERR Error compiling script") {
		t.Error(got)
	}
}

// storedScripts holds the scripts on the masters, as other proxies see them.
type storedScripts struct {
	bodies map[string]string
	err    error
}

func (s *storedScripts) Save(_ context.Context, sha, body string) error {
	s.bodies[sha] = body
	return s.err
}

func (s *storedScripts) Find(_ context.Context, sha string) (string, bool, error) {
	body, ok := s.bodies[sha]
	return body, ok, s.err
}

func (s *storedScripts) Flush(context.Context) error {
	clear(s.bodies)
	return s.err
}

// TestScriptLoad checks that all proxies know a script that a client has loaded through one proxy.
func TestScriptLoad(t *testing.T) {
	store := &storedScripts{bodies: map[string]string{}}
	one := newRegisterFixture(t, func(o *Options) { o.Scripts = store })
	two := newRegisterFixture(t, func(o *Options) { o.Scripts = store })
	sha := fmt.Sprintf("%x", sha1.Sum([]byte(releaseScript)))
	if got := one.run("SCRIPT", "LOAD", releaseScript); got != fmt.Sprintf("%q", sha) {
		t.Fatal(got)
	}
	two.masters.Put("k", "me", 500)
	two.expectRun("SCRIPT EXISTS "+sha+" "+strings.Repeat("0", 40), "[1 0]")
	two.expectRun("EVALSHA "+strings.ToUpper(sha)+" 1 k me", "1")
	two.expectRun("SCRIPT FLUSH", "OK")
	two.expectRun("EVALSHA "+sha+" 1 k me", syntax.NoScript)

	store.err = &quorum.NoQuorumError{Masters: 5, VoteCount: 2, Causes: &multierror.Error{}}
	for _, words := range [][]string{{"SCRIPT", "LOAD", "return 7"}, {"EVALSHA", sha, "1", "k", "me"},
		{"SCRIPT", "EXISTS", sha}, {"SCRIPT", "FLUSH"}} {
		if got := two.run(words...); !strings.HasPrefix(got, "NOQUORUM ") {
			t.Errorf("%q: %s", words, got)
		}
	}
}

// TestEvalThenEvalsha checks that EVAL makes a script known to EVALSHA.
func TestEvalThenEvalsha(t *testing.T) {
	b := newRegisterFixture(t)
	b.run("EVAL", releaseScript, "1", "k", "me")
	b.expectRun(fmt.Sprintf("EVALSHA %x 1 k me", sha1.Sum([]byte(releaseScript))), "0")
}

func TestScriptErrors(t *testing.T) {
	b := newRegisterFixture(t)
	for line, want := range map[string]string{
		"SCRIPT":             "ERR wrong number of arguments for 'script' command",
		"SCRIPT LOAD":        "ERR wrong number of arguments for 'script|load' command",
		"SCRIPT EXISTS":      "ERR wrong number of arguments for 'script|exists' command",
		"SCRIPT FLUSH soon":  "ERR SCRIPT FLUSH only support SYNC|ASYNC option",
		"SCRIPT FLUSH async": "OK",
		"SCRIPT KILL":        "NOTBUSY No scripts in execution right now.",
		"SCRIPT foo":         "ERR unknown subcommand 'foo'. Try SCRIPT HELP.",
	} {
		b.expectRun(line, want)
	}
	if got := b.run("SCRIPT", "LOAD", "return ("); !strings.HasPrefix(got, "ERR Error compiling script") {
		t.Error(got)
	}
}

func TestScriptUndelivered(t *testing.T) {
	for script, after := range map[string]string{takePlain: ".", takeTwoStep: ".",
		`return redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2])`: "me:900"} {
		b := newRegisterFixture(t)
		b.run("EVAL", script, "1", "k", "me", "900")
		b.expectValue("k", "me:900")
		b.out.UndoUndelivered()
		b.expectValue("k", after)
	}
}

// TestScriptsWithoutTTL checks that a script in two steps never leaves a lock without a TTL. With
// locks-without-ttl=refuse, the proxy refuses a script that sets no TTL.
func TestScriptsWithoutTTL(t *testing.T) {
	b := newRegisterFixture(t, func(o *Options) { o.Settings.RequireTTL = true })
	if got := b.run("EVAL", takeTwoStep, "1", "k", "me", "900"); got != "1" {
		t.Error(got)
	}
	if got := b.run("EVAL", takeTwoStep, "1", "k2", "me",
		""); got != "ERR lock key 'k2' would have no TTL: the setting locks-without-ttl refuses this; set a TTL" {
		t.Error(got)
	}
	b.expectValue("k2", ".")
}

// TestScriptInTransaction checks that a transaction may contain a script.
func TestScriptInTransaction(t *testing.T) {
	b := newRegisterFixture(t)
	b.masters.Put("k", "me", 500)
	b.watch("k")
	b.client.Transaction.Begin()
	b.queue("EVAL", releaseScript, "1", "k", "me")
	b.queue("EVALSHA", strings.Repeat("0", 40), "1", "k")
	b.masters.Rounds = nil
	if got := oneLine(t, b.exec()); got != "[1 "+syntax.NoScript+"]" {
		t.Error(got)
	}
	b.expectRounds("read 0/k", "update 0/k")
}
