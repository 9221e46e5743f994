package commands

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"redlock-proxy/commands/command"
	"redlock-proxy/commands/lockkeys/keyspace"
	"redlock-proxy/commands/lockkeys/program"
	"redlock-proxy/internal/fakeregister"
	"redlock-proxy/quorum"
)

// TestTooShortTTL checks that LOCK, EXTEND, and SET with NX refuse a TTL that is too short for a
// lock. A SET without NX sets its value until the TTL expires.
func TestTooShortTTL(t *testing.T) {
	b := newFixture(t)
	b.locks.err = quorum.ErrTooShort
	b.table = NewTable(Options{Locks: b.locks, Register: fakeregister.NewRegister(),
		Settings: Settings{MaxTTL: time.Hour}, LockKeys: []string{"k*"}})
	for line, want := range map[string]string{
		"LOCK k me PX 3":   "ERR invalid expire time in 'lock' command: too short to be granted",
		"EXTEND k me PX 3": "ERR invalid expire time in 'extend' command: too short to be granted",
		"SET k me NX PX 3": "ERR invalid expire time in 'set' command: too short to be granted",
	} {
		if got := oneLine(t, runRouted(t.Context(), b.table, b.client, strings.Split(line, " "), &b.out)); got != want {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
	r := newRegisterFixture(t)
	r.expectRun("SET k me PX 3", "OK")
	r.expectValue("k", "me:3")
	r.expectRun("SET k you XX PX 2", "OK")
	r.expectValue("k", "you:2")
}

// TestRegisterErrors checks that clients get the errors of the register. If a client does not get
// such an error, the proxy must undo nothing.
func TestRegisterErrors(t *testing.T) {
	for _, test := range []struct {
		err  error
		want string
	}{
		{quorum.ErrForeign,
			"ERR cannot change the key: its holder locks on the masters directly, without a proxy; change it on the masters"},
		{fakeregister.ErrTooFewMasters(), "NOQUORUM 2 of 5 masters answered, 3 needed: connection refused"},
		{errors.New("other"), "ERR other"},
	} {
		b := newRegisterFixture(t)
		b.masters.RoundErr = test.err
		for _, line := range []string{"SET k me NX PX 30000", "SET k me", "GETSET k me", "GET k", "DEL k",
			"DELEX k IFEQ me", "SET k me IFEQ me PX 900", "MSETNX k a k2 b"} {
			b.expectRun(line, test.want)
		}
		rounds := len(b.masters.Rounds)
		b.out.UndoUndelivered()
		if withdrawn := b.masters.WithdrawnKeys; len(withdrawn) > 0 || len(b.masters.Rounds) > rounds {
			t.Errorf("%v: withdrew %v, and asked the masters %q", test.err, withdrawn, b.masters.Rounds[rounds:])
		}
	}
}

// TestCommandsAgainstSnapshot checks random commands of one client, in any order and with any
// guesses. The replies must equal the replies of a single Snapshot without masters.
func TestCommandsAgainstSnapshot(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(3, seed))
		pick := func(words ...string) string { return words[random.IntN(len(words))] }
		b := newRegisterFixture(t)
		reference := keyspace.NewSnapshot(b.now)
		reference.Put("k", keyspace.Entry{})
		reference.Put("k2", keyspace.Entry{})
		var lines []string
		for range 40 {
			line := pick("SET K V NX PX 900", "SET K V NX", "SETNX K V", "SET K V XX PX 800", "SET K V",
				"SET K V KEEPTTL", "SET K V IFEQ V PX 700", "SET K V IFNE V GET",
				"GETSET K V", "GETDEL K", "GETEX K PX 600", "GETEX K PERSIST", "GET K", "PTTL K", "DEL K", "DEL K K",
				"DELEX K IFEQ V", "DELEX K IFNE V", "DELIFEQ K V", "PEXPIRE K 500",
				"PEXPIRE K 650 GT", "PEXPIRE K 650 NX", "PERSIST K", "APPEND K V", "INCR K", "MSETNX K V K V",
				"MSET K V", "MGET K K", "EXISTS K K", "STRLEN K", "SETRANGE K 1 V", "PEXPIRE K -1")
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
			lines = append(lines, line)
			words := strings.Split(line, " ")
			reply, err := reference.Do(words)
			if err != nil {
				t.Fatal(err)
			}
			want := command.Reply{Proto: 2}
			program.WriteReply(&want, reply)
			if got := b.run(words...); got != oneLine(t, string(want.Bytes)) {
				t.Fatalf("seed %d:\n%s\n%s, want %s", seed, strings.Join(lines, "\n"), got,
					oneLine(t, string(want.Bytes)))
			}
		}
		if b.pauses > 0 {
			t.Fatalf("seed %d: the command waited without other clients:\n%s", seed, strings.Join(lines, "\n"))
		}
	}
}

// TestEndlessContention checks the error of a command if every try collides with a change by
// another client.
func TestEndlessContention(t *testing.T) {
	const contendedError = "ERR lock key 'k' is contended: every try collided with a change by another client; try again"
	for _, line := range []string{"DEL k", "GET k", "GETSET k me", "SET k me", "DELEX k IFEQ me",
		"EVAL return_redis.call('del',KEYS[1]) 1 k"} { // _ stands for a blank
		b := newRegisterFixture(t)
		b.masters.RoundErr = quorum.ErrContended
		words := strings.Split(line, " ")
		for i := range words {
			words[i] = strings.ReplaceAll(words[i], "_", " ")
		}
		if got := b.run(words...); got != contendedError {
			t.Errorf("%s: %s", line, got)
		}
	}
}
