//go:build integration

package clients

import (
	"strings"
	"testing"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// TestLocksOfTwoKeys covers a library that stores a lock's owner and its expiry under two keys, and
// changes one key depending on the other. This works with a single Redis. The proxy refuses such a
// change with an error that names both keys, and changes neither key.
func TestLocksOfTwoKeys(t *testing.T) {
	redistest.SkipShort(t)
	d, program := dialect{name: "redis-lock", grantOutput: "true", storedKeys: ownerAndExpiryKeys}, rubyLocks(t)
	key := d.key("life")
	redisSide := startRedisService(t, program)
	redisSide.wantGrant(redisSide.a, d, key, longLease)
	redisSide.wantRefusal(redisSide.b, d, key)
	redisSide.run(redisSide.a, d, "extend", key, kit.Millis(longerLease))
	redisSide.run(redisSide.a, d, "release", key)
	redisSide.wantGrant(redisSide.b, d, key, longLease)

	proxySide := startLockKeyService(t, program)
	proxySide.wantGrant(proxySide.a, d, key, longLease)
	proxySide.wantRefusal(proxySide.b, d, key)
	proxySide.wantUnchanged(d, key, func() {
		for _, operation := range [][]string{{"extend", kit.Millis(longerLease)}, {"release"}} {
			reply := proxySide.run(proxySide.a, d, operation[0], key, operation[1:]...)
			for _, part := range append(ownerAndExpiryKeys(key), "cannot be changed together") {
				if !strings.Contains(reply, part) {
					t.Errorf("%s: got %s, want an error with %q", operation[0], reply, part)
				}
			}
		}
	})
}

// ownerAndExpiryKeys returns the two keys of a lock.
func ownerAndExpiryKeys(key string) []string {
	return []string{"lock:owner:" + key, "lock:expire:" + key}
}
