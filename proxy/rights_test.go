package proxy_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"redlock-proxy/internal/redistest"
)

// countInternalCommands counts the internal commands on clients' connections at the upstream.
func countInternalCommands(t *testing.T, server *redistest.Server) (n int) {
	t.Helper()
	p := dial(t, server.Addr())
	p.send(lines("INFO commandstats"))
	for _, match := range regexp.MustCompile(`cmdstat_(?:multi|discard|acl\|[a-z]+):calls=(\d+)`).FindAllStringSubmatch(p.readReply(), -1) {
		var calls int
		_, _ = fmt.Sscan(match[1], &calls)
		n += calls
	}
	return n
}

// TestOpenUpstreamIsNotAsked checks that the proxy does not ask an upstream that is open to all for
// the permissions of each client.
func TestOpenUpstreamIsNotAsked(t *testing.T) {
	r, server := startWithLockKeys(t)
	before := countInternalCommands(t, server)
	for range 5 {
		r.connect().runExchanges([]exchange{
			{"SET lock:a v NX PX 60000", ok}, {"GET lock:a", bulk("v")}, {"LOCK k t PX 1000", ":1000\r\n"},
			{"UNLOCK k t", ":1\r\n"},
			{"MULTI", ok}, {"GET lock:a", queued}, {"EXEC", "*1\r\n" + bulk("v")}, {"DEL lock:a", ":1\r\n"},
		})
	}
	count := countInternalCommands(t, server) - before
	if count != 10 { // MULTI and DISCARD for each client's own transaction
		t.Errorf("%d permission checks", count)
	}
}

// TestPermissionsAreRemembered checks that the proxy asks for a client's permissions once for each
// probe, user and key. While the upstream does not answer, the permissions remain valid, and
// clients with unknown permissions get an error.
func TestPermissionsAreRemembered(t *testing.T) {
	const noRight = "-NOPERM this user has no permissions to run the 'set' command\r\n"
	r, server := startWithLockKeys(t, "--user", "app", "on", ">x", "~lock:*", "+@all", "-@admin", "-@dangerous")
	p, direct := r.connect(), dial(t, server.Addr())
	checkSet := func(want string) { t.Helper(); p.check("SET lock:a v PX 60000", want) }
	checkInternalCommands := func(want int, run func()) {
		t.Helper()
		before := countInternalCommands(t, server)
		run()
		if got := countInternalCommands(t, server) - before; got != want {
			t.Errorf("%d permission checks, want %d", got, want)
		}
	}
	p.check("AUTH app x", ok)
	checkInternalCommands(3, func() { checkSet(ok) }) // questions about the user, and MULTI and DISCARD
	checkInternalCommands(0, func() { checkSet(ok) })
	checkInternalCommands(2, func() { p.check("DEL lock:a", ":1\r\n") })
	direct.check("ACL SETUSER app -set", ok)
	checkSet(ok)
	r.upstream.Probe(t.Context())
	checkSet(noRight)
	checkInternalCommands(0, func() { checkSet(noRight) })
	direct.check("ACL SETUSER app +set", ok)
	r.upstream.Probe(t.Context())
	checkSet(ok)
	if err := server.Pause(); err != nil {
		t.Fatal(err)
	}
	checkSet(ok)
	unknown := r.connect() // according to the last probe, every client may do everything
	unknown.check("GET lock:a", bulk("v"))
	if err := server.Continue(); err != nil {
		t.Fatal(err)
	}
	direct.check("ACL SETUSER default -@dangerous", ok)
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

// TestRightsOfAnUpstreamInTrouble checks that errors of a Redis that refuses writes do not count as
// a lack of permission.
func TestRightsOfAnUpstreamInTrouble(t *testing.T) {
	for name, setup := range map[string]string{
		"out of memory": "CONFIG SET maxmemory 1",
		"a replica":     "REPLICAOF 127.0.0.1 1",
	} {
		r, server := startWithLockKeys(t, "--user", "app", "on", ">x", "~lock:*", "&*", "+@all", "-flushall")
		dial(t, server.Addr()).check(setup, ok)
		r.connect().runExchanges([]exchange{{"AUTH app x", ok}, {"SET lock:a v NX PX 60000", ok},
			{"SET b v", "-NOPERM this user has no permissions to access one of the keys used as arguments\r\n"},
			{"DEL lock:a", ":1\r\n"}})
		if t.Failed() {
			t.Fatal(name)
		}
	}
}

// TestRightsWithoutTheACLCommand checks that the proxy checks rights even if the upstream hides the
// command ACL.
func TestRightsWithoutTheACLCommand(t *testing.T) {
	r, server := startWithLockKeys(t, "--rename-command", "ACL", "", "--user", "app", "on", ">x", "~lock:*", "+@all",
		"-set")
	before := countInternalCommands(t, server)
	r.connect().runExchanges([]exchange{
		{"SET lock:a v PX 60000", ok}, {"AUTH app x", ok}, {"SET lock:a v",
			"-NOPERM this user has no permissions to run the 'set' command\r\n"},
		{"LOCK k t PX 1000", "-NOPERM this user has no permissions to run the 'set' command\r\n"}, {"DEL lock:a", ":1\r\n"},
	})
	if countInternalCommands(t, server) == before {
		t.Error("nothing was asked")
	}
}

// TestTransactionThatCannotBeDiscarded checks that the connection of a client that may not use
// DISCARD ends, so that no transaction stays open.
func TestTransactionThatCannotBeDiscarded(t *testing.T) {
	r, server := startWithLockKeys(t, "--user", "app", "on", ">x", "~*", "+@all", "-discard", "-acl")
	p := r.connect()
	p.send(lines("AUTH app x", "SET lock:a v", "SET a v"))
	if got := p.readAll(); !strings.HasPrefix(got, ok+"-ERR cannot check this client's permissions: DISCARD: NOPERM") {
		t.Errorf("%q", got)
	}
	dial(t, server.Addr()).runExchanges([]exchange{{"EXISTS lock:a a", ":0\r\n"}})
}

// TestLoginsBeyondAZeroByte checks that options are compared as in Redis, up to a zero byte, so
// that the proxy and Redis see the same logins.
func TestLoginsBeyondAZeroByte(t *testing.T) {
	r, _ := startWithLockKeys(t, "--user", "lim", "on", ">x", "~app:*", "+@all")
	for _, login := range []string{"HELLO 3 AUTH lim x", "HELLO 3 AUTH\x00 lim x", "HELLO 3 auth\x00more lim x",
		"HELLO 3 SETNAME\x00 auth AUTH\x00 lim x"} {
		p := r.connect()
		p.check("SET lock:a v", ok) // as the default user
		p.send(lines(login))
		if hello := p.readReply(); !strings.HasPrefix(hello, "%7\r\n") {
			t.Fatalf("%q: %q", login, hello)
		}
		p.check("SET lock:a v", noKey)
		p.check("ACL WHOAMI", bulk("lim"))
	}
}
