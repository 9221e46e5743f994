//go:build integration

package lockkeys

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// These scripts reimplement the commands of Redisson's rate limiter. A grant is a member of a
// sorted set: a name packed with a number of permits. Its score is the client's time. The number of
// remaining permits has its own key. All keys have the tag of the limiter's name.
const (
	setRateScript = `local limiter = KEYS[1]
redis.call('hsetnx', limiter, 'rate', ARGV[1])
redis.call('hsetnx', limiter, 'interval', ARGV[2])
redis.call('hsetnx', limiter, 'keepAliveTime', ARGV[4])
local new = redis.call('hsetnx', limiter, 'type', ARGV[3])
if new == 1 and tonumber(ARGV[4]) > 0 then redis.call('pexpire', limiter, ARGV[4]) end
return new`
	// rateHead reads the settings, and selects the keys of all clients or of this client.
	rateHead = `local limiter, left, granted = KEYS[1], KEYS[2], KEYS[4]
local rate, interval, kind = redis.call('hget', limiter, 'rate'), redis.call('hget', limiter, 'interval'), redis.call('hget', limiter, 'type')
assert(rate ~= false and interval ~= false and kind ~= false, 'RateLimiter is not initialized')
if kind == '1' then left, granted = KEYS[3], KEYS[5] end
local function permitsOf(members)
  local sum = 0
  for _, member in ipairs(members) do
    local _, permits = struct.unpack(FORMAT, member)
    sum = sum + permits
  end
  return sum
end
`
	// rateTail renews the expiry of the keys, and returns the result.
	rateTail = `
local alive = redis.call('hget', limiter, 'keepAliveTime')
if alive and tonumber(alive) > 0 then
  redis.call('pexpire', limiter, alive) redis.call('pexpire', left, alive) redis.call('pexpire', granted, alive)
else
  local ms = redis.call('pttl', limiter)
  if ms > 0 then redis.call('pexpire', left, ms) redis.call('pexpire', granted, ms) end
end
return res`
	acquirePermitsScript = rateHead + `local wanted, now, res = ARGV[1], tonumber(ARGV[2]), nil
assert(tonumber(rate) >= tonumber(wanted), 'Requested permits amount cannot exceed defined rate')
local function grant()
  redis.call('zadd', granted, ARGV[2], struct.pack(FORMAT, NAME, wanted))
  redis.call('decrby', left, wanted)
end
local have = redis.call('get', left)
if not have then
  redis.call('set', left, rate)
  grant()
else
  local over = permitsOf(redis.call('zrangebyscore', granted, 0, now - interval))
  if over > 0 then
    redis.call('zremrangebyscore', granted, 0, now - interval)
    if tonumber(have) + over > tonumber(rate) then
      have = tonumber(rate) - permitsOf(redis.call('zrange', granted, 0, -1))
    else
      have = tonumber(have) + over
    end
    redis.call('set', left, have)
  end
  if tonumber(have) < tonumber(wanted) then
    local first = redis.call('zrange', granted, 0, 0, 'withscores')
    res = 3 + interval - (now - tonumber(first[2]))
  else
    grant()
  end
end
` + rateTail
	releasePermitsScript = rateHead + `local back, res = tonumber(ARGV[1]), nil
local all = redis.call('zrange', granted, 0, -1, 'withscores')
for i = 1, #all - 1, 2 do
  if back <= 0 then break end
  local name, permits = struct.unpack(FORMAT, all[i])
  redis.call('zrem', granted, all[i])
  if permits > back then redis.call('zadd', granted, all[i + 1], struct.pack(FORMAT, string.len(name), name, permits - back)) end
  back = math.max(back - permits, 0)
end
local have = tonumber(redis.call('get', left) or rate)
redis.call('set', left, math.min(have + ARGV[1], tonumber(rate)))
` + rateTail
	remainingPermitsScript = rateHead + `local now, have = tonumber(ARGV[1]), redis.call('get', left)
if not have then redis.call('set', left, rate) return rate end
local over = permitsOf(redis.call('zrangebyscore', granted, 0, now - interval))
if over > 0 then
  redis.call('zremrangebyscore', granted, 0, now - interval)
  have = tonumber(have) + over
  redis.call('set', left, have)
end
return have`
)

// rateScript returns a script with the format of a Redisson version. The members have a name, or
// before version 3.20 a number.
func rateScript(script string, named bool) string {
	format, name := "'fI'", "ARGV[3]"
	if named {
		format, name = "'Bc0I'", "string.len(ARGV[3]), ARGV[3]"
	}
	return strings.NewReplacer("FORMAT", format, "NAME", name).Replace(script)
}

// rateKeys returns the keys of a limiter. Some of them belong to one client.
func rateKeys(name, client string) []string {
	return []string{name, "{" + name + "}:value", "{" + name + "}:value:" + client, "{" + name + "}:permits", "{" +
		name + "}:permits:" + client}
}

// limiterConversation is a conversation of clients with rate limiters.
type limiterConversation struct {
	*lockConversation
	keepAlive string // time after which an unused limiter expires, in milliseconds; 0: never
}

// step returns one request of a client.
func (l *limiterConversation) step(client string) []string {
	l.now += l.random.IntN(200)
	now := strconv.Itoa(l.now)
	kind := l.random.IntN(3)
	name := l.name("rate:" + strconv.Itoa(kind) + ":" + l.keepAlive)
	keys, named := rateKeys(name, client), kind != 2
	random := strconv.Itoa(l.random.IntN(1 << 20))
	if named {
		bytes := make([]byte, 16)
		for i := range bytes {
			bytes[i] = byte(l.random.IntN(256))
		}
		random = string(bytes)
	}
	switch l.random.IntN(16) {
	case 0:
		return evalCommand(setRateScript, keys[:1], "5", "1000", strconv.Itoa(kind%2), l.keepAlive)
	case 1, 2:
		return evalCommand(rateScript(remainingPermitsScript, named), keys, now)
	case 3:
		if named {
			return evalCommand(rateScript(releasePermitsScript, true), keys, strconv.Itoa(1+l.random.IntN(3)))
		}
	case 4:
		return []string{"HGETALL", name}
	case 5:
		if l.random.IntN(8) == 0 {
			return append([]string{"DEL"}, keys...)
		}
	case 6:
		return append([]string{"EXISTS"}, keys...)
	}
	return evalCommand(rateScript(acquirePermitsScript, named), keys, strconv.Itoa(1+l.random.IntN(3)), now, random)
}

// TestRedissonsRateLimiter checks that rate limiters get the replies of a single Redis. Each
// request goes through one of two proxies, with all masters and with three of five.
func TestRedissonsRateLimiter(t *testing.T) {
	redistest.SkipShort(t)
	seed := kit.NumberFrom(t, kit.SeedEnv, rand.Uint64())
	t.Logf("seed %d (%s)", seed, kit.SeedEnv)
	masters, upstream, single := kit.StartMasters(t), kit.StartRedis(t), kit.StartReference(t)
	firstProxy, secondProxy := kit.StartProxy(t, redistest.URLs(masters), tagArgs(upstream)...),
		kit.StartProxy(t, redistest.URLs(masters), tagArgs(upstream)...)
	l := &limiterConversation{lockConversation: &lockConversation{
		comparison: startComparison(t, "2", rand.New(rand.NewPCG(seed, 4)), single.Addr(), firstProxy.Addr(), secondProxy.Addr()),
		now:        1_000_000,
	}}
	granted := 0
	for round := range 4 {
		if round == 2 {
			kit.Must(t, masters[0].Kill())
			kit.Must(t, masters[3].Kill())
		}
		l.keepAlive = []string{"0", "60000"}[round%2]
		for range 250 {
			words := l.step(string("ab"[l.random.IntN(2)]))
			l.history = append(l.history, fmt.Sprintf("%.60q %q", words[:2], words[min(2, len(words)):]))
			proxyReply, redisReply := query(t, l.proxies[l.random.IntN(2)], words...), query(t, l.singleRedis, words...)
			if kit.IsLateText(proxyReply.raw) {
				l.startAgain(t)
				continue
			}
			if isError(proxyReply.raw) != isError(redisReply.raw) || !nearlyEqual(proxyReply.value, redisReply.value) {
				t.Fatalf("after\n%s\n got  %q\n want %q", strings.Join(l.history[max(0, len(l.history)-12):], "\n"),
					proxyReply.raw, redisReply.raw)
			}
			if proxyReply.value == nil {
				granted++
			}
		}
	}
	l.wantFewLate(t)
	if granted < 50 {
		t.Errorf("%d of 1000 requests were granted", granted)
	}
}

// TestRateLimit lets clients of two proxies request permits concurrently. Together they get exactly
// the rate in each interval, even if two of five masters are killed meanwhile. Permits with an
// unknown or late result may have been granted.
func TestRateLimit(t *testing.T) {
	redistest.SkipShort(t)
	const rate, clientsPerProxy, intervals, interval = 20, 3, 4, 1000
	masters, upstream := kit.StartMasters(t), kit.StartRedis(t)
	var clients []*redistest.Client
	for range 2 {
		proxy := kit.StartProxy(t, redistest.URLs(masters), tagArgs(upstream)...)
		for range clientsPerProxy {
			clients = append(clients, kit.Connect(t, proxy))
		}
	}
	kit.Want(t, clients[0], int64(1), evalCommand(setRateScript, []string{"lock:rate"}, strconv.Itoa(rate), strconv.Itoa(interval),
		"0", "0")...)
	for round := range intervals {
		granted, unknown, late := takeAll(clients, 1_000_000+round*interval, func(n int) {
			if round == intervals/2 && n == rate/2 {
				for _, master := range []int{1, 4} {
					if err := masters[master].Kill(); err != nil {
						t.Error(err)
					}
				}
			}
		})
		if t.Logf("%d granted, %d not known, %d late", granted, unknown, late); granted > rate ||
			granted+unknown+late < rate || round != intervals/2 && unknown > 0 {
			t.Errorf("interval %d: %d of %d granted, %d not known, %d late", round, granted, rate, unknown, late)
		}
	}
}

// takeAll lets clients take permits until none remain. After each grant, it calls onGrant with the
// number of grants.
func takeAll(clients []*redistest.Client, now int, onGrant func(granted int)) (granted, unknown, late int) {
	var mu sync.Mutex
	var workers sync.WaitGroup
	for i, c := range clients {
		workers.Go(func() {
			for n := range 1000 {
				random := fmt.Sprintf("%04d%04d%08d", i, n, now)
				reply, err := c.Do(evalCommand(rateScript(acquirePermitsScript, true), rateKeys("lock:rate", "x"), "1",
					strconv.Itoa(now), random)...)
				_, failed := reply.(error)
				mu.Lock()
				switch {
				case kit.IsLate(reply):
					late++
				case err != nil || failed:
					unknown++
				case reply == nil:
					granted++
					onGrant(granted)
				}
				mu.Unlock()
				if reply != nil && !failed {
					return
				}
			}
		})
	}
	workers.Wait()
	return granted, unknown, late
}
