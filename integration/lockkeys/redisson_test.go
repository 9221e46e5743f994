//go:build integration

package lockkeys

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// These scripts reimplement the commands of Redisson's locks that use several keys. The name of a
// lock is the tag of its keys.
const (
	// latchedRelease releases a lock like Redisson since version 3.24. It stores its result under a
	// latch key, so that a repeated request gets the same reply.
	latchedRelease = `local lock, channel, latch, message, ms, holder, tell, stays = KEYS[1], KEYS[2], KEYS[3], ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local before = redis.call('get', latch)
if before then return tonumber(before) end
if redis.call('hexists', lock, holder) == 0 then return nil end
if redis.call('hincrby', lock, holder, -1) > 0 then
  redis.call('pexpire', lock, ms)
  redis.call('set', latch, 0, 'px', stays)
  return 0
end
redis.call('del', lock)
redis.call(tell, channel, message)
redis.call('set', latch, 1, 'px', stays)
return 1`
	// dropExpiredWaiters declares a Lua function that removes the expired waiters from the queue.
	dropExpiredWaiters = `local function dropExpiredWaiters(queue, times, now)
  local first = redis.call('lindex', queue, 0)
  while first and tonumber(redis.call('zscore', times, first)) <= now do
    redis.call('zrem', times, first)
    redis.call('lpop', queue)
    first = redis.call('lindex', queue, 0)
  end
end
`
	fairTake = dropExpiredWaiters + `local lock, queue, times, ms, holder, wait, now = KEYS[1], KEYS[2], KEYS[3], ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
dropExpiredWaiters(queue, times, now)
if redis.call('exists', lock) == 0 and (redis.call('exists', queue) == 0 or redis.call('lindex', queue, 0) == holder) then
  redis.call('lpop', queue)
  redis.call('zrem', times, holder)
  for _, other in ipairs(redis.call('zrange', times, 0, -1)) do redis.call('zincrby', times, -wait, other) end
  redis.call('hset', lock, holder, 1)
  redis.call('pexpire', lock, ms)
  return nil
end
if redis.call('hexists', lock, holder) == 1 then
  redis.call('hincrby', lock, holder, 1)
  redis.call('pexpire', lock, ms)
  return nil
end
local mine = redis.call('zscore', times, holder)
if mine then return tonumber(mine) - wait - now end
local last, left = redis.call('lindex', queue, -1), nil
if last and last ~= holder then left = tonumber(redis.call('zscore', times, last)) - now else left = redis.call('pttl', lock) end
if redis.call('zadd', times, left + wait + now, holder) == 1 then redis.call('rpush', queue, holder) end
return left`
	fairRelease = dropExpiredWaiters + `local lock, queue, times, channel, message, ms, holder, now = KEYS[1], KEYS[2], KEYS[3], KEYS[4], ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
dropExpiredWaiters(queue, times, now)
local function tellNext()
  local next = redis.call('lindex', queue, 0)
  if next then redis.call('publish', channel .. ':' .. next, message) end
  return 1
end
if redis.call('exists', lock) == 0 then return tellNext() end
if redis.call('hexists', lock, holder) == 0 then return nil end
if redis.call('hincrby', lock, holder, -1) > 0 then redis.call('pexpire', lock, ms) return 0 end
redis.call('del', lock)
return tellNext()`
	// fairLeave removes a client from the queue.
	fairLeave = `local queue, times, holder, wait = KEYS[1], KEYS[2], ARGV[1], tonumber(ARGV[2])
local all = redis.call('lrange', queue, 0, -1)
local behind = false
for _, other in ipairs(all) do
  if behind then redis.call('zincrby', times, -wait, other) end
  if other == holder then behind = true end
end
redis.call('zrem', times, holder)
redis.call('lrem', queue, 0, holder)
return nil`
	readTake = `local lock, prefix, ms, holder, writer = KEYS[1], KEYS[2], ARGV[1], ARGV[2], ARGV[3]
local mode = redis.call('hget', lock, 'mode')
if not mode then
  redis.call('hset', lock, 'mode', 'read')
  redis.call('hset', lock, holder, 1)
  redis.call('set', prefix .. ':1', 1)
  redis.call('pexpire', prefix .. ':1', ms)
  redis.call('pexpire', lock, ms)
  return nil
end
if mode == 'read' or redis.call('hexists', lock, writer) == 1 then
  local n = redis.call('hincrby', lock, holder, 1)
  redis.call('set', prefix .. ':' .. n, 1)
  redis.call('pexpire', prefix .. ':' .. n, ms)
  redis.call('pexpire', lock, math.max(redis.call('pttl', lock), tonumber(ms)))
  return nil
end
return redis.call('pttl', lock)`
	readRelease = `local lock, channel, prefix, tag, message, holder = KEYS[1], KEYS[2], KEYS[3], KEYS[4], ARGV[1], ARGV[2]
local mode = redis.call('hget', lock, 'mode')
if not mode then redis.call('publish', channel, message) return 1 end
if redis.call('hexists', lock, holder) == 0 then return nil end
local n = redis.call('hincrby', lock, holder, -1)
if n == 0 then redis.call('hdel', lock, holder) end
redis.call('del', prefix .. ':' .. (n + 1))
if redis.call('hlen', lock) > 1 then
  local longest = -3
  for _, field in ipairs(redis.call('hkeys', lock)) do
    local held = tonumber(redis.call('hget', lock, field))
    if held then
      for i = held, 1, -1 do longest = math.max(longest, redis.call('pttl', tag .. ':' .. field .. ':rwlock_timeout:' .. i)) end
    end
  end
  if longest > 0 then redis.call('pexpire', lock, longest) return 0 end
  if mode == 'write' then return 0 end
end
redis.call('del', lock)
redis.call('publish', channel, message)
return 1`
	writeTake = `local lock, ms, writer = KEYS[1], ARGV[1], ARGV[2]
local mode = redis.call('hget', lock, 'mode')
if not mode then
  redis.call('hset', lock, 'mode', 'write')
  redis.call('hset', lock, writer, 1)
  redis.call('pexpire', lock, ms)
  return nil
end
if mode == 'write' and redis.call('hexists', lock, writer) == 1 then
  redis.call('hincrby', lock, writer, 1)
  redis.call('pexpire', lock, redis.call('pttl', lock) + ms)
  return nil
end
return redis.call('pttl', lock)`
	writeRelease = `local lock, channel, message, ms, writer = KEYS[1], KEYS[2], ARGV[1], ARGV[2], ARGV[3]
local mode = redis.call('hget', lock, 'mode')
if not mode then redis.call('publish', channel, message) return 1 end
if mode ~= 'write' or redis.call('hexists', lock, writer) == 0 then return nil end
if redis.call('hincrby', lock, writer, -1) > 0 then redis.call('pexpire', lock, ms) return 0 end
redis.call('hdel', lock, writer)
if redis.call('hlen', lock) == 1 then redis.call('del', lock) redis.call('publish', channel, message) else redis.call('hset', lock, 'mode', 'read') end
return 1`
	fencedTake = `local lock, number, ms, holder = KEYS[1], KEYS[2], ARGV[1], ARGV[2]
if redis.call('exists', lock) == 0 or redis.call('hexists', lock, holder) == 1 then
  redis.call('hincrby', lock, holder, 1)
  redis.call('pexpire', lock, ms)
  return {-1, redis.call('incr', number)}
end
return {redis.call('pttl', lock), -1}`
	permitTake = `local permits, times, channel, id, ends, now = KEYS[1], KEYS[2], KEYS[3], ARGV[1], ARGV[2], ARGV[3]
local over = redis.call('zrangebyscore', times, 0, now)
if #over > 0 then
  redis.call('zrem', times, unpack(over))
  redis.call('incrby', permits, #over)
  redis.call('publish', channel, redis.call('get', permits))
end
if tonumber(redis.call('get', permits) or 0) >= 1 then
  redis.call('decrby', permits, 1)
  redis.call('zadd', times, ends, id)
  return id
end
local first = redis.call('zrange', times, 0, 0, 'WITHSCORES')
if first[1] then return ':' .. first[2] end
return nil`
	permitRelease = `local permits, times, channel, id = KEYS[1], KEYS[2], KEYS[3], ARGV[1]
if redis.call('zrem', times, id) == 0 then return 0 end
redis.call('publish', channel, redis.call('incrby', permits, 1))
return 1`
)

// evalCommand returns an EVAL with the given keys.
func evalCommand(body string, keys []string, argv ...string) []string {
	return append(append([]string{"EVAL", body, strconv.Itoa(len(keys))}, keys...), argv...)
}

// lockConversation is a conversation of some holders with locks of several keys.
type lockConversation struct {
	*comparison
	// now is the clock of the clients in milliseconds; lease is the lease that they request.
	now, lease int
	sentCount  int
	// generation is part of the names of the locks. It increases after a late reply.
	generation int
}

// name returns the key of a lock.
func (r *lockConversation) name(lock string) string {
	return fmt.Sprintf("lock:%d:%s", r.generation, lock)
}

// startAgain continues with new locks, and a semaphore with two permits.
func (r *lockConversation) startAgain(t *testing.T) {
	t.Helper()
	r.flushSingle(t)
	r.generation++
	for kit.IsLateText(query(t, r.proxies[0], "SET", r.name("sem"), "2").raw) {
		r.generation++
	}
	query(t, r.singleRedis, "SET", r.name("sem"), "2")
}

// wantFewLate fails the test if too many replies were late.
func (r *lockConversation) wantFewLate(t *testing.T) {
	t.Helper()
	t.Logf("%d generations of locks", r.generation)
	if r.generation > 250 {
		t.Errorf("%d times a reply was late: too few are compared", r.generation-1)
	}
}

// step returns one request of a holder.
func (r *lockConversation) step(holder string) []string {
	r.now += r.random.IntN(50)
	ms, now, writer := strconv.Itoa(r.lease), strconv.Itoa(r.now), holder+":write"
	plainKey, fairKey, rwKey, fencedKey, semaphoreKey := r.name("plain"), r.name("fair"), r.name("rw"), r.name("fenced"), r.name("sem")
	queue, times := "redisson_lock_queue:{"+fairKey+"}", "redisson_lock_timeout:{"+fairKey+"}"
	prefix := "{" + rwKey + "}:" + holder + ":rwlock_timeout"
	latch := "redisson_unlock_latch:{" + plainKey + "}:" + strconv.Itoa(r.sentCount-r.random.IntN(2))
	switch r.random.IntN(20) {
	case 0, 1:
		return takeCommand(plainKey, holder)
	case 2, 3:
		return evalCommand(latchedRelease, []string{plainKey, "redisson_lock__channel:{" + plainKey + "}", latch}, "0", ms, holder,
			"publish", "600000")
	case 4:
		return []string{"DEL", latch}
	case 5, 6, 7:
		if r.random.IntN(20) == 0 {
			r.now += 100_000 // the waiting clients count as dead by then
			now = strconv.Itoa(r.now)
		}
		return evalCommand(fairTake, []string{fairKey, queue, times}, ms, holder, "5000", now)
	case 8, 9:
		return evalCommand(fairRelease, []string{fairKey, queue, times, "redisson_lock__channel:{" + fairKey + "}"}, "0", ms, holder, now)
	case 10:
		return evalCommand(fairLeave, []string{queue, times}, holder, "5000")
	case 11, 12:
		return evalCommand(readTake, []string{rwKey, prefix}, ms, holder, writer)
	case 13:
		return evalCommand(readRelease, []string{rwKey, "redisson_rwlock:{" + rwKey + "}", prefix, "{" + rwKey + "}"}, "0", holder)
	case 14:
		return evalCommand(writeTake, []string{rwKey}, ms, writer)
	case 15:
		return evalCommand(writeRelease, []string{rwKey, "redisson_rwlock:{" + rwKey + "}"}, "0", ms, writer)
	case 16:
		return evalCommand(fencedTake, []string{fencedKey, "redisson_lock_token:{" + fencedKey + "}"}, ms, holder)
	case 17:
		return releaseCommand(fencedKey, holder)
	case 18:
		return evalCommand(permitTake, []string{semaphoreKey, "{" + semaphoreKey + "}:timeout", "redisson_sc:{" + semaphoreKey + "}"},
			holder+strconv.Itoa(r.sentCount), strconv.Itoa(r.now+r.random.IntN(2000)), now)
	}
	return evalCommand(permitRelease, []string{semaphoreKey, "{" + semaphoreKey + "}:timeout", "redisson_sc:{" + semaphoreKey + "}"},
		holder+strconv.Itoa(r.sentCount-r.random.IntN(8)))
}

// isRemainingTime reports whether an integer is a remaining time in milliseconds, not a count, and not
// the -1 or -2 of PTTL. The remaining time of a client that waits for the fair lock can be below zero.
func isRemainingTime(value int64) bool { return value > 20 || value < -20 }

// nearlyEqual reports whether two replies are equal except for remaining times.
func nearlyEqual(proxyValue, redisValue any) bool {
	switch value := proxyValue.(type) {
	case int64:
		other, isInt := redisValue.(int64)
		return isInt && (value == other || isRemainingTime(value) && isRemainingTime(other) && max(value-other, other-value) < 5000)
	case []any:
		other, isList := redisValue.([]any)
		same := isList && len(value) == len(other)
		for i := 0; same && i < len(value); i++ {
			same = nearlyEqual(value[i], other[i])
		}
		return same
	}
	return fmt.Sprint(proxyValue) == fmt.Sprint(redisValue)
}

// run compares the given number of requests.
func (r *lockConversation) run(t *testing.T, requests int) {
	t.Helper()
	for range requests {
		r.sentCount++
		words := r.step(string("abc"[r.random.IntN(3)]))
		r.history = append(r.history, fmt.Sprintf("%.60q %q", words[:2], words[min(2, len(words)):]))
		p := r.proxies[r.random.IntN(len(r.proxies))]
		proxyReply, redisReply := query(t, p, words...), query(t, r.singleRedis, words...)
		if kit.IsLateText(proxyReply.raw) {
			r.startAgain(t)
			continue
		}
		if isError(proxyReply.raw) || !nearlyEqual(proxyReply.value, redisReply.value) {
			t.Fatalf("after\n%s\n got  %q\n want %q", strings.Join(r.history[max(0, len(r.history)-12):], "\n"),
				proxyReply.raw, redisReply.raw)
		}
	}
}

// expireLocks compares some requests with a short lease, and waits until these leases have expired.
func (r *lockConversation) expireLocks(t *testing.T) {
	t.Helper()
	r.lease = 5_000 // no lock expires between the replies of the proxy and of the single Redis
	r.run(t, 12)
	time.Sleep(5700 * time.Millisecond) // the leases expire
	r.lease = 30_000
}

// TestRedissonsLocks checks that Redisson's locks get the replies of a single Redis. It covers the
// lock with its unlock latch, the fair, the read-write and the fenced lock, and the semaphore with
// expiring permits. Each request goes through one of two proxies, with all masters and with three
// of five.
func TestRedissonsLocks(t *testing.T) {
	redistest.SkipShort(t)
	seed := kit.NumberFrom(t, kit.SeedEnv, rand.Uint64())
	t.Logf("seed %d (%s)", seed, kit.SeedEnv)
	masters, upstream, single := kit.StartMasters(t), kit.StartRedis(t), kit.StartReference(t)
	firstProxy, secondProxy := kit.StartProxy(t, redistest.URLs(masters), tagArgs(upstream)...),
		kit.StartProxy(t, redistest.URLs(masters), tagArgs(upstream)...)
	r := &lockConversation{
		comparison: startComparison(t, "2", rand.New(rand.NewPCG(seed, 3)), single.Addr(), firstProxy.Addr(), secondProxy.Addr()),
		now:        1_000_000, lease: 30_000,
	}
	r.startAgain(t)
	for round := range 4 {
		if round == 2 {
			kit.Must(t, masters[0].Kill())
			kit.Must(t, masters[3].Kill())
		}
		r.run(t, 250)
		if round%2 == 0 {
			r.expireLocks(t)
		}
	}
	r.wantFewLate(t)
	pattern := "*" + r.name("*")
	got := query(t, r.proxies[0], "KEYS", pattern)
	for kit.IsLateText(got.raw) {
		got = query(t, r.proxies[0], "KEYS", pattern)
	}
	if want := query(t, r.singleRedis, "KEYS", pattern); unorderedText(got.value) != unorderedText(want.value) {
		t.Errorf("in the end there are %v, not %v", got.value, want.value)
	}
}
