package quorum

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"strconv"
	"sync"
	"time"

	"redlock-proxy/internal/contained"
	"redlock-proxy/quorum/guard/script"
	"redlock-proxy/quorum/register"
)

// bodiesKey is the hash on the masters that holds the bodies of scripts, bodiesUseKey the sorted
// set of their hashes in the order of their use, bodiesSizeKey their bytes.
const (
	bodiesKey     = script.OwnPrefix + "scripts"
	bodiesUseKey  = script.OwnPrefix + "scripts-used"
	bodiesSizeKey = script.OwnPrefix + "scripts-bytes"
)

// What each master keeps of scripts: so many, of so many bytes together, each until it was neither
// saved nor looked for here for so long. A client whose script is gone gets NOSCRIPT, and sends
// it again.
const (
	maxBodies     = 1000
	maxBodyBytes  = 16 << 20
	bodiesStayFor = 30 * 24 * time.Hour
)

// saveBodyScript saves a body, and drops what was used longest ago while there is too much, but not
// that one. The times of the keys begin anew.
//
// KEYS: bodiesKey, bodiesUseKey, bodiesSizeKey; ARGV: hash, body, the number of bodies, their
// bytes, ms.
const saveBodyScript = `local bodies, used, size, sha = KEYS[1], KEYS[2], KEYS[3], ARGV[1]
if redis.call('zcard', used) ~= redis.call('hlen', bodies) or redis.call('exists', size) == 0 then
  local bytes = 0
  redis.call('del', used)
  for _, one in ipairs(redis.call('hkeys', bodies)) do
    redis.call('zadd', used, 0, one)
    bytes = bytes + #redis.call('hget', bodies, one)
  end
  redis.call('set', size, bytes)
end
` + useBody + `
local bytes = tonumber(redis.call('get', size))
if redis.call('hset', bodies, sha, ARGV[2]) == 1 then bytes = bytes + #ARGV[2] end
local kept = redis.call('zcard', used)
while kept > 1 and (kept > tonumber(ARGV[3]) or bytes > tonumber(ARGV[4])) do
  local oldest = redis.call('zrange', used, 0, 0)[1]
  bytes = bytes - #redis.call('hget', bodies, oldest)
  redis.call('hdel', bodies, oldest)
  redis.call('zrem', used, oldest)
  kept = kept - 1
end
redis.call('set', size, bytes)
for _, key in ipairs(KEYS) do redis.call('pexpire', key, ARGV[5]) end
return kept`

// useBody makes a body the one used last.
const useBody = `local last = redis.call('zrange', used, -1, -1, 'withscores')
redis.call('zadd', used, (tonumber(last[2]) or 0) + 1, sha)`

// findBodyScript answers a body, which is then the one used last.
//
// KEYS: as of saveBodyScript; ARGV: hash, ms.
const findBodyScript = `local bodies, used, sha = KEYS[1], KEYS[2], ARGV[1]
local body = redis.call('hget', bodies, sha)
if body and redis.call('zscore', used, sha) then
` + useBody + `
  for _, key in ipairs(KEYS) do redis.call('pexpire', key, ARGV[2]) end
end
return body`

// Bodies keeps the bodies of scripts on the masters, each under its SHA-1, so that
// a script loaded through one proxy is known to all. A body proves its name by its
// hash, so one master's answer is enough. Each master keeps the 1,000 that were used last,
// of 16 MB together, for 30 days after their last use by which a proxy asked for any of them.
type Bodies struct {
	cluster *Cluster
	limits  bodyLimits
}

// bodyLimits are maxBodies, maxBodyBytes and bodiesStayFor, but in tests.
type bodyLimits struct {
	count, bytes int
	stay         time.Duration
}

// NewBodies keeps bodies on a cluster.
func NewBodies(c *Cluster) *Bodies {
	return &Bodies{c, bodyLimits{maxBodies, maxBodyBytes, bodiesStayFor}}
}

// Save stores a body under its SHA-1, in lower-case hexadecimal, on a majority of
// the masters. Those that were used longest ago may be dropped for it.
func (b *Bodies) Save(ctx context.Context, sha, body string) error {
	_, err := b.do(ctx, "EVAL", saveBodyScript, "3", bodiesKey, bodiesUseKey, bodiesSizeKey,
		sha, body, strconv.Itoa(b.limits.count), strconv.Itoa(b.limits.bytes), millis(b.limits.stay))
	return err
}

// Flush removes all bodies.
func (b *Bodies) Flush(ctx context.Context) error {
	_, err := b.do(ctx, "UNLINK", bodiesKey, bodiesUseKey, bodiesSizeKey)
	return err
}

// Find returns the body with that SHA-1. ok is false if no master that answered has
// it; the error is a *NoQuorumError where too few answered to say so.
func (b *Bodies) Find(ctx context.Context, sha string) (body string, ok bool, err error) {
	said, err := b.do(ctx, "EVAL", findBodyScript, "3", bodiesKey, bodiesUseKey, bodiesSizeKey, sha, millis(b.limits.stay))
	for _, one := range said {
		if body, ok := one.(string); ok && hashes(body, sha) {
			return body, true, nil
		}
	}
	return "", false, err
}

// do has every master do a command, and returns what they said. The error is a
// *NoQuorumError where fewer than a majority did.
func (b *Bodies) do(ctx context.Context, words ...any) ([]any, error) {
	cluster := b.cluster.now()
	masters := cluster.masters
	said, errs := make([]any, len(masters)), make([]error, len(masters))
	var wg sync.WaitGroup
	for i, m := range masters {
		wg.Go(func() {
			errs[i] = contained.Run(func() (err error) {
				said[i], err = m.Do(ctx, words...)
				return err
			})
		})
	}
	wg.Wait()
	replies := make([]register.Reply, len(masters))
	for i, err := range errs {
		if replies[i] = (register.Reply{State: register.Failed, Err: err}); err == nil {
			replies[i].State = register.Counted
		}
	}
	if !register.Answered(replies) {
		return said, cluster.explain(&register.NoQuorum{Replies: replies})
	}
	return said, nil
}

func hashes(body, sha string) bool {
	sum := sha1.Sum([]byte(body))
	return hex.EncodeToString(sum[:]) == sha
}

func millis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
