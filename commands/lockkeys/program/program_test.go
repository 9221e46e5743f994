package program

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/lockkeys/keyspace"
	"redlock-proxy/internal/fakeregister"
	"redlock-proxy/quorum"
)

// severalKeysCause is the cause, and the remedy, in the error of CrossCellError.
const severalKeysCause = "one command can take, extend or remove several lock keys, but not change them otherwise; " +
	"give them the same hash tag (lock-tags)"

// fixture holds an engine on simulated masters.
type fixture struct {
	*testing.T
	engine   *Engine
	register *fakeregister.Register
	now      time.Time
	pauses   int
}

func newFixture(t *testing.T) *fixture {
	b := &fixture{T: t, register: fakeregister.NewRegister(), now: time.UnixMilli(1_700_000_000_000)}
	b.engine = &Engine{
		Register:     b.register,
		KeyOnMasters: func(db int, key string) quorum.Key { return quorum.Key{DB: db, Name: key} },
		Now:          func() time.Time { return b.now },
		Random:       func(bits []byte) { clear(bits) },
		Pause: func(ctx context.Context, _ time.Duration) error {
			b.pauses++
			b.now = b.now.Add(20 * time.Millisecond)
			return context.Cause(ctx)
		},
		RefuseEdits:   func([]keyspace.Edit) string { return "" },
		OnLostEffects: func(string, error) { t.Error("a side effect was lost") },
	}
	return b
}

// run returns the result of a program as one line.
func (b *fixture) run(p Program) string {
	b.Helper()
	out, err := b.engine.Run(b.Context(), p)
	if err != nil {
		return err.Error()
	}
	return formatReply(out.Reply)
}

func formatReply(r keyspace.Reply) string {
	switch r.Kind {
	case keyspace.Nil, keyspace.NilArray:
		return "(nil)"
	case keyspace.Int:
		return fmt.Sprint(r.Int)
	case keyspace.Bulk:
		return fmt.Sprintf("%q", r.Str)
	default:
		return r.Str
	}
}

// checkReply fails the test unless a command, run without a guess, has this reply.
func (b *fixture) checkReply(line, want string) {
	b.Helper()
	if got := b.run(programOf(nil, line)); got != want {
		b.Errorf("%s: %s, want %s", line, got, want)
	}
}

// checkUsuallyWrites fails the test unless a command, run with UsuallyWrites set, has this reply.
func (b *fixture) checkUsuallyWrites(line, want string) {
	b.Helper()
	p := programOf(nil, line)
	p.UsuallyWrites = true
	if got := b.run(p); got != want {
		b.Errorf("%s: %s, want %s", line, got, want)
	}
}

// checkRounds fails the test unless the masters got these rounds since the last call.
func (b *fixture) checkRounds(want ...string) {
	b.Helper()
	if got := b.register.Rounds; !slices.Equal(got, want) {
		b.Errorf("rounds\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
	b.register.Rounds = nil
}

// checkValue fails the test unless the masters hold this value.
func (b *fixture) checkValue(key, want string) {
	b.Helper()
	if got := b.register.TextOf(key); got != want {
		b.Errorf("%s: %s, want %s", key, got, want)
	}
}

func splitRounds(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ";")
}

// programOf returns commands as one program, with the reply of the last command.
func programOf(guesses []Guess, lines ...string) Program {
	p := Program{Guesses: guesses}
	for _, line := range lines {
		p.Keys = append(p.Keys, keyspace.Keys(strings.Split(line, " "))...)
	}
	p.Keys = syntax.Distinct(p.Keys)
	p.Run = func(_ context.Context, s *keyspace.Snapshot) (reply keyspace.Reply, _ [][]string, err error) {
		for _, line := range lines {
			if reply, err = s.Do(strings.Split(line, " ")); err != nil {
				break
			}
		}
		return reply, nil, err
	}
	return p
}

// TestUncommittableGuess checks that the Engine refuses no program because of a wrong
// guess.
func TestUncommittableGuess(t *testing.T) {
	b := newFixture(t)
	b.register.Put("k1", "x", 500)
	b.register.Put("k2", "y", 500)
	absent := []Guess{GuessAbsent([]string{"k1", "k2"})}
	if got := b.run(programOf(absent, "SET k1 a NX PX 900", "SET k2 b NX PX 800")); got != "(nil)" {
		t.Error(got)
	}
	b.checkRounds("read 0/k1 0/k2")
}

// TestGuesses checks that a right guess costs one round trip. After a wrong guess, the refusal
// reports the value of the key. The refusal of a take does not report the remaining time.
func TestGuesses(t *testing.T) {
	guessMe, guessYou := GuessValue([]string{"k"}, "me"), GuessValue([]string{"k"}, "you")
	absent := GuessAbsent([]string{"k"})
	for _, test := range []struct {
		name, value string
		guesses     []Guess
		line        string
		reply       string
		rounds      string
	}{
		{"a right one, taking", "", []Guess{absent}, "SET k me NX PX 900", "OK", "take 0/k me:900"},
		{"a right one, releasing", "me", []Guess{guessMe}, "DELEX k IFEQ me", "1", "release 0/k me"},
		{"a right one, extending", "me", []Guess{guessMe}, "PEXPIRE k 900", "1", "extend 0/k me:900"},
		{"a right one, replacing", "me", []Guess{guessMe}, "GETSET k you", `"me"`, "update 0/k if me"},
		{"a wrong one, taking", "you", []Guess{absent}, "SETNX k me", "0", "take 0/k me"},
		{"a wrong one, taking, and the time is asked for", "you", []Guess{absent}, "SETNX k me;PTTL k", "500",
			"take 0/k me;read 0/k"},
		{"a wrong one, releasing", "you", []Guess{guessMe}, "DEL k", "1", "release 0/k me;release 0/k you"},
		{"a wrong one, replacing", "you", []Guess{guessMe}, "GETSET k x", `"you"`, "update 0/k if me"},
		{"the first of two that changes the key", "me", []Guess{guessYou, guessMe}, "DELEX k IFEQ me", "1", "release 0/k me"},
		{"none of use", "me", []Guess{guessYou, absent}, "DELEX k IFEQ x", "0", "read 0/k"},
		{"the time is asked for", "me", []Guess{guessMe}, "PTTL k", "500", "read 0/k"},
		{"none", "me", nil, "GET k", `"me"`, "read 0/k"},
		{"of another key", "me", []Guess{GuessAbsent([]string{"k2"})}, "GET k", `"me"`, "read 0/k"},
		{"no key is needed", "", nil, "", "(nil)", ""},
	} {
		b := newFixture(t)
		if test.value != "" {
			b.register.Put("k", test.value, 500)
		}
		p := programOf(test.guesses, strings.Split(test.line, ";")...)
		if test.line == "" {
			p = Program{Run: func(context.Context, *keyspace.Snapshot) (keyspace.Reply, [][]string, error) {
				return keyspace.Reply{Kind: keyspace.Nil}, nil, nil
			}}
		}
		if got := b.run(p); got != test.reply {
			t.Errorf("%s: %s, want %s", test.name, got, test.reply)
		}
		b.checkRounds(splitRounds(test.rounds)...)
	}
}

// TestReplacing checks that a program that replaces a value uses one ballot, on the current value.
func TestReplacing(t *testing.T) {
	for _, promised := range []bool{false, true} {
		for _, test := range []struct{ line, reply, remaining string }{
			{"GETSET k me", `"x"`, "me"},
			{"SET k me XX PX 900", "OK", "me:900"},
			{"SET k me KEEPTTL", "OK", "me:500"},
			{"SET k me GET PX 900", `"x"`, "me:900"},
			{"PSETEX k 900 me", "OK", "me:900"},
			{"APPEND k me", "3", "xme:500"},
			{"SETRANGE k 1 yz", "3", "xyz:500"},
			{"INCR k", "ERR value is not an integer or out of range", "x:500"},
		} {
			b := newFixture(t)
			b.register.BallotPromised = promised
			b.register.Put("k", "x", 500)
			b.checkUsuallyWrites(test.line, test.reply)
			b.checkRounds("update 0/k")
			b.checkValue("k", test.remaining)
		}
	}
}

// TestChangeByFasterClients checks that if other clients are faster, the command runs once, on
// their values.
func TestChangeByFasterClients(t *testing.T) {
	for _, test := range []struct{ line, reply, left string }{
		{"GETSET k me", `"y"`, "me"},
		{"SET k me XX PX 900", "OK", "me:900"},
		{"INCR k", "ERR value is not an integer or out of range", "y:700"},
		{"APPEND k me", "3", "yme:700"},
	} {
		b := newFixture(t)
		b.register.Put("k", "5", 500)
		b.register.ConcurrentChange = func() { b.register.Put("k", "y", 700) }
		b.checkUsuallyWrites(test.line, test.reply)
		b.checkRounds("update 0/k")
		b.checkValue("k", test.left)
	}
}

// TestReplacingWithUnrelatedKey checks that a command may name a key on which its result does not
// depend.
func TestReplacingWithUnrelatedKey(t *testing.T) {
	for _, removed := range []bool{false, true} {
		b := newFixture(t)
		b.register.Put("k1", "x", 500)
		if removed { // now the program depends on k1
			b.register.ConcurrentChange = func() { b.register.Remove("k1") }
		}
		got := b.run(programOf(nil, "MSETNX k1 a k2 b", "GETEX k1 PX 300"))
		switch {
		case !removed && got != `"x"`, removed && !strings.Contains(got, "cannot be changed together"):
			t.Errorf("%v: %s", removed, got)
		}
		b.checkValue("k2", ".")
	}
}

// TestLateExtension checks a program whose extension is too late. If it has not read the remaining
// time, it uses a ballot. Otherwise that time may have passed, and the program gets the error.
func TestLateExtension(t *testing.T) {
	for _, test := range []struct{ line, rounds, want, left string }{
		{"SET k x IFEQ x PX 300", "extend 0/k x:300;update 0/k if x", "OK", "x:300"},
		{"PEXPIRE k 900", "read 0/k;extend 0/k x:900", "", "x:500"},
	} {
		b := newFixture(t)
		b.register.Put("k", "x", 500)
		b.register.BeforeRound = func(round int) {
			b.register.RoundErr = nil
			if strings.HasPrefix(b.register.Rounds[round-1], "extend") {
				b.register.RoundErr = &quorum.NoQuorumError{Masters: 5, VoteCount: 3, AgreementTime: time.Second}
			}
		}
		guesses := []Guess{GuessValue([]string{"k"}, "x")}
		if test.want == "" {
			guesses = nil
		}
		out, err := b.engine.Run(t.Context(), programOf(guesses, test.line))
		if (err == nil) != (test.want != "") {
			t.Errorf("%s: %v, %v", test.line, out.Reply, err)
		}
		b.checkRounds(splitRounds(test.rounds)...)
		b.checkValue("k", test.left)
	}
}

// TestDelDuringValueChange checks that DEL starts over if the value has changed since the read.
func TestDelDuringValueChange(t *testing.T) {
	b := newFixture(t)
	b.register.Put("k", "a", 500)
	b.register.BeforeRound = func(round int) {
		if round == 2 {
			b.register.Put("k", "b", 500)
		}
	}
	b.checkReply("DEL k", "1")
	b.checkRounds("read 0/k", "release 0/k a", "release 0/k b")
	b.checkValue("k", ".")
}

func TestDisconnectDuringRetries(t *testing.T) {
	b, errDisconnected := newFixture(t), errors.New("the client has disconnected")
	ctx, disconnect := context.WithCancelCause(t.Context())
	b.register.BeforeRound = func(round int) { b.register.Put("k", fmt.Sprint("other", round), 500) }
	b.engine.Pause = func(ctx context.Context, _ time.Duration) error {
		disconnect(errDisconnected)
		return context.Cause(ctx)
	}
	if _, err := b.engine.Run(ctx, programOf(nil, "DEL k")); !errors.Is(err, errDisconnected) {
		t.Error(err)
	}
}

// TestRetriesAfterStandstill checks that the Engine retries a program after a standstill of its
// process.
func TestRetriesAfterStandstill(t *testing.T) {
	b, now := newFixture(t), time.Unix(1_700_000_000, 0)
	b.engine.Now = func() time.Time { return now }
	b.register.BeforeRound = func(round int) {
		if round <= 10 {
			now = now.Add(2 * retryTime)
			b.register.Put("k", fmt.Sprint("other", round), 500)
		}
	}
	b.checkReply("DEL k", "1")
	b.checkValue("k", ".")
}

// TestPermanentContention checks that a program ends with an error if it cannot commit for too
// long.
func TestPermanentContention(t *testing.T) {
	b := newFixture(t)
	b.register.BeforeRound = func(round int) { b.register.Put("k", fmt.Sprint("other", round), 500) }
	b.checkReply("DEL k", "lock key 'k' is contended: every try collided with a change by another client; try again")
	if !strings.HasPrefix(b.register.TextOf("k"), "other") {
		t.Errorf("k: %s", b.register.TextOf("k"))
	}
	if b.pauses == 0 {
		t.Error("it never waited")
	}
}

// TestSeveralKeys checks that a program takes several keys together, but removes or extends them
// one by one. It must not replace a key on condition of another key.
func TestSeveralKeys(t *testing.T) {
	const refusalText = "ERR lock keys 'k1' and 'k2' cannot be changed together: " + severalKeysCause
	for _, test := range []struct {
		name, k1, k2           string // the values
		lines                  []string
		reply                  string
		rounds                 string
		remaining1, remaining2 string
	}{
		{"taken", "", "", []string{"MSETNX k1 a k2 b"}, "1", "read 0/k1 0/k2;take 0/k1 a, 0/k2 b", "a", "b"},
		{"taken for the same time", "", "", []string{"SET k1 a PX 900", "SET k2 b PX 900"}, "OK",
			"read 0/k1 0/k2;take 0/k1 a:900, 0/k2 b:900", "a:900", "b:900"},
		{"taken for two times", "", "", []string{"SET k1 a PX 900", "SET k2 b PX 800"}, refusalText, "read 0/k1 0/k2", ".", "."},
		{"one is held", "", "x", []string{"MSETNX k1 a k2 b"}, "0", "read 0/k1 0/k2", ".", "x:500"},
		{"removed", "x", "y", []string{"DEL k1 k2"}, "2", "read 0/k1 0/k2;release 0/k1 x;release 0/k2 y", ".", "."},
		{"one removed", "x", "", []string{"DEL k1 k2"}, "1", "read 0/k1 0/k2;release 0/k1 x", ".", "."},
		{"extended", "x", "y", []string{"PEXPIRE k1 900", "PEXPIRE k2 900"}, "1",
			"read 0/k1 0/k2;extend 0/k1 x:900;extend 0/k2 y:900", "x:900", "y:900"},
		{"one extended, one shortened", "x", "y", []string{"PEXPIRE k1 900", "PEXPIRE k2 300"}, refusalText,
			"read 0/k1 0/k2", "x:500", "y:500"},
		{"replaced", "x", "y", []string{"MSET k1 a k2 b"}, refusalText, "read 0/k1 0/k2", "x:500", "y:500"},
		{"one replaced, one taken", "x", "", []string{"MSET k1 a k2 b"}, refusalText, "read 0/k1 0/k2", "x:500", "."},
		{"one replaced, one removed", "x", "y", []string{"SET k1 a", "DEL k2"}, refusalText, "read 0/k1 0/k2", "x:500", "y:500"},
		{"replaced under the condition of another", "x", "y", []string{"SET k1 a", "GET k2"}, refusalText, "read 0/k1 0/k2",
			"x:500", "y:500"},
		{"taken under the condition of another", "", "y", []string{"SET k1 a", "GET k2"}, refusalText, "read 0/k1 0/k2",
			".", "y:500"},
		{"removed under the condition of another", "x", "y", []string{"GET k2", "DEL k1"}, "1",
			"read 0/k2 0/k1;release 0/k1 x", ".", "y:500"},
		{"only one is changed", "x", "y", []string{"SET k1 a"}, "OK", "read 0/k1;update 0/k1", "a", "y:500"},
	} {
		b := newFixture(t)
		for key, value := range map[string]string{"k1": test.k1, "k2": test.k2} {
			if value != "" {
				b.register.Put(key, value, 500)
			}
		}
		if got := b.run(programOf(nil, test.lines...)); got != test.reply {
			t.Errorf("%s: %s, want %s", test.name, got, test.reply)
		}
		b.checkRounds(splitRounds(test.rounds)...)
		b.checkValue("k1", test.remaining1)
		b.checkValue("k2", test.remaining2)
		if t.Failed() {
			t.Fatal(test.name)
		}
	}
}

// TestRetryAfterPartialRemoval checks a program that has removed one of its keys, and finds another
// key changed. It still sees the old value of the first key, and does not remove a value that
// another client has written since.
func TestRetryAfterPartialRemoval(t *testing.T) {
	b := newFixture(t)
	b.register.Put("k1", "a", 500)
	b.register.Put("k2", "b", 500)
	b.register.BeforeRound = func(round int) {
		if round == 3 { // k1 is removed, k2 is next
			b.register.Put("k1", "next", 700)
			b.register.Put("k2", "c", 600)
		}
	}
	b.checkReply("DEL k1 k2", "2")
	b.checkRounds("read 0/k1 0/k2", "release 0/k1 a", "release 0/k2 b", "read 0/k1 0/k2", "release 0/k2 c")
	b.checkValue("k1", "next:700")
	b.checkValue("k2", ".")
}

// TestWriteAfterRemoval checks a program that decides differently on the second run. It must
// not write a key that it has removed, because another client may hold that key by then.
func TestWriteAfterRemoval(t *testing.T) {
	b := newFixture(t)
	b.register.Put("k1", "a", 500)
	b.register.Put("k2", "b", 500)
	b.register.BeforeRound = func(round int) {
		if round == 3 {
			b.register.Put("k1", "next", 700)
			b.register.Remove("k2")
		}
	}
	removeBothOrSet := Program{Keys: []string{"k1", "k2"}, Run: func(_ context.Context,
		s *keyspace.Snapshot) (keyspace.Reply, [][]string, error) {
		_, _ = s.Do([]string{"GET", "k1"})
		if reply2, _ := s.Do([]string{"GET", "k2"}); reply2.Str == "b" {
			reply, err := s.Do([]string{"DEL", "k1", "k2"})
			return reply, nil, err
		}
		reply, err := s.Do([]string{"SET", "k1", "mine"})
		return reply, nil, err
	}}
	if got := b.run(removeBothOrSet); !strings.Contains(got, "cannot be changed together") {
		t.Error(got)
	}
	b.checkValue("k1", "next:700")
	b.checkValue("k2", ".")
}

// TestShortening checks that a ballot sets a shorter time, even if it is too short to be granted.
func TestShortening(t *testing.T) {
	for _, test := range []struct{ before, line, rounds, remaining string }{
		{"x:500", "PEXPIRE k 900", "read 0/k;extend 0/k x:900", "x:900"},
		{"x:500", "PEXPIRE k 500", "read 0/k;extend 0/k x:500", "x:500"},
		{"x:500", "PEXPIRE k 300", "read 0/k;update 0/k", "x:300"},
		{"x:500", "PEXPIRE k 2", "read 0/k;update 0/k", "x:2"},
		{"x:1", "PEXPIRE k 2", "read 0/k;extend 0/k x:2;update 0/k if x", "x:2"},
		{"x:500", "PERSIST k", "read 0/k;update 0/k", "x"},
		{"x:-1", "PEXPIRE k 900", "read 0/k;update 0/k", "x:900"},
		{"x:500", "SET k x IFEQ x PX 300", "extend 0/k x:300;update 0/k if x", "x:300"},
		{"x:500", "SET k x IFEQ x PX 900", "extend 0/k x:900", "x:900"},
	} {
		b := newFixture(t)
		value, ms, _ := strings.Cut(test.before, ":")
		n, _ := syntax.Int(ms)
		b.register.Put("k", value, int(n))
		var guesses []Guess
		if strings.Contains(test.line, "IFEQ x") {
			guesses = []Guess{GuessValue([]string{"k"}, "x")}
		}
		if got := b.run(programOf(guesses, test.line)); got != "1" && got != "OK" {
			t.Errorf("%s: %s", test.line, got)
		}
		b.checkRounds(splitRounds(test.rounds)...)
		b.checkValue("k", test.remaining)
	}
}

// TestShorteningOneOfSeveral checks that the Engine refuses a program that, against its guess,
// shortens the time of one of two keys.
func TestShorteningOneOfSeveral(t *testing.T) {
	b := newFixture(t)
	b.register.Put("k1", "me", 200)
	b.register.Put("k2", "me", 500)
	guesses := []Guess{GuessValue([]string{"k1", "k2"}, "me")}
	got := b.run(programOf(guesses, "PEXPIRE k1 300", "PEXPIRE k2 300"))
	if want := "ERR lock keys 'k1' and 'k2' cannot be changed together: " + severalKeysCause; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	b.checkValue("k2", "me:500")
}
