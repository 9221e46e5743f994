//go:build integration

package moving

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"redlock-proxy/integration/kit"
)

// dialect is a way in which clients lock. Its functions return an error if a command failed.
type dialect struct {
	name string
	// kind is a part of the names of the keys. Dialects of the same kind lock the same keys.
	kind string
	// direct is set if clients can use the dialect at the upstream without a proxy.
	direct bool
	// fragile is set if a command without a reply may make the key unusable forever.
	fragile bool
	lease   time.Duration
	// take makes one attempt. It returns the validity from the request on, or 0 if not granted.
	take func(c *client, key, token string) (time.Duration, error)
	// holds reports whether the lock is still held with the token.
	holds func(c *client, key, token string) (bool, error)
	// extend restarts the lease. It is nil if the dialect has no such command.
	extend func(c *client, key, token string) (bool, error)
	// release releases the lock, and reports whether it was held.
	release func(c *client, key, token string) (bool, error)
	// holders returns the tokens that hold the key.
	holders func(c *client, key string) ([]string, error)
}

const (
	lease = 1500 * time.Millisecond
	// timestampLease is the lease of locks whose value is their expiry. Clients must not release
	// such locks late.
	timestampLease = 6 * time.Second
)

// These scripts reimplement the scripts of libraries.
const (
	deleteScript = `if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end`
	// pyExtend is redis-py's script. The time is added to the remaining time, or replaces it.
	pyExtend = `local token = redis.call('get', KEYS[1])
if not token or token ~= ARGV[1] then return 0 end
local left = redis.call('pttl', KEYS[1])
if not left then left = 0 end
if left < 0 then return 0 end
local new = ARGV[2]
if ARGV[3] == '0' then new = ARGV[2] + left end
redis.call('pexpire', KEYS[1], new)
return 1`
	pyRelease = `local token = redis.call('get', KEYS[1])
if not token or token ~= ARGV[1] then return 0 end
redis.call('del', KEYS[1])
return 1`
	hashTake = `if ((redis.call('exists', KEYS[1]) == 0) or (redis.call('hexists', KEYS[1], ARGV[2]) == 1)) then
redis.call('hincrby', KEYS[1], ARGV[2], 1) redis.call('pexpire', KEYS[1], ARGV[1]) return nil end
return redis.call('pttl', KEYS[1])`
	hashExtend  = `if (redis.call('hexists', KEYS[1], ARGV[2]) == 1) then redis.call('pexpire', KEYS[1], ARGV[1]) return 1 end return 0`
	hashRelease = `if (redis.call('hexists', KEYS[1], ARGV[3]) == 0) then return nil end
local counter = redis.call('hincrby', KEYS[1], ARGV[3], -1)
if (counter > 0) then redis.call('pexpire', KEYS[1], ARGV[2]) return 0
else redis.call('del', KEYS[1]) redis.call(ARGV[4], KEYS[2], ARGV[1]) return 1 end
return nil`
	sortedTake = `local key, now, token, ttl = KEYS[1], tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3])
if redis.call('TYPE', key).ok == 'string' then return false end
redis.call('ZREMRANGEBYSCORE', key, '-inf', now)
if redis.call('ZSCORE', key, token) then
  if not redis.call('ZSCORE', key, '__write__') and redis.call('ZCOUNT', key, '-inf', '+inf') > 1 then return false end
elseif redis.call('ZCOUNT', key, '-inf', '+inf') > 0 then return false end
redis.call('ZADD', key, now + ttl, token)
redis.call('ZADD', key, now + ttl, '__write__')
local last = redis.call('ZREVRANGE', key, 0, 0, 'WITHSCORES')[2]
redis.call('PEXPIREAT', key, last)
return true`
	sortedExtend = `local key, now, token, ttl = KEYS[1], tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3])
redis.call('ZREMRANGEBYSCORE', key, '-inf', now)
if not redis.call('ZSCORE', key, token) then return false end
redis.call('ZADD', key, now + ttl, token)
if redis.call('ZSCORE', key, '__write__') then redis.call('ZADD', key, now + ttl, '__write__') end
redis.call('PEXPIREAT', key, redis.call('ZREVRANGE', key, 0, 0, 'WITHSCORES')[2])
return true`
	sortedRelease = `local key, token = KEYS[1], ARGV[1]
if not redis.call('ZSCORE', key, token) then return false end
redis.call('ZREM', key, token)
redis.call('ZREM', key, '__write__')
local last = redis.call('ZREVRANGE', key, 0, 0, 'WITHSCORES')[2]
if nil ~= last then redis.call('PEXPIREAT', key, last) end
return true`
)

func nowMillis() string { return strconv.FormatInt(time.Now().UnixMilli(), 10) }

func setNX(c *client, key, token string) (time.Duration, error) {
	reply, err := c.do("SET", key, token, "NX", "PX", kit.Millis(lease))
	return grantedLease(reply == "OK"), err
}

func grantedLease(granted bool) time.Duration {
	if granted {
		return lease
	}
	return 0
}

func textHolders(c *client, key string) ([]string, error) {
	reply, err := c.do("GET", key)
	if text, isText := reply.(string); isText {
		return []string{text}, err
	}
	return nil, err
}

// oneReplyChecker returns a function that sends a command, and reports whether its reply is 1.
func oneReplyChecker(command func(key, token string) []string) func(*client, string, string) (bool, error) {
	return func(c *client, key, token string) (bool, error) {
		reply, err := c.do(command(key, token)...)
		return reply == int64(1), err
	}
}

func textHolds(c *client, key, token string) (bool, error) {
	reply, err := c.do("GET", key)
	return reply == token, err
}

// evalSHA runs a script as libraries do: by its hash, or with its source if the server does not
// know the hash.
func (c *client) evalSHA(script string, words ...string) (any, error) {
	sum := sha1.Sum([]byte(script))
	reply, err := c.doExpecting("NOSCRIPT", append([]string{"EVALSHA", hex.EncodeToString(sum[:])}, words...)...)
	if err == errExpected {
		return c.do(append([]string{"EVAL", script}, words...)...)
	}
	return reply, err
}

// releaseWatched releases a lock like clients that do not use scripts.
func releaseWatched(c *client, key, token string) (bool, error) {
	for {
		if _, err := c.do("WATCH", key); err != nil {
			return false, err
		}
		reply, err := c.do("GET", key)
		if err != nil || reply != token {
			_, unwatchErr := c.do("UNWATCH")
			if err == nil {
				err = unwatchErr
			}
			return false, err
		}
		if _, err := c.do("MULTI"); err != nil {
			return false, err
		}
		if _, err := c.do("DEL", key); err != nil {
			return false, err
		}
		reply, err = c.do("EXEC")
		if replies, isList := reply.([]any); err != nil || isList {
			return isList && len(replies) == 1 && replies[0] == int64(1), err
		}
		c.countReply("EXEC nil")
	}
}

func takeTimestamped(c *client, key, token string) (time.Duration, error) {
	value := strconv.FormatInt(time.Now().Add(timestampLease).UnixMilli(), 10) + " " + token
	reply, err := c.do("SETNX", key, value)
	if err != nil {
		return 0, err
	}
	if reply == int64(1) {
		return timestampLease, nil
	}
	before, err := c.do("GET", key)
	text, isText := before.(string)
	if err != nil || !isText || !isExpired(text) {
		return 0, err
	}
	value = strconv.FormatInt(time.Now().Add(timestampLease).UnixMilli(), 10) + " " + token
	got, err := c.do("GETSET", key, value)
	if err != nil || got != before {
		return 0, err
	}
	return timestampLease, nil
}

// isExpired reports whether a lock with its expiry in the value has expired.
func isExpired(value string) bool {
	millis, _, _ := strings.Cut(value, " ")
	expiry, err := strconv.ParseInt(millis, 10, 64)
	return err == nil && time.Now().UnixMilli() > expiry
}

// needsMastersError is part of the error of LOCK and similar commands while the locks are at the
// upstream.
const needsMastersError = " needs the locks on the masters: they are at the upstream; run 'redlock-proxy move' first"

// unlock sends UNLOCK, or the equivalent script while the locks are at the upstream.
func unlock(c *client, key, token string) (bool, error) {
	reply, err := c.doExpecting("ERR UNLOCK"+needsMastersError, "UNLOCK", key, token)
	if err == errExpected {
		reply, err = c.do("EVAL", deleteScript, "1", key, token)
	}
	return reply == int64(1), err
}

// dialects lists all dialects.
var dialects = []*dialect{
	{
		name: "SET NX", kind: "text", direct: true, lease: lease, take: setNX, holds: textHolds, holders: textHolders,
		release: oneReplyChecker(func(key, token string) []string { return []string{"EVAL", deleteScript, "1", key, token} }),
	},
	{
		name: "redis-py", kind: "text", direct: true, lease: lease, take: setNX, holds: textHolds, holders: textHolders,
		extend: func(c *client, key, token string) (bool, error) {
			reply, err := c.evalSHA(pyExtend, "1", key, token, kit.Millis(lease), "1")
			return reply == int64(1), err
		},
		release: func(c *client, key, token string) (bool, error) {
			reply, err := c.evalSHA(pyRelease, "1", key, token)
			return reply == int64(1), err
		},
	},
	{name: "WATCH", kind: "text", direct: true, lease: lease, take: setNX, holds: textHolds, holders: textHolders,
		release: releaseWatched},
	{
		name: "LOCK", kind: "text", lease: lease, holds: textHolds, holders: textHolders,
		take: func(c *client, key, token string) (time.Duration, error) {
			reply, err := c.doExpecting("ERR LOCK"+needsMastersError, "LOCK", key, token, "PX", kit.Millis(lease))
			if err == errExpected {
				return setNX(c, key, token)
			}
			ms, _ := reply.(int64)
			return time.Duration(ms) * time.Millisecond, err
		},
		extend: func(c *client, key, token string) (bool, error) {
			reply, err := c.doExpecting("ERR EXTEND"+needsMastersError, "EXTEND", key, token, "PX", kit.Millis(lease))
			if err == errExpected {
				reply, err = c.do("EVAL", pyExtend, "1", key, token, kit.Millis(lease), "1")
				return reply == int64(1), err
			}
			return reply != nil, err
		},
		release: unlock,
	},
	{
		name: "LOCK BLOCK", kind: "text", lease: lease, holds: textHolds, holders: textHolders,
		take: func(c *client, key, token string) (time.Duration, error) {
			reply, err := c.request("ERR LOCK"+needsMastersError, false, "LOCK", key, token, "PX", kit.Millis(lease), "BLOCK", "300")
			if err == errExpected {
				return setNX(c, key, token)
			}
			ms, _ := reply.(int64)
			return time.Duration(ms) * time.Millisecond, err
		},
		release: unlock,
	},
	{
		name: "endless", kind: "endless", direct: true, fragile: true, holds: textHolds, holders: textHolders,
		take: func(c *client, key, token string) (time.Duration, error) {
			reply, err := c.do("SET", key, token, "NX")
			if reply == "OK" {
				return time.Hour, err
			}
			return 0, err
		},
		release: oneReplyChecker(func(key, token string) []string { return []string{"EVAL", deleteScript, "1", key, token} }),
	},
	{
		name: "SETNX", kind: "dated", direct: true, lease: timestampLease, take: takeTimestamped,
		// Refused clients may have overwritten the value.
		holds: func(c *client, key, _ string) (bool, error) {
			reply, err := c.do("GET", key)
			text, isText := reply.(string)
			return isText && !isExpired(text), err
		},
		release: oneReplyChecker(func(key, _ string) []string { return []string{"DEL", key} }),
	},
	{
		name: "Redisson", kind: "hash", direct: true, lease: lease,
		take: func(c *client, key, token string) (time.Duration, error) {
			reply, err := c.do("EVAL", hashTake, "1", key, kit.Millis(lease), token)
			return grantedLease(err == nil && reply == nil), err
		},
		holds: oneReplyChecker(func(key, token string) []string { return []string{"HEXISTS", key, token} }),
		extend: oneReplyChecker(func(key, token string) []string {
			return []string{"EVAL", hashExtend, "1", key, kit.Millis(lease), token}
		}),
		release: oneReplyChecker(func(key, token string) []string {
			return []string{"EVAL", hashRelease, "2", key, "redisson_lock__channel:{" + key + "}", "0", kit.Millis(lease),
				token, "publish"}
		}),
		holders: func(c *client, key string) ([]string, error) {
			reply, err := c.do("HKEYS", key)
			return stringItems(reply), err
		},
	},
	{
		name: "Symfony", kind: "sorted", direct: true, lease: lease,
		take: func(c *client, key, token string) (time.Duration, error) {
			reply, err := c.do("EVAL", sortedTake, "1", key, nowMillis(), token, kit.Millis(lease))
			return grantedLease(reply == int64(1)), err
		},
		holds: func(c *client, key, token string) (bool, error) {
			reply, err := c.do("ZSCORE", key, token)
			return reply != nil, err
		},
		extend: oneReplyChecker(func(key, token string) []string {
			return []string{"EVAL", sortedExtend, "1", key, nowMillis(), token, kit.Millis(lease)}
		}),
		release: oneReplyChecker(func(key, token string) []string { return []string{"EVAL", sortedRelease, "1", key, token} }),
		holders: func(c *client, key string) ([]string, error) {
			reply, err := c.do("ZRANGE", key, "0", "-1")
			return stringItems(reply), err
		},
	},
	{
		name: "list", kind: "list", direct: true, fragile: true,
		take: func(c *client, key, token string) (time.Duration, error) {
			reply, err := c.doBlocking("BLPOP", key, "0.3")
			if len(stringItems(reply)) == 2 {
				return time.Hour, err
			}
			return 0, err
		},
		holds: func(c *client, key, _ string) (bool, error) { // no rival can have the element
			reply, err := c.do("LLEN", key)
			return reply == int64(0), err
		},
		release: oneReplyChecker(func(key, token string) []string { return []string{"RPUSH", key, token} }),
	},
}

func stringItems(reply any) []string {
	var items []string
	elems, _ := reply.([]any)
	for _, elem := range elems {
		items = append(items, fmt.Sprint(elem))
	}
	return items
}
