package commands

import (
	"context"
	"strings"
	"testing"
	"time"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/command"
	"redlock-proxy/internal/fakeregister"
	"redlock-proxy/quorum"
)

// queue adds a command to the client's transaction, and returns the reply.
func (b *registerFixture) queue(words ...string) string {
	at := len(b.out.Bytes)
	b.table.router.queue(command.Call{Ctx: b.Context(), Client: b.client, Args: syntax.Bytes(words), Out: &b.out})
	return string(b.out.Bytes[at:])
}

// exec runs EXEC.
func (b *registerFixture) exec() string {
	return runRouted(b.Context(), b.table, b.client, []string{"EXEC"}, &b.out)
}

// transact queues commands, separated by "; ", and returns EXEC's reply.
func (b *registerFixture) transact(lines string) string {
	b.Helper()
	b.client.Transaction.Begin()
	if lines != "" {
		for line := range strings.SplitSeq(lines, "; ") {
			b.queue(strings.Split(line, " ")...)
		}
	}
	return oneLine(b.T, b.exec())
}

func (b *registerFixture) watch(keys ...string) {
	b.Helper()
	if got := runRouted(b.Context(), b.table, b.client, append([]string{"WATCH"}, keys...), &b.out); got != "+OK\r\n" {
		b.Errorf("WATCH %v: %q", keys, got)
	}
}

// TestWatchedRelease checks that the release and extension of StackExchange.Redis and redis-py 2
// use a ballot, under the condition of the watched version.
func TestWatchedRelease(t *testing.T) {
	const notTogetherError = "ERR lock keys 'k2' and 'k' cannot be changed together: one command can take, extend or remove several lock keys, but not change them otherwise; give them the same hash tag (lock-tags)"
	for commands, want := range map[string]struct{ reply, round, after string }{
		"DEL k":                  {"[1]", "read 0/k|update 0/k", "."},
		"PEXPIRE k 900":          {"[1]", "read 0/k|update 0/k", "me:900"},
		"PEXPIRE k 300":          {"[1]", "read 0/k|update 0/k", "me:300"},
		"SET k you PX 800":       {"[OK]", "update 0/k", "you:800"},
		"DEL k; SETNX k you":     {"[1 1]", "read 0/k|update 0/k", "you"},
		"GET k; DEL k; EXISTS k": {`["me" 1 0]`, "read 0/k|update 0/k", "."},
		"GET k":                  {`["me"]`, "read 0/k", "me:500"},
		"PTTL k; DEL k":          {"[500 1]", "read 0/k|update 0/k", "."},
		"SET k2 x; DEL k":        {notTogetherError, "read 0/k 0/k2", "me:500"},
		"SET k2 x":               {notTogetherError, "read 0/k 0/k2", "me:500"},
		"INCR k; DEL k":          {"[ERR value is not an integer or out of range 1]", "update 0/k", "."},
		"":                       {"[]", "read 0/k", "me:500"},
	} {
		t.Run(commands, func(t *testing.T) {
			b := newRegisterFixture(t)
			b.masters.Put("k", "me", 500)
			b.watch("k")
			b.expectRun("GET k", `"me"`)
			b.masters.Rounds = nil
			if got := b.transact(commands); got != want.reply {
				t.Errorf("%s, want %s", got, want.reply)
			}
			b.expectRounds(strings.Split(want.round, "|")...)
			b.expectValue("k", want.after)
			if b.client.Transaction.HasWatchedKeys() {
				t.Error("the key is still watched")
			}
		})
	}
}

// TestWatchedKeyChanged checks that EXEC runs no command, not even one that reads, if a watched key
// changed.
func TestWatchedKeyChanged(t *testing.T) {
	for _, commands := range []string{"DEL k", "GET k", "SET k2 x", ""} {
		for _, proto := range []int{2, 3} {
			b := newRegisterFixture(t)
			b.client.Proto, b.out.Proto = proto, proto
			b.masters.Put("k", "me", 500)
			b.watch("k")
			b.masters.Put("k", "other", 500)
			at := len(b.out.Bytes)
			if got := b.transact(commands); got != "(nil)" {
				t.Errorf("%q: %s", commands, got)
			}
			want := map[int]string{2: "*-1\r\n", 3: "_\r\n"}[proto]
			if !strings.HasSuffix(string(b.out.Bytes[at:]), want) {
				t.Errorf("%q, RESP%d: %q", commands, proto, b.out.Bytes[at:])
			}
			b.expectValue("k", "other:500")
			b.expectValue("k2", ".")
		}
	}
}

// TestWatchedVersion checks that a key that has had a different value since WATCH counts as
// changed, even if it has the same value again. A key with only a new TTL does not count as
// changed. Neither does a key that was absent and is absent again.
func TestWatchedVersion(t *testing.T) {
	for _, test := range []struct {
		name             string
		isHeld           bool
		concurrentChange func(*fakeregister.Register)
		aborts           bool
	}{
		{"replaced and put back", true, func(f *fakeregister.Register) {
			f.Put("k", "other", 500)
			f.Put("k", "me",
				500)
		}, true},
		{"removed and taken again", true, func(f *fakeregister.Register) { f.Remove("k"); f.Put("k", "me", 500) }, true},
		{"removed", true, func(f *fakeregister.Register) { f.Remove("k") }, true},
		{"taken and given back", false, func(f *fakeregister.Register) { f.Put("k", "other", 500); f.Remove("k") }, false},
		{"taken", false, func(f *fakeregister.Register) { f.Put("k", "other", 500) }, true},
		{"extended", true, func(f *fakeregister.Register) {
			_, _ = f.Extend(context.Background(), quorum.Key{Name: "k"}, "me", time.Minute)
		}, false},
	} {
		for _, when := range []string{"before EXEC", "within it"} {
			for _, line := range []string{"SET k new", "DEL k", "PEXPIRE k 9000"} {
				b := newRegisterFixture(t)
				if test.isHeld {
					b.masters.Put("k", "me", 500)
				}
				b.watch("k")
				if when == "before EXEC" {
					test.concurrentChange(b.masters)
				} else {
					b.masters.ConcurrentChange = func() { test.concurrentChange(b.masters) }
				}
				got := b.transact(line)
				if b.masters.ConcurrentChange != nil {
					continue // the write used no ballot
				}
				if aborted := got == "(nil)"; aborted != test.aborts {
					t.Errorf("%s, %s, %s: %s", test.name, when, line, got)
				}
			}
		}
	}
}

// TestWatchedSeveralKeys checks that the proxy refuses a change under the condition of two
// versions, because no vote covers both versions.
func TestWatchedSeveralKeys(t *testing.T) {
	for _, lines := range []string{"DEL k1 k2", "DEL k1; DEL k2", "DEL k1", "SET k1 x",
		"PEXPIRE k1 900; PEXPIRE k2 900"} {
		b := newRegisterFixture(t)
		b.masters.Put("k1", "me", 500)
		b.masters.Put("k2", "me", 500)
		b.watch("k1", "k2")
		if got := b.transact(lines); !strings.Contains(got, "cannot be changed together") {
			t.Errorf("%s: %s", lines, got)
		}
		b.expectValue("k1", "me:500")
		b.expectValue("k2", "me:500")
	}
	b := newRegisterFixture(t)
	b.watch("k1", "k2")
	if got := b.transact("MSETNX k1 a k2 b"); got != "[1]" {
		t.Error(got)
	}
}

func TestWatchedAbsentKey(t *testing.T) {
	b := newRegisterFixture(t)
	b.watch("k")
	if got := b.transact("SET k me PX 500"); got != "[OK]" {
		t.Error(got)
	}
	b.expectValue("k", "me:500")
	b.watch("k2")
	b.masters.Put("k2", "other", 500)
	if got := b.transact("SET k2 me PX 500"); got != "(nil)" {
		t.Error(got)
	}
}

// TestWatchTwice checks that the value at the first WATCH counts, and UNWATCH ends the watch.
func TestWatchTwice(t *testing.T) {
	b := newRegisterFixture(t)
	b.watch("k")
	b.masters.Put("k", "other", 500)
	b.watch("k", "k2")
	if got := b.transact("DEL k"); got != "(nil)" {
		t.Error(got)
	}
	b.watch("k")
	b.masters.Put("k", "more", 500)
	b.client.Transaction.Unwatch()
	if got := b.transact("DEL k"); got != "[1]" {
		t.Error(got)
	}
}

func TestTransactionWithoutWatch(t *testing.T) {
	b := newRegisterFixture(t)
	if got := b.transact("SETNX k me; EXPIRE k 10"); got != "[1 1]" {
		t.Error(got)
	}
	b.expectRounds("take 0/k me:10000")
	if got := b.transact("SETNX k you; EXPIRE k 20"); got != "[0 1]" {
		t.Error(got)
	}
	b.expectValue("k", "me:20000")
	if got := b.transact(""); got != "[]" {
		t.Error(got)
	}
}

// TestQueueErrors checks that a command that the proxy refuses to queue aborts the transaction.
func TestQueueErrors(t *testing.T) {
	for line, want := range map[string]string{
		"GET":          "-ERR wrong number of arguments for 'get' command\r\n",
		"SET k":        "-ERR wrong number of arguments for 'set' command\r\n",
		"EVAL x":       "-ERR wrong number of arguments for 'eval' command\r\n",
		"XADD k * f x": "-ERR 'XADD' cannot be part of a transaction on lock keys: it is not a command on lock keys; send it before MULTI or after EXEC\r\n",
		"SET k v PX":   "+QUEUED\r\n", // only the run finds the error
	} {
		b := newRegisterFixture(t)
		b.client.Transaction.Begin()
		if got := b.queue(strings.Split(line, " ")...); got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
		exec := "-EXECABORT Transaction discarded because of previous errors.\r\n"
		if want == "+QUEUED\r\n" {
			exec = "*1\r\n-ERR syntax error\r\n"
		}
		if got := b.exec(); got != exec {
			t.Errorf("%s; EXEC: %q, want %q", line, got, exec)
		}
	}
}

func TestTransactionLimit(t *testing.T) {
	b := newRegisterFixture(t)
	big := []string{"SET", "k", strings.Repeat("x", 1<<20)}
	b.queue(big...)
	if got, want := b.queue(big...),
		"-ERR transaction too large: a transaction on lock keys is limited to 1048576 bytes\r\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestTransactionLimitOfEmptyWords checks that words without bytes count, because they need memory.
func TestTransactionLimitOfEmptyWords(t *testing.T) {
	b := newRegisterFixture(t)
	many := append([]string{"SADD", "k"}, make([]string, 1<<16)...)
	b.queue(many...)
	if got := b.queue(many...); !strings.HasPrefix(got, "-ERR transaction too large") {
		t.Error(got)
	}
}

func TestWatchInAnotherDatabase(t *testing.T) {
	b := newRegisterFixture(t)
	b.watch("k")
	b.client.DB = 1
	if got := b.transact("DEL k"); got != "EXECABORT Transaction discarded because of: the watched lock keys are in a different database; send WATCH and EXEC in the same database" {
		t.Error(got)
	}
	if b.client.Transaction.HasWatchedKeys() {
		t.Error("the key is still watched")
	}
}

func TestTransactionNoQuorum(t *testing.T) {
	b := newRegisterFixture(t)
	b.watch("k")
	b.masters.RoundErr = fakeregister.ErrTooFewMasters()
	if got := b.transact("SET k me PX 500"); !strings.HasPrefix(got, "NOQUORUM ") {
		t.Error(got)
	}
}

// TestWatchedKeyChangedByItsClient checks that a client that changes a key that it watches, even
// only its TTL, makes its EXEC fail.
func TestWatchedKeyChangedByItsClient(t *testing.T) {
	for _, line := range []string{"PEXPIRE k 900", "SETNX k2 x", "DEL k", "SET k me", "SET k2 x NX GET"} {
		b := newRegisterFixture(t)
		b.masters.Put("k", "me", 500)
		b.watch("k", "k2")
		b.run(strings.Split(line, " ")...)
		if got := b.transact("GET k"); got != "(nil)" {
			t.Errorf("%s: %s", line, got)
		}
	}
	b := newRegisterFixture(t)
	b.watch("k")
	b.expectRun("SETNX k2 x", "1")
	if got := b.transact("GET k"); got != "[(nil)]" {
		t.Error(got)
	}
}
