//go:build integration

package lockkeys

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// tagArgs returns the arguments of a proxy that keeps all keys of a tag in one cell.
func tagArgs(upstream *redistest.Server) []string {
	return append(kit.LockKeyArgs(upstream), "--lock-keys", "*{lock:*", "--lock-tags", "*")
}

// TestTagsAsOneRedis checks that random commands, transactions and scripts get, byte for byte, the
// replies of a single Redis. The commands change several keys of one tag, through one of two
// proxies. The proxies refuse none of the commands.
func TestTagsAsOneRedis(t *testing.T) {
	commands, seed := int(kit.SizeFrom(t, collectionsEnv, defaultCollections)),
		kit.NumberFrom(t, kit.SeedEnv, rand.Uint64())
	t.Logf("%d commands (%s); seed %d (%s)", commands, collectionsEnv, seed, kit.SeedEnv)
	masters, upstream, single := redistest.URLs(kit.StartMasters(t)), kit.StartRedis(t), kit.StartReference(t)
	args := tagArgs(upstream)
	firstProxy, secondProxy := kit.StartProxy(t, masters, args...), kit.StartProxy(t, masters, args...)
	for _, resp := range []string{"2", "3"} {
		s := startComparison(t, resp, rand.New(rand.NewPCG(seed, uint64(resp[0]))), single.Addr(), firstProxy.Addr(), secondProxy.Addr())
		tag := "lock:t" + resp // a late command of the other protocol may still change its keys
		s.keys = []string{tag, "lock:x:{" + tag + "}", "y:{" + tag + "}"}
		s.mayRefuse = func([]string) bool { return false }
		s.run(t, commands/2)
		t.Logf("RESP%s: %d refused, %d unknown", resp, s.refusals, s.unknownCount)
	}
}

// TestTagsAndLocks checks that the lock commands, and the commands on all keys, treat each key of a
// tag separately, through two proxies.
func TestTagsAndLocks(t *testing.T) {
	masters, upstream := redistest.URLs(kit.StartMasters(t)), kit.StartRedis(t)
	firstProxy, secondProxy := kit.StartProxy(t, masters, tagArgs(upstream)...), kit.StartProxy(t, masters, tagArgs(upstream)...)
	a, b := kit.Connect(t, firstProxy), kit.Connect(t, secondProxy)
	kit.WantGrant(t, a, "LOCK", "lock:t", "me", "PX", "60000")
	kit.WantPrefix(t, b, "SET lock:t you NX PX 1000", "nil")
	kit.WantPrefix(t, b, "RPUSH q:{lock:t} x", "1") // from now on, lock:t is one of several keys
	for _, step := range []struct {
		client        *redistest.Client
		command, want string
	}{
		{a, "LOCK lock:t you PX 1000", "nil"}, {b, "SET lock:t you NX PX 1000", "nil"}, {b, "SETNX lock:t you", "0"},
		{b, "UNLOCK lock:t you", "0"}, {b, "EXTEND lock:t you PX 1000", "nil"}, {b, "GET lock:t", "me"},
		{a, "EXTEND lock:t me PX 90000", "8"}, {b, "LOCKINFO lock:t", "[state held"},
		{b, "LOCKINFO lock:x:{lock:t}", "[state free"},
		{a, "UNLOCK lock:t me", "1"}, {a, "UNLOCK lock:t me", "0"}, {b, "LOCKINFO lock:t", "[state free"},
		{b, "LOCKINFO q:{lock:t}", "[state held"},
		{b, "LOCK lock:t you PX 1000 FENCE",
			"ERR a key that shares its hash tag with other existing keys cannot have a fence"},
		{b, "LOCK lock:t you PX 60000", "5"}, {a, "LOCK lock:t me PX 1000", "nil"}, {a, "SET lock:t me NX", "nil"},
		{a, "LOCK lock:x:{lock:t} me PX 60000", "5"}, {b, "LOCK lock:x:{lock:t} you PX 60000", "nil"},
		{b, "SET lock:x:{lock:t} you NX", "nil"},
		{b, "LOCK lock:x:{lock:t} you PX 60000 FENCE", "nil"}, {b, "FENCE lock:x:{lock:t}", "nil"},
		{b, "EXTEND lock:x:{lock:t} me PX 70000", "6"}, {a, "GET lock:x:{lock:t}", "me"},
		{a, "FORCEUNLOCK lock:t", "1"}, {a, "FORCEUNLOCK lock:t", "0"}, {b, "GET lock:x:{lock:t}", "me"},
		{b, "UNLOCK lock:x:{lock:t} me", "1"}, {b, "LRANGE q:{lock:t} 0 -1", "[x]"}, {a, "DBSIZE", "1"},
		{a, "KEYS *", "[q:{lock:t}]"},
		{a, "SET lock:t me", "OK"}, {b, "DEL q:{lock:t}", "1"}, {b, "UNLOCK lock:t me", "1"}, {a, "DBSIZE", "0"},
		{a, "MSET lock:t 1 lock:x:{lock:t} 2 lock:other 3",
			"ERR lock keys 'lock:t' and 'lock:other' cannot be changed together"},
		{a, "BLMOVE lock:x:{lock:t} lock:other LEFT LEFT 0",
			"ERR lock keys 'lock:x:{lock:t}' and 'lock:other' cannot be changed together"},
		{a, "MSET lock:t 1 lock:x:{lock:t} 2", "OK"}, {b, "MGET lock:x:{lock:t} lock:other lock:t", "[2 <nil> 1]"},
		{a, "DEL lock:t lock:x:{lock:t} lock:other", "2"}, {a, "MSETNX lock:t 1 lock:x:{lock:t} 2", "1"},
		{b, "MSETNX lock:x:{lock:t} 2 lock:y:{lock:t} 2", "0"},
		{a, "SELECT 3", "OK"}, {a, "SET lock:x:{lock:t} of3", "OK"}, {b, "FLUSHALL", "OK"}, {a, "DBSIZE", "0"},
		{b, "DBSIZE", "0"},
		{b, "SET lock:{redlock-proxy:marker} x NX PX 1000", `ERR the key "lock:{redlock-proxy:marker}" cannot be a lock`},
		{b, "SET q:{lock:} x", "OK"}, {b, "GET q:{lock:}", "x"}, {b, "LOCK  q:{lock:} x PX 1000", "nil"},
	} {
		kit.WantPrefix(t, step.client, step.command, step.want)
	}
}

// TestWatchOnTags checks that WATCH notices changes of the key, but not of other keys of the tag.
func TestWatchOnTags(t *testing.T) {
	masters, upstream := redistest.URLs(kit.StartMasters(t)), kit.StartRedis(t)
	proxy := kit.StartProxy(t, masters, tagArgs(upstream)...)
	a, b := kit.Connect(t, proxy), kit.Connect(t, proxy)
	for _, test := range []struct{ setup, watchedKey, otherCommand, execReply string }{
		{"SET lock:t 1", "lock:t", "SET y:{lock:t} 1", "[OK]"},
		{"SET lock:t 1", "lock:t", "SET lock:t 2", "nil"},
		{"SET lock:x:{lock:t} 1", "lock:x:{lock:t}", "SET lock:t 2", "[OK]"},
		{"SET lock:x:{lock:t} 1", "lock:x:{lock:t}", "SET lock:x:{lock:t} 1", "nil"},
		{"SET lock:t 1", "lock:x:{lock:t}", "SETNX lock:x:{lock:t} 1", "nil"},
		{"DEL lock:t", "lock:x:{lock:t}", "RPUSH y:{lock:t} 1", "[OK]"},
		{"DEL lock:t", "lock:x:{lock:t}", "GET y:{lock:t}", "[OK]"},
	} {
		kit.Do(t, a, "DEL", "lock:t", "lock:x:{lock:t}", "y:{lock:t}")
		kit.Do(t, a, strings.Fields(test.setup)...)
		kit.WantPrefix(t, a, "WATCH "+test.watchedKey, "OK")
		kit.Do(t, b, strings.Fields(test.otherCommand)...)
		kit.WantPrefix(t, a, "MULTI", "OK")
		kit.WantPrefix(t, a, "SET lock:z:{lock:t} 1", "QUEUED")
		if got := kit.ReplyText(kit.Do(t, a, "EXEC")); got != test.execReply {
			t.Errorf("%s; WATCH %s; %s: %s, want %s", test.setup, test.watchedKey, test.otherCommand, got, test.execReply)
		}
	}
}

// TestWaitersOnTags checks that a client that waits for a key gets it, whatever other keys the tag
// has. Clients that wait for elements get the elements, too.
func TestWaitersOnTags(t *testing.T) {
	masters, upstream := redistest.URLs(kit.StartMasters(t)), kit.StartRedis(t)
	firstProxy, secondProxy := kit.StartProxy(t, masters, tagArgs(upstream)...), kit.StartProxy(t, masters, tagArgs(upstream)...)
	a := kit.Connect(t, secondProxy)
	for _, key := range []string{"lock:t", "lock:x:{lock:t}"} {
		kit.WantGrant(t, a, "LOCK", key, "me", "PX", "600000")
		waiter := kit.Connect(t, firstProxy)
		kit.Must(t, waiter.Send(redistest.AppendCommand(nil, "LOCK", key, "you", "PX", "600000", "BLOCK", "20000")))
		kit.WantBlocked(t, firstProxy, 1)
		kit.WantPrefix(t, a, "SET y:{lock:t} 1", "OK")
		kit.WantPrefix(t, a, "UNLOCK "+key+" me", "1")
		reply, err := waiter.Receive()
		kit.Must(t, err)
		if ms, granted := reply.(int64); !granted || ms < 590000 {
			t.Errorf("the waiter for %s is told %v", key, reply)
		}
		kit.WantPrefix(t, a, "UNLOCK "+key+" you", "1")
		kit.WantPrefix(t, a, "DEL y:{lock:t}", "1")

		popper := kit.Connect(t, firstProxy)
		kit.Must(t, popper.Send(redistest.AppendCommand(nil, "BLPOP", key, "20")))
		kit.WantBlocked(t, firstProxy, 1)
		kit.WantPrefix(t, a, "SET y:{lock:t} 1", "OK")
		kit.WantPrefix(t, a, "RPUSH "+key+" e", "1")
		if reply, err := popper.Receive(); err != nil || kit.ReplyText(reply) != "["+key+" e]" {
			t.Errorf("a client that waits for %s gets %v, %v", key, reply, err)
		}
		kit.WantPrefix(t, a, "DEL y:{lock:t}", "1")
	}
}

// TestDifferentLockTags checks that a proxy gets no votes if its lock-tags differ from the
// lock-tags in use. The proxy reports the reason.
func TestDifferentLockTags(t *testing.T) {
	redistest.SkipShort(t)
	masters, upstream := redistest.URLs(kit.StartMasters(t)), kit.StartRedis(t)
	firstProxy := kit.StartProxy(t, masters, tagArgs(upstream)...)
	kit.WantGrant(t, kit.Connect(t, firstProxy), "LOCK", "lock:x:{lock:t}", "me", "PX", "60000")
	otherProxy := kit.StartProxy(t, masters, kit.LockKeyArgs(upstream)...)
	client := kit.Connect(t, otherProxy)
	got := kit.ReplyText(kit.Do(t, client, "LOCK", "lock:x:{lock:t}", "you", "PX", "60000"))
	if !strings.HasPrefix(got, `NOQUORUM 0 of 5 masters vote: 5 are in use by proxies with different settings; `) {
		t.Errorf("the other is told %s", got)
	}
	kit.WantPrefix(t, kit.Connect(t, firstProxy), "GET lock:x:{lock:t}", "me")
}

// TestTagsAfterAPrefix checks that the masters keep one key for a tag, even if the prefix has
// braces.
func TestTagsAfterAPrefix(t *testing.T) {
	redistest.SkipShort(t)
	servers, upstream := kit.StartMasters(t), kit.StartRedis(t)
	proxy := kit.StartProxy(t, redistest.URLs(servers), append(tagArgs(upstream), "--key-prefix", "p{q}:")...)
	client := kit.Connect(t, proxy)
	kit.WantPrefix(t, client, "MSET lock:t 1 x:{lock:t} 2 y:{lock:t} 3", "OK")
	kit.WantPrefix(t, client, "RENAME lock:t z:{lock:t}", "OK")
	if got := unorderedText(kit.Do(t, client, "KEYS", "*")); got != "[string x:{lock:t} string y:{lock:t} string z:{lock:t}]" {
		t.Errorf("KEYS tells %s", got)
	}
	kit.EachMaster(t, servers, func(master *redistest.Server) error {
		keys, err := kit.QueryDatabase(master, "0", "KEYS", "p*")
		if err == nil && kit.ReplyText(keys) != "[p{q}:lock:t]" {
			err = fmt.Errorf("there are %v", keys)
		}
		return err
	})
	kit.WantPrefix(t, client, "FLUSHDB", "OK")
	kit.WantPrefix(t, client, "DBSIZE", "0")
}
