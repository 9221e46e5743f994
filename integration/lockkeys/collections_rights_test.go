//go:build integration

package lockkeys

import (
	"testing"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// TestRightsToCollections: a user of the upstream may do with a collection in a lock key what it may do with one there.
func TestRightsToCollections(t *testing.T) {
	upstream := kit.StartRedis(t)
	admin := kit.Dial(t, upstream.Addr())
	for _, user := range [][]string{
		{"some", ">pw", "~lock:*", "&*", "+hset", "+hget", "+eval", "+sunionstore", "+lmove", "+rpush", "+multi", "+discard"},
		{"reader", ">pw", "%R~lock:*", "%W~lock:mine", "+@all"},
	} {
		kit.Want(t, admin, "OK", append([]string{"ACL", "SETUSER", user[0], "on"}, user[1:]...)...)
	}
	args := append(kit.LockKeyArgs(upstream), kit.PatientMasters()...)
	proxy := kit.StartProxy(t, redistest.URLs(kit.StartMasters(t)), args...)
	some, reader := kit.Connect(t, proxy), kit.Connect(t, proxy)
	kit.Want(t, some, "OK", "AUTH", "some", "pw")
	kit.Want(t, reader, "OK", "AUTH", "reader", "pw")
	const noCommand, noKey = "NOPERM this user has no permissions to run the '", "NOPERM this user has no permissions to access one of the keys"

	kit.Does(t, some, "HSET lock:h f v", "1")
	kit.Does(t, some, "HGET lock:h f", "v")
	kit.Does(t, some, "HDEL lock:h f", noCommand+"hdel'")
	kit.Does(t, some, "HGETALL lock:h", noCommand+"hgetall'")
	kit.Does(t, some, "EVAL|return redis.call('hset', KEYS[1], 'g', 'w')|1|lock:h", "1")
	kit.Does(t, some, "EVAL|return redis.call('hdel', KEYS[1], 'g')|1|lock:h", "ERR The user executing the script can't run this command or subcommand")
	kit.Does(t, some, "SUNIONSTORE lock:s lock:t lock:u", "0")
	kit.Does(t, some, "RPUSH lock:l a b", "2")
	kit.Does(t, some, "LMOVE lock:l lock:l LEFT RIGHT", "a")

	kit.Does(t, reader, "HGET lock:h g", "w")
	kit.Does(t, reader, "HSET lock:h g x", noKey)
	kit.Does(t, reader, "HSET lock:mine g x", "1")
	kit.Does(t, reader, "LMOVE lock:l lock:mine LEFT RIGHT", noKey)
	kit.Does(t, reader, "ZUNIONSTORE lock:mine 2 lock:x lock:y WEIGHTS 1 2", "0")
	kit.Does(t, reader, "ZUNIONSTORE lock:x 1 lock:mine", noKey)
	kit.Does(t, reader, "OBJECT ENCODING lock:l", "quicklist")
	kit.Does(t, reader, "HSET lock:h g x", noKey)
	kit.Does(t, reader, "SORT_RO lock:l ALPHA GET #", "[a b]") // which on a Redis needs the right to all keys
	kit.Does(t, reader, "SORT lock:none BY nosort STORE lock:mine", "0")
	kit.Does(t, reader, "SORT lock:l ALPHA STORE lock:x", noKey)
	kit.Does(t, admin, "DBSIZE", "0")
}
