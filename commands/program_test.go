package commands

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"redlock-proxy/commands/register"
	"redlock-proxy/quorum"
)

// Another client is quicker each time: the command starts over on what it left.
func TestOvertaken(t *testing.T) {
	b := newRegisterBench(t)
	b.masters.before = func(round int) {
		if round <= 3 {
			b.masters.all("k", fmt.Sprint("other", round), 500)
		}
	}
	b.does("GETSET k me", `"other3"`)
	b.asked("read 0/k", "edit 0/k other1→me", "edit 0/k other2→me", "edit 0/k other3→me")
	b.holding("k", "me")
}

// A command that is overtaken without end says so.
func TestOvertakenForever(t *testing.T) {
	b := newRegisterBench(t)
	b.masters.before = func(round int) { b.masters.all("k", fmt.Sprint("other", round), 500) }
	b.does("GETSET k me", "ERR lock key 'k' is being changed by others all the time")
	if !strings.HasPrefix(b.masters.holds("k"), "other") {
		t.Errorf("k: %s", b.masters.holds("k"))
	}
	if b.paused == 0 {
		t.Error("it never waited")
	}
}

// A command that may have been carried out for a moment, and been seen, is not tried again where its reply would tell of
// what was there before: it would be carried out twice.
func TestSeenBeforeItWasTakenBack(t *testing.T) {
	const reentrant = "if redis.call('get',KEYS[1])==ARGV[1] or redis.call('set',KEYS[1],ARGV[1],'nx','px',900) then return 1 end return 0"
	for _, test := range []struct {
		there, reply string
		words        []string
	}{
		{"", "(nil)", []string{"SET", "k", "me", "NX", "PX", "900"}},
		{"", doubtAnswer, []string{"SET", "k", "me", "NX", "GET", "PX", "900"}},
		{"", "0", []string{"MSETNX", "k", "me"}},
		{"", "0", []string{"EVAL", reentrant, "1", "k", "me"}},
		{"", doubtAnswer, []string{"GETSET", "k", "me"}},
		{"x", doubtAnswer, []string{"GETSET", "k", "me"}},
		{"x", doubtAnswer, []string{"SET", "k", "me", "XX", "PX", "900"}},
		{"x", "OK", []string{"SET", "k", "me", "PX", "900"}},
	} {
		b := newRegisterBench(t)
		b.masters.shows = true
		if test.there != "" {
			b.masters.all("k", test.there, 500)
		}
		b.masters.before = func(round int) { // another is quicker than the first edit
			if strings.HasPrefix(b.masters.rounds[round-1], "edit") {
				b.masters.before = nil
				b.masters.put("k", "y", 500, 0, 1, 2)
			}
		}
		if got := b.run(test.words...); got != test.reply {
			t.Errorf("%q: %s, want %s", test.words, got, test.reply)
		}
	}
}

// DEL removes what it saw, and not what comes after it as well.
func TestDelRemovesOnce(t *testing.T) {
	b := newRegisterBench(t)
	b.masters.all("k", "a", 500)
	b.masters.before = func(round int) {
		if round == 2 { // others have removed it from most masters, and somebody has taken it
			b.masters.put("k", "b", 500, 0, 1, 2)
		}
	}
	b.does("DEL k", "1")
	b.holding("k", "b:500 b:500 b:500 . .")
}

// Of several keys each is removed, also where another has removed one of them at the same moment.
func TestDelOfSeveralKeysRemovesAll(t *testing.T) {
	b := newRegisterBench(t)
	b.masters.all("k1", "a", 500)
	b.masters.all("k2", "a", 500)
	b.masters.before = func(round int) {
		if round == 2 {
			for _, m := range b.masters.masters[:4] {
				delete(m, quorum.Key{Name: "k1"})
			}
		}
	}
	b.does("DEL k1 k2", "1")
	b.holding("k1", ".")
	b.holding("k2", ".")
}

// Who replaces a value, or was overtaken, waits for his turn, looks again if others had theirs, and ends it. Who takes a free key or
// gives his own back asks for none.
func TestTurns(t *testing.T) {
	for _, test := range []struct {
		line, reply string
		turns       bool
		rounds      []string
	}{
		{"SET k me NX PX 900", "(nil)", false, []string{"edit 0/k .→me:900"}},
		{"DELEX k IFEQ x", "1", false, []string{"edit 0/k x→."}},
		{"PEXPIRE k 900", "1", false, []string{"read 0/k", "edit 0/k x→x:900"}},
		{"GETSET k me", `"y"`, true, []string{"read 0/k", "read 0/k", "edit 0/k y→me"}},
		{"SET k me XX PX 900", "OK", true, []string{"read 0/k", "read 0/k", "edit 0/k y→me:900"}},
	} {
		b := newRegisterBench(t)
		b.masters.all("k", "x", 500)
		b.masters.busy = 3
		b.masters.before = func(round int) {
			if round == 2 && test.turns {
				b.masters.all("k", "y", 500)
			}
		}
		b.does(test.line, test.reply)
		b.asked(test.rounds...)
		if waited := b.masters.busy == 0; waited != test.turns || b.masters.turns != 0 {
			t.Errorf("%s: waited for its turn: %v, and did not end %d", test.line, waited, b.masters.turns)
		}
	}
}

// Where somebody else has the turn for ever, that is the answer.
func TestTurnThatNeverComes(t *testing.T) {
	b := newRegisterBench(t)
	b.masters.all("k", "x", 500)
	b.masters.busy = 1 << 30
	b.does("GETSET k me", "ERR lock key 'k' is being changed by others all the time")
	b.holding("k", "x:500")
}

// A client that leaves while its command waits ends it.
func TestLeavingWhileOvertaken(t *testing.T) {
	b := newRegisterBench(t)
	ctx, leave := context.WithCancelCause(t.Context())
	b.masters.before = func(round int) { b.masters.all("k", fmt.Sprint("other", round), 500) }
	b.table.pause = func(ctx context.Context, _ time.Duration) error {
		leave(ErrShuttingDown)
		return context.Cause(ctx)
	}
	b.table.Run(ctx, b.table.locked["getset"], b.client, wordBytes([]string{"GETSET", "k", "me"}), &b.out)
	if got, want := string(b.out.Bytes), "-ERR the proxy is shutting down\r\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// Where values stand on some masters, none has a majority, and nothing moves any more,
// nobody holds the key. It cannot be taken before what is there is removed.
func TestSplit(t *testing.T) {
	const stays = "a:500 a:500 b:600 b:600 ."
	tests := []struct {
		name, line, reply, left string
		down                    int // the last ones are
	}{
		{"a reader is told of nobody", "GET k", "(nil)", stays, 0},
		{"nor of a time", "PTTL k", "-2", stays, 0},
		{"it may be a majority", "GET k", tooFewAnswer, stays, 1},
		{"who takes it is told that it is held", "SET k me NX GET PX 900", `"a"`, stays, 0},
		{"also if it may be", "SET k me NX GET PX 900", `"a"`, stays, 1},
		{"who releases one takes it away", "DELEX k IFEQ b", "0", "a:500 a:500 . . .", 0},
		{"who releases none takes none away", "DELEX k IFEQ c", "0", stays, 0},
		{"nobody extends", "PEXPIRE k 900", "0", stays, 0},
		{"DEL does not guess who may be the majority", "DEL k", tooFewAnswer, stays, 1},
		{"DEL makes it free", "DEL k", "1", ". . b:600 b:600 .", 0},
		{"nobody is told what it was", "GETDEL k", "ERR lock key 'k' is being changed by others all the time", stays, 0},
		{"SET takes what it made free", "SET k me PX 900", "OK", "me:900 me:900 b:600 b:600 me:900", 0},
		{"MSET, too", "MSET k me k2 me", "OK", "me me b:600 b:600 me", 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			b := newRegisterBench(t)
			b.masters.put("k", "a", 500, 0, 1)
			b.masters.put("k", "b", 600, 2, 3)
			for i := range test.down {
				b.masters.down[4-i] = true
			}
			b.does(test.line, test.reply)
			b.holding("k", test.left)
		})
	}
}

// What is left of a try that failed, on fewer masters than it takes, does not keep
// anybody from the lock.
func TestLeftover(t *testing.T) {
	for _, line := range []string{"SET k me NX PX 900", "SET k me NX GET PX 900", "MSETNX k me k2 me", "SET k me PX 900"} {
		b := newRegisterBench(t)
		b.masters.put("k", "old", 500, 1)
		if got := b.run(strings.Split(line, " ")...); got != "OK" && got != "(nil)" && got != "1" {
			t.Errorf("%s: %s", line, got)
		}
		if h := b.masters.holds("k"); !strings.HasPrefix(h, "me") || strings.Count(h, "old") > 1 {
			t.Errorf("%s: the masters hold %s", line, h)
		}
	}
}

// While somebody takes the key, a program that wants it waits to see what comes of
// that.
func TestSplitThatIsDecided(t *testing.T) {
	b := newRegisterBench(t)
	b.masters.put("k", "a", 500, 0, 1)
	b.masters.put("k", "b", 500, 2)
	b.masters.before = func(round int) {
		if round == 3 {
			b.masters.all("k", "a", 500)
		}
	}
	b.does("PEXPIRE k 900", "1")
	b.holding("k", "a:900")
}

// The leftovers of several keys stand on different masters, so that no single edit
// would take them away.
func TestLeftoversOnDifferentMasters(t *testing.T) {
	b := newRegisterBench(t)
	b.masters.put("k", "a", -1, 0, 1)
	b.masters.put("k2", "b", -1, 2, 3)
	b.does("DEL k k2", "0")
	b.holding("k", ".")
	b.holding("k2", ".")
}

func TestDecide(t *testing.T) {
	edit := func(was, now string) []register.Edit {
		entry := func(value string) register.Entry {
			return register.Entry{Present: value != "", Value: value, Left: register.Endless}
		}
		return []register.Edit{{Key: "k", Was: entry(was), Now: entry(now)}}
	}
	none, take, over := []register.Edit(nil), edit("", "me"), edit("a", "me")
	remove, again := edit("a", ""), edit("a", "a")
	contested := func(free, held attempt, seen view, at int) move {
		return decideContested(free, held, seen, at > 0)
	}
	unsure := func(free, held attempt, _ view, at int) move { return decideUnsure(free, held, false, at) }
	leftover := func(free, held attempt, seen view, at int) move {
		return decideLeftover(free, held, seen, at > 0)
	}
	tests := []struct {
		name       string
		decide     func(free, held attempt, seen view, at int) move
		free, held []register.Edit
		at         int // stuck if it is more than 0; or so many failures
		step       step
		asHeld     bool
	}{
		{"reads while it is contested", contested, none, none, 0, stepWait, false},
		{"reads what nobody is at work on", contested, none, none, 1, stepAnswer, false},
		{"takes while it is contested", contested, take, none, 0, stepWait, false},
		{"takes what nobody is at work on", contested, take, none, 1, stepAnswer, true},
		{"releases while it is contested", contested, none, remove, 0, stepWait, false},
		{"releases what nobody is at work on", contested, none, remove, 1, stepClear, true},
		{"extends what nobody is at work on", contested, none, again, 1, stepAnswer, false},
		{"overwrites what nobody is at work on and asks for it", contested, take, over, 1, stepWait, false},

		{"reads what may be there", unsure, none, none, 0, stepWait, false},
		{"has read enough what may be there", unsure, none, none, 4, stepAnswer, false},
		{"takes what may be held", unsure, take, none, 4, stepAnswer, true},
		{"releases what may be held", unsure, none, remove, 0, stepCommit, true},
		{"extends what may be held", unsure, none, again, 0, stepCommit, true},

		{"reads beside a leftover", leftover, none, none, 0, stepAnswer, false},
		{"takes beside a leftover", leftover, take, none, 0, stepCommit, false},
		{"overwrites beside a leftover", leftover, take, over, 1, stepCommit, false},
		{"releases what may be a try", leftover, none, remove, 0, stepWait, false},
		{"releases a leftover", leftover, none, remove, 1, stepClear, false},
	}
	for _, test := range tests {
		seen := view{"k": quorum.Holding{Split: true, Value: "a"}}
		free := attempt{reply: register.Number(0), edits: test.free}
		held := attempt{reply: register.Number(1), edits: test.held}
		got := test.decide(free, held, seen, test.at)
		asHeld := got.attempt.reply.Int == 1
		if got.step != test.step || asHeld != test.asHeld {
			t.Errorf("who %s: step %d as held %v, want step %d, %v", test.name, got.step, asHeld, test.step, test.asHeld)
		}
	}
}

// Whatever one client does, in whatever order, with whatever guesses, the replies are
// those of a single Space without any masters.
func TestSameAsWithoutMasters(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(3, seed))
		pick := func(words ...string) string { return words[random.IntN(len(words))] }
		b := newRegisterBench(t)
		alone := register.NewSpace(b.now)
		alone.Put("k", register.Entry{})
		alone.Put("k2", register.Entry{})
		var done []string
		for range 40 {
			line := pick("SET K V NX PX 900", "SET K V NX", "SETNX K V", "SET K V XX PX 800", "SET K V", "SET K V KEEPTTL", "SET K V IFEQ V PX 700", "SET K V IFNE V GET",
				"GETSET K V", "GETDEL K", "GETEX K PX 600", "GETEX K PERSIST", "GET K", "PTTL K", "DEL K", "DEL K K", "DELEX K IFEQ V", "DELEX K IFNE V", "DELIFEQ K V", "PEXPIRE K 500",
				"PEXPIRE K 650 GT", "PEXPIRE K 650 NX", "PERSIST K", "APPEND K V", "INCR K", "MSETNX K V K V", "MSET K V K V", "MGET K K", "EXISTS K K", "STRLEN K", "SETRANGE K 1 V", "PEXPIRE K -1")
			for strings.Contains(line, "K ") || strings.HasSuffix(line, " K") {
				at := strings.Index(line+" ", " K ")
				if at < 0 {
					break
				}
				line = line[:at+1] + pick("k", "k2") + line[at+2:]
			}
			for strings.Contains(line, " V") {
				line = strings.Replace(line, " V", " "+pick("a", "b", "7"), 1)
			}
			done = append(done, line)
			words := strings.Split(line, " ")
			reply, err := alone.Do(words)
			if err != nil {
				t.Fatal(err)
			}
			want := Reply{Proto: 2}
			want.value(reply)
			if got := b.run(words...); got != oneLine(t, string(want.Bytes)) {
				t.Fatalf("seed %d:\n%s\n%s, want %s", seed, strings.Join(done, "\n"), got, oneLine(t, string(want.Bytes)))
			}
		}
		if b.paused > 0 {
			t.Fatalf("seed %d: it waited, and there was nobody else:\n%s", seed, strings.Join(done, "\n"))
		}
	}
}
