package proxy_test

import (
	"strings"
	"testing"

	"redlock-proxy/internal/redistest"
	"redlock-proxy/proxy"
)

// makeBusy makes a server busy with a script or function that never ends.
func makeBusy(t *testing.T, server *redistest.Server, endlessCommand ...string) (directPeer *peer) {
	t.Helper()
	directPeer = dial(t, server.Addr())
	if endlessCommand[0] == "FCALL" {
		directPeer.send(array("FUNCTION", "LOAD",
			"#!lua name=endless\nredis.register_function('"+endlessCommand[1]+"', function() while true do end end)"))
		if got := directPeer.readReply(); got != bulk("endless") {
			t.Skipf("SKIPPED: the server has no functions: %s", got)
		}
	}
	dial(t, server.Addr()).send(array(endlessCommand...))
	eventually(t, "a script that runs too long", func() bool {
		return strings.HasPrefix(directPeer.ask("GET k"), "-BUSY ")
	})
	return directPeer
}

// TestBusyUpstreamIsFreed checks that a client can end the script that keeps the upstream busy.
// This works even if the client needs a new connection to a database other than 0. A busy upstream
// refuses the SELECT that such a connection needs.
func TestBusyUpstreamIsFreed(t *testing.T) {
	for _, endless := range []struct{ words, kill string }{{"EVAL|while true do end|0", "SCRIPT KILL"},
		{"FCALL|run|0", "FUNCTION KILL"}} {
		for _, c := range []struct {
			name     string
			lockKeys []string
		}{
			{"a database in the URL", nil},
			{"a database in the URL, lock keys", []string{"lock:*"}},
		} {
			t.Run(c.name+", "+endless.kill, func(t *testing.T) {
				server := startRedis(t, "--lua-time-limit", "50")
				r := startProxyWith(t, server.URL()+"/3", proxy.Options{}, c.lockKeys, parkNever)
				direct := makeBusy(t, server, strings.Split(endless.words, "|")...)
				client := r.connect()
				if got := client.ask("CLIENT GETNAME"); !strings.HasPrefix(got, "-BUSY ") {
					t.Errorf("CLIENT GETNAME: %q", got)
				}
				client.check(endless.kill, "+OK\r\n")
				eventually(t, "an upstream that is busy no more",
					func() bool { return direct.ask("GET k") == "$-1\r\n" })
				eventually(t, "an answer", func() bool { return client.ask("GET k") == "$-1\r\n" })
			})
		}
	}
}

// TestBusyUpstreamIsNotFreedWithoutPermission checks that a client without permission gets the
// upstream's refusal.
func TestBusyUpstreamIsNotFreedWithoutPermission(t *testing.T) {
	server := startRedis(t, "--lua-time-limit", "50", "--requirepass", "secret")
	r := startProxy(t, "redis://"+server.Addr()+"/3")
	direct := dial(t, server.Addr())
	direct.check("AUTH secret", "+OK\r\n")
	script := dial(t, server.Addr())
	script.check("AUTH secret", "+OK\r\n")
	script.send(array("EVAL", "while true do end", "0"))
	eventually(t, "a script that runs too long", func() bool {
		return strings.HasPrefix(direct.ask("GET k"), "-BUSY ")
	})
	if got := r.connect().ask("SCRIPT KILL"); strings.HasPrefix(got, "+") {
		t.Errorf("a client without a login: %q", got)
	}
	direct.check("SCRIPT KILL", "+OK\r\n")
}

// TestLocksWhileTheUpstreamIsBusy checks that locks work while the upstream is busy with a script
// that never ends. The upstream's last replies about rights remain valid.
func TestLocksWhileTheUpstreamIsBusy(t *testing.T) {
	server := startRedis(t, "--lua-time-limit", "50")
	r := startProxyWith(t, server.URL(), proxy.Options{}, []string{"lock:*"}, parkNever)
	before := r.connect()
	before.check("LOCK k a PX 1000", ":1000\r\n")
	direct := makeBusy(t, server, "EVAL", "while true do end", "0")
	r.upstream.Probe(t.Context())
	if _, err := r.upstream.Status(); err == nil || !strings.HasPrefix(err.Error(), "BUSY ") {
		t.Errorf("the upstream's state: %v", err)
	}
	for _, client := range []*peer{before, r.connect()} {
		client.check("UNLOCK k a", ":1\r\n")
		client.check("LOCK k a PX 1000", ":1000\r\n")
		client.check("SET lock:k a NX PX 1000", "+OK\r\n")
		client.send(array("EVAL",
			"if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end", "1",
			"lock:k", "a"))
		if got := client.readReply(); got != ":1\r\n" {
			t.Errorf("a script on a lock key: %q", got)
		}
	}
	direct.check("SCRIPT KILL", "+OK\r\n")
	eventually(t, "an upstream that is up", func() bool {
		r.upstream.Probe(t.Context())
		_, err := r.upstream.Status()
		return err == nil
	})
}
