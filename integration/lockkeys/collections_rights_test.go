//go:build integration

package lockkeys

import (
	"testing"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// TestRightsToCollections checks that a user of the upstream has the same permissions for
// collections in lock keys as for collections on the upstream.
func TestRightsToCollections(t *testing.T) {
	upstream := kit.StartRedis(t)
	admin := kit.Dial(t, upstream.Addr())
	args := kit.LockKeyArgs(upstream)
	proxy := kit.StartProxy(t, redistest.URLs(kit.StartMasters(t)), args...)
	login := func(user, rules string) *redistest.Client {
		kit.Does(t, admin, "ACL SETUSER "+user+" on >pw "+rules, "OK")
		client := kit.Connect(t, proxy)
		kit.Does(t, client, "AUTH "+user+" pw", "OK")
		return client
	}
	const noCommand, noKey = "NOPERM this user has no permissions to run the '",
		"NOPERM this user has no permissions to access one of the keys"

	limited := login("some", "~lock:* +hset +hget +eval +zinterstore +rpoplpush +rpush +multi +discard")
	kit.Does(t, limited, "HSET lock:h f v", "1")
	kit.Does(t, limited, "HGET lock:h f", "v")
	kit.Does(t, limited, "HDEL lock:h f", noCommand+"hdel'")
	kit.Does(t, limited, "HGETALL lock:h", noCommand+"hgetall'")
	kit.Does(t, limited, "EVAL|return redis.call('hset', KEYS[1], 'g', 'w')|1|lock:h", "1")
	kit.Does(t, limited, "EVAL|return redis.call('hdel', KEYS[1], 'g')|1|lock:h",
		"ERR The user executing the script can't run this command or subcommand")
	kit.Does(t, limited, "ZINTERSTORE lock:s 2 lock:t lock:u", "0")
	kit.Does(t, limited, "RPUSH lock:l a b", "2")
	kit.Does(t, limited, "RPOPLPUSH lock:l lock:l", "b")
	kit.Does(t, admin, "DBSIZE", "0")

	redistest.Needs(t, "rights to read a key", "7.0")
	reader := login("reader", "%R~lock:* %W~lock:mine +@all")
	kit.Does(t, reader, "HGET lock:h g", "w")
	kit.Does(t, reader, "HSET lock:h g x", noKey)
	kit.Does(t, reader, "HSET lock:mine g x", "1")
	kit.Does(t, reader, "LMOVE lock:l lock:mine LEFT RIGHT", noKey)
	kit.Does(t, reader, "ZINTERSTORE lock:mine 2 lock:x lock:y WEIGHTS 1 2", "0")
	kit.Does(t, reader, "ZINTERSTORE lock:x 1 lock:mine", noKey)
	kit.Does(t, reader, "OBJECT ENCODING lock:l", "quicklist")
	kit.Does(t, reader, "HSET lock:h g x", noKey)
	kit.Does(t, admin, "DBSIZE", "0")
}
