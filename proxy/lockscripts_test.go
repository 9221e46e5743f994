package proxy_test

import (
	"strings"
	"testing"
)

// The release script of many libraries, a script that names a lock key, and the reply to an unknown
// SHA-1.
const (
	releaseByTokenScript = "if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end"
	hiddenKeyScript      = "return redis.call('get', 'lock:hidden')"
	noScript             = "-NOSCRIPT No matching script. Please use EVAL.\r\n"
)

// load sends SCRIPT LOAD and returns the SHA-1.
func (p *peer) load(body string) string {
	p.Helper()
	p.send(array("SCRIPT", "LOAD", body))
	reply := p.readReply()
	if !strings.HasPrefix(reply, "$40\r\n") {
		p.Fatalf("SCRIPT LOAD: %q", reply)
	}
	return reply[5:45]
}

// TestScriptsOnLockKeys checks that a script whose keys are lock keys runs on the masters, and any
// other script on the upstream. A loaded script can run on both.
func TestScriptsOnLockKeys(t *testing.T) {
	r, server := startWithLockKeys(t)
	p := r.connect()
	p.runExchanges([]exchange{{"SET lock:a me", ok}, {"SET a me", ok}})
	p.send(array("EVAL", releaseByTokenScript, "1", "lock:a", "you") + array("EVAL", releaseByTokenScript, "1", "lock:a", "me") +
		array("EVAL", releaseByTokenScript, "1", "a", "me") + array("EVAL", releaseByTokenScript, "1", "a", "me"))
	p.expect(":0\r\n:1\r\n:1\r\n:0\r\n")

	setScript := "return redis.call('set', KEYS[1], ARGV[1])"
	sha := p.load(setScript)
	for _, key := range []string{"lock:a", "a"} {
		p.send(array("EVALSHA", sha, "1", key, "v") + cmd("GET "+key))
		p.expect(ok + bulk("v"))
	}
	dial(t, server.Addr()).check("GET a", bulk("v"))
	expectNoKeys(t, server, "lock:a")
	p.check("SCRIPT EXISTS "+sha+" "+strings.Repeat("0", 40), "*2\r\n:1\r\n:0\r\n")
	p.check("EVALSHA "+strings.Repeat("0", 40)+" 1 lock:a", noScript)
	p.check("SCRIPT FLUSH", ok)
	p.check("EVALSHA "+sha+" 1 lock:a v", noScript)
	p.check("EVALSHA "+sha+" 1 a v", noScript)
	p.check("SCRIPT KILL", "-NOTBUSY No scripts in execution right now.\r\n")
	p.check("SCRIPT LOAD", "-ERR wrong number of arguments for 'script|load' command\r\n")
	p.send(array("SCRIPT", "LOAD", "not lua"))
	if got := p.readReply(); !strings.HasPrefix(got, "-ERR Error compiling script") {
		t.Errorf("a wrong script: %q", got)
	}
}

// TestScriptDebugIsRefused checks that no client begins a debugging session at the upstream, in which
// the proxy could not see lock keys.
func TestScriptDebugIsRefused(t *testing.T) {
	const refused = "-ERR SCRIPT DEBUG is not allowed: the proxy cannot check which lock keys a debugged script uses; " +
		"debug scripts on a separate Redis\r\n"
	onMasters, _ := startWithLockKeys(t)
	atUpstream := startBeforeMove(t, startRedis(t).URL(), upstreamLocation{})
	for _, r := range []*testProxy{onMasters, atUpstream} {
		p := r.connect()
		p.runExchanges([]exchange{{"SCRIPT DEBUG SYNC", refused}, {"script debug yes", refused}, {"SCRIPT DEBUG NO", ok}})
		p.check("EVAL return(1) 0", ":1\r\n")
		for _, mode := range []string{"SYNC", "yes\x00" + strings.Repeat("x", 2<<20)} {
			p.send(cmd("CLIENT REPLY OFF") + array("SCRIPT", "DEBUG", mode) + lines("CLIENT REPLY ON", "EVAL return(1) 0"))
			p.expect(ok + ":1\r\n")
		}
	}
}

// TestScriptKill checks that SCRIPT KILL from any client ends a script on lock keys that runs for
// long. The script's client stays connected.
func TestScriptKill(t *testing.T) {
	r, _ := startWithLockKeys(t)
	killer := r.connect()
	for _, body := range []string{"while true do end", "local a " + strings.Repeat("a=a ", 80_000) +
		"while true do end"} {
		p := r.connect()
		p.send(array("EVAL", body, "1", "lock:a"))
		for reply := ""; reply != ok; reply = killer.readReply() {
			if reply != "" && reply != "-NOTBUSY No scripts in execution right now.\r\n" {
				t.Fatal(reply)
			}
			killer.send(cmd("SCRIPT KILL"))
		}
		if got := p.readReply(); !strings.HasPrefix(got, "-ERR Script killed by user with SCRIPT KILL... script: ") {
			t.Error(got)
		}
		p.check("PING", "+PONG\r\n")
	}
}

// TestScriptThatOnlyTheUpstreamKnows checks that the proxy answers NOSCRIPT for a script that only
// the upstream knows. The client then loads the script again, and both the proxy and the upstream
// know it.
func TestScriptThatOnlyTheUpstreamKnows(t *testing.T) {
	r, server := startWithLockKeys(t)
	direct, p := dial(t, server.Addr()), r.connect()
	sha := direct.load(releaseByTokenScript)
	p.check("SCRIPT EXISTS "+sha, "*1\r\n:0\r\n")
	p.load(releaseByTokenScript)
	p.check("SCRIPT EXISTS "+sha, "*1\r\n:1\r\n")
}

// TestScriptsThatHideALockKey checks that a script without keys that names a lock key runs on the
// masters. The name may be in its body or in its arguments.
func TestScriptsThatHideALockKey(t *testing.T) {
	r, server := startWithLockKeys(t)
	p := r.connect()
	p.check("SET lock:hidden me", ok)
	dial(t, server.Addr()).check("SET lock:hidden wrong", ok)
	sha := p.load(hiddenKeyScript)
	byArgument := "return redis.call('get', ARGV[1])"
	p.send(array("EVAL", hiddenKeyScript, "0") + array("EVALSHA", sha, "0") + array("EVALSHA", strings.ToUpper(sha), "0") +
		array("EVAL", byArgument, "0", "lock:hidden") + array("EVAL", "return 7", "0"))
	p.expect(strings.Repeat(bulk("me"), 4) + ":7\r\n")
}

// TestScriptThatPublishes checks that a script's side effects happen on the upstream, exactly once.
func TestScriptThatPublishes(t *testing.T) {
	r, server := startWithLockKeys(t)
	subscriber, p := dial(t, server.Addr()), r.connect()
	subscriber.check("SUBSCRIBE c", "*3\r\n"+bulk("subscribe")+bulk("c")+":1\r\n")
	p.check("SET lock:a me", ok)
	p.send(array("EVAL", "if redis.call('del', KEYS[1]) == 1 then redis.call('publish', ARGV[1], 'free') end return 1",
		"1", "lock:a", "c"))
	p.expect(":1\r\n")
	subscriber.expect("*3\r\n" + bulk("message") + bulk("c") + bulk("free"))
}

// TestScriptsWithoutTheUpstream checks that the proxy knows and runs scripts even without the
// upstream.
func TestScriptsWithoutTheUpstream(t *testing.T) {
	relaying, server := startWithLockKeys(t)
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	lockOnly := lockServer(t)
	for _, r := range []*testProxy{relaying, lockOnly} {
		p := r.connect()
		sha := p.load(releaseByTokenScript)
		p.runExchanges([]exchange{
			{"SCRIPT EXISTS " + sha, "*1\r\n:1\r\n"}, {"SET lock:a me", ok},
			{"EVALSHA " + sha + " 1 lock:a you", ":0\r\n"}, {"EVALSHA " + sha + " 1 lock:a me", ":1\r\n"},
			{"MULTI", ok}, {"SET lock:a me", queued}, {"EVALSHA " + sha + " 1 lock:a me", queued},
			{"EXEC", "*2\r\n+OK\r\n:1\r\n"},
			{"SCRIPT FLUSH", ok}, {"SCRIPT EXISTS " + sha, "*1\r\n:0\r\n"},
		})
	}
}
