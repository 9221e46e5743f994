package commands

import (
	"context"
	"errors"
	"strings"
	"testing"

	"redlock-proxy/commands/command"
	"redlock-proxy/commands/lockkeys/keyspace/contents"
	"redlock-proxy/internal/fakeregister"
	"redlock-proxy/quorum"
)

func sortedSet(score float64, member string) string {
	z := contents.NewSortedSet()
	z.Set(member, score)
	return contents.Encode(z)
}

const (
	wrongTypeErr = "WRONGTYPE Operation against a key holding the wrong kind of value"
	waitForever  = "wait -1ns for list;"
	notFloatErr  = "ERR timeout is not a float or out of range"
	crossCellErr = "ERR lock keys 'k' and 'k2' cannot be changed together: one command can take, extend or remove several lock keys, but not change them otherwise; give them the same hash tag (lock-tags)"
)

// TestBlockingCommands checks that, as in Redis, a command takes an element immediately if one is
// present. The command uses the minimum number of requests to the masters.
func TestBlockingCommands(t *testing.T) {
	ab := list("a", "b")
	for _, test := range []struct{ line, k, k2, reply, rounds, after, after2 string }{
		{"BLPOP k 0", ab, "", `["k" "a"]`, waitForever + "read 0/k;update 0/k", list("b"), "."},
		{"BRPOP k 0", ab, "", `["k" "b"]`, waitForever + "read 0/k;update 0/k", list("a"), "."},
		{"BRPOP k 0", list("a"), "", `["k" "a"]`, waitForever + "read 0/k;release 0/k " + list("a"), ".", "."},
		{"BLPOP k 1.5", "", "", "(nil)", "wait 1.5s for list;read 0/k", ".", "."},
		{"BLPOP k 0.0001", "", "", "(nil)", "wait 1ms for list;read 0/k", ".", "."},
		{"BLPOP k k 0", ab, "", `["k" "a"]`, waitForever + "read 0/k;update 0/k", list("b"), "."},
		{"BLPOP k x", "", "", notFloatErr, "", ".", "."},
		{"BLPOP k -1", "", "", "ERR timeout is negative", "", ".", "."},
		{"BLPOP k 1e30", "", "", "ERR timeout is negative", "", ".", "."},
		{"BLPOP k 9223372036854775", "", "", "ERR timeout is out of range", "", ".", "."},
		{"BLPOP k 100000000000", ab, "", `["k" "a"]`, waitForever + "read 0/k;update 0/k", list("b"), "."},
		{"BLPOP k", ab, "", "ERR wrong number of arguments for 'blpop' command", "", ab, "."},
		{"BLPOP k 0", "x", "", wrongTypeErr, waitForever + "read 0/k", "x", "."},
		{"BLMOVE k k LEFT RIGHT 0", ab, "", `"a"`, waitForever + "read 0/k;update 0/k", list("b", "a"), "."},
		{"BLMOVE k k LEFT RIGHT 0", list("a"), "", `"a"`, waitForever + "read 0/k", list("a"), "."},
		{"BLMOVE k k LEFT RIGHT 2", "", "", "(nil)", "wait 2s for list;read 0/k", ".", "."},
		{"BLMOVE k k UP RIGHT 0", "", "", "ERR syntax error", "", ".", "."},
		{"BLMOVE k k2 LEFT RIGHT 0", ab, "", crossCellErr, "", ab, "."},
		{"BRPOPLPUSH k k2 0", ab, "", crossCellErr, "", ab, "."},
		{"BRPOPLPUSH k k2 x", ab, "", notFloatErr, "", ab, "."},
		{"BRPOPLPUSH k k 0", ab, "", `"b"`, waitForever + "read 0/k;update 0/k", list("b", "a"), "."},
		{"BZPOPMIN k 0", sortedSet(1.5, "m"), "", `["k" "m" "1.5"]`, "wait -1ns for zset;read 0/k;release 0/k " +
			sortedSet(1.5, "m"), ".", "."},
		{"BZPOPMAX k 0", ab, "", wrongTypeErr, "wait -1ns for zset;read 0/k", ab, "."},

		// Several keys.
		{"BLPOP k k2 0", ab, list("c"), `["k" "a"]`, waitForever + "read 0/k 0/k2;update 0/k", list("b"), list("c")},
		{"BLPOP k k2 0", "", ab, `["k2" "a"]`, waitForever + "read 0/k 0/k2;read 0/k;update 0/k2", ".", list("b")},
		{"BZPOPMIN k k2 0", "", sortedSet(1.5, "m"), `["k2" "m" "1.5"]`,
			"wait -1ns for zset;read 0/k 0/k2;read 0/k;update 0/k2", ".", "."},
		{"BLPOP k k2 0", "", "x", wrongTypeErr, waitForever + "read 0/k 0/k2", ".", "x"},
		{"BLPOP k k2 0", "x", ab, wrongTypeErr, waitForever + "read 0/k 0/k2", "x", ab},
		{"BLPOP k k2 1", "", "", "(nil)", "wait 1s for list;read 0/k 0/k2", ".", "."},
	} {
		b := newRegisterFixture(t)
		for key, value := range map[string]string{"k": test.k, "k2": test.k2} {
			if value != "" {
				b.masters.Put(key, value, -1)
			}
		}
		b.expectRun(test.line, test.reply)
		b.expectRounds(split(strings.TrimSuffix(test.rounds, ";"))...)
		b.expectValue("k", test.after)
		b.expectValue("k2", test.after2)
		if t.Failed() {
			t.Fatal(test.line)
		}
	}
}

// TestWaitOfBlockingCommands checks that a waiter takes an element that arrives. The waiter
// continues to wait while the key has another type, and after another client has taken the element
// first.
func TestWaitOfBlockingCommands(t *testing.T) {
	put := func(key, value string) func(*fakeregister.Register) {
		return func(f *fakeregister.Register) { f.Put(key, value, -1) }
	}
	remove := func(key string) func(*fakeregister.Register) { return func(f *fakeregister.Register) { f.Remove(key) } }
	text := put("k", "x")
	// putThenTakenByRival puts an element, which another client takes once the waiter has found it.
	putThenTakenByRival := func(key string) func(*fakeregister.Register) {
		return func(f *fakeregister.Register) {
			f.Put(key, list("a", "b"), -1)
			f.ConcurrentChange = func() { f.Remove(key) }
		}
	}
	for _, test := range []struct {
		name, line, reply string
		events            []func(*fakeregister.Register)
		after, after2     string
	}{
		{"pushed", "BLPOP k 0", `["k" "a"]`, []func(*fakeregister.Register){put("k", list("a", "b"))}, list("b"), "."},
		{"a string meanwhile", "BLPOP k 0", `["k" "a"]`, []func(*fakeregister.Register){text, remove("k"),
			put("k", list("a"))}, ".", "."},
		{"a string to the end", "BLPOP k 1", "(nil)", []func(*fakeregister.Register){text}, "x", "."},
		{"a string under one of two", "BLPOP k k2 0", `["k2" "a"]`, []func(*fakeregister.Register){text,
			put("k2", list("a"))}, "x", "."},
		{"what cannot be read", "BLPOP k 0", "ERR cannot read lock key 'k': this version of the proxy does not know the format of its value; upgrade the proxy, or DEL the key",
			[]func(*fakeregister.Register){put("k", "\x00redlock:?")}, "\x00redlock:?", "."},
		{"of one and the same", "BLMOVE k k LEFT RIGHT 0", `"a"`, []func(*fakeregister.Register){text,
			put("k", list("a", "b"))}, list("b", "a"), "."},
		{"the second key", "BLPOP k k2 0", `["k2" "a"]`, []func(*fakeregister.Register){put("k2", list("a", "b"))}, ".",
			list("b")},
		{"both", "BLPOP k k2 0", `["k" "c"]`, []func(*fakeregister.Register){func(f *fakeregister.Register) {
			f.Put("k2", list("a"), -1)
			f.Put("k", list("c"), -1)
		}}, ".", list("a")},
		{"another client was faster", "BLPOP k 0", `["k" "c"]`, []func(*fakeregister.Register){putThenTakenByRival("k"),
			put("k", list("c", "d"))}, list("d"), "."},
		{"another client was faster, until the end", "BLPOP k 1", "(nil)",
			[]func(*fakeregister.Register){putThenTakenByRival("k"), putThenTakenByRival("k")}, ".", "."},
		{"another client was faster at one of two", "BLPOP k k2 0", `["k" "c"]`,
			[]func(*fakeregister.Register){putThenTakenByRival("k2"), put("k", list("c", "d"))}, list("d"), "."},
		{"another client was faster at the source", "BLMOVE k k LEFT RIGHT 0", `"c"`,
			[]func(*fakeregister.Register){putThenTakenByRival("k"), put("k", list("c", "d"))}, list("d", "c"), "."},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newRegisterFixture(t)
			for _, event := range test.events {
				b.masters.OnWait = append(b.masters.OnWait, func() { event(b.masters) })
			}
			b.expectRun(test.line, test.reply)
			b.expectValue("k", test.after)
			b.expectValue("k2", test.after2)
			if n := len(b.masters.OnWait); n > 0 || b.masters.ConcurrentChange != nil {
				t.Errorf("the wait ended before %d events, or no client was faster", n)
			}
		})
	}
}

// TestBlockingCommandsAfterWaiter checks that a client gets no element before its turn, but gets
// errors immediately.
func TestBlockingCommandsAfterWaiter(t *testing.T) {
	b := newRegisterFixture(t)
	b.masters.Put("k", list("a", "b"), -1)
	b.masters.HasPredecessors = true
	b.expectRun("BLPOP k 1", "(nil)")
	b.expectValue("k", list("a", "b"))
	b.masters.OnWait = []func(){func() {}}
	b.expectRun("BLPOP k 1", `["k" "a"]`)
	b.masters.Put("k", "x", -1)
	b.expectRun("BLPOP k 1", wrongTypeErr)
}

// TestBlockingCommandsOfSeveralKeys checks that a command takes an element of a later key only if
// no key has changed since the command found the earlier keys empty. Otherwise the command reads
// all keys again.
func TestBlockingCommandsOfSeveralKeys(t *testing.T) {
	for _, test := range []struct {
		name string
		// before holds a function for each round. The first round records the wait.
		before        map[int]func(*fakeregister.Register)
		reply, rounds string
		after, after2 string
	}{
		{"an earlier key comes", map[int]func(*fakeregister.Register){3: func(f *fakeregister.Register) {
			f.Put("k",
				list("c", "d"), -1)
		}},
			`["k" "c"]`, "read 0/k 0/k2;read 0/k;read 0/k 0/k2;update 0/k", list("d"), list("a", "b")},
		{"the later one is changed",
			map[int]func(*fakeregister.Register){4: func(f *fakeregister.Register) { f.Put("k2", list("b", "c"), -1) }},
			`["k2" "b"]`, "read 0/k 0/k2;read 0/k;update 0/k2;read 0/k 0/k2;read 0/k;update 0/k2", ".", list("c")},
		{"the later one is taken by another",
			map[int]func(*fakeregister.Register){4: func(f *fakeregister.Register) { f.Remove("k2") }},
			"(nil)", "read 0/k 0/k2;read 0/k;update 0/k2;read 0/k 0/k2", ".", "."},
		{"an earlier key is something else",
			map[int]func(*fakeregister.Register){3: func(f *fakeregister.Register) { f.Put("k", "x", -1) }},
			wrongTypeErr, "read 0/k 0/k2;read 0/k;read 0/k 0/k2", "x", list("a", "b")},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newRegisterFixture(t)
			b.masters.Put("k2", list("a", "b"), -1)
			b.masters.BeforeRound = func(round int) {
				if event := test.before[round]; event != nil {
					delete(test.before, round)
					event(b.masters)
				}
			}
			b.expectRun("BLPOP k k2 0", test.reply)
			b.expectRounds(split(waitForever + test.rounds)...)
			b.expectValue("k", test.after)
			b.expectValue("k2", test.after2)
		})
	}
}

// TestBlockingCommandFailures checks that a waiter continues to wait after NOQUORUM. If the waiter
// may have taken an element, the error ends the wait. The end of the session also ends the wait.
func TestBlockingCommandFailures(t *testing.T) {
	for _, line := range []string{"BLPOP k 0", "BLPOP k k2 0", "BLMOVE k k LEFT LEFT 0"} {
		b := newRegisterFixture(t)
		fail := func() { b.masters.RoundErr = fakeregister.ErrTooFewMasters() }
		b.masters.OnWait = []func(){fail, fail}
		if got := b.run(strings.Fields(line)...); !strings.HasPrefix(got, "NOQUORUM 2 of 5 masters answered") ||
			len(b.masters.OnWait) > 0 {
			t.Errorf("%s: %s, and %d things are still to come", line, got, len(b.masters.OnWait))
		}
		b = newRegisterFixture(t)
		b.masters.OnWait = []func(){fail, func() { b.masters.RoundErr = nil; b.masters.Put("k", list("a"), -1) }}
		if got := b.run(strings.Fields(line)...); !strings.Contains(got, "\"a\"") {
			t.Errorf("%s, when they can say it: %s", line, got)
		}
	}
	b := newRegisterFixture(t)
	b.masters.Put("k", list("a"), -1)
	b.masters.BeforeRound = func(round int) {
		if round == 3 { // the third round takes the found element
			b.masters.RoundErr = fakeregister.ErrTooFewMasters()
		}
	}
	b.masters.OnWait = []func(){func() { t.Error("it waits on although it may have taken something") }}
	if got := b.run("BLPOP", "k", "0"); !strings.HasPrefix(got, "NOQUORUM ") {
		t.Errorf("BLPOP that may have taken something: %s", got)
	}
	b = newRegisterFixture(t)
	leaveErr := errors.New("the client left")
	stops := 0
	b.client.Wait = func(ctx context.Context) (context.Context, func()) {
		waitCtx, cancel := context.WithCancelCause(ctx)
		b.masters.OnWait = []func(){func() { cancel(leaveErr) }}
		return waitCtx, func() { stops++; cancel(nil) }
	}
	if got := b.run("BLPOP", "k", "0"); got != "ERR "+leaveErr.Error() || stops != 1 {
		t.Errorf("%s, stopped %d times", got, stops)
	}
}

// TestBlockingRepliesInRESP3 checks that the replies have the types of the protocol.
func TestBlockingRepliesInRESP3(t *testing.T) {
	b := newRegisterFixture(t)
	b.client.Proto = 3
	for line, want := range map[string]string{
		"BLPOP none 1":                 "_\r\n",
		"BLMOVE none none LEFT LEFT 1": "_\r\n",
		"BZPOPMIN kz 0":                "*3\r\n$2\r\nkz\r\n$1\r\nm\r\n,1.5\r\n",
	} {
		b.masters.Put("kz", sortedSet(1.5, "m"), -1)
		if got := rawReply(b, line); got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
	b.client.Proto = 2
	for _, line := range []string{"BLPOP none 1", "BLMOVE none none LEFT LEFT 1"} {
		if got := rawReply(b, line); got != "*-1\r\n" {
			t.Errorf("%s: %q", line, got)
		}
	}
}

func rawReply(b *registerFixture, line string) string {
	words, out := strings.Fields(line), command.Reply{}
	args := make([][]byte, len(words))
	for i, w := range words {
		args[i] = []byte(w)
	}
	cmd := b.table.router.lockKeyCommands[strings.ToLower(words[0])]
	b.table.Run(cmd, command.Call{Ctx: b.Context(), Client: b.client, Args: args, Out: &out})
	return string(out.Bytes)
}

// TestContendedBlockingCommands checks that a waiter retries a pop that collided with changes by
// other clients.
func TestContendedBlockingCommands(t *testing.T) {
	b := newRegisterFixture(t)
	b.masters.Put("k", list("a", "b"), -1)
	b.masters.RoundErr = quorum.ErrContended
	b.masters.OnWait = []func(){func() { b.masters.RoundErr = nil }}
	b.expectRun("BLPOP k 0", `["k" "a"]`)
}
