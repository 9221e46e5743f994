package proxy_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"redlock-proxy/commands"
	"redlock-proxy/commands/auth/users"
	"redlock-proxy/internal/redistest"
	"redlock-proxy/proxy"
)

// Errors of Redis.
const (
	wrongPass = "-WRONGPASS invalid username-password pair or user is disabled.\r\n"
	noKey     = "-NOPERM this user has no permissions to access one of the keys used as arguments\r\n"
	noChannel = "-NOPERM this user has no permissions to access one of the channels used as arguments\r\n"
	noEval    = "-NOPERM this user has no permissions to run the 'eval' command at the upstream: the proxy cannot check what a script does there; the user needs ~* &* +@all\r\n"
)

func noPermission(command string) string {
	return "-NOPERM this user has no permissions to run the '" + command + "' command\r\n"
}

// testUsers is a file of users in which default has to log in.
const testUsers = `user default on >sesame ~* &* +@all
user app on >wonder ~app:* ~lock:* &app.* +@all -@dangerous -@admin +sort
user ro on >read %R~app:* +@read +@connection +select -set +multi +exec
user root on >root ~* &* +@all
user ann off >ann +@all
user wo on >write %W~lock:* +@all
`

// newUsersFile returns the users of a file, and a function that replaces the file's text.
func newUsersFile(t *testing.T, text string) (fileUsers *users.Users, write func(text string)) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "users.acl")
	write = func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(text)
	fileUsers, err := users.Load(path, commands.Catalog(), slog.New(slog.NewTextHandler(testLog{t}, nil)))
	if err != nil {
		t.Fatal(err)
	}
	return fileUsers, write
}

// startWithUsers starts a proxy with its own users, in front of a redis-server that accepts none of
// their logins.
func startWithUsers(
	t *testing.T, text string,
) (r *testProxy, server *redistest.Server, fileUsers *users.Users, write func(string)) {
	t.Helper()
	server = startRedis(t, "--requirepass", "secret", "--user", "gate", "on", ">hidden", "~*", "&*", "+@all", "--user",
		"bob", "on", ">b", "~*", "+@all")
	fileUsers, write = newUsersFile(t, text)
	return startProxyWith(t, "redis://gate:hidden@"+server.Addr()+"/5", proxy.Options{Users: fileUsers}, []string{"lock:*"}),
		server, fileUsers, write
}

// TestUserLoginRequired checks that clients get nothing before the login. Only logins in the file
// are valid, not logins at the upstream.
func TestUserLoginRequired(t *testing.T) {
	r, server, _, _ := startWithUsers(t, testUsers)
	for _, line := range []string{
		"GET a", "get a\r\n", "CONFIG GET requirepass", "LOCK k t PX 1000", "SET lock:a v", "EVAL x 0", "MULTI", "EXEC",
		"WATCH a", "SUBSCRIBE c", "MONITOR", "PING",
		"SELECT 0", "CLIENT ID", "CLIENT REPLY OFF", "INFO", "COMMAND", "PROXY INFO", "SCRIPT FLUSH", "SYNC",
		"SHUTDOWN", "ACL WHOAMI", "ACL LOAD", "NONSENSE", "SET a " + strings.Repeat("x", 3<<20),
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
	for _, c := range []exchange{
		{"AUTH", "-ERR wrong number of arguments for 'auth' command\r\n"}, {"AUTH a b c", "-ERR syntax error\r\n"},
		{"AUTH secret", wrongPass}, {"AUTH gate hidden", wrongPass}, {"AUTH bob b", wrongPass},
		{"AUTH app wrong", wrongPass}, {"AUTH ann ann", wrongPass},
		{"HELLO", helloNoAuthReply}, {"HELLO 3", helloNoAuthReply}, {"HELLO 3 SETNAME AUTH", helloNoAuthReply},
		{"HELLO 3 AUTH app wrong", wrongPass}, {"HELLO 3 AUTH bob b", wrongPass},
		{"HELLO 9 AUTH app wonder", "-NOPROTO unsupported protocol version\r\n"},
		{"HELLO x", "-ERR Protocol version is not an integer or out of range\r\n"},
		{"HELLO 3 AUTH app", "-ERR Syntax error in HELLO option 'AUTH'\r\n"},
		{"HELLO 3 AUTH app wonder AUTH bob b", "-ERR Syntax error in HELLO option 'AUTH'\r\n"},
		{"RESET", "+RESET\r\n"},
	} {
		r.connect().runExchanges([]exchange{c, {"GET a", noAuth}, {"LOCK k t PX 1000", noAuth}})
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

// TestRightsOfUsers checks that a client has the rights of the user that it logged in as, for every
// kind of command. Commands without permission are not run.
func TestRightsOfUsers(t *testing.T) {
	r, server, _, _ := startWithUsers(t, testUsers)
	app := []exchange{{"AUTH app wonder", ok}, {"ACL WHOAMI", bulk("app")}}
	asApp := func(exchanges ...exchange) []exchange { return append(append([]exchange{}, app...), exchanges...) }
	for name, script := range map[string][]exchange{
		"commands": asApp(exchange{"SET app:a 1", ok}, exchange{"GET app:a", bulk("1")}, exchange{"GET b", noKey},
			exchange{"MGET app:a b", noKey}, exchange{"DEL app:a", ":1\r\n"},
			exchange{"FLUSHALL", noPermission("flushall")}, exchange{"KEYS *", noPermission("keys")},
			exchange{"CONFIG GET requirepass", noPermission("config|get")}, exchange{"NOSUCH a", noPermission("nosuch")},
			exchange{"FLUSHALL\x00x", noPermission("flushall")}, exchange{"CLIENT LIST", noPermission("client|list")},
			exchange{"PING", "+PONG\r\n"}),
		"locks": asApp(exchange{"LOCK lock:k t PX 1000", ":1000\r\n"}, exchange{"LOCK other t PX 1000", noKey},
			exchange{"MLOCK 2 lock:m other t PX 1000", noKey}, exchange{"MUNLOCK 2 lock:m other t", noKey},
			exchange{"MEXTEND 2 other lock:m t PX 1000", noKey}, exchange{"MLOCK 1 lock:m t PX 1000", ":1000\r\n"},
			exchange{"MUNLOCK 1 lock:m t", ":1\r\n"},
			exchange{"LOCKINFO other", noKey}, exchange{"FORCEUNLOCK lock:k", noPermission("forceunlock")},
			exchange{"LOCKLIST", noPermission("locklist")}, exchange{"PROXY INFO", noPermission("proxy")},
			exchange{"UNLOCK lock:k t", ":1\r\n"}),
		"lock keys": asApp(exchange{"SET lock:a v NX PX 1000", ok}, exchange{"GET lock:a", bulk("v")},
			exchange{"EVAL return(redis.call('get',KEYS[1])) 1 lock:a", bulk("v")},
			exchange{"EVAL return(1) 1 lockx", noKey}, exchange{"DEL lock:a", ":1\r\n"}, exchange{"MULTI", ok},
			exchange{"SET lock:a v", queued}, exchange{"GET b", noKey}, exchange{"EXEC", execAbort}),
		"scripts at the upstream": asApp(exchange{"EVAL return(1) 1 app:a", noEval},
			exchange{"EVAL return(1) 0", noEval}, exchange{"MULTI", ok}, exchange{"SET app:q 1", queued},
			exchange{"EVAL return(1) 1 app:a", noEval}, exchange{"EXEC", execAbort},
			exchange{"GET app:q", "$-1\r\n"}),
		"transactions": asApp(exchange{"MULTI", ok}, exchange{"SET app:q 1", queued}, exchange{"SET b 1", noKey},
			exchange{"EXEC", execAbort}, exchange{"MULTI", ok},
			exchange{"ACL WHOAMI",
				"-ERR ACL inside MULTI is not allowed: the proxy runs it at once, so it cannot be part of a transaction; send it before MULTI or after EXEC\r\n"}, exchange{"EXEC", execAbort},
			exchange{"MULTI", ok}, exchange{"AUTH root root",
				"-ERR AUTH inside MULTI is not allowed: the proxy runs it at once, so it cannot be part of a transaction; send it before MULTI or after EXEC\r\n"}, exchange{"EXEC", execAbort}, exchange{"ACL WHOAMI", bulk("app")}, exchange{"GET app:q", "$-1\r\n"}, exchange{"WATCH b", noKey}),
		"channels": asApp(exchange{"PUBLISH app.y m", ":0\r\n"}, exchange{"PUBLISH x m", noChannel},
			exchange{"SUBSCRIBE x", noChannel}, exchange{"PSUBSCRIBE app.x*", noChannel},
			exchange{"SUBSCRIBE app.x", "*3\r\n$9\r\nsubscribe\r\n$5\r\napp.x\r\n:1\r\n"}),
		"sort": asApp(exchange{"SORT app:a BY w_*",
			"-ERR BY option of SORT denied due to insufficient ACL permissions.\r\n"}, exchange{"SORT app:a", "*0\r\n"},
			exchange{"SORT app:a STORE b", noKey}),
		"long": asApp(exchange{"SET b " + strings.Repeat("x", 3<<20), noKey},
			exchange{"SET app:long " + strings.Repeat("x", 3<<20), ok}, exchange{"STRLEN app:long", ":3145728\r\n"},
			exchange{"FLUSHALL " + strings.Repeat("x", 3<<20), noPermission("flushall")},
			exchange{"AUTH root " + strings.Repeat("x", 3<<20), "-ERR command too long: commands that the proxy itself runs are limited to 1048576 bytes\r\n"},
			exchange{"HELLO 2 SETNAME " + strings.Repeat("x", 3<<20) + " AUTH bob b", "-ERR command too long: commands that the proxy itself runs are limited to 1048576 bytes\r\n"},
			exchange{"DEL app:long", ":1\r\n"}),
		"read only": {{"AUTH ro read", ok}, {"GET app:a", "$-1\r\n"}, {"SET app:a 1", noPermission("set")},
			{"LOCK app:a t PX 1000", noPermission("lock")}, {"LOCKINFO lock:a", noKey}, {"ACL WHOAMI", noPermission("acl|whoami")},
			{"ACL LIST", noPermission("acl|list")}},
		"write only": {{"AUTH wo write", ok}, {"SET lock:wo v PX 1000", ok}, {"GET lock:wo", noKey},
			{"SET lock:wo v GET", noKey}, {"SET lock:wo v IFEQ v", noKey}, {"SET lock:wo v IFNE x PX 1000", noKey},
			{"DEL lock:wo", ":1\r\n"}},
		"changing who one is": asApp(exchange{"AUTH bob b", wrongPass}, exchange{"ACL WHOAMI", bulk("app")},
			exchange{"AUTH root root", ok}, exchange{"SET b 1", ok}, exchange{"GET b", bulk("1")},
			exchange{"DEL b", ":1\r\n"}, exchange{"RESET", "+RESET\r\n"}, exchange{"GET b", noAuth},
			exchange{"AUTH sesame", ok}, exchange{"ACL WHOAMI", bulk("default")}, exchange{"GET b", "$-1\r\n"},
			exchange{"RESET", "+RESET\r\n"}, exchange{"AUTH app wonder", ok}, exchange{"GET app:a", "$-1\r\n"}),
	} {
		t.Run(name, func(t *testing.T) {
			p := r.connect()
			p.T = t
			p.runExchanges(script)
			oneByOne := r.connect()
			oneByOne.T = t
			for _, e := range script {
				oneByOne.check(e.sent, e.want)
			}
		})
	}
	direct := dial(t, server.Addr())
	direct.runExchanges([]exchange{{"AUTH secret", ok}, {"SELECT 5", ok}, {"DBSIZE", ":0\r\n"}})
	p := r.connect()
	p.send(lines("HELLO 3 AUTH app wonder SETNAME me"))
	if hello := p.readReply(); !strings.HasPrefix(hello, "%7\r\n") {
		t.Fatalf("HELLO: %q", hello)
	}
	p.runExchanges([]exchange{{"CLIENT GETNAME", bulk("me")}, {"ACL WHOAMI", bulk("app")}, {"GET app:none", "_\r\n"},
		{"GET b", noKey}})
}

// TestOpenDefaultUser checks that an open default user needs no login, and that RESET returns to
// it. The connection to the upstream then belongs to its URL's user again.
func TestOpenDefaultUser(t *testing.T) {
	r, _, _, _ := startWithUsers(t, "user default on nopass ~pub:* +get +@connection\nuser root on >root ~* &* +@all\n")
	r.connect().runExchanges([]exchange{
		{"GET pub:a", "$-1\r\n"}, {"GET a", noKey}, {"AUTH x",
			"-ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?\r\n"},
		{"AUTH default whatever", ok}, {"AUTH root root", ok}, {"SET a 1", ok}, {"GET a", bulk("1")},
		{"RESET", "+RESET\r\n"}, {"GET a", noKey}, {"GET pub:a", "$-1\r\n"},
		{"RESET", "+RESET\r\n"}, {"AUTH root root", ok}, {"SELECT 5", ok}, {"DEL a", ":1\r\n"},
		{"ACL SETUSER x on",
			"-ERR commands cannot change users: this proxy reads them from its acl-file; change the file, then reload it by ACL LOAD or SIGHUP\r\n"},
	})
}

// TestUsersAreReloaded checks that a reloaded file applies immediately, also to connected clients.
// Rights change, and a client whose login is no longer valid is disconnected, even if it is idle. A
// transaction that began before the reload fails, and a nested MULTI does not change that. A file
// with a mistake changes nothing.
func TestUsersAreReloaded(t *testing.T) {
	r, _, fileUsers, write := startWithUsers(t, testUsers)
	root, app, removed, idle, subscriber := r.connect(), r.connect(), r.connect(), r.connect(), r.connect()
	root.check("AUTH root root", ok)
	app.runExchanges([]exchange{{"AUTH app wonder", ok}, {"SET app:a 1", ok}, {"MULTI", ok}, {"SET app:b 1", queued}})
	removed.runExchanges([]exchange{{"AUTH ro read", ok}, {"GET app:a", bulk("1")}})
	idle.check("AUTH app wonder", ok)
	nested := r.connect()
	nested.runExchanges([]exchange{{"AUTH app wonder", ok}, {"MULTI", ok}, {"SET app:n 1", queued}})
	subscriber.runExchanges([]exchange{{"AUTH app wonder", ok}, {"SUBSCRIBE app.x",
		"*3\r\n$9\r\nsubscribe\r\n$5\r\napp.x\r\n:1\r\n"}})

	write(strings.Replace(testUsers, "~app:*", "~app:* +nosuch", 1))
	if got := root.ask("ACL LOAD"); !strings.Contains(got,
		"users.acl:2: Error in applying operation '+nosuch': Unknown command or category name in ACL. WARNING: ACL errors detected, no change to the previously active ACL rules was performed") {
		t.Errorf("ACL LOAD: %q", got)
	}
	idle.check("GET app:a", bulk("1"))

	write("user default off\nuser root on >root ~* &* +@all\nuser app on >new >wonder ~other:* +@all -@dangerous\n")
	root.check("ACL LOAD", ok)
	removed.expectAll("")    // its user was removed
	subscriber.expectAll("") // its user may no longer subscribe to the channel
	idle.runExchanges([]exchange{{"GET app:a", noKey}, {"GET other:a", "$-1\r\n"}})
	app.runExchanges([]exchange{{"EXEC", execAbort}, {"GET other:b", "$-1\r\n"}, {"MULTI", ok}, {"SET other:b 1", queued},
		{"EXEC", "*1\r\n" + ok}})
	const nestedMulti = "-ERR MULTI calls can not be nested\r\n"
	nested.runExchanges([]exchange{{"MULTI", nestedMulti}, {"EXEC", execAbort}, {"MULTI", ok}, {"MULTI", nestedMulti},
		{"SET other:n 1", queued}, {"EXEC", "*1\r\n" + ok}})
	r.connect().runExchanges([]exchange{{"AUTH ro read", wrongPass}, {"AUTH app new", ok}, {"AUTH app wonder", ok}})

	write("user default off\nuser root on >root ~* &* +@all\nuser app on >new ~other:* +@all -@dangerous\n")
	if err := fileUsers.Reload(); err != nil {
		t.Fatal(err)
	}
	idle.expectAll("") // its password was removed
	root.check("GET app:a", bulk("1"))
	root.check("DEL app:a app:b app:n", ":1\r\n")
}

// TestUsersOfALockServer checks that a lock server has users, too.
func TestUsersOfALockServer(t *testing.T) {
	fileUsers,
		write := newUsersFile(t,
		"user default off\nuser app on >wonder ~lock:* +@all -@dangerous\nuser root on >root ~* &* +@all\nuser scripts on >s ~lock:* +eval +get +multi +exec +set\n")
	r := &testProxy{T: t, locks: newMemoryLocks(), serveDone: make(chan struct{})}
	r.server = proxy.NewServer(proxy.Options{Users: fileUsers, Table: commands.NewTable(commands.Options{
		Locks: memoryLocker{r.locks}, Register: r.locks, LockKeys: []string{"lock:*", "more:*"},
		Settings: commands.Settings{MaxTTL: time.Hour}, Users: fileUsers,
	})})
	r.server.SetNow(frozenClock())
	r.serve(listen(t))
	for _, line := range []string{"LOCK lock:a t PX 1000", "PING", "NOSUCH", "MULTI", "GET lock:a", "COMMAND",
		"ACL WHOAMI", "SET lock:a " + strings.Repeat("x", 3<<20)} {
		r.connect().runExchanges([]exchange{{line, noAuth}, {"AUTH app wrong", wrongPass}})
	}
	r.connect().runExchanges([]exchange{{"HELLO 3", helloNoAuthReply}, {"RESET", "+RESET\r\n"}, {"QUIT", ok}})
	early := r.connect() // the limit also applies to bytes that arrive together
	early.send(cmd("AUTH a b c d e f g h i j"))
	early.expectAll("-ERR Protocol error: unauthenticated multibulk length\r\n")
	r.connect().runExchanges([]exchange{
		{"AUTH app wonder", ok}, {"ACL WHOAMI", bulk("app")}, {"LOCK lock:a t PX 1000", ":1000\r\n"},
		{"LOCK b t PX 1000", noKey}, {"FORCEUNLOCK lock:a", noPermission("forceunlock")}, {"UNLOCK lock:a t", ":1\r\n"},
		{"MULTI", ok}, {"SET more:a v", noKey}, {"EXEC", execAbort}, {"MULTI", ok},
		{"AUTH root root",
			"-ERR 'AUTH' cannot be part of a transaction on lock keys: it is not a command on lock keys; send it before MULTI or after EXEC\r\n"},
		{"EXEC", execAbort},
		{"RESET", "+RESET\r\n"}, {"GET lock:a", noAuth}, {"AUTH root root", ok}, {"GET more:a", "$-1\r\n"},
		{"ACL USERS", "*4\r\n" + bulk("app") + bulk("default") + bulk("root") + bulk("scripts")},
	})
	p := r.connect()
	p.runExchanges([]exchange{{"AUTH scripts s", ok}, {"SET lock:a v", ok},
		{"EVAL return(redis.call('get','lock:a')) 1 lock:a", bulk("v")}})
	for script, want := range map[string]string{
		"EVAL return(redis.call('del',KEYS[1])) 1 lock:a":  "-ERR The user executing the script can't run this command or subcommand",
		"EVAL return(redis.call('get','more:a')) 1 lock:a": "-ERR The user executing the script can't access at least one of the keys mentioned in the command arguments",
	} {
		if got := p.ask(script); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q", script, got)
		}
	}
	p.check("GET lock:a", bulk("v"))
	write("user default off\n")
	if err := fileUsers.Reload(); err != nil {
		t.Fatal(err)
	}
	p.expectAll("")
}

// TestGuessingIsSlow checks that a client that guesses passwords is slowed down, and that other
// clients are not.
func TestGuessingIsSlow(t *testing.T) {
	r, _, _, _ := startWithUsers(t, testUsers)
	p := r.connect()
	began := time.Now()
	for range 6 {
		p.check("AUTH app guess", wrongPass)
	}
	if took := time.Since(began); took < 500*time.Millisecond {
		t.Errorf("6 guesses took %v", took)
	}
	other := r.connect()
	other.check("AUTH root root", ok)
	p.check("AUTH app wonder", ok)
}
