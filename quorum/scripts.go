package quorum

import "github.com/redis/go-redis/v9"

// script is a Lua script with its SHA-1, as EVALSHA and EVAL need them.
type script struct{ src, sha string }

func newScript(src string) script { return script{src, redis.NewScript(src).Hash()} }

// withdrawLua takes an offer of a value away, as that is taken from the key: an offer of
// another value may still be in time.
const withdrawLua = `local function withdraw(key, value)
  local offer = '` + offerPrefix + `' .. key
  local o = redis.call('get', offer)
  if o and string.sub(o, string.find(o, ' ', 1, true) + 1) == value then redis.call('del', offer) end
end
`

// The scripts for one key answer 1: done. -1: there is no such key. {value, PTTL}:
// another value holds the key. 0: not in the way asked for.
var (
	releaseScript = newScript(withdrawLua + `withdraw(KEYS[1], ARGV[1])
local v = redis.call('get', KEYS[1])
if v == ARGV[1] then return redis.call('del', KEYS[1]) end
if v then return {v, redis.call('pttl', KEYS[1])} end
return -1`)

	extendScript = newScript(`local v = redis.call('get', KEYS[1])
if v == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) end
if v then return {v, redis.call('pttl', KEYS[1])} end
return -1`)

	// undo asks in addition for a remaining time between ARGV[2] and ARGV[3] ms.
	undoScript = newScript(withdrawLua + `withdraw(KEYS[1], ARGV[1])
if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end
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
	editScript = newScript(withdrawLua + `local held, fits = {1}, true
for i, key in ipairs(KEYS) do
  local v, a = redis.call('get', key), 5 * i
  if ARGV[a - 4] == '1' and (ARGV[a - 2] == 'del' or ARGV[a - 1] ~= ARGV[a - 3]) then withdraw(key, ARGV[a - 3]) end
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

	// offer notes the offer ARGV[1] ARGV[2], a nonce and a value, for ARGV[3] ms. One that
	// stands already stays.
	offerScript = newScript(`if redis.call('exists', KEYS[1]) == 1 then return 0 end
local ok = redis.call('set', '` + offerPrefix + `' .. KEYS[1], ARGV[1] .. ' ' .. ARGV[2], 'nx', 'px', ARGV[3])
return ok and 1 or 0`)

	// mend takes an offer up, with ARGV[3] ms (-1: no end).
	mendScript = newScript(`local offer = '` + offerPrefix + `' .. KEYS[1]
if redis.call('get', offer) ~= ARGV[1] .. ' ' .. ARGV[2] then return 0 end
redis.call('del', offer)
if redis.call('exists', KEYS[1]) == 1 then return 0 end
if ARGV[3] == '-1' then redis.call('set', KEYS[1], ARGV[2])
else redis.call('set', KEYS[1], ARGV[2], 'px', ARGV[3]) end
return 1`)
)

// allScripts are loaded on a master before it votes, so that NOSCRIPT is rare.
func allScripts() []script {
	return []script{releaseScript, extendScript, undoScript, readScript, editScript, offerScript, mendScript}
}
