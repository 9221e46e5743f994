package script

import "redlock-proxy/internal/luascript"

// Scripts that change neither a marker nor a quarantine record.
var (
	// ReadNames returns {cursor, key, …}: the names of about ARGV[3] keys of database ARGV[1], from
	// cursor ARGV[2] on. It omits the proxies' own keys, except keys that begin with ARGV[4], if
	// given.
	ReadNames = luascript.New(`redis.call('select', ARGV[1])
local scan = redis.call('scan', ARGV[2], 'count', ARGV[3])
local page, asked, own = {scan[1]}, ARGV[4], '` + OwnPrefix + `'
for _, key in ipairs(scan[2]) do
  if string.sub(key, 1, #own) ~= own or asked and string.sub(key, 1, #asked) == asked then page[#page + 1] = key end
end
redis.call('select', '0')
return page`)

	// ReadValues returns {marker, number of the sequence field ARGV[2], seconds, microseconds,
	// value, PTTL, …} for the keys ARGV[3], … of database ARGV[1]. The PTTL is -2 for a key that is
	// missing or not a string.
	ReadValues = luascript.New(`redis.call('select', ARGV[1])
local now = redis.call('time')
local reply = {redis.call('get', '` + MarkerKey + `') or '', redis.call('hget', '` +
		SequenceKey + `', ARGV[2]) or '0', now[1], now[2]}
for i = 3, #ARGV do
  local value = redis.pcall('get', ARGV[i])
  if type(value) == 'string' then
    reply[#reply + 1], reply[#reply + 2] = value, redis.call('pttl', ARGV[i])
  else
    reply[#reply + 1], reply[#reply + 2] = '', -2
  end
end
redis.call('select', '0')
return reply`)

	// ReadDatabases returns {marker, longest TTL, database, …}.
	ReadDatabases = luascript.New(guardLua + `local reply = {redis.call('get', marker) or '', redis.call('get', longest) or '0'}
for _, db in ipairs(databases()) do reply[#reply + 1] = db end
return reply`)

	// RaiseLongestTTL raises the record of the longest TTL to ARGV[1] ms.
	RaiseLongestTTL = luascript.New(guardLua + `
if tonumber(redis.call('get', longest) or '0') < tonumber(ARGV[1]) then redis.call('set', longest, ARGV[1]) end
return 1`)

	// ReadSequences returns {field, number, …} for the sequences of the nonce ARGV[1].
	ReadSequences = luascript.New(guardLua + `local all = {}
everywhere(function(db)
  local field = ARGV[1] .. '@' .. db
  all[#all + 1], all[#all + 2] = field, redis.call('hget', sequence, field) or '0'
end)
return all`)

	// PublishSeqs stores numbers of other masters' sequences for ARGV[1] ms. The further arguments
	// are pairs of a field and a number. A higher stored number stays.
	PublishSeqs = luascript.New(`for i = 2, #ARGV, 2 do
  local key = '` + seqPrefix + `' .. ARGV[i]
  local has = redis.call('get', key) or '0'
  if tonumber(has) < tonumber(ARGV[i + 1]) then has = ARGV[i + 1] end
  redis.call('set', key, has, 'px', ARGV[1])
end
return 1`)

	// ReadPublishedSeqs returns the stored numbers of the sequence fields ARGV.
	ReadPublishedSeqs = luascript.New(`local all = {}
for i, field in ipairs(ARGV) do all[i] = redis.call('get', '` + seqPrefix + `' .. field) or '0' end
return all`)

	// RenewCanaries renews the canaries of a master with the marker ARGV[1], for ARGV[3] ms. If a
	// canary is missing, it creates one with the value ARGV[2]. It returns {database, former value,
	// present value, number of the sequence of the nonce ARGV[4], …}, or nothing if the marker is
	// different.
	RenewCanaries = luascript.New(guardLua + `
if not equals(marker, ARGV[1]) then return {} end
local all = {}
everywhere(function(db)
  local was = redis.call('get', canary) or ''
  if was == '' then redis.call('set', canary, ARGV[2], 'px', ARGV[3])
  else redis.call('pexpire', canary, ARGV[3]) end
  all[#all + 1], all[#all + 2], all[#all + 3] = db, was, redis.call('get', canary) or ''
  all[#all + 1] = redis.call('hget', sequence, ARGV[4] .. '@' .. db) or '0'
end)
return all`)

	// EndAnnouncement removes the entry of the proxy ARGV[1].
	EndAnnouncement = luascript.New(`return redis.call('hdel', '` + ProxiesKey + `', ARGV[1])`)

	// Announce stores the entry ARGV[2] of the proxy ARGV[1], and removes entries that are older
	// than ARGV[3] ms. It returns {seconds, microseconds, id, entry, …} for all proxies. An entry
	// begins with its time and the time of the proxy's first entry, both in ms of the master's
	// clock.
	Announce = luascript.New(timeReadLua + `local proxies = '` + ProxiesKey + `'
local time = redis.call('time')
local now = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
local had = redis.call('hget', proxies, ARGV[1])
local first = had and string.match(had, '^%d+ (%d+)') or now
redis.call('hset', proxies, ARGV[1], now .. ' ' .. first .. ' ' .. ARGV[2])
local all = redis.call('hgetall', proxies)
local reply = {time[1], time[2]}
for i = 1, #all, 2 do
  local at = tonumber(string.match(all[i + 1], '^%d+') or '0')
  if math.abs(now - at) > tonumber(ARGV[3]) then
    redis.call('hdel', proxies, all[i])
  else
    reply[#reply + 1], reply[#reply + 2] = all[i], all[i + 1]
  end
end
return reply`)
)
