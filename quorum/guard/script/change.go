package script

import "redlock-proxy/internal/luascript"

// The scripts that change a master's marker and quarantine record check the assumptions of their
// caller again, and change nothing if one is false. So if several proxies see the same need, only
// one of them acts. The scripts return 1 if done, and 0 or -1 if an assumption is false. All run in
// database 0. A marker in ARGV[1] is the value in database 0, except in Enrol. All other markers
// are passed without the number of the database.
//
// The Lua function equals reports whether a key has the wanted value ("": no such key). databases
// returns the other databases that have markers. everywhere calls a function in each of these
// databases and in database 0. writeMarker writes a marker to the selected database, and begins its
// sequence anew.
const (
	guardLua = `local marker, record, claim, longest = '` + MarkerKey + `', '` + RecordKey + `', '` +
		reservationKey + `', '` + MaxTTLKey + `'
local sequence, canary, promise = '` + SequenceKey + `', '` + CanaryKey + `', '` + PromiseKey + `'
local function equals(key, want)
  return (redis.call('get', key) or '') == want
end
local function databases()
  return redis.call('smembers', '` + DatabasesKey + `')
end
local function everywhere(act)
  local dbs = databases()
  dbs[#dbs + 1] = '0'
  local failed = nil
  for _, db in ipairs(dbs) do
    redis.call('select', db)
    failed = act(db) or failed
  end
  redis.call('select', '0')
  return failed
end
local function writeMarker(text, db)
  local nonce = string.match(text, '^%S+ %S+ (%S+)')
  redis.call('set', marker, text .. '@' .. db)
  redis.call('del', sequence)
  redis.call('hset', sequence, (nonce or '-') .. '@' .. db, '` + firstSeqText + `')
end
`
	// quarantineLua removes the markers, and the promise that the master gave under them. The
	// sequences stay if the record claims that the data are complete.
	quarantineLua = `local function quarantine(text)
  local claims = not string.find(text, '^%S+ %S+ %S+ %- ')
  everywhere(function()
    redis.call('del', marker, record, canary)
    if not claims then redis.call('del', sequence) end
  end)
  redis.call('del', claim, promise)
  redis.call('set', record, text)
end
`
	// timeReadLua allows a script that has read the time to write, as Redis before 5 requires.
	timeReadLua = `if redis.replicate_commands then redis.replicate_commands() end
`
)

var (
	// Quarantine removes the marker ARGV[1], the record ARGV[2] and the promise, and writes the
	// record ARGV[3].
	Quarantine = luascript.New(guardLua + quarantineLua + `
if not equals(marker, ARGV[1]) or not equals(record, ARGV[2]) then return 0 end
quarantine(ARGV[3])
return 1`)

	// Admit removes the marker ARGV[1], the record ARGV[2] and the promise of a former marker. It
	// writes the marker ARGV[3], and raises the record of the longest TTL to ARGV[4]. It stores the
	// time of the admission. ARGV[5] is the proof. "fresh" requires the master to be empty, except
	// for the list of proxies and the quarantine record. "remark" requires each database to have
	// its sequence of the nonce ARGV[6], with at least the number that follows its field in the
	// arguments. "caughtup" requires each database to have the record. "lease" requires nothing.
	// Admit returns -1 if the proof fails.
	Admit = luascript.New(timeReadLua + guardLua + `
local time = redis.call('time')
if not equals(marker, ARGV[1]) or not equals(record, ARGV[2]) then return 0 end
if ARGV[5] == 'fresh' then
  local own = redis.call('exists', '` + ProxiesKey + `', record)
  if redis.call('dbsize') ~= own then return -1 end
  local info = redis.pcall('info', 'keyspace')
  if type(info) == 'string' and (string.find(info, 'db[1-9]') or own == 0 and string.find(info, 'db%d')) then return -1 end
end
local known = {}
for i = 7, #ARGV, 2 do known[ARGV[i]] = tonumber(ARGV[i + 1]) end
local failed = everywhere(function(db)
  if ARGV[5] == 'remark' then
    local field = ARGV[6] .. '@' .. db
    local n = tonumber(redis.call('hget', sequence, field) or '0')
    return n < ` + firstSeqText + ` or n < (known[field] or 0)
  end
  return ARGV[5] == 'caughtup' and not equals(record, ARGV[2])
end)
if failed then return -1 end
everywhere(function(db)
  writeMarker(ARGV[3], db)
  redis.call('del', record)
end)
redis.call('hset', sequence, '` + AdmittedField + `', string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000)))
redis.call('del', claim, promise)
if tonumber(redis.call('get', longest) or '0') < tonumber(ARGV[4]) then redis.call('set', longest, ARGV[4]) end
return 1`)

	// Enrol ensures that database ARGV[2] has the master's marker ARGV[1]. A database that had a
	// marker and lost it was flushed. Then the master gets the record ARGV[3], and Enrol returns
	// -1.
	Enrol = luascript.New(guardLua + quarantineLua + `
if not equals(marker, ARGV[1] .. '@0') then return 0 end
local known = ARGV[2] == '0' or redis.call('sismember', '` + DatabasesKey + `', ARGV[2]) == 1
if not known then redis.call('sadd', '` + DatabasesKey + `', ARGV[2]) end
redis.call('select', ARGV[2])
local nonce = string.match(ARGV[1], '^%S+ %S+ (%S+)') or '-'
local n = redis.call('hget', sequence, nonce .. '@' .. ARGV[2])
local there = equals(marker, ARGV[1] .. '@' .. ARGV[2]) and tonumber(n or '0') >= ` + firstSeqText + `
if not known then writeMarker(ARGV[1], ARGV[2]) end
redis.call('select', '0')
if there or not known then return 1 end
quarantine(ARGV[3])
return -1`)

	// UpdateMarker replaces the marker ARGV[1] with ARGV[2], which describes the master's present
	// state. The nonce stays the same, so votes continue to count.
	UpdateMarker = luascript.New(guardLua + `
if not equals(marker, ARGV[1]) then return 0 end
everywhere(function(db) redis.call('set', marker, ARGV[2] .. '@' .. db) end)
return 1`)

	// DropClaim replaces the record ARGV[1] with ARGV[2], and removes the sequences.
	DropClaim = luascript.New(guardLua + `
if not equals(record, ARGV[1]) then return 0 end
everywhere(function(db)
  redis.call('del', sequence)
  if redis.call('exists', record) == 1 then redis.call('set', record, ARGV[2]) end
end)
return 1`)

	// UpdateRecord replaces the record ARGV[1] with ARGV[2] in all databases that have it.
	UpdateRecord = luascript.New(guardLua + `
if not equals(record, ARGV[1]) then return 0 end
everywhere(function()
  if equals(record, ARGV[1]) then redis.call('set', record, ARGV[2]) end
end)
return 1`)

	// WriteRules replaces the rules ARGV[1] (empty: none) with ARGV[2]. It replaces existing rules
	// only if the master has no marker.
	WriteRules = luascript.New(guardLua + `
if not equals('` + RulesKey + `', ARGV[1]) or ARGV[1] ~= '' and not equals(marker, '') then return 0 end
redis.call('set', '` + RulesKey + `', ARGV[2])
return 1`)

	// ReplaceRules replaces the present rules of a master, which has the marker ARGV[1], with
	// ARGV[2]. Unless ARGV[3] is empty, it also replaces the marker with ARGV[3], so votes in
	// running batches do not count any more.
	ReplaceRules = luascript.New(guardLua + `
if not equals(marker, ARGV[1]) then return 0 end
redis.call('set', '` + RulesKey + `', ARGV[2])
if ARGV[3] ~= '' then
  everywhere(function(db)
    writeMarker(ARGV[3], db)
    redis.call('del', canary)
  end)
end
return 1`)

	// ReserveCatchUp reserves the catch-up of a master with the record ARGV[1] for the proxy
	// ARGV[2], for ARGV[3] ms. It returns 0 if another proxy has reserved it.
	ReserveCatchUp = luascript.New(guardLua + `
if not equals(record, ARGV[1]) then return -1 end
if not equals(claim, '') and not equals(claim, ARGV[2]) then return 0 end
redis.call('set', claim, ARGV[2], 'px', ARGV[3])
return 1`)

	// OpenDatabase copies the record ARGV[1] to database ARGV[2], so that proxies notice a flush of
	// that database during the catch-up.
	OpenDatabase = luascript.New(guardLua + `
if not equals(record, ARGV[1]) then return -1 end
redis.call('sadd', '` + DatabasesKey + `', ARGV[2])
redis.call('select', ARGV[2])
redis.call('set', record, ARGV[1])
redis.call('select', '0')
return 1`)

	// Fill changes keys in database ARGV[2] of a master with the record ARGV[1]. Each key has four
	// arguments: the key; the action; a value; its expiry, in ms of the master's clock (-1: never).
	// "put" writes the value. "copy" does the same, but keeps a longer remaining time if the key
	// already has the value. "raise" writes the value, a number, if it is higher than the present
	// value. Fill writes no value that has expired. "drop" removes the key if it has the value.
	Fill = luascript.New(timeReadLua + guardLua + `
if not equals(record, ARGV[1]) then return -1 end
redis.call('select', ARGV[2])
if not equals(record, ARGV[1]) then return -1 end
local time = redis.call('time')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
for i = 3, #ARGV, 4 do
  local key, act, value, ends = ARGV[i], ARGV[i + 1], ARGV[i + 2], tonumber(ARGV[i + 3])
  local there, left = redis.pcall('get', key), ends - now
  if act == 'drop' then
    if there == value then redis.call('del', key) end
  elseif act == 'raise' then
    local has = type(there) == 'string' and #there <= 16 and string.match(there, '^%d+$') and tonumber(there) or 0
    if has > ` + maxFence + ` then has = 0 end
    if tonumber(value) <= has then -- stays
    elseif ends == -1 then redis.call('set', key, value)
    elseif left > 0 then redis.call('set', key, value, 'px', string.format('%d', left)) end
  elseif there == value and ends == -1 then
    redis.call('persist', key)
  elseif there == value then
    local has = redis.call('pttl', key)
    if left > 0 and (act == 'put' or has >= 0 and has < left) then redis.call('pexpire', key, string.format('%d', left)) end
  elseif ends == -1 then
    redis.call('set', key, value)
  elseif left > 0 then
    redis.call('set', key, value, 'px', string.format('%d', left))
  end
end
redis.call('select', '0')
return 1`)
)
