package commands

import (
	"strings"
	"testing"
	"time"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/command"
	"redlock-proxy/internal/fakeregister"
)

// TestCommandsOnLockKeys checks that each command gets its reply, uses the minimum number of
// requests to the masters, and leaves the right value.
func TestCommandsOnLockKeys(t *testing.T) {
	tests := []struct {
		name   string
		before string // the value of k on all masters, as value:ms; empty if absent
		line   string
		reply  string
		rounds string // separated by semicolons
		after  string
	}{
		{"a lock", "", "SET k me NX PX 30000", "OK", "take 0/k me:30000", "me:30000"},
		{"in any case and order", "", "set k me ex 8 nx", "OK", "take 0/k me:8000", "me:8000"},
		{"until a time", "", "SET k me NX PXAT 1700000030000", "OK", "take 0/k me:30000", "me:30000"},
		{"that is over", "", "SET k me NX PXAT 1600000030000", "OK", "read 0/k", "."},
		{"held by another", "x:500", "SET k me NX PX 30000", "(nil)", "take 0/k me:30000", "x:500"},
		{"no TTL", "", "SET k me NX", "OK", "take 0/k me", "me"},
		{"SETNX", "", "SETNX k me", "1", "take 0/k me", "me"},
		{"SETNX of a held one", "x:500", "SETNX k me", "0", "take 0/k me", "x:500"},
		{"too long", "", "SET k me NX PX 86400001",
			"ERR invalid expire time in 'set' command: the TTL exceeds max-ttl (86400000 ms)", "", "."},
		{"no time", "", "SET k me NX PX 0", "ERR invalid expire time in 'set' command", "", "."},
		{"no number", "", "SET k me NX PX x", "ERR value is not an integer or out of range", "", "."},
		{"no syntax", "", "SET k me NX PX", "ERR syntax error", "", "."},
		{"too few words", "", "SET k", "ERR wrong number of arguments for 'set' command", "", "."},

		{"who holds it", "x:500", "SET k me NX GET PX 30000", `"x"`, "take 0/k me:30000", "x:500"},
		{"nobody held it", "", "SET k me NX GET PX 30000", "(nil)", "take 0/k me:30000", "me:30000"},
		{"over it", "x:500", "SET k me PX 30000", "OK", "update 0/k", "me:30000"},
		{"over nothing", "", "SET k me PX 30000", "OK", "update 0/k", "me:30000"},
		{"only over it", "", "SET k me XX PX 30000", "(nil)", "update 0/k", "."},
		{"time kept", "x:500", "SET k me KEEPTTL", "OK", "update 0/k", "me:500"},
		{"renewal", "me:500", "SET k me IFEQ me PX 30000", "OK", "extend 0/k me:30000", "me:30000"},
		{"renewal of another's", "x:500", "SET k me IFEQ me PX 30000", "(nil)", "extend 0/k me:30000", "x:500"},
		{"SETEX", "x:500", "SETEX k 10 me", "OK", "update 0/k", "me:10000"},
		{"GETSET", "x:500", "GETSET k me", `"x"`, "update 0/k", "me"},
		{"GETDEL", "x:500", "GETDEL k", `"x"`, "read 0/k;release 0/k x", "."},
		{"GETEX", "x:500", "GETEX k PX 30000", `"x"`, "read 0/k;extend 0/k x:30000", "x:30000"},

		{"release", "me:500", "DELEX k IFEQ me", "1", "release 0/k me", "."},
		{"release in Valkey", "me:500", "DELIFEQ k me", "1", "release 0/k me", "."},
		{"release of another's", "x:500", "DELEX k IFEQ me", "0", "release 0/k me", "x:500"},
		{"release of nothing", "", "DELEX k IFEQ me", "0", "release 0/k me", "."},
		{"another's only", "x:500", "DELEX k IFNE me", "1", "read 0/k;release 0/k x", "."},
		{"force", "x:500", "DEL k", "1", "read 0/k;release 0/k x", "."},
		{"force nothing", "", "UNLINK k", "0", "read 0/k", "."},
		{"force twice", "x:500", "DEL k k", "1", "read 0/k;release 0/k x", "."},

		{"time", "x:500", "PEXPIRE k 30000", "1", "read 0/k;extend 0/k x:30000", "x:30000"},
		{"time of nothing", "", "PEXPIRE k 30000", "0", "read 0/k", "."},
		{"time that is over", "x:500", "EXPIRE k 0", "1", "read 0/k;release 0/k x", "."},
		{"longer only", "x:500", "PEXPIRE k 400 GT", "0", "read 0/k", "x:500"},
		{"too long a time", "x:500", "EXPIRE k 86401",
			"ERR invalid expire time in 'expire' command: the TTL exceeds max-ttl (86400000 ms)", "read 0/k", "x:500"},
		{"no end", "x:500", "PERSIST k", "1", "read 0/k;update 0/k", "x"},

		{"GET", "x:500", "GET k", `"x"`, "read 0/k", "x:500"},
		{"PTTL", "x:500", "PTTL k", "500", "read 0/k", "x:500"},
		{"PTTL without TTL", "x:-1", "PTTL k", "-1", "read 0/k", "x"},
		{"TTL of nothing", "", "TTL k", "-2", "read 0/k", "."},
		{"PEXPIRETIME", "x:500", "PEXPIRETIME k", "1700000000500", "read 0/k", "x:500"},
		{"EXISTS", "x:500", "EXISTS k k2 k", "2", "read 0/k 0/k2", "x:500"},
		{"TYPE", "x:500", "TYPE k", "string", "read 0/k", "x:500"},
		{"MGET", "x:500", "MGET k k2", `["x" (nil)]`, "read 0/k 0/k2", "x:500"},
		{"MSETNX", "", "MSETNX k a k2 b", "1", "take 0/k a, 0/k2 b", "a"},
		{"MSETNX of a held one", "x:500", "MSETNX k2 a k b", "0", "take 0/k2 a, 0/k b;read 0/k2 0/k", "x:500"},
		{"MSET", "x:500", "MSET k a k2 b",
			"ERR lock keys 'k' and 'k2' cannot be changed together: one command can take, extend or remove several lock keys, but not change them otherwise; give them the same hash tag (lock-tags)", "read 0/k 0/k2", "x:500"},
		{"MSET of half a pair", "", "MSET k a k2", "ERR wrong number of arguments for 'mset' command", "", "."},
		{"MSET of absent ones", "", "MSET k a k2 b", "OK", "read 0/k 0/k2;take 0/k a, 0/k2 b", "a"},
		{"INCR", "x:500", "INCR k", "ERR value is not an integer or out of range", "update 0/k", "x:500"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			b := newRegisterFixture(t)
			if value, ms, ok := strings.Cut(test.before, ":"); ok {
				n, _ := syntax.Int(ms)
				b.masters.Put("k", value, int(n))
			}
			b.expectRun(test.line, test.reply)
			b.expectRounds(split(test.rounds)...)
			b.expectValue("k", test.after)
		})
	}
}

func split(rounds string) []string {
	if rounds == "" {
		return nil
	}
	return strings.Split(rounds, ";")
}

// TestGuessAfterWrite checks that DEL first guesses the value that this proxy has written.
func TestGuessAfterWrite(t *testing.T) {
	b := newRegisterFixture(t)
	b.expectRun("SET k me NX PX 30000", "OK")
	b.expectRun("PEXPIRE k 60000", "1")
	b.expectRun("DEL k", "1")
	b.expectRounds("take 0/k me:30000", "read 0/k", "extend 0/k me:60000", "release 0/k me")

	b.expectRun("SETNX k me", "1")
	b.masters.Put("k", "other", 700)
	b.expectRun("DEL k", "1") // DEL also deletes the value of another client, as on a single Redis
	b.expectRounds("take 0/k me", "release 0/k me", "release 0/k other")

	b.expectRun("SETNX k me", "1")
	b.client.DB = 3
	b.expectRun("DEL k", "0")
	b.expectRounds("take 0/k me", "read 3/k")
}

func TestKeyPrefixAndDatabase(t *testing.T) {
	b := newRegisterFixture(t, func(o *Options) { o.KeyPrefix = "app:" })
	b.client.DB = 2
	b.expectRun("SET k me NX PX 30000", "OK")
	b.expectRun("GET k", `"me"`)
	b.expectRun("DELEX k IFEQ me", "1")
	b.expectRounds("take 2/app:k me:30000", "read 2/app:k", "release 2/app:k me")
}

// TestUndeliveredLock checks that the proxy undoes a lock whose reply does not reach the client. It
// does not undo a SET or MSET without NX.
func TestUndeliveredLock(t *testing.T) {
	tests := map[string]struct{ line, after string }{
		"SET NX":     {"SET k me NX PX 30000", "."},
		"SET NX GET": {"SET k me NX GET PX 30000", "."},
		"SETNX":      {"SETNX k me", "."},
		"MSETNX":     {"MSETNX k me k2 me", "."},
		"SET":        {"SET k me PX 30000", "me:30000"},
		"MSET":       {"MSET k me", "me"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b := newRegisterFixture(t)
			b.run(strings.Split(test.line, " ")...)
			b.out.UndoUndelivered()
			b.expectValue("k", test.after)
		})
	}
	t.Run("held before", func(t *testing.T) {
		b := newRegisterFixture(t)
		b.masters.Put("k", "me", 500)
		b.expectRun("SET k me IFEQ me PX 30000", "OK")
		b.out.UndoUndelivered()
		b.expectValue("k", "me:30000")
	})
}

func TestLocksWithoutTTL(t *testing.T) {
	b := newRegisterFixture(t)
	b.expectRun("SETNX k me", "1")
	b.expectRun("SET k2 me NX", "OK")
	b.expectRun("GETSET k me", `"me"`)
	b.expectRun("PEXPIRE k 1000", "1")
	b.expectRun("SET k you XX KEEPTTL", "OK")
	b.expectRun("PERSIST k", "1")
	b.expectRun("SETNX k you", "0")
	if n, _ := b.table.lockKeys.Counts(); n != 4 {
		t.Errorf("%d locks without a TTL, want 4", n)
	}
	if info := b.askLine("INFO redlock"); !strings.Contains(info, "redlock_locks_without_ttl_total:4") {
		t.Errorf("INFO does not tell:\n%s", info)
	}
}

func TestLocksWithoutTTLRefused(t *testing.T) {
	const refusedError = "ERR lock key 'k' would have no TTL: the setting locks-without-ttl refuses this; set a TTL"
	b := newRegisterFixture(t, func(o *Options) { o.Settings.RequireTTL = true })
	b.expectRun("SETNX k me", refusedError)
	b.expectRun("SET k me NX", refusedError)
	b.expectRun("SET k me", refusedError)
	b.expectRun("MSETNX k me", refusedError)
	b.expectValue("k", ".")
	b.expectRun("SET k me NX PX 500", "OK")
	b.expectRun("SET k you KEEPTTL", "OK")
	b.expectRun("PERSIST k", refusedError)
	b.expectRun("GETSET k x", refusedError)
	b.expectValue("k", "you:500")
	b.masters.Put("k", "old", -1) // a value from before the setting forbade locks without a TTL
	b.expectRun("DELEX k IFEQ old", "1")
}

// TestWarningRateLimit checks that the proxy logs locks without a TTL at most once a minute.
func TestWarningRateLimit(t *testing.T) {
	var log strings.Builder
	b := newRegisterFixture(t, func(o *Options) { o.Logger = textLogger(&log) })
	for range 3 {
		b.expectRun("SET k me", "OK")
	}
	b.now = b.now.Add(59 * time.Second)
	b.expectRun("SET k me", "OK")
	if n := strings.Count(log.String(), "locks without a TTL"); n != 1 {
		t.Errorf("%d lines in the first minute:\n%s", n, log.String())
	}
	b.now = b.now.Add(time.Second)
	b.expectRun("SET k me", "OK")
	if !strings.Contains(log.String(), "locks_without_ttl=5") {
		t.Errorf("no line in the second minute:\n%s", log.String())
	}
}

func TestNoQuorum(t *testing.T) {
	b := newRegisterFixture(t)
	b.masters.RoundErr = fakeregister.ErrTooFewMasters()
	const noQuorumErr = "NOQUORUM 2 of 5 masters answered, 3 needed: connection refused"
	for _, line := range []string{"SET k me NX PX 30000", "SET k me", "GET k", "DEL k", "DELEX k IFEQ me",
		"MSETNX k a k2 b"} {
		b.expectRun(line, noQuorumErr)
	}
}

// TestLockKeyCommandsInList checks that COMMAND of a lock server lists the commands on lock
// keys, with the positions of their keys. With an upstream, COMMAND leaves these commands to the
// upstream.
func TestLockKeyCommandsInList(t *testing.T) {
	b := newRegisterFixture(t)
	b.expect("COMMAND GETKEYS MSET a 1 b 2", "*2\r\n$1\r\na\r\n$1\r\nb\r\n")
	b.expect("COMMAND GETKEYS GET a", "*1\r\n$1\r\na\r\n")
	b.expect("COMMAND GETKEYS ZINTERSTORE d 2 a b", "*3\r\n$1\r\nd\r\n$1\r\na\r\n$1\r\nb\r\n")
	b.expect("COMMAND GETKEYS OBJECT ENCODING a", "*1\r\n$1\r\na\r\n")
	b.expect("COMMAND GETKEYS MSETEX x a 1", "-ERR Invalid arguments specified for command\r\n")
	info := readReplies(t, b.askLine("COMMAND INFO del get eval"))[0]
	for i, want := range []string{`"del" -2 [write] 1 -1 1 [@keyspace @write @slow]`,
		`"get" 2 [readonly] 1 1 1 [@read @string @fast]`, `"eval" -3 [write movablekeys] 0 0 0 [@slow @scripting]`} {
		var got []string
		for _, kid := range info.elements[i].elements[:7] {
			got = append(got, kid.oneLine())
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s, want %s", strings.Join(got, " "), want)
		}
	}
	if relay := NewRelayTable(Options{LockKeys: []string{"k*"}}); relay.Lookup([]byte("get")) != nil {
		t.Error("a relay lists GET as its own")
	}
	none := newFixture(t)
	none.expect("COMMAND INFO get", "*1\r\n$-1\r\n") // without lock keys
}

// FuzzCommandOnLockKeys sends any command on lock keys, and checks that each command gets one reply
// in RESP. Without other clients, no command ever waits.
func FuzzCommandOnLockKeys(f *testing.F) {
	for _, seed := range []string{"SET k v NX PX 9", "set k v nx px", "SETNX k v", "MSETNX k v k2", "DELEX k IFEQ x",
		"GETEX k PERSIST", "EVAL return_1 1 k", "EVALSHA f 1 k x",
		"EVAL return_redis.call('get',KEYS[1]) 1 k", "SCRIPT LOAD return", "SCRIPT EXISTS x", "EXPIRE k 9 GT LT",
		"SET k v IFEQ x GET"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		words := strings.Split(line, " ")
		for i := range words {
			words[i] = strings.ReplaceAll(words[i], "_", " ")
		}
		b := newRegisterFixture(t)
		b.masters.Put("k", "x", 500)
		if cmd := b.table.router.lockKeyCommands[syntax.Lower(words[0])]; cmd != nil {
			b.table.Run(cmd, command.Call{Ctx: t.Context(), Client: b.client, Args: syntax.Bytes(words), Out: &b.out})
			oneLine(t, string(b.out.Bytes))
		}
		if b.pauses > 0 {
			t.Errorf("%q waited", words)
		}
	})
}
