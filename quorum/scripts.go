package quorum

import "github.com/redis/go-redis/v9"

// script is a Lua script with its SHA-1, as EVALSHA and EVAL need them.
type script struct{ src, sha string }

func newScript(src string) script { return script{src, redis.NewScript(src).Hash()} }

// Scripts answer integers only. 1: done. 0: another value holds the key, or not
// in the way asked for. -1: there is no such key. (read answers an array.)
var (
	releaseScript = newScript(`local v = redis.call('get', KEYS[1])
if v == ARGV[1] then return redis.call('del', KEYS[1]) end
if v then return 0 end
return -1`)

	extendScript = newScript(`local v = redis.call('get', KEYS[1])
if v == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) end
if v then return 0 end
return -1`)

	// undo asks in addition for a remaining time between ARGV[2] and ARGV[3] ms.
	undoScript = newScript(`if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end
local left = redis.call('pttl', KEYS[1])
if left < tonumber(ARGV[2]) or left > tonumber(ARGV[3]) then return 0 end
return redis.call('del', KEYS[1])`)

	readScript = newScript(`return {redis.call('get', KEYS[1]), redis.call('pttl', KEYS[1])}`)
)

// allScripts are loaded on a master before it votes, so that NOSCRIPT is rare.
func allScripts() []script {
	return []script{releaseScript, extendScript, undoScript, readScript}
}
