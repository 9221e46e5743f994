package commands

import (
	"strings"
	"testing"
)

// transact queues commands, separated by "; ", and gives EXEC's reply.
func (b *registerBench) transact(lines string) string {
	b.Helper()
	tx := &Transaction{}
	if lines != "" {
		for line := range strings.SplitSeq(lines, "; ") {
			b.table.Queue(b.client, tx, wordBytes(strings.Split(line, " ")), &b.out)
		}
	}
	at := len(b.out.Bytes)
	b.table.Exec(b.Context(), b.client, tx, &b.out)
	return oneLine(b.T, string(b.out.Bytes[at:]))
}

func (b *registerBench) watch(keys ...string) {
	b.Helper()
	at := len(b.out.Bytes)
	b.table.Watch(b.Context(), b.client, wordBytes(keys), &b.out)
	if got := string(b.out.Bytes[at:]); got != "+OK\r\n" {
		b.Errorf("WATCH %v: %q", keys, got)
	}
}

// The release and the extension of StackExchange.Redis and redis-py 2: one round trip
// for the EXEC.
func TestWatchedRelease(t *testing.T) {
	for commands, want := range map[string]struct{ reply, round, left string }{
		"DEL k":                  {"[1]", "edit 0/k me→.", "."},
		"PEXPIRE k 900":          {"[1]", "edit 0/k me→me:900", "me:900"},
		"SET k you PX 800":       {"[OK]", "edit 0/k me→you:800", "you:800"},
		"DEL k; SETNX k you":     {"[1 1]", "edit 0/k me→you", "you"},
		"GET k; DEL k; EXISTS k": {`["me" 1 0]`, "edit 0/k me→.", "."},
		"GET k":                  {`["me"]`, "read 0/k", "me:500"},
		"PTTL k; DEL k":          {"[500 1]", "read 0/k|edit 0/k me→.", "."},
		"SET k2 x; DEL k":        {"[OK 1]", "read 0/k 0/k2|edit 0/k me→., 0/k2 .→x", "."},
		"INCR k; DEL k":          {"[ERR value is not an integer or out of range 1]", "edit 0/k me→.", "."},
		"":                       {"[]", "read 0/k", "me:500"},
	} {
		t.Run(commands, func(t *testing.T) {
			b := newRegisterBench(t)
			b.masters.all("k", "me", 500)
			b.watch("k")
			b.does("GET k", `"me"`)
			b.masters.rounds = nil
			if got := b.transact(commands); got != want.reply {
				t.Errorf("%s, want %s", got, want.reply)
			}
			b.asked(strings.Split(want.round, "|")...)
			b.holding("k", want.left)
			if b.client.Watching() {
				t.Error("the key is still watched")
			}
		})
	}
}

// Whoever has changed a watched key meanwhile, EXEC does nothing, even if it only
// reads.
func TestWatchedKeyChanged(t *testing.T) {
	for _, commands := range []string{"DEL k", "GET k", "SET k2 x", ""} {
		for _, proto := range []int{2, 3} {
			b := newRegisterBench(t)
			b.client.Proto, b.out.Proto = proto, proto
			b.masters.all("k", "me", 500)
			b.watch("k")
			b.masters.all("k", "other", 500)
			at := len(b.out.Bytes)
			if got := b.transact(commands); got != "(nil)" {
				t.Errorf("%q: %s", commands, got)
			}
			want := map[int]string{2: "*-1\r\n", 3: "_\r\n"}[proto]
			if !strings.HasSuffix(string(b.out.Bytes[at:]), want) {
				t.Errorf("%q, RESP%d: %q", commands, proto, b.out.Bytes[at:])
			}
			b.holding("k", "other:500")
			b.holding("k2", ".")
		}
	}
}

func TestWatchedAbsentKey(t *testing.T) {
	b := newRegisterBench(t)
	b.watch("k")
	if got := b.transact("SET k me PX 500"); got != "[OK]" {
		t.Error(got)
	}
	b.holding("k", "me:500")
	b.watch("k2")
	b.masters.all("k2", "other", 500)
	if got := b.transact("SET k2 me PX 500"); got != "(nil)" {
		t.Error(got)
	}
}

// What a key held at the first WATCH counts, and UNWATCH ends it.
func TestWatchTwice(t *testing.T) {
	b := newRegisterBench(t)
	b.watch("k")
	b.masters.all("k", "other", 500)
	b.watch("k", "k2")
	if got := b.transact("DEL k"); got != "(nil)" {
		t.Error(got)
	}
	b.watch("k")
	b.masters.all("k", "more", 500)
	b.client.Unwatch()
	if got := b.transact("DEL k"); got != "[1]" {
		t.Error(got)
	}
}

func TestTransactionWithoutWatch(t *testing.T) {
	b := newRegisterBench(t)
	if got := b.transact("SETNX k me; EXPIRE k 10"); got != "[1 1]" {
		t.Error(got)
	}
	b.asked("edit 0/k .→me:10000")
	if got := b.transact("SETNX k you; EXPIRE k 20"); got != "[0 1]" {
		t.Error(got)
	}
	b.holding("k", "me:20000")
	if got := b.transact(""); got != "[]" {
		t.Error(got)
	}
}

// A command that is wrong where it is queued aborts the whole.
func TestQueueErrors(t *testing.T) {
	for line, want := range map[string]string{
		"GET":        "-ERR wrong number of arguments for 'get' command\r\n",
		"SET k":      "-ERR wrong number of arguments for 'set' command\r\n",
		"EVAL x":     "-ERR wrong number of arguments for 'eval' command\r\n",
		"LPUSH k x":  "-ERR 'LPUSH' cannot be part of a transaction on lock keys\r\n",
		"SET k v PX": "+QUEUED\r\n", // known only when it runs
	} {
		b := newRegisterBench(t)
		tx := &Transaction{}
		b.table.Queue(b.client, tx, wordBytes(strings.Split(line, " ")), &b.out)
		if got := string(b.out.Bytes); got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
		b.out.Delivered()
		b.table.Exec(t.Context(), b.client, tx, &b.out)
		exec := "-EXECABORT Transaction discarded because of previous errors.\r\n"
		if want == "+QUEUED\r\n" {
			exec = "*1\r\n-ERR syntax error\r\n"
		}
		if got := string(b.out.Bytes); got != exec {
			t.Errorf("%s; EXEC: %q, want %q", line, got, exec)
		}
	}
}

func TestTransactionIsBounded(t *testing.T) {
	b := newRegisterBench(t)
	tx := &Transaction{}
	big := []string{"SET", "k", strings.Repeat("x", maxQueued)}
	b.table.Queue(b.client, tx, wordBytes(big), &b.out)
	b.out.Delivered()
	b.table.Queue(b.client, tx, wordBytes(big), &b.out)
	if got, want := string(b.out.Bytes), "-ERR a transaction on lock keys is limited to 1048576 bytes\r\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestWatchInAnotherDatabase(t *testing.T) {
	b := newRegisterBench(t)
	b.watch("k")
	b.client.DB = 1
	if got := b.transact("DEL k"); got != "EXECABORT Transaction discarded because of: the watched lock keys are in another database" {
		t.Error(got)
	}
	if b.client.Watching() {
		t.Error("the key is still watched")
	}
}

func TestTransactionNoQuorum(t *testing.T) {
	b := newRegisterBench(t)
	b.watch("k")
	b.masters.down = [5]bool{true, true, true}
	if got := b.transact("SET k me PX 500"); !strings.HasPrefix(got, "NOQUORUM ") {
		t.Error(got)
	}
}

// A client that changes what it watches itself, be it the time only, has changed it.
func TestWatchedKeyChangedByItsOwn(t *testing.T) {
	for _, line := range []string{"PEXPIRE k 900", "SETNX k2 x", "DEL k", "SET k me", "SET k2 x NX GET"} {
		b := newRegisterBench(t)
		b.masters.all("k", "me", 500)
		b.watch("k", "k2")
		b.run(strings.Split(line, " ")...)
		if got := b.transact("GET k"); got != "(nil)" {
			t.Errorf("%s: %s", line, got)
		}
	}
	b := newRegisterBench(t)
	b.watch("k")
	b.does("SETNX k2 x", "1")
	if got := b.transact("GET k"); got != "[(nil)]" {
		t.Error(got)
	}
}
