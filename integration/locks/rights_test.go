//go:build integration

package locks

import (
	"fmt"
	"strings"
	"testing"

	"redlock-proxy/integration/harness"
	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// These errors of Redis 7.0 and of the proxy report missing permissions.
const (
	commandPermissionError = "NOPERM this user has no permissions to run the '%s' command"
	keyPermissionError     = "NOPERM this user has no permissions to access one of the keys used as arguments"
	scriptCommandError     = "ERR The user executing the script can't run this command or subcommand script: "
	scriptKeyError         = "ERR The user executing the script can't access at least one of the keys mentioned in the command arguments script: "
	loginError             = "NOAUTH Authentication required."
	permissionCheckError   = "ERR cannot check this client's permissions: upstream "
)

func formatPermissionError(command string) string {
	return fmt.Sprintf(commandPermissionError, command)
}

// restrictedRig holds a proxy, its masters, and an upstream with users that have limited
// permissions.
type restrictedRig struct {
	upstream *redistest.Server
	admin    *redistest.Client // client of the upstream with all permissions
	masters  []*redistest.Server
	proxy    *harness.Proxy
}

func startRestricted(t *testing.T, users ...string) *restrictedRig {
	t.Helper()
	return startRestrictedAt(t, kit.StartRedis(t), users...)
}

func startRestrictedAt(t *testing.T, upstream *redistest.Server, users ...string) *restrictedRig {
	t.Helper()
	r := &restrictedRig{upstream: upstream, masters: kit.StartMasters(t)}
	r.admin = kit.Dial(t, r.upstream.Addr())
	for _, user := range users {
		kit.WantPrefix(t, r.admin, "ACL SETUSER "+user, "OK")
	}
	r.proxy = kit.StartProxy(t, redistest.URLs(r.masters), "--upstream", r.upstream.URL(), "--lock-keys", "lock:*")
	awaitLog(t, r.proxy, "upstream up") // from then on, the proxy knows all users' permissions
	return r
}

// login returns a client of the proxy that has logged in.
func (r *restrictedRig) login(t *testing.T, user string) *redistest.Client {
	t.Helper()
	client := kit.Dial(t, r.proxy.Addr())
	kit.WantPrefix(t, client, "AUTH "+user+" x", "OK")
	return client
}

// wantAbsent fails the test if a master or the upstream has the key.
func (r *restrictedRig) wantAbsent(t *testing.T, key string) {
	t.Helper()
	kit.EachMaster(t, r.masters, func(master *redistest.Server) error { return kit.CheckAbsent(master, key) })
	kit.WantPrefix(t, r.admin, "EXISTS "+key, "0")
}

const limitedUser = "lim2 on >x ~app:* +@read +@write +@connection -eval -publish"

// TestScriptEscapes checks that a script's commands for the upstream are executed with its client's
// permissions, or not at all.
func TestScriptEscapes(t *testing.T) {
	t.Parallel()
	r := startRestricted(t, limitedUser)
	kit.WantPrefix(t, r.admin, "SET victim v", "OK")
	kit.WantPrefix(t, r.login(t, "lim2"), "DEL victim", keyPermissionError)
	for _, user := range []string{"lim2", "scripter", "mute"} {
		if user == "scripter" {
			redistest.RequireFeature(t, "rights to channels", "6.2")
			kit.WantPrefix(t, r.admin, "ACL SETUSER scripter on >x ~lock:* ~app:* &app:* +@all -@admin", "OK")
			kit.WantPrefix(t, r.admin, "ACL SETUSER mute on >x ~lock:* ~app:* resetchannels +@all", "OK")
		}
		for _, script := range []string{
			"redis.call('del','victim') return redis.call('set',KEYS[1],'v','PX',60000)",
			"redis.call('set',KEYS[1],'v','PX',60000) return redis.call('del','victim')",
			"redis.call('set',KEYS[1],'v','PX',60000) return redis.pcall('del','victim')",
			"redis.call('set',KEYS[1],'v','PX',60000) redis.call('lpush','victim2','1') return 1",
			"redis.call('set',KEYS[1],'v','PX',60000) return redis.call('publish','other','1')",
		} {
			client := r.login(t, user)
			got := kit.ReplyText(kit.Do(t, client, "EVAL", script, "1", "lock:esc"))
			if user == "lim2" && !strings.HasPrefix(got, "ERR rights are") &&
				!strings.HasPrefix(got, "ERR cannot check this client's permissions") ||
				user != "lim2" && !strings.HasPrefix(got, "ERR The user executing the script can't ") {
				t.Errorf("%s: %s: %s", user, script, got)
			}
			r.wantAbsent(t, "lock:esc")
		}
	}
	kit.WantPrefix(t, r.admin, "GET victim", "v")
	kit.WantPrefix(t, r.admin, "EXISTS victim2", "0")

	client, listener := r.login(t, "scripter"), kit.Dial(t, r.upstream.Addr())
	kit.WantPrefix(t, listener, "SUBSCRIBE app:c", "[subscribe app:c 1]")
	kit.WantPrefix(t, client, "EVAL|redis.call('set',KEYS[1],'v','PX',60000) redis.call('lpush','app:l','1') redis.call('publish','app:c','m') return redis.call('get',KEYS[1])|1|lock:esc", "v")
	got, err := listener.Receive()
	kit.Must(t, err)
	if kit.ReplyText(got) != "[message app:c m]" {
		t.Errorf("heard %v", got)
	}
	kit.WantPrefix(t, r.admin, "LLEN app:l", "1")
}

// TestSelectors checks that the proxy, like the upstream, refuses a command if only two selectors
// together allow its keys.
func TestSelectors(t *testing.T) {
	redistest.RequireFeature(t, "selectors", "7.0")
	t.Parallel()
	r := startRestricted(t, "two on >x +@all -@dangerous (+@all ~lock:a* ~a*) (+@all ~lock:b* ~b*)")
	client := r.login(t, "two")
	for _, c := range []string{
		"DEL @a @b", "DEL @a @a2", "EXISTS @a @b", "MSET @a 1 @b 2", "MGET @b @b2", "EXISTS @x @b", "RENAME @a @b",
		"WATCH @a @b", "WATCH @a @a2", "BLPOP @al @b 0.01", "BLPOP @al @am 0.01",
		"EVAL return(redis.call('del',KEYS[1],KEYS[2])) 2 @a @b", "EVAL return(redis.call('del',KEYS[1],KEYS[2])) 2 @a @a2",
	} {
		run := func(prefix string) string {
			defer kit.WantPrefix(t, client, "UNWATCH", "OK")
			return kit.ReplyText(kit.Do(t, client, strings.Fields(strings.ReplaceAll(c, "@", prefix))...))
		}
		if got, want := run("lock:"), run(""); got != want {
			t.Errorf("%s: %s, on other keys %s", c, got, want)
		}
	}
}

// TestRightsToDatabases checks that a Valkey user with access to one database may use the lock keys
// of only this database.
func TestRightsToDatabases(t *testing.T) {
	t.Parallel()
	valkey := redistest.Options{Version: redistest.NewestOf(t, "valkey")}
	r := startRestrictedAt(t, redistest.New(t, valkey), "one on >x ~* &* +@all db=1")
	kit.WantPrefix(t, kit.Dial(t, r.proxy.Addr()), "SET lock:a owner PX 60000", "OK")
	const databasePermissionError = "NOPERM No permissions to access database"
	client := r.login(t, "one")
	for _, command := range []string{
		"GET lock:a", "SET lock:a thief", "DEL lock:a", "LOCK k t PX 60000", "FORCEUNLOCK lock:a",
	} {
		kit.WantPrefix(t, client, command, databasePermissionError)
	}
	for _, c := range [][2]string{
		{"SELECT 1", "OK"}, {"SET lock:a mine PX 60000", "OK"}, {"GET lock:a", "mine"}, {"SELECT 0", databasePermissionError},
	} {
		kit.WantPrefix(t, client, c[0], c[1])
	}
	kit.WantPrefix(t, r.admin, "ACL SETUSER default db=1", "OK")
	kit.Await(t, "the database to be taken from the default user", func() bool {
		return strings.HasPrefix(kit.ReplyText(kit.Do(t, kit.Dial(t, r.proxy.Addr()), "GET", "lock:a")), databasePermissionError)
	})
}

// TestSelectorOfOneDatabase checks that permissions that a Valkey selector gives for one database
// do not hold in another database. This applies although the proxy remembers the permissions in the
// first database. A transaction and a script may select the database in which they run, and no
// other database.
func TestSelectorOfOneDatabase(t *testing.T) {
	t.Parallel()
	valkey := redistest.Options{Version: redistest.NewestOf(t, "valkey")}
	r := startRestrictedAt(t, redistest.New(t, valkey), "two on >x ~app:* +@all (~lock:* +@all db=1)",
		"one on >x ~* &* +@all db=1")
	owner, client := kit.Dial(t, r.proxy.Addr()), r.login(t, "two")
	kit.WantPrefix(t, owner, "SET lock:a owner PX 60000", "OK")
	for _, c := range [][2]string{
		{"SELECT 1", "OK"}, {"SET lock:a mine PX 60000", "OK"}, {"GET lock:a", "mine"}, {"SELECT 0", "OK"},
		{"GET lock:a", "NOPERM"}, {"SET lock:a thief", "NOPERM"},
		{"SELECT 1", "OK"}, {"GET lock:a", "mine"}, {"SET lock:a mine PX 60000", "OK"},
	} {
		kit.WantPrefix(t, client, c[0], c[1])
	}
	kit.WantPrefix(t, owner, "GET lock:a", "owner")

	client = r.login(t, "one")
	for _, c := range [][2]string{
		{"SELECT 1", "OK"}, {"MULTI", "OK"}, {"GET lock:a", "QUEUED"}, {"SELECT 1", "QUEUED"}, {"EXEC", "[mine OK]"},
		{"MULTI", "OK"}, {"GET lock:a", "QUEUED"}, {"SELECT 0", "NOPERM"}, {"EXEC", "EXECABORT"},
		{"EVAL|redis.call('select','1') return redis.call('get',KEYS[1])|1|lock:a", "mine"},
		{"EVAL|redis.call('select','0') return redis.call('get',KEYS[1])|1|lock:a", "ERR"},
	} {
		kit.WantPrefix(t, client, c[0], c[1])
	}
}

// TestScriptWithUpstreamPassword checks that the side effects of scripts are not lost if the
// upstream requires a password that the proxy does not have.
func TestScriptWithUpstreamPassword(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	upstream, masters := kit.StartRedis(t, "--requirepass", "secret"), kit.StartMasters(t)
	proxy := kit.StartProxy(t, redistest.URLs(masters), "--upstream", upstream.URL(), "--lock-keys", "lock:*")
	const script = "EVAL|redis.call('lpush','signal','1') return redis.call('set',KEYS[1],'v','PX',60000)|1|lock:a"
	client := kit.Dial(t, proxy.Addr())
	kit.WantPrefix(t, client, script, loginError)
	kit.EachMaster(t, masters, func(master *redistest.Server) error { return kit.CheckAbsent(master, "lock:a") })
	kit.WantPrefix(t, client, "AUTH secret", "OK")
	kit.WantPrefix(t, client, script, "OK")
	kit.WantPrefix(t, client, "LLEN signal", "1")
	kit.WantPrefix(t, client, "SET signal2 text", "OK")
	kit.WantPrefix(t, client, "EVAL|redis.call('lpush','signal2','1') return redis.call('set',KEYS[1],'v','PX',60000)|1|lock:b",
		"ERR lock key 'lock:b' was changed, but side effects of the command failed, at least in part: upstream "+upstream.Addr()+": WRONGTYPE")
	kit.WantPrefix(t, client, "WATCH data", "OK")
	kit.WantPrefix(t, client, script, "ERR a script on lock keys cannot have side effects at the upstream: the client watches keys")
	kit.Must(t, upstream.Kill())
	otherClient := kit.Dial(t, proxy.Addr())
	kit.WantPrefix(t, otherClient, script, permissionCheckError+upstream.Addr()+": ")
}

// TestScriptWithUpstreamDown checks that a script changes no lock key if its other commands cannot
// run.
func TestScriptWithUpstreamDown(t *testing.T) {
	t.Parallel()
	r := startRestricted(t)
	kit.Must(t, r.upstream.Kill())
	client := kit.Dial(t, r.proxy.Addr())
	// The cause that follows may be that of another connection: refused, reset, or closed.
	kit.WantPrefix(t, client, "EVAL|redis.call('publish','c','1') return redis.call('set',KEYS[1],'v','PX',60000)|1|lock:a",
		"ERR upstream "+r.upstream.Addr()+": ")
	kit.WantPrefix(t, client, "SET lock:a v NX PX 60000", "OK") // the script did not take the lock
	kit.WantPrefix(t, client, "DEL lock:a", "1")
}

// TestRights checks that a client has the same permissions for lock keys as for keys at the
// upstream.
func TestRights(t *testing.T) {
	redistest.RequireFeature(t, "EVAL_RO, rights to read a key, and redis.acl_check_cmd", "7.0")
	t.Parallel()
	r := startRestricted(t,
		"reader on >x ~* +@read +@connection +@transaction +eval_ro +info",
		"noeval on >x ~* +@all -eval -evalsha",
		"elsewhere on >x ~app:* +@all -@admin",
		"readonlykey on >x %R~lock:* ~app:* +@all -@admin",
		"scripts on >x ~lock:* +@connection +eval +get +set",
		"nothing on >x +@connection",
		"writer on >x ~lock:* +@all -@admin -@dangerous")
	body := "return redis.call('set',KEYS[1],'v','PX',60000)"
	for _, c := range []struct{ user, command, want string }{
		{"reader", "SET lock:a v", formatPermissionError("set")},
		{"reader", "SET lock:a v NX PX 60000", formatPermissionError("set")},
		{"reader", "DEL lock:a", formatPermissionError("del")},
		{"reader", "EVAL|" + body + "|1|lock:a", formatPermissionError("eval")},
		{"reader", "EVALSHA e0e1f9fabfc9d4800c877a703b823ac0578ff8db 1 lock:a", formatPermissionError("evalsha")},
		{"reader", "FCALL f 1 lock:a", "ERR 'fcall' cannot run on lock key 'lock:a'"},
		{"reader", "LOCK lock:a t PX 60000", formatPermissionError("set")},
		{"reader", "LOCK a t PX 60000", formatPermissionError("set")},
		{"reader", "UNLOCK lock:a t", formatPermissionError("del")},
		{"reader", "EXTEND lock:a t PX 60000", formatPermissionError("pexpire")},
		{"reader", "DELIFEQ lock:a t", formatPermissionError("del")},
		{"reader", "GETEX lock:a PX 1", formatPermissionError("getex")},
		{"reader", "GET lock:a", "nil"},
		{"reader", "EXISTS lock:a", "0"},
		{"reader", "EVAL_RO|return redis.call('get',KEYS[1])|1|lock:a", "nil"},
		{"reader", "SCRIPT FLUSH", formatPermissionError("script|flush")},
		{"reader", "PROXY INFO", "# Proxy"},
		{"noeval", "EVAL|" + body + "|1|lock:a", formatPermissionError("eval")},
		{"noeval", "EVAL|" + body + "|0|lock:a", formatPermissionError("eval")},
		{"noeval", "SET lock:n v NX PX 60000", "OK"},
		{"noeval", "DEL lock:n", "1"},
		{"elsewhere", "SET lock:a v", keyPermissionError},
		{"elsewhere", "GET lock:a", keyPermissionError},
		{"elsewhere", "LOCK lock:a t PX 60000", keyPermissionError},
		{"elsewhere", "LOCK app:a t PX 60000", "5"},
		{"elsewhere", "MLOCK 2 app:b app:c t PX 60000", "5"},
		{"elsewhere", "MLOCK 2 app:d lock:a t PX 60000", keyPermissionError},
		{"elsewhere", "MEXTEND 2 app:b lock:a t PX 60000", keyPermissionError},
		{"elsewhere", "MUNLOCK 2 lock:a app:b t", keyPermissionError},
		{"elsewhere", "MUNLOCK 2 app:c app:b t", "2"},
		{"reader", "MLOCK 2 lock:a lock:b t PX 60000", formatPermissionError("set")},
		{"reader", "MUNLOCK 1 lock:a t", formatPermissionError("del")},
		{"reader", "MEXTEND 1 lock:a t PX 60000", formatPermissionError("pexpire")},
		{"elsewhere", "MSET lock:b 1 lock:a 2", keyPermissionError},
		{"elsewhere", "EVAL|" + body + "|1|lock:a", keyPermissionError},
		{"elsewhere", "EVAL|return redis.call('set','lock:a','v')|0", scriptKeyError},
		{"elsewhere", "WATCH lock:a", keyPermissionError},
		{"readonlykey", "SET lock:a v", keyPermissionError},
		{"readonlykey", "EVAL|" + body + "|1|lock:a", keyPermissionError},
		{"readonlykey", "EVAL_RO|return redis.call('get',KEYS[1])|1|lock:a", "nil"},
		{"readonlykey", "WATCH lock:a", "OK"},
		// The proxy checks the permission with a script, since the user may not send MULTI.
		{"scripts", "EVAL|" + body + "|1|lock:s", "OK"},
		{"scripts", "EVAL|return redis.call('del',KEYS[1])|1|lock:s", scriptCommandError},
		{"scripts", "SET lock:a v XX", "nil"},
		{"scripts", "DEL lock:s", "NOPERM this user has no permissions to run the 'del' command, or to access"},
		{"scripts", "LOCK other t PX 60000", "NOPERM this user has no permissions to run the 'set' command, or to access"},
		{"nothing", "SET lock:a v", "ERR cannot check this client's permissions: the client may use neither MULTI and DISCARD nor EVAL, which the proxy needs to check permissions: NOPERM"},
		{"nothing", "LOCK lock:a t PX 60000", "ERR cannot check this client's permissions: the client may use neither"},
		{"writer", "LOCK lock:w t PX 60000", "5"},
		{"writer", "EXTEND lock:w t PX 60000", "5"},
		{"writer", "UNLOCK lock:w t", "1"},
		{"writer", "PROXY INFO", formatPermissionError("info")},
	} {
		client := r.login(t, c.user)
		if got := kit.ReplyText(kit.Do(t, client, splitCommand(c.command)...)); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %s: %q, want %q", c.user, c.command, got, c.want)
		}
		// The client's connection still works, and receives its own replies.
		kit.WantPrefix(t, client, "AUTH default x", "OK")
		kit.WantPrefix(t, client, "ECHO here", "here")
	}
	r.wantAbsent(t, "lock:a")
	r.wantAbsent(t, "a")
}

func splitCommand(command string) []string {
	if strings.Contains(command, "|") && !strings.HasPrefix(command, "SCRIPT") {
		return strings.Split(command, "|")
	}
	return strings.Fields(command)
}

// TestRightsInTransactions checks permissions in a transaction, under WATCH, in pipelines, and of
// another user on the same connection.
func TestRightsInTransactions(t *testing.T) {
	redistest.RequireFeature(t, "redis.acl_check_cmd", "7.0")
	t.Parallel()
	r := startRestricted(t, "reader on >x ~* +@read +@connection +@transaction", "writer on >x ~* +@all -@admin")
	client := r.login(t, "reader")
	for _, step := range [][2]string{
		{"MULTI", "OK"}, {"GET lock:a", "QUEUED"}, {"SET lock:a v", formatPermissionError("set")}, {"EXEC", "EXECABORT"},
		{"MULTI", "OK"}, {"SET lock:a v", formatPermissionError("set")}, {"GET lock:a", "QUEUED"}, {"EXEC", "EXECABORT"},
		{"WATCH lock:a", "OK"}, {"MULTI", "OK"}, {"DEL lock:a", formatPermissionError("del")}, {"EXEC", "EXECABORT"},
		{"WATCH data", "OK"}, {"SET lock:a v", formatPermissionError("set")}, {"SET lock:new v",
			"ERR cannot check this client's permissions: the client may use neither"}, {"UNWATCH", "OK"},
		{"AUTH writer x", "OK"}, {"SET lock:t v PX 60000", "OK"}, {"AUTH reader wrong", "WRONGPASS"},
		{"SET lock:t w", "OK"},
		{"AUTH reader x", "OK"}, {"SET lock:t x", formatPermissionError("set")}, {"GET lock:t", "w"},
		{"MULTI", "OK"}, {"AUTH writer x", "QUEUED"}, {"EXEC", "[OK]"}, {"SET lock:t x", "OK"},
		{"MULTI", "OK"}, {"AUTH reader x", "QUEUED"}, {"DISCARD", "OK"}, {"SET lock:t y", "OK"},
		{"HELLO 3 AUTH reader x", "map["}, {"SET lock:t z", formatPermissionError("set")}, {"LOCK a t PX 60000", formatPermissionError("set")},
		// The proxy checks the permission for the SET with a script.
		{"HELLO 2 AUTH writer x", "[server"}, {"WATCH data", "OK"}, {"SET lock:t z", "OK"},
		{"RESET", "RESET"}, {"SET lock:t 1", "OK"}, {"DEL lock:t", "1"},
	} {
		kit.WantPrefix(t, client, step[0], step[1])
	}
	r.wantAbsent(t, "lock:a")

	for _, step := range [][2]string{{"AUTH writer x", "OK"}, {"WATCH data", "OK"}, {"SET lock:u v PX 60000", "OK"}} {
		kit.WantPrefix(t, client, step[0], step[1])
	}
	kit.WantPrefix(t, r.admin, "SET data changed", "OK")
	// The permission check did not end the WATCH.
	for _, step := range [][2]string{{"MULTI", "OK"}, {"SET data mine", "QUEUED"}, {"EXEC", "nil"}, {"DEL data", "1"}} {
		kit.WantPrefix(t, client, step[0], step[1])
	}

	kit.WantPrefix(t, client, "AUTH reader x", "OK")
	var sent []byte
	for range 50 {
		sent = redistest.AppendCommand(sent, "SET", "lock:a", "v")
		sent = redistest.AppendCommand(sent, "GET", "lock:a")
		sent = redistest.AppendCommand(sent, "GET", "data")
	}
	kit.Must(t, client.Send(sent))
	for i := range 150 {
		got, err := client.Receive()
		kit.Must(t, err)
		if want := []string{formatPermissionError("set"), "nil", "nil"}[i%3]; kit.ReplyText(got) != want {
			t.Fatalf("%d: %v, want %s", i, got, want)
		}
	}
}

// TestForgedReplies checks that the proxy does not confuse replies. The upstream refuses a client's
// CLIENT REPLY OFF, and sends replies that the proxy does not expect. The proxy must not treat
// these replies as the replies to its own commands.
func TestForgedReplies(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	r := startRestricted(t, "forger on >x ~app:* +@all -client -acl -@admin")
	// slowScript returns a command of 64 KB. Redis reads 16 KB at a time, so it runs the command
	// after the proxy has sent its next own command.
	slowScript := func(text string) []string {
		return []string{"EVAL", "for i = 1, 2e7 do end return {ok='" + text + "'}", "0", strings.Repeat("x", 64<<10)}
	}
	for _, forgedReplies := range [][][]string{
		{slowScript("OK"), slowScript("OK"), slowScript("QUEUED"), slowScript("OK")}, {slowScript("OK"), slowScript("QUEUED"), slowScript("OK")},
	} {
		client := r.login(t, "forger")
		kit.WantPrefix(t, client, "SET lock:a forged", keyPermissionError)
		kit.Must(t, client.Close())
		client = r.login(t, "forger")
		sent := redistest.AppendCommand(nil, "CLIENT", "REPLY", "OFF")
		for _, words := range append(forgedReplies, []string{"SET", "lock:a", "forged"}, []string{"SET", "lock:a", "forged"}) {
			sent = redistest.AppendCommand(sent, words...)
		}
		kit.Must(t, client.Send(sent))
		kit.Must(t, client.CloseWrite())
		_, err := client.ReceiveAll()
		kit.Must(t, err)
		kit.Await(t, "the end of what it sent", func() bool {
			return !strings.Contains(kit.ReplyText(kit.Do(t, r.admin,
				"CLIENT", "LIST")), "user=forger")
		})
	}
	r.wantAbsent(t, "lock:a")
}

// TestRightsChange checks that permissions changed at the upstream soon apply at the proxy, too.
func TestRightsChange(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	r := startRestricted(t, "app on >x ~lock:* +@all -@admin")
	client, defaultClient := r.login(t, "app"), kit.Dial(t, r.proxy.Addr())
	kit.WantPrefix(t, client, "SET lock:a v PX 60000", "OK")
	kit.WantPrefix(t, defaultClient, "SET lock:b v PX 60000", "OK")
	kit.WantPrefix(t, r.admin, "ACL SETUSER app -set", "OK")
	kit.Await(t, "the right to be taken", func() bool {
		return kit.ReplyText(kit.Do(t, client, "SET", "lock:a",
			"w")) == formatPermissionError("set")
	})
	kit.WantPrefix(t, client, "DEL lock:a", "1")
	kit.WantPrefix(t, r.admin, "ACL SETUSER app +set", "OK")
	kit.Await(t, "the right to be given", func() bool {
		return kit.ReplyText(kit.Do(t, client, "SET", "lock:a", "w", "PX",
			"60000")) == "OK"
	})
	kit.WantPrefix(t, r.admin, "ACL SETUSER default -set -lpush", "OK")
	kit.Await(t, "the right of everybody to be taken", func() bool {
		return kit.ReplyText(kit.Do(t, defaultClient, "SET", "lock:b",
			"w")) == formatPermissionError("set")
	})
	kit.WantPrefix(t, defaultClient, "EVAL|redis.call('lpush','l','v') return redis.call('del',KEYS[1])|1|lock:b", scriptCommandError)
	kit.WantPrefix(t, defaultClient, "LOCK k t PX 60000", formatPermissionError("set"))
	// The right may have been taken before the first SET.
	if got := kit.ReplyText(kit.Do(t, defaultClient, "GET", "lock:b")); got != "w" && got != "v" {
		t.Errorf("GET lock:b: %q", got)
	}
}

// TestLoginOfUncheckedClient checks that no failure of the upstream admits a client that has
// not logged in.
func TestLoginOfUncheckedClient(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	masters := kit.StartMasters(t)
	lockClient := kit.Dial(t, kit.StartProxy(t, redistest.URLs(masters), "--lock-keys", "lock:*").Addr())
	kit.WantPrefix(t, lockClient, "SET lock:v theirs PX 600000", "OK")
	for _, c := range []struct {
		name, want    string
		args          []string
		breakUpstream func(t *testing.T, upstream *redistest.Server)
	}{
		{"down at the start", permissionCheckError, []string{"--requirepass", "secret"},
			func(t *testing.T, u *redistest.Server) { kit.Must(t, u.Kill()) }},
		{"full", permissionCheckError, []string{"--requirepass", "secret", "--maxclients", "2"},
			func(t *testing.T, u *redistest.Server) {
				for range 2 {
					kit.WantPrefix(t, kit.Dial(t, u.Addr()), "AUTH secret", "OK")
				}
			}},
		{"hung", permissionCheckError, []string{"--requirepass", "secret"}, func(t *testing.T,
			u *redistest.Server) {
			kit.Must(t, u.Pause())
		}},
		{"NOPERM", "ERR cannot check this client's permissions: the client may use neither",
			[]string{"--user", "default", "on", "nopass", "-@all"}, func(*testing.T, *redistest.Server) {}},
		{"protected", loginError, []string{"--requirepass", "secret"}, func(*testing.T, *redistest.Server) {}},
	} {
		t.Run(c.name, func(t *testing.T) {
			upstream := startRedisWithUsers(t, c.args...)
			c.breakUpstream(t, upstream)
			args := kit.LockKeyArgs(upstream)
			if c.want == permissionCheckError { // the others must answer, even on a busy machine
				args = append(args, "--upstream-timeout", "300ms")
			}
			proxy := kit.StartProxy(t, redistest.URLs(masters), args...)
			client := kit.Dial(t, proxy.Addr())
			for _, command := range []string{"DEL lock:v", "LOCK k t PX 60000", "UNLOCK lock:v theirs", "SCRIPT FLUSH",
				"PROXY INFO", "EVAL|return redis.call('del','lock:v')|0"} {
				want := c.want
				// Redis sends an error and closes the connection, so the cause varies.
				if c.name == "full" {
					want = "ERR cannot check this client's permissions: "
				}
				if got := kit.ReplyText(kit.Do(t, client, splitCommand(command)...)); !strings.HasPrefix(got, want) &&
					!strings.HasPrefix(got, "NOPERM") && !strings.HasPrefix(got, "ERR max number of clients") {
					t.Errorf("%s: %s, want %s", command, got, want)
				}
				_ = client.Close()
				client = kit.Dial(t, proxy.Addr())
			}
			kit.WantPrefix(t, lockClient, "GET lock:v", "theirs")
		})
	}
}

// startRedisWithUsers starts a Redis, and then sets its users, so that it may refuse PING.
func startRedisWithUsers(t *testing.T, args ...string) *redistest.Server {
	t.Helper()
	if len(args) == 0 || args[0] != "--user" {
		return kit.StartRedis(t, args...)
	}
	server := kit.StartRedis(t)
	kit.WantPrefix(t, kit.Dial(t, server.Addr()), "ACL SETUSER "+strings.Join(args[1:], " "), "OK")
	return server
}

// TestLoginWhileUpstreamDown checks that a client gets errors if the upstream has been down since
// the proxy started. When the upstream is back, the client can continue. When the upstream is down
// again, clients can continue, because the proxy has seen that the upstream is open to all clients.
func TestLoginWhileUpstreamDown(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	masters, upstream := kit.StartMasters(t), kit.StartRedis(t)
	kit.Must(t, upstream.Kill())
	proxy := kit.StartProxy(t, redistest.URLs(masters), "--upstream", upstream.URL(), "--lock-keys", "lock:*")
	earlyClient := kit.Dial(t, proxy.Addr())
	kit.WantPrefix(t, earlyClient, "LOCK k t PX 60000", permissionCheckError)
	kit.Must(t, upstream.Restart())
	kit.Await(t, "the upstream to be back", func() bool {
		return kit.ReplyText(kit.Do(t, earlyClient, "SET", "lock:a", "v", "PX",
			"60000")) == "OK"
	})
	awaitLog(t, proxy, "upstream up")
	knownClient := kit.Dial(t, proxy.Addr())
	kit.WantPrefix(t, knownClient, "GET lock:a", "v")
	kit.Must(t, upstream.Kill())
	kit.WantPrefix(t, knownClient, "DEL lock:a", "1")
	// The proxy has seen that the upstream is open to all clients.
	kit.WantPrefix(t, kit.Dial(t, proxy.Addr()), "LOCK k t PX 60000", "5")
}

// awaitLog waits for a line in the proxy's log.
func awaitLog(t *testing.T, proxy *harness.Proxy, text string) {
	t.Helper()
	_, err := proxy.WaitLog(text, kit.WaitLimit)
	kit.Must(t, err)
}

// TestLoginDuringUpstreamHang covers an upstream that hangs. A client that has logged in can
// use a lock key for which the proxy knows its permissions. A client that has not logged in is
// refused. When the upstream continues, clients can log in again.
func TestLoginDuringUpstreamHang(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	r := startRestricted(t, "app on >x ~lock:* +@all -@admin", "default -@all")
	// The proxy forgets the permissions when the upstream answers a probe. If an answer comes
	// between the first SET and the pause, the proxy refuses the client, and the test tries again.
	// The client is never idle, because the proxy also forgets the permissions of idle clients.
	const tries = 5
	for try := 1; ; try++ {
		client := r.login(t, "app")
		kit.WantPrefix(t, client, "SET lock:a v PX 60000", "OK")
		kit.Must(t, r.upstream.Pause())
		reply := ""
		kit.Await(t, "the upstream is down", func() bool {
			isDown := r.hasLogged("upstream down", try)
			reply = kit.ReplyText(kit.Do(t, client, "SET", "lock:a", "w", "PX", "60000"))
			return isDown || reply != "OK"
		})
		if reply == "OK" {
			break
		}
		if !strings.HasPrefix(reply, permissionCheckError) || try == tries {
			t.Fatalf("SET of a client that has logged in, in try %d: %s", try, reply)
		}
		kit.Await(t, "the upstream is down", func() bool { return r.hasLogged("upstream down", try) })
		kit.Must(t, r.upstream.Continue())
		kit.Await(t, "the upstream is up", func() bool { return r.hasLogged("upstream up", 1+try) })
	}
	kit.WantPrefix(t, kit.Dial(t, r.proxy.Addr()), "SET lock:a x", permissionCheckError)
	kit.Must(t, r.upstream.Continue())
	kit.Await(t, "the upstream to be back", func() bool {
		otherClient := kit.Dial(t, r.proxy.Addr())
		defer otherClient.Close()
		return kit.ReplyText(kit.Do(t, otherClient, "AUTH", "app", "x")) == "OK" &&
			kit.ReplyText(kit.Do(t, otherClient, "SET", "lock:a", "v", "PX", "60000")) == "OK"
	})
}

// hasLogged reports whether the proxy has logged a message at least the given number of times.
func (r *restrictedRig) hasLogged(message string, times int) bool {
	return strings.Count(r.proxy.Log(), `msg="`+message+`"`) >= times
}
