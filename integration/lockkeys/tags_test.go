//go:build integration

package lockkeys

import (
	"math/rand/v2"
	"strings"
	"testing"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// tagArgs are the arguments of a proxy that keeps all keys of a tag together.
func tagArgs(upstream *redistest.Server) []string {
	args := append(kit.LockKeyArgs(upstream), "--lock-keys", "*{lock:*", "--lock-tags", "*")
	return append(args, kit.PatientMasters()...)
}

// TestTagsAsOneRedis: random commands, transactions and scripts that change several keys of one tag have byte for byte the replies of a
// single Redis, through two proxies that take turns. Nothing is refused but what waits to move something from one key to another.
func TestTagsAsOneRedis(t *testing.T) {
	commands, seed := int(kit.NumberFrom(t, collectionsEnv, defaultCollections)), kit.NumberFrom(t, kit.SeedEnv, rand.Uint64())
	t.Logf("%d commands (%s); seed %d (%s)", commands, collectionsEnv, seed, kit.SeedEnv)
	masters, upstream, single := redistest.URLs(kit.StartMasters(t)), kit.StartRedis(t), kit.StartRedis(t)
	args := tagArgs(upstream)
	one, other := kit.StartProxy(t, masters, args...), kit.StartProxy(t, masters, args...)
	for _, resp := range []string{"2", "3"} {
		s := startSeveral(t, resp, rand.New(rand.NewPCG(seed, uint64(resp[0]))), single.Addr(), one.Addr(), other.Addr())
		s.keys = []string{"lock:t", "lock:x:{lock:t}", "y:{lock:t}"}
		s.mayRefuse = func(words []string) bool {
			name := strings.ToLower(words[0])
			return name == "blmove" || name == "brpoplpush"
		}
		s.talk(t, commands/2)
		t.Logf("RESP%s: %d refused", resp, s.refused)
	}
}
