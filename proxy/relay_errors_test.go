package proxy_test

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"redlock-proxy/internal/redistest"
)

// freePort returns a free port for a server whose default port may be in use.
func freePort(t *testing.T) string {
	t.Helper()
	addr, err := redistest.FreeAddr()
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(addr)
	return port
}

// TestErrorsArePassedOn checks that the upstream's errors are passed on word for word, and that the
// following replies are unchanged (RELAY.md, points 25 and 26).
func TestErrorsArePassedOn(t *testing.T) {
	texts := []string{
		"LOADING Redis is loading the dataset in memory", "READONLY You can't write against a read only replica.",
		"MOVED 3999 127.0.0.1:6381", "ASK 3999 127.0.0.1:6381",
		"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
		"BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
		"OOM command not allowed when used memory > 'maxmemory'.", "MISCONF Redis is configured to save RDB snapshots",
		"NOPERM this user has no permissions", "TRYAGAIN x", "CLUSTERDOWN Hash slot not served",
		"NOREPLICAS Not enough good replicas to write.", "max number of clients reached", "lower case and no code", "",
	}
	fake := startFake(t, func(c *fakeConn) {
		for _, text := range texts {
			c.read(1)
			c.write("-" + text + "\r\n")
		}
		c.read(1)
	})
	p := startProxy(t, fake.url()).connect()
	for _, text := range texts {
		p.check("GET a", "-"+text+"\r\n")
		p.check("LOCK k"+fmt.Sprint(len(text))+text[:min(1, len(text))]+" t PX 1000", ":1000\r\n")
	}
}

// TestRealServersErrors checks that errors of real servers are passed on, too (RELAY.md, points 25
// and 26).
func TestRealServersErrors(t *testing.T) {
	for _, c := range []struct{ setup, sent, prefix string }{
		{"CONFIG SET maxmemory 1", "SET a 1", "-OOM command not allowed"},
		{"REPLICAOF 127.0.0.1 1", "SET a 1", "-READONLY You can't write"},
		{"REPLICAOF 127.0.0.1 1\nCONFIG SET replica-serve-stale-data no", "GET a", "-MASTERDOWN Link with MASTER is down"},
		{"CONFIG SET min-replicas-to-write 1", "SET a 1", "-NOREPLICAS Not enough good replicas"},
		{"ACL SETUSER default -get", "GET a", "-NOPERM"},
		{"PING", "EVALSHA 0000000000000000000000000000000000000000 0", "-NOSCRIPT No matching script"},
		{"PING", "EVAL redis.call('RPUSH',KEYS[1],'x')return(redis.call('GET',KEYS[1])) 1 a",
			"-WRONGTYPE Operation against a key"},
		{"PING", "EVAL return(redis.call('NOSUCH')) 0", "-ERR Unknown Redis command called from script"},
		{"PING", "NOSUCH a b", "-ERR unknown command 'NOSUCH'"},
	} {
		r, server := startRelay(t)
		direct, p := dial(t, server.Addr()), r.connect()
		for line := range strings.SplitSeq(c.setup, "\n") {
			direct.ask(line)
		}
		want := direct.ask(c.sent)
		if got := p.ask(c.sent); !strings.HasPrefix(got, c.prefix) || got != want {
			t.Errorf("%s: %s: got %q, want %q", c.setup, c.sent, got, want)
		}
		p.check("LOCK k t PX 1000", ":1000\r\n")
	}
	cluster, _ := startRelay(t, "--cluster-enabled", "yes", "--cluster-port", freePort(t))
	cluster.connect().check("SET a 1", "-CLUSTERDOWN Hash slot not served\r\n")
}

// TestUpstreamIsFull checks that a client that exceeds the upstream's limit of clients gets the
// upstream's own refusal (RELAY.md, point 24).
func TestUpstreamIsFull(t *testing.T) {
	server := startRedis(t, "--maxclients", "2")
	r := startProxy(t, server.URL())
	a, b, c := r.connect(), r.connect(), r.connect()
	eventually(t, "a place", func() bool { return a.ask("PING") == "+PONG\r\n" })
	b.check("PING", "+PONG\r\n")
	c.send(cmd("GET a"))
	c.expectAll("-ERR max number of clients reached\r\n")
	d := r.connect()
	d.check("LOCK k t PX 1000", ":1000\r\n")
}
