package commands

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"redlock-proxy/quorum"
)

const (
	mlockUsage   = "MLOCK numkeys key [key ...] token PX milliseconds|EX seconds [KEEPALIVE [MAXHOLD milliseconds]] [BLOCK milliseconds] [FENCE] [AT]"
	munlockUsage = "MUNLOCK numkeys key [key ...] token"
)

// commandOnKeys returns the words of a command on n keys.
func commandOnKeys(name string, n int, rest string) string {
	words := []string{name, strconv.Itoa(n)}
	for i := range n {
		words = append(words, "k"+strconv.Itoa(i))
	}
	return strings.Join(words, " ") + " " + rest
}

// TestSeveralReplies checks the replies to MLOCK, MUNLOCK and MEXTEND, and the calls of the locker.
func TestSeveralReplies(t *testing.T) {
	for _, test := range []struct {
		err     error
		command string
		want    string
		calls   []string // in alphabetical order, because the calls for several keys run at the same time
	}{
		{nil, "MLOCK 2 a b t PX 10000", ":9888\r\n", []string{"lock 0/a 0/b by t for 10s, waiting 0s"}},
		{nil, "mlock 1 a t EX 10 BLOCK 5", ":9888\r\n", []string{"lock 0/a by t for 10s, waiting 5ms"}},
		{nil, "MLOCK 2 2 b t PX 10000", ":9888\r\n", []string{"lock 0/2 0/b by t for 10s, waiting 0s"}},
		{nil, "MLOCK 2 a b * PX 10000", "*4\r\n$8\r\nvalidity\r\n:9888\r\n$5\r\ntoken\r\n$32\r\n" + generatedToken + "\r\n",
			[]string{"lock 0/a 0/b by " + generatedToken + " for 10s, waiting 0s"}},
		{nil, "MLOCK 2 a b t PX 10000 FENCE AT",
			"*8\r\n$8\r\nvalidity\r\n:9888\r\n$6\r\nwaited\r\n:0\r\n$5\r\ntoken\r\n$1\r\nt\r\n$5\r\nfence\r\n:1700000000000001\r\n",
			[]string{"lock 0/a 0/b by t for 10s, waiting 0s, with a fence"}},
		{quorum.ErrHeld, "MLOCK 2 a b t PX 10000", "$-1\r\n", []string{"lock 0/a 0/b by t for 10s, waiting 0s"}},
		{noQuorum(), "MLOCK 2 a b t PX 10000", noQuorumReply, []string{"lock 0/a 0/b by t for 10s, waiting 0s"}},
		{nil, commandOnKeys("MLOCK", 65, "t PX 10000"), "-ERR too many keys in 'mlock' command: the limit is 64; use fewer keys\r\n", nil},
		{nil, "MLOCK 3 a b a t PX 10000", "-ERR key 'a' appears twice in 'mlock' command: name each key once\r\n", nil},
		{nil, "MLOCK 0 a t PX 10000", "-ERR numkeys should be greater than 0\r\n", nil},
		{nil, "MLOCK +1 a t PX 10000", "-ERR numkeys should be greater than 0\r\n", nil},
		{nil, "MLOCK a b t PX 10000", "-ERR numkeys should be greater than 0\r\n", nil},
		{nil, "MLOCK 5 a b t PX 10000", "-ERR Number of keys can't be greater than number of args\r\n", nil},
		{nil, "MLOCK 4 a b t PX 10000", "-ERR syntax error: PX or EX is missing; use " + mlockUsage + "\r\n", nil},
		{nil, "MLOCK 1 a b t PX 10000", "-ERR syntax error: unexpected 't'; use " + mlockUsage + "\r\n", nil},
		{nil, "MLOCK 1 a t PX", "-ERR wrong number of arguments for 'mlock' command: " + mlockUsage + "\r\n", nil},
		{nil, "MLOCK 2 a b t PX 0", "-ERR invalid expire time in 'mlock' command\r\n", nil},
		{nil, "MLOCK 2 a b t PX 1000 KEEPALIVE", "-ERR KEEPALIVE needs a client connection\r\n", nil},

		{nil, "MUNLOCK 2 a b t", ":2\r\n", []string{"unlock 0/a by t", "unlock 0/b by t"}},
		{quorum.ErrNotHeld, "MUNLOCK 2 a b t", ":0\r\n", []string{"unlock 0/a by t", "unlock 0/b by t"}},
		{noQuorum(), "MUNLOCK 2 a b t", noQuorumReply, []string{"unlock 0/a by t", "unlock 0/b by t"}},
		{nil, "MUNLOCK 1 a b t", "-ERR syntax error: unexpected 't'; use " + munlockUsage + "\r\n", nil},
		{nil, "MUNLOCK 2 a a t", "-ERR key 'a' appears twice in 'munlock' command: name each key once\r\n", nil},
		{nil, "MUNLOCK 2 a t", "-ERR Number of keys can't be greater than number of args\r\n", nil},
		{nil, "MUNLOCK 1 a", "-ERR wrong number of arguments for 'munlock' command: " + munlockUsage + "\r\n", nil},

		{nil, "MEXTEND 2 a b t PX 10000", ":9888\r\n", []string{"extend 0/a by t for 10s", "extend 0/b by t for 10s"}},
		{quorum.ErrNotHeld, "MEXTEND 2 a b t PX 10000", "$-1\r\n", []string{"extend 0/a by t for 10s", "extend 0/b by t for 10s"}},
		{quorum.ErrTooShort, "MEXTEND 1 a t PX 1", "-ERR invalid expire time in 'mextend' command: too short to be granted\r\n",
			[]string{"extend 0/a by t for 1ms"}},
		{noQuorum(), "MEXTEND 2 a b t PX 10000", noQuorumReply, []string{"extend 0/a by t for 10s", "extend 0/b by t for 10s"}},
	} {
		t.Run(test.command, func(t *testing.T) {
			b := newFixture(t)
			b.locks.err = test.err
			b.expect(test.command, test.want)
			slices.Sort(b.locks.calls)
			b.expectCalls(test.calls...)
		})
	}
}

// TestEmptyWordsOfSeveral checks that no key and no token may be empty.
func TestEmptyWordsOfSeveral(t *testing.T) {
	b := newFixture(t)
	for _, test := range []struct {
		words []string
		want  string
	}{
		{[]string{"MLOCK", "2", "a", "", "t", "PX", "1000"}, "-ERR empty key in 'mlock' command\r\n"},
		{[]string{"MUNLOCK", "2", "", "b", "t"}, "-ERR empty key in 'munlock' command\r\n"},
		{[]string{"MEXTEND", "1", "a", "", "PX", "1000"}, "-ERR empty token in 'mextend' command\r\n"},
	} {
		if got := b.ask(test.words...); got != test.want {
			t.Errorf("%q: %q, want %q", test.words, got, test.want)
		}
	}
	b.expectCalls()
}

// TestUndeliveredGrantOfSeveral checks that all keys are withdrawn if the reply is not delivered.
func TestUndeliveredGrantOfSeveral(t *testing.T) {
	b := newFixture(t)
	b.askLine("MLOCK 2 a b t PX 10000")
	b.expectCalls("lock 0/a 0/b by t for 10s, waiting 0s")
	b.out.UndoUndelivered()
	b.expectCalls("withdraw 0/a of t", "withdraw 0/b of t")
}

// TestKeysOfSeveral checks how COMMAND INFO describes the places of the keys.
func TestKeysOfSeveral(t *testing.T) {
	b := newFixture(t)
	for _, name := range []string{"mlock", "munlock", "mextend"} {
		info := b.askLine("COMMAND INFO " + name)
		for _, part := range []string{"+movablekeys\r\n:0\r\n:0\r\n:0\r\n", "$6\r\nkeynum\r\n", "$9\r\nkeynumidx\r\n:0\r\n$8\r\nfirstkey\r\n:1\r\n$7\r\nkeystep\r\n:1\r\n"} {
			if !strings.Contains(info, part) {
				t.Errorf("%s: %q, want %q in it", name, info, part)
			}
		}
	}
}
