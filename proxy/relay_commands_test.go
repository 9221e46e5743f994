package proxy_test

import (
	"regexp"
	"strings"
	"testing"
)

// TestOperatorsCommandsAreForwarded checks that operators' commands are forwarded (RELAY.md, point
// 13).
func TestOperatorsCommandsAreForwarded(t *testing.T) {
	r, server := startRelay(t, "--enable-debug-command", "yes")
	p, direct := r.connect(), dial(t, server.Addr())
	p.send(lines("SET a 1", "DEBUG SET-ACTIVE-EXPIRE 1", "CONFIG SET maxmemory-policy allkeys-lru", "DBSIZE",
		"FLUSHALL", "DBSIZE"))
	p.expect("+OK\r\n+OK\r\n+OK\r\n:1\r\n+OK\r\n:0\r\n")
	direct.check("CONFIG GET maxmemory-policy", "*2\r\n"+bulk("maxmemory-policy")+bulk("allkeys-lru"))
	p.check("REPLICAOF NO ONE", direct.ask("REPLICAOF NO ONE"))
	p.check("FAILOVER", direct.ask("FAILOVER"))
	p.check("SHUTDOWN ABORT", "-ERR No shutdown in progress.\r\n")
	p.check("LOCK k t PX 1000", ":1000\r\n")
	p.send(cmd("SHUTDOWN NOSAVE"))
	p.expectAll("")
}

// TestScripts checks that scripts and functions run at the upstream, and that only the upstream
// stores them (RELAY.md, point 14).
func TestScripts(t *testing.T) {
	r, server := startRelay(t)
	p, direct := r.connect(), dial(t, server.Addr())
	const sha = "e0e1f9fabfc9d4800c877a703b823ac0578ff8db" // the SHA-1 of "return 1"
	noScript := "-NOSCRIPT No matching script. Please use EVAL.\r\n"
	p.check("EVALSHA "+sha+" 0", noScript)
	p.send(array("SCRIPT", "LOAD", "return 1"))
	p.expect(bulk(sha))
	p.check("EVALSHA "+sha+" 0", ":1\r\n")
	direct.check("SCRIPT FLUSH", "+OK\r\n")
	p.check("EVALSHA "+sha+" 0", noScript)
	p.send(array("EVAL", "return redis.call('GET', KEYS[1])..ARGV[1]", "1", "none", "x"))
	p.expect(direct.askRaw(array("EVAL", "return redis.call('GET', KEYS[1])..ARGV[1]", "1", "none", "x")))
	p.send(array("FUNCTION", "LOAD", "#!lua name=lib\nredis.register_function('f', function() return 'hi' end)") +
		cmd("FCALL f 0"))
	p.expect(bulk("lib") + bulk("hi"))
}

// askRaw sends bytes and reads one reply.
func (p *peer) askRaw(sent string) string {
	p.Helper()
	p.send(sent)
	return p.readReply()
}

// TestProbeBeginsWithPing checks that the probe begins with PING, which touches no key, and detects
// whether the upstream is up (RELAY.md, point 27).
func TestProbeBeginsWithPing(t *testing.T) {
	r, server := startRelay(t)
	p := dial(t, server.Addr())
	p.check("MONITOR", "+OK\r\n")
	r.upstream.Probe(t.Context())
	if got := p.readReply(); !regexp.MustCompile(`^\+[0-9.]+ \[0 [0-9.:]+\] "PING"\r\n$`).MatchString(got) {
		t.Errorf("the probe sent %q", got)
	}
	if name, err := r.upstream.Status(); name != server.Addr() || err != nil {
		t.Errorf("the upstream is %s: %v", name, err)
	}
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	r.upstream.Probe(t.Context())
	if _, err := r.upstream.Status(); err == nil || err.Error() != "connection refused" {
		t.Errorf("a dead upstream: %v", err)
	}
}

// TestCommandAndInfoAreMerged checks that the replies to COMMAND and INFO are the upstream's
// replies, with the proxy's entries added.
func TestCommandAndInfoAreMerged(t *testing.T) {
	r, server := startRelay(t)
	for _, hello := range []string{"HELLO 2", "HELLO 3"} {
		p, direct := r.connect(), dial(t, server.Addr())
		p.ask(hello)
		direct.ask(hello)
		for _, line := range []string{"COMMAND INFO get set", "COMMAND INFO nosuch", "COMMAND DOCS get",
			"COMMAND GETKEYS MSET a 1 b 2", "COMMAND HELP", "COMMAND NOSUCH",
			"COMMAND LIST FILTERBY MODULE x", "COMMAND LIST FILTERBY PATTERN xre*", "COMMAND COUNT x",
			"COMMAND GETKEYSANDFLAGS GET a", "INFO nosuch"} {
			p.check(line, direct.ask(line))
		}
		for _, c := range []struct {
			line  string
			added int
		}{{"COMMAND", 4}, {"COMMAND LIST", 4}, {"COMMAND INFO", 4}} {
			got, want := p.ask(c.line), direct.ask(c.line)
			_, got, _ = strings.Cut(got, "\r\n")
			_, want, _ = strings.Cut(want, "\r\n")
			// The proxy adds LOCK, UNLOCK, MLOCK, MUNLOCK, FORCEUNLOCK and more commands.
			if !strings.HasPrefix(got, want) || strings.Count(got[len(want):], "lock\r\n") != 5 {
				t.Errorf("%s, %s: %d bytes, %d of the upstream", hello, c.line, len(got), len(want))
			}
		}
		p.check("COMMAND GETKEYS LOCK k t PX 1", "*1\r\n"+bulk("k"))
		redlockInfo, wholeInfo := p.ask("INFO redlock"), p.ask("INFO")
		if !strings.Contains(redlockInfo, "\r\n# Redlock\r\nredlock_available:no\r\n") &&
			!strings.Contains(redlockInfo, "txt:# Redlock\r\nredlock_available:no\r\n") {
			t.Errorf("%s: INFO redlock: %q", hello, redlockInfo)
		}
		if !strings.Contains(wholeInfo, "# Keyspace\r\n\r\n# Redlock\r\nredlock_available:no\r\n") ||
			!strings.Contains(wholeInfo, "redis_version:") {
			t.Errorf("%s: INFO: %q", hello, wholeInfo)
		}
	}
}
