package script

import "redlock-proxy/internal/luascript"

// sealedField is the field of the sequence in database 0 with the time of the seal, in ms of the
// master's clock.
const sealedField = "sealed"

// sameMarkersLua defines sameMarkers, which reports whether database 0 and all other databases that
// need a marker have the same marker. Then none of them was flushed.
const sameMarkersLua = `local function sameMarkers(text)
  local bare = string.sub(text, 1, -3)
  local failed = everywhere(function(db) return not equals(marker, bare .. '@' .. db) end)
  return not failed
end
`

// Scripts by which the masters of an era agree on its successor.
var (
	// Promise lets a master with the marker ARGV[1] promise the ballot ARGV[2] of the era ARGV[4],
	// unless it has promised the same or a higher ballot. It returns {1, number of the sequence
	// ARGV[3], seconds, microseconds, canary}, {0, the ballot promised before}, or {-1} if the
	// master has a different marker.
	Promise = luascript.New(timeReadLua + guardLua + `
if not equals(marker, ARGV[1]) then return {-1} end
local era, promised = string.match(redis.call('get', promise) or '', '^(%S+) (%S+)$')
if era == ARGV[4] and promised >= ARGV[2] then return {0, promised} end
redis.call('set', promise, ARGV[4] .. ' ' .. ARGV[2])
local n = redis.call('hincrby', sequence, ARGV[3], 1)
local now = redis.call('time')
return {1, n, now[1], now[2], redis.call('get', canary) or ''}`)

	// Seal replaces the marker ARGV[1] with ARGV[3] in all databases, if the master's last promise
	// is the ballot ARGV[2] of the era ARGV[4]. Then votes in running batches do not count any
	// more. It returns 1 if done, 0 if the master has promised another ballot, -1 if the master has
	// a different marker.
	Seal = luascript.New(timeReadLua + guardLua + sameMarkersLua + `
if not sameMarkers(ARGV[1]) then return -1 end
if redis.call('get', promise) ~= ARGV[4] .. ' ' .. ARGV[2] then return 0 end
local time = redis.call('time')
everywhere(function(db)
  writeMarker(ARGV[3], db)
  redis.call('del', canary)
end)
redis.call('hset', sequence, '` + sealedField + `', string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000)))
return 1`)

	// Rejoin replaces the marker ARGV[1] of a sealed master with ARGV[2], the marker of the next
	// era with the same masters. It requires that the master was sealed at most ARGV[3] ms ago by
	// its own clock; otherwise it returns -1.
	Rejoin = luascript.New(timeReadLua + guardLua + sameMarkersLua + `
if not sameMarkers(ARGV[1]) then return 0 end
local time = redis.call('time')
local age = time[1] * 1000 + math.floor(time[2] / 1000) - tonumber(redis.call('hget', sequence, '` +
		sealedField + `') or '0')
if age < 0 or age > tonumber(ARGV[3]) then return -1 end
everywhere(function(db)
  writeMarker(ARGV[2], db)
  redis.call('del', canary)
end)
return 1`)

	// StorePauseReport stores the report ARGV[2] of the proxy ARGV[1]. The reports of all proxies
	// expire ARGV[3] ms after the last report.
	StorePauseReport = luascript.New(`redis.call('hset', '` + PauseReportsKey + `', ARGV[1], ARGV[2])
redis.call('pexpire', '` + PauseReportsKey + `', ARGV[3])
return 1`)

	// ReadPauseReports returns {id, report, …}.
	ReadPauseReports = luascript.New(`return redis.call('hgetall', '` + PauseReportsKey + `')`)

	// GetMarker returns the value of the marker's key.
	GetMarker = luascript.New(`return redis.call('get', '` + MarkerKey + `') or ''`)

	// AddRecord writes the record ARGV[2] next to the marker ARGV[1], if there is no record.
	AddRecord = luascript.New(guardLua + `
if not equals(marker, ARGV[1]) or not equals(record, '') then return 0 end
redis.call('set', record, ARGV[2])
return 1`)
)
