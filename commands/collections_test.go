package commands

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"redlock-proxy/commands/lockkeys/keyspace/contents"
	"redlock-proxy/commands/rights"
	"redlock-proxy/internal/fakeregister"
	"redlock-proxy/quorum"
)

// hash returns a hash as masters store it.
func hash(words ...string) string {
	h := contents.NewHash()
	for pair := range slices.Chunk(words, 2) {
		h.Set(pair[0], pair[1])
	}
	return contents.Encode(h)
}

func list(elems ...string) string {
	l := &contents.List{}
	l.Insert(0, elems...)
	return contents.Encode(l)
}

// TestCommandsOnCollections checks that commands use the minimum number of requests to the masters.
func TestCommandsOnCollections(t *testing.T) {
	one, two := hash("f", "1"), hash("f", "1", "g", "2")
	tests := []struct{ name, before, line, reply, rounds, after string }{
		{"a lock", "", "HSETNX k f 1", "1", "take 0/k " + one, one},
		{"held by another", two, "HSETNX k f 1", "0", "take 0/k " + one, two + ":500"},
		{"made", "", "HSET k f 1 g 2", "2", "update 0/k", two},
		{"changed", one, "HSET k g 2", "1", "update 0/k", two + ":500"},
		{"counted", one, "HINCRBY k f -1", "0", "update 0/k", hash("f", "0") + ":500"},
		{"emptied", one, "HDEL k f", "1", "read 0/k;release 0/k " + one, "."},
		{"not emptied", two, "HDEL k g", "1", "read 0/k;update 0/k", one + ":500"},
		{"read", two, "HGETALL k", `["f" "1" "g" "2"]`, "read 0/k", two + ":500"},
		{"of nothing", "", "HGETALL k", "[]", "read 0/k", "."},
		{"its time", one, "PEXPIRE k 900", "1", "read 0/k;extend 0/k " + one + ":900", one + ":900"},
		{"its kind", one, "TYPE k", "hash", "read 0/k", one + ":500"},
		{"its encoding", one, "OBJECT ENCODING k", `"listpack"`, "read 0/k", one + ":500"},
		{"is no string", one, "GET k", "WRONGTYPE Operation against a key holding the wrong kind of value", "read 0/k",
			one + ":500"},
		{"a string is none", "x", "HGET k f", "WRONGTYPE Operation against a key holding the wrong kind of value",
			"read 0/k", "x:500"},
		{"overwritten", one, "SET k x", "OK", "update 0/k", "x"},
		{"removed", one, "DEL k", "1", "read 0/k;release 0/k " + one, "."},
		{"moved to itself", one, "RENAME k k", "OK", "read 0/k", one + ":500"},
		{"moved", one, "RENAME k k2",
			"ERR lock keys 'k' and 'k2' cannot be changed together: one command can take, extend or remove several lock keys, but not change them otherwise; give them the same hash tag (lock-tags)", "read 0/k 0/k2", one + ":500"},
		{"nothing is moved", "", "LMOVE k k2 LEFT RIGHT", "(nil)", "read 0/k 0/k2", "."},
		{"pushed", "", "RPUSH k a b", "2", "update 0/k", list("a", "b")},
		{"taken off", list("a", "b"), "LPOP k", `"a"`, "read 0/k;update 0/k", list("b") + ":500"},
		{"turned", list("a", "b"), "RPOPLPUSH k k", `"b"`, "read 0/k;update 0/k", list("b", "a") + ":500"},
		{"stored", list("a"), "ZINTERSTORE k 2 k2 k3", "0", "read 0/k 0/k2 0/k3", list("a") + ":500"},
		{"not understood", "\x00redlock:?", "GET k",
			"ERR cannot read lock key 'k': this version of the proxy does not know the format of its value; upgrade the proxy, or DEL the key", "read 0/k", "\x00redlock:?:500"},
		{"not understood, and removed", "\x00redlock:?", "DEL k", "1", "read 0/k;release 0/k \x00redlock:?", "."},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			b := newRegisterFixture(t)
			if test.before != "" {
				b.masters.Put("k", test.before, 500)
			}
			b.expectRun(test.line, test.reply)
			if test.name == "stored" {
				return // the command removes k on condition of k2 and k3
			}
			b.expectRounds(split(test.rounds)...)
			b.expectValue("k", test.after)
		})
	}
}

// Scripts with the same effects as the scripts of Redisson's RLock.
const (
	rlockLock = `if redis.call('exists', KEYS[1]) == 1 and redis.call('hexists', KEYS[1], ARGV[2]) == 0 then return redis.call('pttl', KEYS[1]) end
		redis.call('hincrby', KEYS[1], ARGV[2], 1) redis.call('pexpire', KEYS[1], ARGV[1]) return nil`
	rlockUnlock = `if redis.call('hexists', KEYS[1], ARGV[3]) == 0 then return nil end
		if redis.call('hincrby', KEYS[1], ARGV[3], -1) > 0 then redis.call('pexpire', KEYS[1], ARGV[2]) return 0 end
		redis.call('del', KEYS[1]) redis.call(ARGV[4], KEYS[2], ARGV[1]) return 1`
)

// TestHashLockRounds checks that a hash lock, and its release by the same proxy, take one round
// trip each.
func TestHashLockRounds(t *testing.T) {
	b := newRegisterFixture(t)
	lock := func(holder, want string, rounds ...string) {
		t.Helper()
		if got := b.run("EVAL", rlockLock, "1", "k", "30000", holder); got != want {
			t.Errorf("%s takes: %s, want %s", holder, got, want)
		}
		b.expectRounds(rounds...)
	}
	unlock := func(holder, want string, rounds ...string) {
		t.Helper()
		if got := b.run("EVAL", rlockUnlock, "2", "k", "channel", "0", "30000", holder, "publish"); got != want {
			t.Errorf("%s gives: %s, want %s", holder, got, want)
		}
		b.expectRounds(rounds...)
	}
	one, two := hash("me", "1"), hash("me", "2")
	for range 2 { // on the first run the scripts are not cached
		lock("me", "(nil)", "take 0/k "+one+":30000")
		unlock("me", "1", "release 0/k "+one)
	}
	lock("me", "(nil)", "take 0/k "+one+":30000")
	lock("you", "30000", "read 0/k")
	unlock("you", "(nil)", "read 0/k")
	lock("me", "(nil)", "update 0/k if "+one)
	b.expectValue("k", two+":30000")
	unlock("me", "0", "update 0/k if "+two)
	unlock("me", "1", "release 0/k "+one)
	lock("you", "(nil)", "take 0/k "+hash("you", "1")+":30000")
	if want := slices.Repeat([]string{"0: publish channel 0"}, 3); !slices.Equal(b.sideEffects.executedCommands, want) {
		t.Errorf("carried %q", b.sideEffects.executedCommands)
	}
}

// TestTextsLikeCollections checks that a text like an encoded collection remains a text.
func TestTextsLikeCollections(t *testing.T) {
	odd := hash("f", "v")
	escaped := contents.EncodeText(odd)
	b := newRegisterFixture(t)
	for _, words := range [][]string{
		{"SET", "k", odd, "PX", "500"}, {"SET", "k", odd, "NX", "PX", "500"}, {"PSETEX", "k", "500", odd},
		{"EVAL", takePlain, "1", "k", odd, "500"},
		{"EVAL", `return redis.call('psetex', KEYS[1], 500, ARGV[1])`, "1", "k", odd},
	} {
		if got := b.run(words...); got != "OK" {
			t.Errorf("%q: %s", words, got)
		}
		b.expectValue("k", escaped+":500")
		if got := b.run("GET", "k"); got != fmt.Sprintf("%q", odd) {
			t.Errorf("GET is %s", got)
		}
		if got := b.run("EVAL", releaseScript, "1", "k", odd); got != "1" {
			t.Errorf("the release: %s", got)
		}
		b.expectValue("k", ".")
	}
	b.masters.Put("k", escaped, 500)
	b.expectRun("TYPE k", "string")
	b.masters.Rounds = nil
	if got := b.run("SET", "k", odd, "IFEQ", odd, "PX", "900"); got != "OK" {
		t.Error(got)
	}
	b.expectRounds("extend 0/k " + escaped + ":900")
	if got := b.run("DELIFEQ", "k", odd); got != "1" {
		t.Error(got)
	}
	b.expectRounds("release 0/k " + escaped)
}

// TestTokensLikeCollections checks that the lock commands store a token as SET does.
func TestTokensLikeCollections(t *testing.T) {
	odd := hash("f", "v")
	b := newFixture(t)
	b.ask("LOCK", "a", odd, "PX", "10000")
	b.ask("EXTEND", "a", odd, "PX", "10000")
	b.ask("UNLOCK", "a", odd)
	escaped := contents.EncodeText(odd)
	b.expectCalls("lock 0/a by "+escaped+" for 10s, waiting 0s", "extend 0/a by "+escaped+" for 10s",
		"unlock 0/a by "+escaped)
}

// TestBlockingCommandsInTransactions checks that a transaction does not wait.
func TestBlockingCommandsInTransactions(t *testing.T) {
	b := newRegisterFixture(t)
	b.masters.Put("k", list("a"), 500)
	if got, want := b.transact("BLPOP k 0; BRPOP k 0; RPUSH k b; BLMOVE k k LEFT RIGHT 1"),
		`[["k" "a"] (nil) 1 "b"]`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got, want := b.run("EVAL", `return {redis.call('blpop', KEYS[1], 0), redis.call('bzpopmin', 'k2', 0)}`,
		"1", "k"), `[["k" "b"] (nil)]`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// decisionRecorder is a register that records the decisions of updates, one for each run.
type decisionRecorder struct {
	*fakeregister.Register
	decisions []quorum.Decision
}

func (r *decisionRecorder) Update(
	ctx context.Context, key quorum.Key, expect *string, run func(quorum.Snapshot) (quorum.Decision, error),
) (quorum.Outcome, error) {
	return r.Register.Update(ctx, key, expect, func(l quorum.Snapshot) (quorum.Decision, error) {
		d, err := run(l)
		r.decisions = append(r.decisions, d)
		return d, err
	})
}

// TestRepeatedRandomChoice checks that a repeated run makes the same random choice, although each
// seed is different: SPOP replies with the member that it removes.
func TestRepeatedRandomChoice(t *testing.T) {
	recorder, seeds := &decisionRecorder{}, byte(0)
	b := newRegisterFixture(t, func(o *Options) {
		o.Random = func(bits []byte) {
			seeds++
			bits[0] = seeds
		}
		recorder.Register = o.Register.(*fakeregister.Register)
		o.Register = recorder
	})
	var members []string
	for i := range 200 {
		members = append(members, fmt.Sprint("member", i))
	}
	b.masters.Put("k", contents.Encode(contents.NewSet(members...)), 500)
	// As if another client had changed the key and changed it back.
	b.masters.ConcurrentChange = func() {}
	popped := b.run("SPOP", "k")
	runs := recorder.decisions
	if len(runs) < 2 {
		t.Errorf("only %d runs", len(runs))
	}
	for _, d := range runs {
		if d.Value != runs[0].Value {
			t.Errorf("two of %d runs chose different members", len(runs))
		}
	}
	if members := b.run("SMEMBERS", "k"); strings.Contains(members, popped) || strings.Count(members, "member") != 199 {
		t.Errorf("%s was told, and is there: %v", popped, strings.Contains(members, popped))
	}
}

// TestCollectionSizeLimit checks that a command fails without effect if it would make a
// collection larger than a megabyte.
func TestCollectionSizeLimit(t *testing.T) {
	b := newRegisterFixture(t)
	b.expectRun("HSET k "+strings.Repeat("x", 600_000)+" v", "1")
	before := b.masters.TextOf("k")
	want := "ERR lock key 'k' would be too large: the limit is 1048576 bytes or 65536 elements"
	b.expectRun("HSET k a 1 "+strings.Repeat("y", 500_000)+" v", want)
	b.expectValue("k", before)
	if got := b.run("EVAL",
		`redis.call('hset', KEYS[1], 'a', 1) redis.pcall('hset', KEYS[1], 'b', 1, ARGV[1], 1) return redis.call('hexists', KEYS[1], 'b')`, "1", "k", strings.Repeat("y", 500_000)); got != "0" {
		t.Error(got)
	}
	b.expectRun("HGET k a", `"1"`)
	b.expectRun("HLEN k", "2")

	b.expectRun("SADD k2 "+strings.Repeat("y", 1_042_000), "1")
	// The test uses a transaction, because a script would take long on a busy machine.
	var lines []string
	for i := range 60 {
		lines = append(lines, fmt.Sprint("SADD k2 ", i), fmt.Sprint("SREM k2 ", i))
	}
	want = "ERR too many changes of lock key 'k2' near its limit of 1048576 bytes or 65536 elements: one script or transaction may make at most 100; use several"
	if got := b.transact(strings.Join(lines, "; ")); strings.Count(got, want) != 20 {
		t.Errorf("%s, want twenty times %s", got, want)
	}
}

// TestElementLimit checks that a command fails if it would give a collection too many
// elements.
func TestElementLimit(t *testing.T) {
	b := newRegisterFixture(t)
	words := []string{"RPUSH", "k"}
	for range 1 << 16 {
		words = append(words, "x")
	}
	if got := b.run(words...); got != "65536" {
		t.Error(got)
	}
	b.expectRun("LSET k 0 y", "OK")
	b.expectRun("RPUSH k x", "ERR lock key 'k' would be too large: the limit is 1048576 bytes or 65536 elements")
	b.expectRun("RPOPLPUSH k k", `"x"`)
	b.expectRun("LLEN k", "65536")
}

// TestPermissionChecksOnCollections checks that a permission check has each key at its position.
func TestPermissionChecksOnCollections(t *testing.T) {
	for line, want := range map[string]string{
		"hset a f v f v":                  "hset a 0 0",
		"HGETALL a":                       "hgetall a",
		"lmove a b left right":            "lmove a b 0 0",
		"zinterstore d 2 a b weights 1 2": "zinterstore d 2 a b 0 0 0",
		"object encoding a":               "object encoding a",
		"blpop a b 0":                     "blpop a b 0",
		"rename a b":                      "rename a b",
		"mset a 1 b 2":                    "mset a 0 b 0",
		"zinterstore d x a":               "zinterstore d x 0",
	} {
		var got []string
		for _, check := range rights.PermissionChecks(strings.Fields(line)) {
			got = append(got, strings.Join(check, " "))
		}
		if strings.Join(got, "; ") != want {
			t.Errorf("%s: %q, want %s", line, got, want)
		}
	}
}

// TestWatchedCollection checks that a transaction changes a watched collection only if no other
// client has changed it.
func TestWatchedCollection(t *testing.T) {
	b := newRegisterFixture(t)
	b.masters.Put("k", hash("f", "1"), 500)
	b.watch("k")
	if got := b.transact("HINCRBY k f 1; HSETNX k g 1"); got != "[2 1]" {
		t.Error(got)
	}
	b.expectValue("k", hash("f", "2", "g", "1")+":500")
	b.watch("k")
	b.masters.Put("k", hash("f", "3"), 500)
	if got := b.transact("HINCRBY k f 1"); got != "(nil)" {
		t.Error(got)
	}
	b.expectValue("k", hash("f", "3")+":500")
}
