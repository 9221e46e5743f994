package script

import "redlock-proxy/internal/luascript"

// Those that change a master's marker and quarantine record look again at what their caller
// relies on, and change nothing if that is not so any more; so of proxies that see the same
// need, one does the work. They answer 1: done, 0: not so any more, -1: the master is not
// what its caller took it for. All run in database 0. Markers go without the number of the
// database, but for ARGV[1] of Quarantine, Admit and Reword, which is the value in database 0.
//
// stands compares a key with what is wanted, "" for no such key; databases are those with
// a marker of their own; everywhere calls a function in each of these and in database 0.
const (
	guardLua = `local marker, record, claim, longest = '` + MarkerKey + `', '` + RecordKey + `', '` + claimKey + `', '` + LongestKey + `'
local sequence, canary = '` + SequenceKey + `', '` + CanaryKey + `'
local function stands(key, want)
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
local function mark(text, db)
  local nonce = string.match(text, '^%S+ %S+ (%S+)')
  redis.call('set', marker, text .. '@' .. db)
  redis.call('del', sequence)
  redis.call('hset', sequence, (nonce or '-') .. '@' .. db, '` + firstAgeText + `')
end
`
	// quarantine takes the markers away. The sequences stay where the record claims that the
	// data are all there.
	quarantineLua = `local function quarantine(text)
  local claims = not string.find(text, '^%S+ %S+ %S+ %- ')
  everywhere(function()
    redis.call('del', marker, record, canary)
    if not claims then redis.call('del', sequence) end
  end)
  redis.call('del', claim)
  redis.call('set', record, text)
end
`
	// timedLua lets a script write that has asked for the time: Redis before 5 wants to be
	// told so.
	timedLua = `if redis.replicate_commands then redis.replicate_commands() end
`
)

var (
	// Quarantine takes the marker ARGV[1] and the record ARGV[2] away and writes the record
	// ARGV[3].
	Quarantine = luascript.New(guardLua + quarantineLua + `
if not stands(marker, ARGV[1]) or not stands(record, ARGV[2]) then return 0 end
quarantine(ARGV[3])
return 1`)

	// Admit takes the marker ARGV[1] and the record ARGV[2] away, writes the marker
	// ARGV[3], and raises the record of the longest TTL to ARGV[4]. ARGV[5] is the proof:
	// "fresh": the master must be empty but for the list of proxies and that record; "remark": each
	// database must have its sequence of the nonce ARGV[6], not below the number that
	// follows it; "caughtup": each must have the record; "lease": none. It notes when that was.
	Admit = luascript.New(timedLua + guardLua + `
local time = redis.call('time')
if not stands(marker, ARGV[1]) or not stands(record, ARGV[2]) then return 0 end
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
    return n < ` + firstAgeText + ` or n < (known[field] or 0)
  end
  return ARGV[5] == 'caughtup' and not stands(record, ARGV[2])
end)
if failed then return -1 end
everywhere(function(db)
  mark(ARGV[3], db)
  redis.call('del', record)
end)
redis.call('hset', sequence, '` + AdmittedField + `', string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000)))
redis.call('del', claim)
if tonumber(redis.call('get', longest) or '0') < tonumber(ARGV[4]) then redis.call('set', longest, ARGV[4]) end
return 1`)

	// Enrol makes sure that database ARGV[2] has the marker ARGV[1], like the master. A
	// database that had one and lost it was flushed: then the master gets the record
	// ARGV[3].
	Enrol = luascript.New(guardLua + quarantineLua + `
if not stands(marker, ARGV[1] .. '@0') then return 0 end
local known = ARGV[2] == '0' or redis.call('sismember', '` + DatabasesKey + `', ARGV[2]) == 1
if not known then redis.call('sadd', '` + DatabasesKey + `', ARGV[2]) end
redis.call('select', ARGV[2])
local nonce = string.match(ARGV[1], '^%S+ %S+ (%S+)') or '-'
local n = redis.call('hget', sequence, nonce .. '@' .. ARGV[2])
local there = stands(marker, ARGV[1] .. '@' .. ARGV[2]) and tonumber(n or '0') >= ` + firstAgeText + `
if not known then mark(ARGV[1], ARGV[2]) end
redis.call('select', '0')
if there or not known then return 1 end
quarantine(ARGV[3])
return -1`)

	// Reword replaces the marker ARGV[1] by ARGV[2], which differs in what it has of the
	// master; the nonce, and so the votes, stay.
	Reword = luascript.New(guardLua + `
if not stands(marker, ARGV[1]) then return 0 end
everywhere(function(db) redis.call('set', marker, ARGV[2] .. '@' .. db) end)
return 1`)

	// Disclaim replaces the record ARGV[1] by ARGV[2], and takes the sequences away.
	Disclaim = luascript.New(guardLua + `
if not stands(record, ARGV[1]) then return 0 end
everywhere(function(db)
  redis.call('del', sequence)
  if redis.call('exists', record) == 1 then redis.call('set', record, ARGV[2]) end
end)
return 1`)

	// Restate replaces the record ARGV[1] by ARGV[2] wherever it is.
	Restate = luascript.New(guardLua + `
if not stands(record, ARGV[1]) then return 0 end
everywhere(function()
  if stands(record, ARGV[1]) then redis.call('set', record, ARGV[2]) end
end)
return 1`)

	// Settle replaces the rules ARGV[1] (empty: none) by ARGV[2]; other ones than none where
	// nothing votes only.
	Settle = luascript.New(guardLua + `
if not stands('` + RulesKey + `', ARGV[1]) or ARGV[1] ~= '' and not stands(marker, '') then return 0 end
redis.call('set', '` + RulesKey + `', ARGV[2])
return 1`)

	// Impose writes the rules ARGV[2] whatever is there, and replaces the marker ARGV[1] by
	// ARGV[3], if there is one: no vote that is under way counts any more.
	Impose = luascript.New(guardLua + `
if not stands(marker, ARGV[1]) then return 0 end
redis.call('set', '` + RulesKey + `', ARGV[2])
if ARGV[3] ~= '' then
  everywhere(function(db)
    mark(ARGV[3], db)
    redis.call('del', canary)
  end)
end
return 1`)

	// Claim makes the catch-up of a master with the record ARGV[1] the affair of the proxy
	// ARGV[2], for ARGV[3] ms.
	Claim = luascript.New(guardLua + `
if not stands(record, ARGV[1]) then return -1 end
if not stands(claim, '') and not stands(claim, ARGV[2]) then return 0 end
redis.call('set', claim, ARGV[2], 'px', ARGV[3])
return 1`)

	// Open puts the record ARGV[1] into database ARGV[2], too, so that a flush of that
	// database during the catch-up does not go unnoticed.
	Open = luascript.New(guardLua + `
if not stands(record, ARGV[1]) then return -1 end
redis.call('sadd', '` + DatabasesKey + `', ARGV[2])
redis.call('select', ARGV[2])
redis.call('set', record, ARGV[1])
redis.call('select', '0')
return 1`)

	// Fill changes keys in database ARGV[2] of a master with the record ARGV[1]. For each
	// there are four arguments: the key; what to do; a value; when it ends, in ms of the
	// master's clock (-1: never). "put" writes the value whatever is there, "copy" the same
	// but leaves a longer time that the value has already, "drop" removes the key if it
	// holds the value, "raise" writes the value, a number, if it is higher than what is there.
	Fill = luascript.New(timedLua + guardLua + `
if not stands(record, ARGV[1]) then return -1 end
redis.call('select', ARGV[2])
if not stands(record, ARGV[1]) then return -1 end
local time = redis.call('time')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
for i = 3, #ARGV, 4 do
  local key, act, value, ends = ARGV[i], ARGV[i + 1], ARGV[i + 2], tonumber(ARGV[i + 3])
  local there, left = redis.pcall('get', key), ends - now
  if act == 'drop' then
    if there == value then redis.call('del', key) end
  elseif act == 'raise' then
    local has = type(there) == 'string' and #there <= 16 and string.match(there, '^%d+$') and tonumber(there) or 0
    if has > ` + maxFenceText + ` then has = 0 end
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
