package proxy_test

import (
	"path/filepath"
	"strings"
	"testing"

	"redlock-proxy/internal/redistest"
	"redlock-proxy/proxy"
	"redlock-proxy/proxy/upstream"
)

const noAuth = "-NOAUTH Authentication required.\r\n"

// startProtected starts a redis-server with a password and a second user.
func startProtected(t *testing.T) (*testProxy, *redistest.Server) {
	return startRelay(t, "--requirepass", "secret", "--user", "alice", "on", ">wonder", "~*", "&*", "+@all",
		"-flushall")
}

// TestLockNeedsTheUpstreamsLogin checks that commands for which the upstream requires a login need
// that login at the proxy, too (RELAY.md, point 4).
func TestLockNeedsTheUpstreamsLogin(t *testing.T) {
	r, server := startProtected(t)
	if got := r.connect().ask("INFO"); got != noAuth {
		t.Errorf("INFO: %q", got)
	}
	for _, line := range []string{"LOCK k t PX 1000", "UNLOCK k t", "EXTEND k t PX 1000", "PROXY INFO", "PING", "GET a",
		"COMMAND COUNT"} {
		r.connect().check(line, noAuth)
	}
	for _, c := range []struct{ login, replies string }{
		{cmd("AUTH secret"), "+OK\r\n"},
		{"auth secret\r\n", "+OK\r\n"},
		{cmd("AUTH alice wonder"), "+OK\r\n"},
		{lines("AUTH secret", "AUTH wrong"), "+OK\r\n-WRONGPASS invalid username-password pair or user is disabled.\r\n"},
		{lines("AUTH secret", "MULTI", "AUTH alice wonder", "EXEC"), "+OK\r\n+OK\r\n+QUEUED\r\n*1\r\n+OK\r\n"},
		{lines("CLIENT REPLY SKIP") + lines("AUTH secret"), noAuth + "+OK\r\n"},
	} {
		p := r.connect()
		p.send(c.login + lines("LOCK k t PX 1000", "UNLOCK k t"))
		p.expect(c.replies + ":1000\r\n:1\r\n")
	}
	for _, login := range []string{"AUTH wrong", "AUTH", "HELLO 2 SETNAME auth", "HELLO 3 AUTH default wrong"} {
		p := r.connect()
		p.send(lines(login, "LOCK k t PX 1000"))
		p.expect(dial(t, server.Addr()).ask(login) + noAuth)
	}
}

// TestLoginByHelloAndLogoutByReset checks that HELLO logs in and RESET logs out (RELAY.md, points 4
// and 5).
func TestLoginByHelloAndLogoutByReset(t *testing.T) {
	r, _ := startProtected(t)
	p := r.connect()
	p.send(lines("LOCK k t PX 1000", "HELLO 3 AUTH default secret SETNAME app"))
	p.expect(noAuth)
	if hello := p.readReply(); !strings.HasPrefix(hello, "%7\r\n") {
		t.Fatalf("HELLO: %q", hello)
	}
	p.send(lines("LOCK k t PX 1000", "RESET", "LOCK k u PX 1000", "AUTH secret", "LOCK k u PX 1000"))
	p.expect(":1000\r\n+RESET\r\n" + noAuth + "+OK\r\n$-1\r\n")
}

// TestLoginByTheUpstreamsOwnRules checks that a connection that the upstream accepts counts as
// logged in, even without an AUTH (RELAY.md, point 4).
func TestLoginByTheUpstreamsOwnRules(t *testing.T) {
	r, server := startRelay(t)
	early, silent := r.connect(), r.connect()
	early.check("PING", "+PONG\r\n")
	silent.send(lines("PING", "CLIENT REPLY OFF"))
	silent.expect("+PONG\r\n")
	dial(t, server.Addr()).check("CONFIG SET requirepass secret", "+OK\r\n")
	r.upstream.Probe(t.Context())
	r.connect().check("LOCK k t PX 1000", noAuth)
	early.check("LOCK k t PX 1000", ":1000\r\n")
	silent.send(lines("LOCK s t PX 1000", "CLIENT REPLY ON"))
	silent.expect("+OK\r\n")
	if r.locks.holder(0, "s") != "t" {
		t.Error("the silent client that is logged in did not get its lock")
	}
}

// TestLimitsBeforeLogin checks that the upstream's own small limits apply before the login
// (RELAY.md, point 30).
func TestLimitsBeforeLogin(t *testing.T) {
	r, server := startProtected(t)
	for _, sent := range []string{
		"*11\r\n$4\r\nPING\r\n",
		"*2\r\n$4\r\nECHO\r\n$16385\r\n",
		lines("PING") + "*2\r\n$4\r\nECHO\r\n$16385\r\n" + strings.Repeat("x", 16385) + "\r\n",
	} {
		p, direct := r.connect(), dial(t, server.Addr())
		p.send(sent)
		direct.send(sent)
		if got, want := p.readAll(), direct.readAll(); got != want || !strings.Contains(want, "unauthenticated") {
			t.Errorf("%.60q: got %q, want %q", sent, got, want)
		}
	}
}

// TestUpstreamURLWithLogin checks that the proxy uses the URL's user, password and database on
// every connection. Clients need not know them.
func TestUpstreamURLWithLogin(t *testing.T) {
	_, server := startProtected(t)
	for _, user := range []string{":secret", "alice:wonder"} {
		r := startProxy(t, "redis://"+user+"@"+server.Addr()+"/5")
		p := r.connect()
		p.check("LOCK k t PX 1000", ":1000\r\n")
		p.check("SET a "+user, "+OK\r\n")
		if got := p.ask("CLIENT INFO"); !strings.Contains(got, " db=5 ") {
			t.Errorf("as %s: %q", user, got)
		}
		if got := r.locks.holder(5, "k"); got != "t" {
			t.Errorf("as %s: the lock is not in database 5", user)
		}
		p.send(lines("RESET", "GET a"))
		p.expect("+RESET\r\n" + noAuth)
	}
	direct := dial(t, server.Addr())
	direct.send(lines("AUTH secret", "SELECT 5", "GET a"))
	direct.expect("+OK\r\n+OK\r\n" + bulk("alice:wonder"))
}

func TestUpstreamURLRefused(t *testing.T) {
	_, server := startProtected(t)
	for path, want := range map[string]string{
		"redis://:wrong@" +
			server.Addr(): "AUTH: WRONGPASS invalid username-password pair or user is disabled.",
		"redis://nobody:wrong@" +
			server.Addr(): "AUTH: WRONGPASS invalid username-password pair or user is disabled.",
		"redis://:secret@" + server.Addr() + "/99": "SELECT: ERR DB index is out of range",
		"redis://" + server.Addr() + "/1":          "SELECT: NOAUTH Authentication required.",
	} {
		r := startProxy(t, path)
		p := r.connect()
		p.check("GET a", "-ERR upstream "+server.Addr()+": "+want+"\r\n")
		p.check("LOCK k t PX 1000",
			"-ERR cannot check this client's permissions: upstream "+server.Addr()+": "+want+"\r\n")
	}
	if _, err := upstream.New("http://x", 0, nil); err == nil || !strings.HasPrefix(err.Error(), "upstream: ") {
		t.Errorf("http://x: %v", err)
	}
}

// TestUpstreamOverUnixSocket checks that the upstream may be behind a unix socket.
func TestUpstreamOverUnixSocket(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "redis.sock")
	server := startRedis(t, "--unixsocket", socket)
	r := startProxy(t, "unix://"+socket)
	p := r.connect()
	p.check("SET a 1", "+OK\r\n")
	p.check("LOCK k t PX 1000", ":1000\r\n")
	dial(t, server.Addr()).check("GET a", bulk("1"))
	p.send(cmd("BLPOP none 0"))
	if err := p.conn.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	p.expectAll("")
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	if got := r.connect().ask("GET a"); !strings.HasPrefix(got, "-ERR upstream "+socket+": ") {
		t.Errorf("a dead one: %q", got)
	}
}

// TestInputLimitBeforeLogin checks that before the login, the size of an incomplete command is
// limited as in Redis. Otherwise each client that never logs in could use a megabyte.
func TestInputLimitBeforeLogin(t *testing.T) {
	server := startRedis(t, "--requirepass", "secret")
	r := startProxyWith(t, server.URL(), proxy.Options{}, []string{"lock:*"})
	large := strings.Repeat("x", 900_000)
	for _, sent := range []string{
		"*5\r\n$4\r\nLOCK\r\n$1000000\r\n" + large,
		"*5\r\n$4\r\nLOCK\r\n$1\r\nx\r\n$16385\r\n" + large[:16000],
		"*1000\r\n$4\r\nLOCK\r\n" + strings.Repeat("$1\r\nx\r\n", 20),
		"*3\r\n$3\r\nSET\r\n$6\r\nlock:x\r\n$1000000\r\n" + large,
		"*3\r\n$3\r\nSET\r\n$1000000\r\n" + large,
		"*9\r\n$3\r\nDEL\r\n$1\r\na\r\n$1000000\r\n" + large,
		"*1000\r\n$3\r\nDEL\r\n" + strings.Repeat("$1\r\nx\r\n", 20),
		"*9\r\n$4\r\nEVAL\r\n$1000000\r\n" + large,
		"*2\r\n$4\r\nAUTH\r\n$1000000\r\n" + large,
	} {
		direct := dial(t, server.Addr())
		direct.send(sent)
		want, conns := direct.readAll(), make([]*peer, 20)
		if !strings.Contains(want, "unauthenticated") {
			t.Fatalf("%.60q: Redis says %q", sent, want)
		}
		for i := range conns {
			conns[i] = r.connect()
			conns[i].send(sent)
		}
		for _, p := range conns {
			if got := p.readAll(); got != want {
				t.Errorf("%.60q: got %q, want %q", sent, got, want)
			}
		}
	}
}

// TestInputLimitAfterLogin checks that a client that has logged in, by any method, may send
// commands of all sizes that Redis accepts. The commands may also come in one piece with the login.
func TestInputLimitAfterLogin(t *testing.T) {
	server := startRedis(t, "--requirepass", "secret")
	r := startProxyWith(t, server.URL(), proxy.Options{}, []string{"lock:*"})
	long := "*5\r\n$4\r\nLOCK\r\n$100000\r\n" + strings.Repeat("x", 100_000) +
		"\r\n$1\r\nt\r\n$2\r\nPX\r\n$4\r\n1000\r\n"
	many := "*1000\r\n$3\r\nDEL\r\n" + strings.Repeat("$6\r\nlock:x\r\n", 999)
	p := r.connect()
	p.send(cmd("AUTH secret") + long + many + cmd("RESET"))
	p.expect("+OK\r\n:1000\r\n:0\r\n+RESET\r\n")
	p.send(many[:100])
	p.expectAll("-ERR Protocol error: unauthenticated multibulk length\r\n")
	p = r.connect()
	p.send(cmd("LOCK k t PX 1000") + cmd("HELLO 3 AUTH default secret"))
	p.expect(noAuth)
	if hello := p.readReply(); !strings.HasPrefix(hello, "%7\r\n") {
		t.Fatalf("HELLO: %q", hello)
	}
	p.send(long)
	p.expect("_\r\n")
}

// TestInputLimitWithoutRequiredLogin checks that a client that connected before a login was
// required counts as logged in, for Redis and the proxy.
func TestInputLimitWithoutRequiredLogin(t *testing.T) {
	r, server := startRelay(t)
	early := r.connect()
	early.check("PING", "+PONG\r\n")
	dial(t, server.Addr()).check("CONFIG SET requirepass secret", "+OK\r\n")
	r.upstream.Probe(t.Context())
	early.send("*5\r\n$4\r\nLOCK\r\n$100000\r\n" + strings.Repeat("x", 100_000))
	early.send("\r\n$1\r\nt\r\n$2\r\nPX\r\n$4\r\n1000\r\n")
	early.expect(":1000\r\n")
}
