package script

import "redlock-proxy/internal/luascript"

// sealedField is the field of the sequence in database 0 with when the master was sealed, in ms of
// its clock.
const sealedField = "sealed"

// wholeLua checks whether a marker, as it is in database 0, is in all databases that have one: none
// was flushed.
const wholeLua = `local function whole(text)
  local bare = string.sub(text, 1, -3)
  local failed = everywhere(function(db) return not stands(marker, bare .. '@' .. db) end)
  return not failed
end
`

// Those by which the masters of an era agree on what follows it.
var (
	// Promise has a master with the marker ARGV[1] promise the ballot ARGV[2] of the era ARGV[4],
	// unless it promised that or a higher one. It answers {1, number of the sequence ARGV[3],
	// seconds, microseconds, canary}, {0, the ballot that it promised}, or {-1} where that is not
	// its marker.
	Promise = luascript.New(timedLua + guardLua + `
if not stands(marker, ARGV[1]) then return {-1} end
local era, promised = string.match(redis.call('get', '` + PromiseKey + `') or '', '^(%S+) (%S+)$')
if era == ARGV[4] and promised >= ARGV[2] then return {0, promised} end
redis.call('set', '` + PromiseKey + `', ARGV[4] .. ' ' .. ARGV[2])
local n = redis.call('hincrby', sequence, ARGV[3], 1)
local now = redis.call('time')
return {1, n, now[1], now[2], redis.call('get', canary) or ''}`)

	// Seal has a master with the marker ARGV[1], which promised the ballot ARGV[2] of the era
	// ARGV[4] and no higher one, have the marker ARGV[3] instead, in all databases: no vote that is
	// under way counts any more. It answers 1, 0: it promised another one, -1: that is not its
	// marker.
	Seal = luascript.New(timedLua + guardLua + wholeLua + `
if not whole(ARGV[1]) then return -1 end
if redis.call('get', '` + PromiseKey + `') ~= ARGV[4] .. ' ' .. ARGV[2] then return 0 end
local time = redis.call('time')
everywhere(function(db)
  mark(ARGV[3], db)
  redis.call('del', canary)
end)
redis.call('hset', sequence, '` + sealedField + `', string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000)))
return 1`)

	// Rejoin has a master with the marker ARGV[1], which was sealed in the era before not longer
	// than ARGV[3] ms ago by its own clock, have the marker ARGV[2] of the era of the same masters
	// that follows.
	Rejoin = luascript.New(timedLua + guardLua + wholeLua + `
if not whole(ARGV[1]) then return 0 end
local time = redis.call('time')
local age = time[1] * 1000 + math.floor(time[2] / 1000) - tonumber(redis.call('hget', sequence, '` + sealedField + `') or '0')
if age < 0 or age > tonumber(ARGV[3]) then return -1 end
everywhere(function(db)
  mark(ARGV[2], db)
  redis.call('del', canary)
end)
return 1`)

	// Hold notes what the proxy ARGV[1] holds back, ARGV[2], for ARGV[3] ms.
	Hold = luascript.New(`redis.call('hset', '` + HeldKey + `', ARGV[1], ARGV[2])
redis.call('pexpire', '` + HeldKey + `', ARGV[3])
return 1`)

	// Held answers {id, what it holds back, …}.
	Held = luascript.New(`return redis.call('hgetall', '` + HeldKey + `')`)

	// Marked answers the value of the marker's key.
	Marked = luascript.New(`return redis.call('get', '` + MarkerKey + `') or ''`)

	// Await puts the record ARGV[2] beside the marker ARGV[1], where there is none.
	Await = luascript.New(guardLua + `
if not stands(marker, ARGV[1]) or not stands(record, '') then return 0 end
redis.call('set', record, ARGV[2])
return 1`)
)
