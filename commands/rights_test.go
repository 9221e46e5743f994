package commands

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"redlock-proxy/commands/rights"
)

// restrict makes the permissions of the client depend on the upstream.
func (b *registerFixture) restrict(refused map[string]string) {
	b.client.Unrestricted, b.sideEffects.refusals = false, refused
}

// expectChecks fails unless the proxy has made exactly these permission checks at the upstream
// since the last call.
func (b *registerFixture) expectChecks(want ...string) {
	b.Helper()
	if got := b.sideEffects.checks; !slices.Equal(got, want) {
		b.Errorf("asked %q, want %q", got, want)
	}
	b.sideEffects.checks = nil
}

const (
	noRight   = "NOPERM this user has no permissions to run the 'x' command"
	noKey     = "NOPERM this user has no permissions to access one of the keys used as arguments"
	noChannel = "NOPERM this user has no permissions to access one of the channels used as arguments"
)

// TestPermissionChecks checks that the permission checks of a command are the same for all values.
func TestPermissionChecks(t *testing.T) {
	for line, want := range map[string]string{
		"SET k v NX PX 1000": "set k 0",
		"set k v get":        "set k 0 get",
		"set k v ifeq old":   "set k 0 get", "set k v PX 5 IFNE\x00 old": "set k 0 get",
		"MSET k a lock:b c":           "mset k 0 lock:b 0",
		"DEL k k lock:b":              "del k k lock:b",
		"DELIFEQ k v":                 "del k",
		"DELEX k IFEQ v":              "del k",
		"PEXPIRETIME k":               "ttl k",
		"SETEX k 10 v":                "setex k 0 0",
		"PEXPIRE k 10 NX":             "pexpire k 0",
		"EVAL body 2 k other arg":     "eval 0 2 k other",
		"EVALSHA_RO sha 1 k":          "",
		"EVAL body 9 k":               "",
		"GET":                         "",
		"LOCK k t PX 1000":            "set k 0",
		"UNLOCK k t":                  "del k",
		"EXTEND k t PX 1000":          "pexpire k 0",
		"MLOCK 2 k lock:b t PX 1000":  "set k 0|set lock:b 0",
		"MUNLOCK 2 k lock:b t":        "del k|del lock:b",
		"MEXTEND 1 k t PX 1000":       "pexpire k 0",
		"MLOCK 0 k t PX 1000":         "",
		"WATCH k lock:b":              "watch k lock:b",
		"SCRIPT LOAD body":            "script load 0",
		"PROXY INFO":                  "info",
		"PROXY RELOAD":                "config set redlock-proxy reload",
		"PROXY MOVE BACK":             "config set redlock-proxy move|client kill id 0",
		"PROXY HELP":                  "",
		"PING":                        "ping",
		"MULTI":                       "",
		"EVAL body 0 lock:in lock:an": "eval 0 0",
	} {
		var got []string
		for _, check := range rights.PermissionChecks(strings.Fields(line)) {
			got = append(got, strings.Join(check, " "))
		}
		if strings.Join(got, "|") != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}

// TestRefusedCommands checks that a command that the upstream refuses changes nothing on the
// masters, and the client gets the upstream's error.
func TestRefusedCommands(t *testing.T) {
	b := newRegisterFixture(t)
	b.restrict(map[string]string{"del k": noKey, "set k 0": noRight, "eval 0 1 k": noRight})
	b.masters.Put("k", "me", 500)
	b.expectRun("DEL k", noKey)
	b.expectRun("SET k v NX PX 1000", noRight)
	b.expectRun("EVAL body 1 k", noRight)
	b.expectRun("GET k", `"me"`)
	b.expectChecks("del k", "set k 0", "eval 0 1 k", "get k")
	b.expectValue("k", "me:500")
	b.sideEffects.requestErr = &rights.PermissionCheckError{Cause: errors.New("connection refused")}
	b.expectRun("GET k", "ERR cannot check this client's permissions: connection refused")
}

// TestRefusedCallsOfScripts checks that a script may call only commands that its user may run. If a
// permission is missing, nothing of the script takes effect.
func TestRefusedCallsOfScripts(t *testing.T) {
	refused := map[string]string{"del victim": noKey, "publish c 0": noChannel, "set lock:x 0": noRight}
	for _, c := range []struct{ body, want, after string }{
		{"redis.call('set',KEYS[1],'v','PX',1000) redis.call('del','victim') return 1",
			"ERR The user executing the script can't access at least one of the keys mentioned in the command arguments script: ", "."},
		{"redis.call('set',KEYS[1],'v','PX',1000) return redis.call('publish','c','m')",
			"ERR The user executing the script can't publish to the channel mentioned in the command script: ", "."},
		{"redis.call('set',KEYS[1],'v','PX',1000) return redis.call('set','lock:x','v')",
			"ERR The user executing the script can't run this command or subcommand script: ", "."},
		{"redis.call('set',KEYS[1],'v','PX',1000) return redis.pcall('set','lock:x','v')",
			"ERR The user executing the script can't run this command or subcommand", "."},
		// The script keeps its first change, as on any Redis.
		{"redis.call('set',KEYS[1],'v','PX',1000) error('own')", "ERR ", "v:1000"},
	} {
		b := newRegisterFixture(t)
		b.restrict(refused)
		if got := b.run("EVAL", c.body, "1", "k"); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %s", c.body, got)
		}
		b.expectSideEffects()
		b.expectValue("k", c.after)
	}
	b := newRegisterFixture(t)
	b.restrict(refused)
	if got := b.run("EVAL",
		"redis.pcall('publish','c','m') redis.call('set',KEYS[1],'v','PX',1000) return redis.call('get',KEYS[1])", "1",
		"k"); got != `"v"` {
		t.Error(got)
	}
	b.expectSideEffects()
	b.expectValue("k", "v:1000")
}

// TestScriptPermissionsAskedOnce checks that the proxy asks for each permission of a script once.
func TestScriptPermissionsAskedOnce(t *testing.T) {
	b := newRegisterFixture(t)
	b.restrict(nil)
	if got := b.run("EVAL",
		"redis.call('set',KEYS[1],ARGV[1],'PX',1000) redis.call('lpush','l','v') return redis.call('publish','c','m')",
		"1", "k", "v"); got != "1" {
		t.Error(got)
	}
	b.expectChecks("eval 0 1 k", "set k 0", "lpush l 0", "publish c 0")
	b.expectSideEffects("0: lpush l v|0: publish c m")
}

// TestRefusedInTransactions checks that the proxy asks for permissions at queueing and at EXEC.
func TestRefusedInTransactions(t *testing.T) {
	b := newRegisterFixture(t)
	b.restrict(map[string]string{"set k 0": noRight})
	run := func(line, want string) {
		t.Helper()
		if got := oneLine(t, runRouted(t.Context(), b.table, b.client, strings.Fields(line), &b.out)); got != want {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
	run("MULTI", "OK")
	run("SET k v", noRight)
	run("EXEC", "EXECABORT Transaction discarded because of previous errors.")
	run("MULTI", "OK")
	run("DEL k", "QUEUED")
	b.sideEffects.refusals["del k"] = noKey
	run("EXEC", "EXECABORT Transaction discarded because of: "+noKey)
	b.expectValue("k", ".")
}

// TestCommitRefusedByUpstream checks that the proxy commits nothing if the
// upstream refuses a side effect of a script.
func TestCommitRefusedByUpstream(t *testing.T) {
	b := newRegisterFixture(t)
	b.masters.Put("k", "me", 500)
	b.sideEffects.requestErr = &rights.RefusedError{Text: noChannel}
	if got := b.run("EVAL", releasePublish, "1", "k", "me", "chan"); got != noChannel {
		t.Error(got)
	}
	b.sideEffects.requestErr = errors.New("upstream u: connection refused")
	if got := b.run("EVAL", releasePublish, "1", "k", "me", "chan"); got != "ERR upstream u: connection refused" {
		t.Error(got)
	}
	b.expectValue("k", "me:500")
	b.expectSideEffects()
}

// TestPrepareAfterWrongGuess checks that the proxy recovers after it guessed the value of a
// key wrongly. It discards the commands that it prepared for that value, and prepares the commands
// for the real value.
func TestPrepareAfterWrongGuess(t *testing.T) {
	b := newRegisterFixture(t)
	b.masters.Put("k", "other", 500)
	if got := b.run("EVAL", "redis.call('publish','c',redis.call('getset',KEYS[1],ARGV[1]) or 'none') return 1", "1",
		"k", "me"); got != "1" {
		t.Error(got)
	}
	b.expectSideEffects("0: publish c other")
	b.expectValue("k", "me")
	b.masters.ConcurrentChange = func() {
		b.masters.ConcurrentChange = nil
		b.masters.Put("k", "third", 500)
	}
	if got := b.run("EVAL", "redis.call('publish','c',redis.call('getset',KEYS[1],ARGV[1]) or 'none') return 1", "1",
		"k", "you"); got != "1" {
		t.Error(got)
	}
	b.expectSideEffects("0: publish c third")
	b.expectValue("k", "you")
	if b.sideEffects.drops == 0 {
		t.Error("what was prepared first was not dropped")
	}
	b.sideEffects.refusals = map[string]string{"prepare publish c fourth": noChannel}
	b.masters.ConcurrentChange = func() { b.masters.Put("k", "fourth", 500) }
	if got := b.run("EVAL", "redis.call('publish','c',redis.call('getset',KEYS[1],ARGV[1]) or 'none') return 1", "1",
		"k", "me"); got != noChannel {
		t.Error(got)
	}
	b.expectValue("k", "fourth:500")
}
