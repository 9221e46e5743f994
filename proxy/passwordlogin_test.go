package proxy_test

import (
	"strings"
	"testing"

	"redlock-proxy/internal/redistest"
	"redlock-proxy/proxy"
)

// startWithClientPassword starts a proxy that logs in at the upstream as alice, and requires a
// password itself.
func startWithClientPassword(t *testing.T) (*testProxy, *redistest.Server) {
	server := startRedis(t, "--requirepass", "secret", "--user", "alice", "on", ">wonder", "~*", "&*", "+@all",
		"-flushall", "--user", "bob", "on", ">b", "~b*", "+@all")
	return startProxyWith(t, "redis://alice:wonder@"+server.Addr()+"/5", proxy.Options{ClientPassword: "sesame"},
		[]string{"lock:*"}), server
}

const helloNoAuthReply = "-NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time\r\n"

// TestClientPasswordRequired checks that a proxy with its own password at the upstream
// serves no client before the client logs in at the proxy.
func TestClientPasswordRequired(t *testing.T) {
	r, server := startWithClientPassword(t)
	const wrongPassReply = "-WRONGPASS invalid username-password pair or user is disabled.\r\n"
	for _, line := range []string{
		"GET a", "get a\r\n", "CONFIG GET requirepass", "LOCK k t PX 1000", "SET lock:a v", "EVAL x 0", "MULTI", "EXEC",
		"WATCH a", "SUBSCRIBE c", "MONITOR", "PING",
		"SELECT 0", "CLIENT ID", "CLIENT REPLY OFF", "RESET", "INFO", "COMMAND", "PROXY INFO", "SCRIPT FLUSH", "SYNC",
		"REPLCONF ACK 0", "SHUTDOWN", "AUTH", "NONSENSE",
		"SET a " + strings.Repeat("x", 3<<20),
	} {
		p := r.connect()
		if strings.HasSuffix(line, "\n") {
			p.send(line)
		} else {
			p.send(cmd(line))
		}
		p.expect(noAuth)
		p.check("LOCK k t PX 1000", noAuth)
	}
	for line, want := range map[string]string{
		"AUTH wrong": wrongPassReply, "AUTH secret": wrongPassReply, "AUTH wonder": wrongPassReply, "AUTH alice wonder": wrongPassReply,
		"AUTH bob b": wrongPassReply, "AUTH default wrong": wrongPassReply, "AUTH bob sesame": wrongPassReply,
		"HELLO": helloNoAuthReply, "HELLO 3": helloNoAuthReply, "HELLO 3 SETNAME AUTH": helloNoAuthReply,
		"HELLO 3 AUTH default wrong": wrongPassReply, "HELLO 3 AUTH bob b": wrongPassReply,
	} {
		r.connect().runExchanges([]exchange{{line, want}, {"GET a", noAuth}, {"LOCK k t PX 1000", noAuth}})
	}
	if got := r.connect().ask("PROXY HEALTH"); !strings.Contains(got, "ready") {
		t.Errorf("PROXY HEALTH: %q", got)
	}
	p := r.connect()
	p.send(lines("GET a", "QUIT", "GET a"))
	p.expectAll(noAuth + ok)
	direct := dial(t, server.Addr())
	direct.runExchanges([]exchange{{"AUTH secret", ok}, {"SELECT 5", ok}, {"DBSIZE", ":0\r\n"}})
}

// TestLoginAtTheProxy checks that after the login a client acts as the user in the upstream's URL,
// and may log in as another user. RESET logs the client out again.
func TestLoginAtTheProxy(t *testing.T) {
	r, server := startWithClientPassword(t)
	for _, line := range []string{"AUTH sesame", "auth default sesame"} {
		r.connect().runExchanges([]exchange{
			{"GET a", noAuth}, {line, ok}, {"GET a", "$-1\r\n"}, {"ACL WHOAMI", bulk("alice")},
			{"LOCK k t PX 1000", ":1000\r\n"}, {"UNLOCK k t", ":1\r\n"},
			{"SET lock:a v PX 1000", ok}, {"DEL lock:a", ":1\r\n"},
			{"AUTH default wrong", "-WRONGPASS invalid username-password pair or user is disabled.\r\n"},
			{"ACL WHOAMI", bulk("alice")},
			{"AUTH bob b", ok}, {"ACL WHOAMI", bulk("bob")},
			{"LOCK k t PX 1000", "-NOPERM this user has no permissions to access one of the keys used as arguments\r\n"},
			{"AUTH sesame", ok}, {"ACL WHOAMI", bulk("alice")}, {"RESET", "+RESET\r\n"}, {"GET a", noAuth},
			{"LOCK k t PX 1000", noAuth},
			{"AUTH sesame", ok}, {"ACL WHOAMI", bulk("alice")}, {"LOCK k t PX 1000", ":1000\r\n"}, {"UNLOCK k t", ":1\r\n"},
		})
	}
	dial(t, server.Addr()).runExchanges([]exchange{{"AUTH secret", ok}, {"ACL SETUSER default nopass", ok}})
	r.connect().runExchanges([]exchange{{"AUTH sesame", ok}, {"GET a", "$-1\r\n"}, {"RESET", "+RESET\r\n"}, {"GET a", noAuth},
		{"ACL WHOAMI", noAuth}, {"AUTH sesame", ok}, {"MULTI", ok}, {"RESET", "+RESET\r\n"}, {"ACL WHOAMI", noAuth},
		{"GET a", noAuth}})
	p := r.connect()
	p.send(lines("HELLO 3 AUTH default sesame SETNAME app"))
	if hello := p.readReply(); !strings.HasPrefix(hello, "%7\r\n") {
		t.Fatalf("HELLO: %q", hello)
	}
	p.runExchanges([]exchange{{"CLIENT GETNAME", bulk("app")}, {"ACL WHOAMI", bulk("alice")},
		{"LOCK k t PX 1000", ":1000\r\n"}, {"LOCK k t PX 1000", "_\r\n"}})
}
