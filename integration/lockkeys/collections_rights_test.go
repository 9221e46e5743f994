//go:build integration

package lockkeys

import (
	"testing"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// TestPermissionsForCollections checks that a user of the upstream has the same permissions for
// collections in lock keys as for collections on the upstream.
func TestPermissionsForCollections(t *testing.T) {
	upstream := kit.StartRedis(t)
	admin := kit.Dial(t, upstream.Addr())
	args := kit.LockKeyArgs(upstream)
	proxy := kit.StartProxy(t, redistest.URLs(kit.StartMasters(t)), args...)
	login := func(user, rules string) *redistest.Client {
		kit.WantPrefix(t, admin, "ACL SETUSER "+user+" on >pw "+rules, "OK")
		client := kit.Connect(t, proxy)
		kit.WantPrefix(t, client, "AUTH "+user+" pw", "OK")
		return client
	}
	const commandPermissionError, keyPermissionError = "NOPERM this user has no permissions to run the '",
		"NOPERM this user has no permissions to access one of the keys"

	limited := login("some", "~lock:* +hset +hget +eval +zinterstore +rpoplpush +rpush +multi +discard")
	kit.WantPrefix(t, limited, "HSET lock:h f v", "1")
	kit.WantPrefix(t, limited, "HGET lock:h f", "v")
	kit.WantPrefix(t, limited, "HDEL lock:h f", commandPermissionError+"hdel'")
	kit.WantPrefix(t, limited, "HGETALL lock:h", commandPermissionError+"hgetall'")
	kit.WantPrefix(t, limited, "EVAL|return redis.call('hset', KEYS[1], 'g', 'w')|1|lock:h", "1")
	kit.WantPrefix(t, limited, "EVAL|return redis.call('hdel', KEYS[1], 'g')|1|lock:h",
		"ERR The user executing the script can't run this command or subcommand")
	kit.WantPrefix(t, limited, "ZINTERSTORE lock:s 2 lock:t lock:u", "0")
	kit.WantPrefix(t, limited, "RPUSH lock:l a b", "2")
	kit.WantPrefix(t, limited, "RPOPLPUSH lock:l lock:l", "b")
	kit.WantPrefix(t, admin, "DBSIZE", "0")

	redistest.RequireFeature(t, "rights to read a key", "7.0")
	reader := login("reader", "%R~lock:* %W~lock:mine +@all")
	kit.WantPrefix(t, reader, "HGET lock:h g", "w")
	kit.WantPrefix(t, reader, "HSET lock:h g x", keyPermissionError)
	kit.WantPrefix(t, reader, "HSET lock:mine g x", "1")
	kit.WantPrefix(t, reader, "LMOVE lock:l lock:mine LEFT RIGHT", keyPermissionError)
	kit.WantPrefix(t, reader, "ZINTERSTORE lock:mine 2 lock:x lock:y WEIGHTS 1 2", "0")
	kit.WantPrefix(t, reader, "ZINTERSTORE lock:x 1 lock:mine", keyPermissionError)
	kit.WantPrefix(t, reader, "OBJECT ENCODING lock:l", "quicklist")
	kit.WantPrefix(t, reader, "HSET lock:h g x", keyPermissionError)
	kit.WantPrefix(t, admin, "DBSIZE", "0")
}
