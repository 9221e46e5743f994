//go:build integration

package lockkeys

import (
	"testing"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// neighbourEnv sets the number of times that TestTagsWithNeighbour executes all its steps with each
// key.
const neighbourEnv = "REDLOCK_NEIGHBOUR_ROUNDS"

// TestTagsWithNeighbour sets and removes a key of a tag all the time. Meanwhile commands on another
// key of the tag get the same replies as without the first key, through either proxy.
func TestTagsWithNeighbour(t *testing.T) {
	redistest.SkipShort(t)
	rounds := int(kit.NumberFrom(t, neighbourEnv, 30))
	masters, upstream := redistest.URLs(kit.StartMasters(t)), kit.StartRedis(t)
	firstProxy, secondProxy := kit.StartProxy(t, masters, tagArgs(upstream)...), kit.StartProxy(t, masters, tagArgs(upstream)...)
	stopNeighbour := startNeighbour(t, firstProxy.Addr(), "lock:beside:{lock:t}", [][]string{{}, {"PX", "300"}, {"PX", "40000"}})
	a, b := kit.Connect(t, firstProxy), kit.Connect(t, secondProxy)
	// The version of the key that is the tag itself changes when the last other key is removed.
	watch := map[string]string{"lock:t": "UNWATCH", "lock:x:{lock:t}": "WATCH lock:x:{lock:t}"}
	for range rounds {
		for _, key := range []string{"lock:t", "lock:x:{lock:t}"} {
			for _, step := range []struct {
				client        *redistest.Client
				command, want string
			}{
				{a, "SET " + key + " me NX PX 60000", "OK"}, {b, "SET " + key + " you NX PX 60000", "nil"},
				{a, "EXTEND " + key + " me PX 90000", "8"},
				{b, "EXTEND " + key + " me PX 190000", "1"}, {b, "UNLOCK " + key + " you", "0"},
				{a, "GET " + key, "me"}, {a, "UNLOCK " + key + " me", "1"},
				{b, "LOCK " + key + " you PX 60000", "5"}, {a, "PEXPIRE " + key + " 500000", "1"},
				{b, "PERSIST " + key, "1"}, {a, "PTTL " + key, "-1"},
				{a, "EVAL|" + releaseScript + "|1|" + key + "|you", "1"},
				{b, "LOCK " + key + " me PX 60000 BLOCK 20000", "5"}, {a, "UNLOCK " + key + " me", "1"},
				{a, "SETNX " + key + " me", "1"}, {b, watch[key], "OK"}, {b, "MULTI", "OK"},
				{b, "GETDEL " + key, "QUEUED"}, {b, "EXEC", "[me]"},
				{a, "RPUSH " + key + " 1", "1"}, {b, "BLPOP " + key + " 20", "[" + key + " 1]"},
				{a, "BLPOP " + key + " 0.001", "nil"}, {b, "EXISTS " + key, "0"},
			} {
				kit.WantPrefix(t, step.client, step.command, step.want)
			}
		}
	}
	t.Logf("the neighbour changed %d times", stopNeighbour())
}
