package quorum

import "github.com/redis/go-redis/v9"

// script is a Lua script with its SHA-1, as EVALSHA and EVAL need them.
type script struct{ src, sha string }

func newScript(src string) script { return script{src, redis.NewScript(src).Hash()} }

// The scripts for one key answer 1: done. -1: there is no such key. {value, PTTL}:
// another value holds the key. 0: not in the way asked for.
var (
	releaseScript = newScript(`local v = redis.call('get', KEYS[1])
if v == ARGV[1] then return redis.call('del', KEYS[1]) end
if v then return {v, redis.call('pttl', KEYS[1])} end
return -1`)

	extendScript = newScript(`local v = redis.call('get', KEYS[1])
if v == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) end
if v then return {v, redis.call('pttl', KEYS[1])} end
return -1`)

	// undo asks in addition for a remaining time between ARGV[2] and ARGV[3] ms.
	undoScript = newScript(`if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end
local left = redis.call('pttl', KEYS[1])
if left < tonumber(ARGV[2]) or left > tonumber(ARGV[3]) then return 0 end
return redis.call('del', KEYS[1])`)

	// read answers {value or nil, PTTL, …} for all keys.
	readScript = newScript(`local held = {}
for i, key in ipairs(KEYS) do
  held[2 * i - 1], held[2 * i] = redis.call('get', key), redis.call('pttl', key)
end
return held`)

	// edit takes five arguments for each key: whether it must be there (1 or 0) and
	// with which value; what to do (keep, del, set with PX, set without, set with the
	// time that is left) with which value and how many ms. It answers {1 or 0: done
	// or not, value or nil, PTTL, …}, with what the keys held before.
	editScript = newScript(`local held, fits = {1}, true
for i, key in ipairs(KEYS) do
  local v, a = redis.call('get', key), 5 * i
  held[2 * i], held[2 * i + 1] = v, redis.call('pttl', key)
  if ARGV[a - 4] == '0' then
    if v then fits = false end
  elseif v ~= ARGV[a - 3] then
    fits = false
  end
end
if not fits then held[1] = 0 return held end
for i, key in ipairs(KEYS) do
  local a = 5 * i
  local act = ARGV[a - 2]
  if act == 'del' then redis.call('del', key)
  elseif act == 'px' then redis.call('set', key, ARGV[a - 1], 'px', ARGV[a])
  elseif act == 'set' then redis.call('set', key, ARGV[a - 1])
  elseif act == 'keepttl' then redis.call('set', key, ARGV[a - 1], 'keepttl')
  end
end
return held`)
)

// allScripts are loaded on a master before it votes, so that NOSCRIPT is rare.
func allScripts() []script {
	return []script{releaseScript, extendScript, undoScript, readScript, editScript}
}
