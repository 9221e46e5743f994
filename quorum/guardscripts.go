package quorum

// Scripts that change a master's marker and quarantine record. Each looks again at what
// its caller relies on, and changes nothing if that is not so any more; so of proxies
// that see the same need, one does the work. They answer 1: done, 0: not so any more,
// -1: the master is not what its caller took it for. All run in database 0.
//
// stands compares a key with what is wanted, "" for no such key; databases are those
// with a marker of their own.
const (
	guardLua = `local function stands(key, want)
  return (redis.call('get', key) or '') == want
end
local function databases()
  return redis.call('smembers', '` + databasesKey + `')
end
local marker, record, claim, longest = '` + markerKey + `', '` + recordKey + `', '` + claimKey + `', '` + longestKey + `'
`
	condemnLua = `local function condemn(text)
  for _, db in ipairs(databases()) do
    redis.call('select', db)
    redis.call('del', marker, record)
  end
  redis.call('select', '0')
  redis.call('del', marker, claim)
  redis.call('set', record, text)
end
`
)

var (
	// condemn takes the marker ARGV[1] and the record ARGV[2] away and writes the record
	// ARGV[3].
	condemnScript = newScript(guardLua + condemnLua + `
if not stands(marker, ARGV[1]) or not stands(record, ARGV[2]) then return 0 end
condemn(ARGV[3])
return 1`)

	// admit takes the marker ARGV[1] and the record ARGV[2] away, writes the marker
	// ARGV[3], and raises the record of the longest TTL to ARGV[4]. ARGV[5] is the proof:
	// "fresh": the master must be empty; "remark": each database must have the old
	// marker; "caughtup": each must have the record; "lease": none.
	admitScript = newScript(guardLua + `
if not stands(marker, ARGV[1]) or not stands(record, ARGV[2]) then return 0 end
if ARGV[5] == 'fresh' then
  if redis.call('dbsize') ~= 0 then return -1 end
  local info = redis.pcall('info', 'keyspace')
  if type(info) == 'string' and string.find(info, 'db%d') then return -1 end
end
for _, db in ipairs(databases()) do
  redis.call('select', db)
  if ARGV[5] == 'remark' and not stands(marker, ARGV[1] .. '@' .. db) then return -1 end
  if ARGV[5] == 'caughtup' and not stands(record, ARGV[2]) then return -1 end
  redis.call('select', '0')
end
for _, db in ipairs(databases()) do
  redis.call('select', db)
  redis.call('set', marker, ARGV[3] .. '@' .. db)
  redis.call('del', record)
  redis.call('select', '0')
end
redis.call('set', marker, ARGV[3])
redis.call('del', record, claim)
if tonumber(redis.call('get', longest) or '0') < tonumber(ARGV[4]) then redis.call('set', longest, ARGV[4]) end
return 1`)

	// enrol makes sure that database ARGV[2] has the marker ARGV[1], like the master. A
	// database that had one and lost it was flushed: then the master gets the record
	// ARGV[3].
	enrolScript = newScript(guardLua + condemnLua + `
if not stands(marker, ARGV[1]) then return 0 end
local known = redis.call('sismember', '` + databasesKey + `', ARGV[2]) == 1
if not known then redis.call('sadd', '` + databasesKey + `', ARGV[2]) end
redis.call('select', ARGV[2])
local there = stands(marker, ARGV[1] .. '@' .. ARGV[2])
if not known then redis.call('set', marker, ARGV[1] .. '@' .. ARGV[2]) end
redis.call('select', '0')
if there or not known then return 1 end
condemn(ARGV[3])
return -1`)

	// claim makes the catch-up of a master with the record ARGV[1] the affair of the proxy
	// ARGV[2], for ARGV[3] ms.
	claimScript = newScript(guardLua + `
if not stands(record, ARGV[1]) then return -1 end
if not stands(claim, '') and not stands(claim, ARGV[2]) then return 0 end
redis.call('set', claim, ARGV[2], 'px', ARGV[3])
return 1`)

	// open puts the record ARGV[1] into database ARGV[2], too, so that a flush of that
	// database during the catch-up does not go unnoticed.
	openScript = newScript(guardLua + `
if not stands(record, ARGV[1]) then return -1 end
redis.call('sadd', '` + databasesKey + `', ARGV[2])
redis.call('select', ARGV[2])
redis.call('set', record, ARGV[1])
redis.call('select', '0')
return 1`)

	// fill writes keys into database ARGV[2] of a master with the record ARGV[1]: a key, a
	// value and its remaining ms (-1: no end) at a time. A key that holds the value already
	// keeps the longer of both times, unless the master's clock stepped: then its own is
	// wrong. -2 has the key deleted if it holds the value.
	fillScript = newScript(guardLua + `
if not stands(record, ARGV[1]) then return -1 end
local stepped = string.find(ARGV[1], ' ` + string(reasonClock) + `', 1, true)
redis.call('select', ARGV[2])
if not stands(record, ARGV[1]) then return -1 end
for i = 3, #ARGV, 3 do
  local key, value, left = ARGV[i], ARGV[i + 1], tonumber(ARGV[i + 2])
  local there = redis.pcall('get', key)
  if there == value and left == -2 then
    redis.call('del', key)
  elseif there == value and left == -1 then
    redis.call('persist', key)
  elseif there == value then
    local has = redis.call('pttl', key)
    if stepped or has >= 0 and has < left then redis.call('pexpire', key, left) end
  elseif left == -1 then
    redis.call('set', key, value)
  elseif left > 0 then
    redis.call('set', key, value, 'px', left)
  end
end
redis.call('select', '0')
return 1`)

	// page answers {marker, cursor, seconds, microseconds, key, value, PTTL, …} with some
	// of the keys of database ARGV[1], from cursor ARGV[2] on, but for the proxies' own.
	pageScript = newScript(`redis.call('select', ARGV[1])
local now = redis.call('time')
local scan = redis.call('scan', ARGV[2], 'count', ARGV[3])
local page = {redis.call('get', '` + markerKey + `') or '', scan[1], now[1], now[2]}
for _, key in ipairs(scan[2]) do
  if string.sub(key, 1, ` + lenOwnPrefix + `) ~= '` + ownPrefix + `' then
    local value = redis.pcall('get', key)
    if type(value) == 'string' then
      page[#page + 1], page[#page + 2], page[#page + 3] = key, value, redis.call('pttl', key)
    end
  end
end
redis.call('select', '0')
return page`)

	// longest raises the record of the longest TTL to ARGV[1] ms.
	longestScript = newScript(guardLua + `
if tonumber(redis.call('get', longest) or '0') < tonumber(ARGV[1]) then redis.call('set', longest, ARGV[1]) end
return 1`)
)

// lenOwnPrefix is the length of ownPrefix, for Lua.
const lenOwnPrefix = "14"
