package proxy_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"redlock-proxy/internal/redistest"
)

// countQuestions counts the proxy's own commands on clients' connections at the upstream.
func countQuestions(t *testing.T, server *redistest.Server) (n int) {
	t.Helper()
	p := dial(t, server.Addr())
	p.send(lines("INFO commandstats"))
	for _, found := range regexp.MustCompile(`cmdstat_(?:multi|discard|acl\|[a-z]+):calls=(\d+)`).FindAllStringSubmatch(p.reply(), -1) {
		var calls int
		_, _ = fmt.Sscan(found[1], &calls)
		n += calls
	}
	return n
}

// TestOpenUpstreamIsNotAsked: only the probe asks an upstream that is open to all.
func TestOpenUpstreamIsNotAsked(t *testing.T) {
	r, server := startWithLockKeys(t)
	before := countQuestions(t, server)
	for range 5 {
		r.connect().script([]exchange{
			{"SET lock:a v NX PX 60000", ok}, {"GET lock:a", bulk("v")}, {"LOCK k t PX 1000", ":1000\r\n"},
			{"UNLOCK k t", ":1\r\n"},
			{"MULTI", ok}, {"GET lock:a", queued}, {"EXEC", "*1\r\n" + bulk("v")}, {"DEL lock:a", ":1\r\n"},
		})
	}
	asked := countQuestions(t, server) - before
	if asked != 10 { // MULTI and DISCARD, by the client's own transactions
		t.Errorf("%d questions", asked)
	}
}

// TestVerdictsAreRemembered: the rights of a client are asked once for each probe, user and key.
// While the upstream does not answer, they remain valid, and a client whose rights are unknown
// waits.
func TestVerdictsAreRemembered(t *testing.T) {
	const noRight = "-NOPERM this user has no permissions to run the 'set' command\r\n"
	r, server := startWithLockKeys(t, "--user", "app", "on", ">x", "~lock:*", "+@all", "-@admin", "-@dangerous")
	p, direct := r.connect(), dial(t, server.Addr())
	set := func(want string) { t.Helper(); p.say("SET lock:a v PX 60000", want) }
	asks := func(want int, what func()) {
		t.Helper()
		before := countQuestions(t, server)
		what()
		if got := countQuestions(t, server) - before; got != want {
			t.Errorf("%d questions, want %d", got, want)
		}
	}
	p.say("AUTH app x", ok)
	asks(3, func() { set(ok) }) // the user, MULTI, DISCARD
	asks(0, func() { set(ok) })
	asks(2, func() { p.say("DEL lock:a", ":1\r\n") })
	direct.say("ACL SETUSER app -set", ok)
	set(ok)
	r.upstream.Probe(t.Context())
	set(noRight)
	asks(0, func() { set(noRight) })
	direct.say("ACL SETUSER app +set", ok)
	r.upstream.Probe(t.Context())
	set(ok)
	if err := server.Pause(); err != nil {
		t.Fatal(err)
	}
	set(ok)
	stranger := r.connect() // according to the last probe, every client may do everything
	stranger.say("GET lock:a", bulk("v"))
	if err := server.Continue(); err != nil {
		t.Fatal(err)
	}
	direct.say("ACL SETUSER default -@dangerous", ok)
	r.upstream.Probe(t.Context())
	if err := server.Pause(); err != nil {
		t.Fatal(err)
	}
	if got := r.connect().ask("GET lock:a"); !strings.HasPrefix(got, "-ERR cannot check this client's permissions: ") {
		t.Errorf("a client of which nothing is known: %q", got)
	}
	if err := server.Continue(); err != nil {
		t.Fatal(err)
	}
}

// TestRightsOfAnUpstreamInTrouble: a state in which Redis refuses to write is not a lack of rights.
func TestRightsOfAnUpstreamInTrouble(t *testing.T) {
	for name, abortTx := range map[string]string{
		"out of memory": "CONFIG SET maxmemory 1",
		"a replica":     "REPLICAOF 127.0.0.1 1",
	} {
		r, server := startWithLockKeys(t, "--user", "app", "on", ">x", "~lock:*", "&*", "+@all", "-flushall")
		dial(t, server.Addr()).say(abortTx, ok)
		r.connect().script([]exchange{{"AUTH app x", ok}, {"SET lock:a v NX PX 60000", ok},
			{"SET b v", "-NOPERM this user has no permissions to access one of the keys used as arguments\r\n"},
			{"DEL lock:a", ":1\r\n"}})
		if t.Failed() {
			t.Fatal(name)
		}
	}
}

// TestRightsWithoutTheACLCommand: rights are checked even if the command ACL is hidden.
func TestRightsWithoutTheACLCommand(t *testing.T) {
	r, server := startWithLockKeys(t, "--rename-command", "ACL", "", "--user", "app", "on", ">x", "~lock:*", "+@all",
		"-set")
	asked := countQuestions(t, server)
	r.connect().script([]exchange{
		{"SET lock:a v PX 60000", ok}, {"AUTH app x", ok}, {"SET lock:a v",
			"-NOPERM this user has no permissions to run the 'set' command\r\n"},
		{"LOCK k t PX 1000", "-NOPERM this user has no permissions to run the 'set' command\r\n"}, {"DEL lock:a", ":1\r\n"},
	})
	if countQuestions(t, server) == asked {
		t.Error("nothing was asked")
	}
}

// TestTransactionThatCannotBeLeft: a client that may not end a transaction loses its connection, so
// that no transaction stays open.
func TestTransactionThatCannotBeLeft(t *testing.T) {
	r, server := startWithLockKeys(t, "--user", "app", "on", ">x", "~*", "+@all", "-discard", "-acl")
	p := r.connect()
	p.send(lines("AUTH app x", "SET lock:a v", "SET a v"))
	if got := p.all(); !strings.HasPrefix(got, ok+"-ERR cannot check this client's permissions: DISCARD: NOPERM") {
		t.Errorf("%q", got)
	}
	dial(t, server.Addr()).script([]exchange{{"EXISTS lock:a a", ":0\r\n"}})
}

// TestLoginsBeyondAZeroByte: options are compared as in Redis, up to a zero byte, so that the proxy
// and Redis see the same logins.
func TestLoginsBeyondAZeroByte(t *testing.T) {
	r, _ := startWithLockKeys(t, "--user", "lim", "on", ">x", "~app:*", "+@all")
	for _, login := range []string{"HELLO 3 AUTH lim x", "HELLO 3 AUTH\x00 lim x", "HELLO 3 auth\x00more lim x",
		"HELLO 3 SETNAME\x00 auth AUTH\x00 lim x"} {
		p := r.connect()
		p.say("SET lock:a v", ok) // as the default user
		p.send(lines(login))
		if hello := p.reply(); !strings.HasPrefix(hello, "%7\r\n") {
			t.Fatalf("%q: %q", login, hello)
		}
		p.say("SET lock:a v", noKey)
		p.say("ACL WHOAMI", bulk("lim"))
	}
}
