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

// These keys on the masters store the bodies of scripts. bodiesKey holds a hash of the bodies,
// bodiesUseKey a sorted set of their SHA-1 hashes in the order of use, and bodiesSizeKey their
// number of bytes.
const (
	bodiesKey     = script.OwnPrefix + "scripts"
	bodiesUseKey  = script.OwnPrefix + "scripts-used"
	bodiesSizeKey = script.OwnPrefix + "scripts-bytes"
)

// Limits for each master: the number of bodies, their bytes, and the time since a proxy last saved
// or found any of them. A client whose script was dropped gets NOSCRIPT, and sends the script
// again.
const (
	maxBodies    = 1000
	maxBodyBytes = 16 << 20
	bodiesTTL    = 30 * 24 * time.Hour
)

// saveBodyScript saves a body. While the limits are exceeded it drops the least recently used
// bodies, but never the new body. It renews the TTLs of the keys.
//
// KEYS: bodiesKey, bodiesUseKey, bodiesSizeKey; ARGV: the SHA-1, the body, the limits of the number
// and the bytes of the bodies, the TTL in ms.
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
` + useBodyLua + `
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

// useBodyLua marks a body as the most recently used.
const useBodyLua = `local last = redis.call('zrange', used, -1, -1, 'withscores')
redis.call('zadd', used, (tonumber(last[2]) or 0) + 1, sha)`

// findBodyScript returns a body, and records its use.
//
// KEYS: as for saveBodyScript; ARGV: the SHA-1, the TTL in ms.
const findBodyScript = `local bodies, used, sha = KEYS[1], KEYS[2], ARGV[1]
local body = redis.call('hget', bodies, sha)
if body and redis.call('zscore', used, sha) then
` + useBodyLua + `
  for _, key in ipairs(KEYS) do redis.call('pexpire', key, ARGV[2]) end
end
return body`

// ScriptBodies keeps the bodies of scripts on the masters, each under its SHA-1. So every proxy
// knows a script that a client loaded through another proxy. The hash verifies a body, so the
// answer of one master is enough. Each master keeps the 1,000 most recently used bodies, of at most
// 16 MB together. It keeps them for 30 days after a proxy last saved or found any of them.
type ScriptBodies struct {
	cluster *Cluster
	limits  bodyLimits
}

// bodyLimits holds the limits of ScriptBodies. Only tests use values other than maxBodies,
// maxBodyBytes and bodiesTTL.
type bodyLimits struct {
	count, bytes int
	ttl          time.Duration
}

// NewScriptBodies returns the store of script bodies on the masters of a cluster.
func NewScriptBodies(c *Cluster) *ScriptBodies {
	return &ScriptBodies{c, bodyLimits{maxBodies, maxBodyBytes, bodiesTTL}}
}

// Save stores a body under its SHA-1, in lower-case hexadecimal, on a majority of the masters. It
// may drop the least recently used bodies.
func (b *ScriptBodies) Save(ctx context.Context, sha, body string) error {
	_, err := b.doAll(ctx, "EVAL", saveBodyScript, "3", bodiesKey, bodiesUseKey, bodiesSizeKey,
		sha, body, strconv.Itoa(b.limits.count), strconv.Itoa(b.limits.bytes), formatMillis(b.limits.ttl))
	return err
}

// Flush removes all bodies.
func (b *ScriptBodies) Flush(ctx context.Context) error {
	_, err := b.doAll(ctx, "UNLINK", bodiesKey, bodiesUseKey, bodiesSizeKey)
	return err
}

// Find returns the body with this SHA-1. ok is false if no master that answered has the body. Then
// the error is a *NoQuorumError if fewer than a majority answered.
func (b *ScriptBodies) Find(ctx context.Context, sha string) (body string, ok bool, err error) {
	replies, err := b.doAll(ctx, "EVAL", findBodyScript, "3", bodiesKey, bodiesUseKey, bodiesSizeKey,
		sha, formatMillis(b.limits.ttl))
	for _, reply := range replies {
		if body, ok := reply.(string); ok && hasSHA(body, sha) {
			return body, true, nil
		}
	}
	return "", false, err
}

// doAll sends a command to every master, and returns the replies. The error is a *NoQuorumError if
// fewer than a majority replied.
func (b *ScriptBodies) doAll(ctx context.Context, words ...any) ([]any, error) {
	set := b.cluster.masterSet()
	masters := set.masters
	replies, errs := make([]any, len(masters)), make([]error, len(masters))
	var wg sync.WaitGroup
	for i, m := range masters {
		wg.Go(func() {
			errs[i] = contained.Run(func() (err error) {
				replies[i], err = m.Do(ctx, words...)
				return err
			})
		})
	}
	wg.Wait()
	votes := make([]register.Reply, len(masters))
	for i, err := range errs {
		if votes[i] = (register.Reply{State: register.Failed, Err: err}); err == nil {
			votes[i].State = register.Counted
		}
	}
	if !register.HasAnswerQuorum(votes) {
		return replies, set.translate(&register.NoQuorum{Replies: votes})
	}
	return replies, nil
}

func hasSHA(body, sha string) bool {
	sum := sha1.Sum([]byte(body))
	return hex.EncodeToString(sum[:]) == sha
}

func formatMillis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
