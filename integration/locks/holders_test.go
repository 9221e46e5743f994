//go:build integration

package locks

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/harness"
	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// toFields converts a flat array of names and values to a map.
func toFields(t *testing.T, reply any) map[string]any {
	t.Helper()
	list, ok := reply.([]any)
	if !ok || len(list)%2 != 0 {
		t.Fatalf("got %#v, want fields", reply)
	}
	result := map[string]any{}
	for i := 0; i < len(list); i += 2 {
		result[fmt.Sprint(list[i])] = list[i+1]
	}
	return result
}

// lockInfo returns the fields of LOCKINFO for a key.
func lockInfo(t *testing.T, client *redistest.Client, key string) map[string]any {
	t.Helper()
	return toFields(t, kit.Do(t, client, "LOCKINFO", key))
}

// countVotes returns the number of masters that report the given state of a lock, according to
// LOCKINFO.
func countVotes(t *testing.T, info map[string]any, state string) (n int) {
	t.Helper()
	for _, vote := range toFields(t, info["votes"]) {
		if vote == any(state) {
			n++
		}
	}
	return n
}

// wantInfo waits until LOCKINFO has the given state, number of masters that report it, and name of
// the client that took the lock. If name is nil, the reply must have no name.
func wantInfo(t *testing.T, client *redistest.Client, key, state string, votes int, name any) {
	t.Helper()
	kit.AwaitShortly(t, func() error {
		info := lockInfo(t, client, key)
		voteState := map[string]string{"free": "free"}[state]
		if voteState == "" {
			voteState = "held"
		}
		hasName := name != nil
		remaining, hasRemaining := info["left"].(int64)
		if info["state"] != any(state) || countVotes(t, info, voteState) != votes || info["name"] != name ||
			(info["since"] != nil) != hasName || (info["addr"] != nil) != hasName || hasRemaining != (state == "held") ||
			hasRemaining && (remaining < 9000 || remaining > 60000) {
			return fmt.Errorf("LOCKINFO %s: %v, want %s on %d, by %v", key, info, state, votes, name)
		}
		return nil
	})
}

// startPair starts five masters and two proxies for them.
func startPair(t *testing.T, args ...string) *kit.Fleet {
	t.Helper()
	f := kit.StartFleet(t, args...)
	f.Proxies = append(f.Proxies, kit.StartProxy(t, redistest.URLs(f.Masters), args...))
	f.WantVoting(t, 5)
	return f
}

func connectAs(t *testing.T, proxy *harness.Proxy, name string) *redistest.Client {
	t.Helper()
	client := kit.Connect(t, proxy)
	kit.WantPrefix(t, client, "CLIENT SETNAME "+name, "OK")
	return client
}

// TestLockInfo checks LOCKINFO during the life of a lock, at two proxies.
func TestLockInfo(t *testing.T) {
	t.Parallel()
	f := startPair(t)
	ann, bob := connectAs(t, f.Proxies[0], "ann"), connectAs(t, f.Proxies[1], "bob")
	wantBothInfo := func(state string, votes int, firstName, secondName any) {
		t.Helper()
		wantInfo(t, ann, "k", state, votes, firstName)
		wantInfo(t, bob, "k", state, votes, secondName)
	}
	wantBothInfo("free", 5, nil, nil)
	kit.WantGrant(t, ann, "LOCK", "k", "secret", "PX", "60000")
	wantBothInfo("held", 5, "ann", nil)
	startedAt := time.UnixMilli(lockInfo(t, ann, "k")["since"].(int64))
	if age := time.Since(startedAt); age < 0 || age > kit.WaitLimit {
		t.Errorf("held since %v", startedAt)
	}
	kit.WantGrant(t, bob, "EXTEND", "k", "secret", "PX", "60000")
	// A ballot extended the lock: no proxy can know that the holder is the same as before.
	wantBothInfo("held", 5, nil, nil)
	kit.StartWaiter(t, f.Proxies[1], "next")
	kit.WantBlocked(t, f.Proxies[1], 1)
	for client, want := range map[*redistest.Client]int64{ann: 0, bob: 1} {
		if got := lockInfo(t, client, "k")["waiters"]; got != any(want) {
			t.Errorf("%v waiters, want %d", got, want)
		}
	}
	for _, client := range []*redistest.Client{ann, bob} {
		for _, command := range []string{"LOCKINFO k", "LOCKLIST"} {
			if got := fmt.Sprint(kit.Do(t, client, strings.Fields(command)...)); strings.Contains(got, "secret") {
				t.Errorf("%s tells the token: %s", command, got)
			}
		}
	}
	// This UNLOCK removes the lock by ballot. Then the waiter holds the lock.
	kit.Want(t, bob, int64(1), "UNLOCK", "k", "secret")
	kit.Await(t, "the waiter has the lock", func() bool { return lockInfo(t, bob, "k")["since"] != nil })
	kit.Want(t, bob, int64(1), "UNLOCK", "k", "next")
	wantBothInfo("free", 5, nil, nil)

	// A new holder with an equal token is a different holder, even in the three seconds for which
	// masters store the removal.
	kit.WantGrant(t, ann, "LOCK", "k", "secret", "PX", "60000")
	kit.Want(t, bob, int64(1), "FORCEUNLOCK", "k")
	kit.WantGrant(t, bob, "LOCK", "k", "secret", "PX", "60000")
	wantBothInfo("held", 5, nil, "bob")
	kit.Want(t, ann, int64(1), "UNLOCK", "k", "secret") // ann's token is equal to bob's

	kit.WantGrant(t, ann, "LOCK", "m", "secret", "PX", "60000")
	kit.Must(t, f.Masters[4].Kill())
	kit.Await(t, "it is seen that a master is down", func() bool {
		return toFields(t, lockInfo(t, bob, "m")["votes"])[f.Masters[4].Addr()] == any("connection refused")
	})
	wantInfo(t, ann, "m", "held", 4, "ann")
	wantInfo(t, bob, "m", "held", 4, nil)
	kit.Must(t, f.Masters[3].Kill())
	kit.Must(t, f.Masters[2].Kill())
	wantInfo(t, ann, "m", "unclear", 2, nil)
	for _, command := range []string{"LOCKLIST", "FORCEUNLOCK m"} {
		kit.WantPrefix(t, ann, command, "NOQUORUM 2 of 5 masters answered, 3 needed: ")
	}
}

// TestForceUnlock checks that FORCEUNLOCK releases a lock, at the proxy that granted it and at
// another proxy.
func TestForceUnlock(t *testing.T) {
	t.Parallel()
	f := startPair(t)
	holder := connectAs(t, f.Proxies[0], "ann")
	for i, proxy := range f.Proxies {
		operator := connectAs(t, proxy, "operator")
		kit.Want(t, operator, int64(0), "FORCEUNLOCK", "k")
		kit.WantGrant(t, holder, "LOCK", "k", "secret", "PX", "60000")
		waiter := kit.StartWaiter(t, f.Proxies[1], "next")
		kit.WantBlocked(t, f.Proxies[1], 1)
		kit.Want(t, operator, int64(1), "FORCEUNLOCK", "k")
		got, err := waiter.Receive()
		kit.Must(t, err)
		if _, granted := got.(int64); !granted {
			t.Fatalf("proxy %d: the waiter got %v", i, got)
		}
		kit.Want(t, holder, int64(0), "UNLOCK", "k", "secret")
		kit.Want(t, holder, nil, "EXTEND", "k", "secret", "PX", "60000")
		kit.Want(t, operator, int64(1), "FORCEUNLOCK", "k")
		kit.Want(t, operator, int64(0), "FORCEUNLOCK", "k")
		kit.EachMaster(t, f.Masters, checkFree)
		kit.Await(t, "each use is logged", func() bool {
			return strings.Count(proxy.Log(), "msg=FORCEUNLOCK key=k db=0 client.addr=") == 4
		})
		if log := proxy.Log(); !strings.Contains(log, "client.name=operator removed=true") ||
			strings.Contains(log, "secret") {
			t.Errorf("the log of proxy %d:\n%s", i, log)
		}
	}
}

// TestForceUnlockWithMastersDown checks that FORCEUNLOCK works while a minority is down.
func TestForceUnlockWithMastersDown(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	f := startPair(t)
	holder, operator := kit.Connect(t, f.Proxies[0]), kit.Connect(t, f.Proxies[1])
	kit.WantGrant(t, holder, "LOCK", "k", "t", "PX", "60000")
	kit.EachMaster(t, f.Masters, func(master *redistest.Server) error { return kit.CheckToken(master, "0", "k", "t") })
	kit.Must(t, f.Masters[0].Kill())
	kit.Must(t, f.Masters[1].Kill())
	kit.Want(t, operator, int64(1), "FORCEUNLOCK", "k")
	kit.Want(t, holder, int64(0), "UNLOCK", "k", "t")
	kit.WantGrant(t, operator, "LOCK", "k", "t", "PX", "60000")
	if info := lockInfo(t, operator, "k"); info["state"] != any("held") || countVotes(t, info, "held") != 3 ||
		info["addr"] == nil || info["name"] != nil {
		t.Errorf("%v", info) // the holder has no name
	}
}

// TestForeignHolder checks that LOCKINFO shows a lock that a client took directly on the masters,
// and that FORCEUNLOCK refuses to release it.
func TestForeignHolder(t *testing.T) {
	t.Parallel()
	f := startPair(t)
	for _, master := range f.Masters {
		kit.Must(t, kit.SendToMaster(master, "SET", "k", "redsync's", "PX", "60000"))
	}
	client := kit.Connect(t, f.Proxies[0])
	wantInfo(t, client, "k", "held", 5, nil)
	kit.WantPrefix(t, client, "FORCEUNLOCK k",
		"ERR cannot change the key: its holder locks on the masters directly, without a proxy; change it on the masters")
}

// lockKeys returns the sorted keys of a LOCKLIST.
func lockKeys(t *testing.T, client *redistest.Client, command string) []string {
	t.Helper()
	reply, isList := kit.Do(t, client, strings.Fields(command)...).([]any)
	if !isList {
		t.Fatalf("%s: %v", command, kit.ReplyText(kit.Do(t, client, strings.Fields(command)...)))
	}
	names := []string{}
	for _, item := range reply {
		entry := toFields(t, item)
		if entry["state"] != any("held") {
			t.Errorf("%s: %v", command, entry)
		}
		names = append(names, fmt.Sprint(entry["key"]))
	}
	slices.Sort(names)
	return names
}

// TestLockList checks that LOCKLIST has the locks of one database, from all proxies, and no other
// keys.
func TestLockList(t *testing.T) {
	t.Parallel()
	f := startPair(t, "--key-prefix", "p[*]:")
	ann, bob := connectAs(t, f.Proxies[0], "ann"), connectAs(t, f.Proxies[1], "bob")
	if got := lockKeys(t, ann, "LOCKLIST"); len(got) != 0 {
		t.Errorf("%q", got)
	}
	var keys []string
	for i := range 130 {
		client := []*redistest.Client{ann, bob}[i%2]
		keys = append(keys, fmt.Sprintf("job:%03d", i))
		kit.WantGrant(t, client, "LOCK", keys[i], "secret", "PX", "600000")
	}
	kit.Want(t, bob, "OK", "SELECT", "3")
	kit.WantGrant(t, bob, "LOCK", "elsewhere", "secret", "PX", "600000")
	kit.Must(t, kit.SendToMaster(f.Masters[0], "SET", "p[*]:leftover", "x"))
	for _, master := range f.Masters {
		kit.Must(t, kit.SendToMaster(master, "SET", "unprefixed", "x"))
	}
	for _, c := range []struct {
		command string
		want    []string
	}{
		{"LOCKLIST COUNT 1000", keys},
		{"locklist match job:00* count 1000", keys[:10]},
		{"LOCKLIST COUNT 1000 MATCH *7", []string{"job:007", "job:017", "job:027", "job:037", "job:047", "job:057",
			"job:067", "job:077", "job:087", "job:097", "job:107", "job:117", "job:127"}},
		{"LOCKLIST MATCH leftover", []string{}},
		{"LOCKLIST MATCH redlock-proxy:*", []string{}},
		{"LOCKLIST MATCH *unprefixed", []string{}},
	} {
		if got := lockKeys(t, ann, c.command); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.command, got, c.want)
		}
	}
	if got := lockKeys(t, bob, "LOCKLIST"); !slices.Equal(got, []string{"elsewhere"}) {
		t.Errorf("in another database: %q", got)
	}
	for command, want := range map[string]int{"LOCKLIST": 100, "LOCKLIST COUNT 7": 7, "LOCKLIST MATCH job:* COUNT 1": 1} {
		if got := slices.Compact(lockKeys(t, ann, command)); len(got) != want {
			t.Errorf("%s: %d locks, want %d", command, len(got), want)
		}
	}
	kit.Must(t, f.Masters[0].Kill())
	kit.Must(t, f.Masters[1].Kill())
	kit.Eventually(t, func() error {
		if got := kit.ReplyText(kit.Do(t, ann, "LOCKLIST", "COUNT", "1000")); !strings.Contains(got, "job:129") {
			return fmt.Errorf("with two masters down: %s", got)
		}
		return nil
	})
	if got := lockKeys(t, ann, "LOCKLIST COUNT 1000"); !slices.Equal(got, keys) {
		t.Errorf("with two masters down: %q", got)
	}
	awaitLog(t, f.Proxies[0], "msg=LOCKLIST locks=130 client.addr=127.0.0.1:")
	if log := f.Proxies[0].Log(); strings.Contains(log, "secret") || strings.Contains(log, "job:") {
		t.Errorf("the log:\n%s", log)
	}
}

// TestHoldersErrors checks the errors for wrong arguments, with and without an upstream. It also
// checks the errors for commands that are not allowed in a transaction or a script.
func TestHoldersErrors(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	upstream, masters := kit.StartRedis(t), kit.StartMasters(t)
	lockServer := kit.StartProxy(t, redistest.URLs(masters), "--lock-keys", "lock:*")
	relay := kit.StartProxy(t, redistest.URLs(masters), kit.LockKeyArgs(upstream)...)
	outOfRange := "ERR value is out of range, value must between 1 and 1000"
	for _, proxy := range []*harness.Proxy{lockServer, relay} {
		client := kit.Connect(t, proxy)
		for _, c := range [][2]string{
			{"LOCKINFO", "ERR wrong number of arguments for 'lockinfo' command: LOCKINFO key"},
			{"LOCKINFO a b", "ERR wrong number of arguments for 'lockinfo' command: LOCKINFO key"},
			{"FORCEUNLOCK", "ERR wrong number of arguments for 'forceunlock' command: FORCEUNLOCK key"},
			{"LOCKINFO|", "ERR empty key in 'lockinfo' command"},
			{"FORCEUNLOCK|", "ERR empty key in 'forceunlock' command"},
			{"LOCKINFO redlock-proxy:marker", "ERR the key \"redlock-proxy:marker\" cannot be a lock"},
			{"FORCEUNLOCK redlock-proxy:marker", "ERR the key \"redlock-proxy:marker\" cannot be a lock"},
			{"LOCKLIST x", "ERR syntax error: LOCKLIST [MATCH pattern] [COUNT count]"},
			{"LOCKLIST MATCH", "ERR syntax error: LOCKLIST [MATCH pattern] [COUNT count]"},
			{"LOCKLIST LIMIT 3", "ERR syntax error: LOCKLIST [MATCH pattern] [COUNT count]"},
			{"LOCKLIST COUNT 1 COUNT 2", "ERR syntax error: LOCKLIST [MATCH pattern] [COUNT count]"},
			{"LOCKLIST MATCH a match b", "ERR syntax error: LOCKLIST [MATCH pattern] [COUNT count]"},
			{"LOCKLIST COUNT 0", outOfRange},
			{"LOCKLIST COUNT -1", outOfRange},
			{"LOCKLIST COUNT 1001", outOfRange},
			{"LOCKLIST COUNT 99999999999999999999", "ERR value is not an integer or out of range"},
			{"LOCKLIST COUNT many", "ERR value is not an integer or out of range"},
		} {
			kit.WantPrefix(t, client, c[0], c[1])
		}
	}
	client := kit.Connect(t, relay)
	// The client sends the commands in a transaction of the upstream, and in a transaction of the
	// proxy.
	for _, firstCommand := range []string{"PING", "SET lock:m v"} {
		for _, command := range []string{"LOCKINFO k", "LOCKLIST", "FORCEUNLOCK k"} {
			name, _, _ := strings.Cut(command, " ")
			kit.WantPrefix(t, client, "MULTI", "OK")
			kit.WantPrefix(t, client, firstCommand, "QUEUED")
			kit.WantPrefix(t, client, command, "ERR "+name+" inside MULTI is not allowed: ")
			kit.WantPrefix(t, client, "EXEC", "EXECABORT")
			kit.WantPrefix(t, client, "EVAL|return redis.call(unpack(ARGV))|1|lock:a|"+strings.ReplaceAll(command, " ", "|"), "ERR ")
		}
	}
	kit.WantPrefix(t, client, "COMMAND INFO forceunlock",
		"[[forceunlock -2 [write] 1 1 1 [@keyspace @write @admin @slow @dangerous] [] [[flags [RW update]")
	kit.WantPrefix(t, client, "COMMAND GETKEYS lockinfo k", "[k]")
}

// TestHoldersRights checks that a client sees the locks of keys that it may read at the upstream.
// It may force-unlock keys that it may delete at the upstream, if it may also run CLIENT KILL.
func TestHoldersRights(t *testing.T) {
	t.Parallel()
	r := startRestricted(t,
		"reader on >x ~lock:* +@read +@connection +@transaction",
		"app on >x ~lock:* +@all -@admin -@dangerous",
		"narrow on >x ~lock:a* +@all",
		"blind on >x ~lock:* +@all -scan -get",
		"operator on >x ~lock:* +@all -@scripting")
	admin := kit.Connect(t, r.proxy) // has all permissions
	kit.WantPrefix(t, admin, "CLIENT SETNAME ann", "OK")
	kit.WantPrefix(t, admin, "HELLO 2 SETNAME ann2", "[")
	for _, key := range []string{"lock:a", "lock:ab", "lock:b", "other"} {
		kit.WantGrant(t, admin, "LOCK", key, "secret", "PX", "600000")
	}
	for _, c := range []struct{ user, command, want string }{
		{"reader", "LOCKINFO lock:a", "[state held "},
		{"reader", "LOCKINFO other", keyPermissionError},
		{"reader", "FORCEUNLOCK lock:a", formatPermissionError("del")},
		{"app", "FORCEUNLOCK lock:a", "NOPERM this user has no permissions to run the 'client"},
		{"narrow", "FORCEUNLOCK lock:b", keyPermissionError},
		{"narrow", "LOCKINFO lock:b", keyPermissionError},
		{"blind", "LOCKINFO lock:a", formatPermissionError("get")},
		{"blind", "LOCKLIST", formatPermissionError("scan")},
		{"operator", "FORCEUNLOCK other", keyPermissionError},
		{"operator", "FORCEUNLOCK lock:b", "1"},
	} {
		kit.WantPrefix(t, r.login(t, c.user), c.command, c.want)
	}
	for user, want := range map[string][]string{
		"reader": {"lock:a", "lock:ab"}, "app": {"lock:a", "lock:ab"}, "narrow": {"lock:a", "lock:ab"},
		"operator": {"lock:a", "lock:ab"},
	} {
		if got := lockKeys(t, r.login(t, user), "LOCKLIST"); !slices.Equal(got, want) {
			t.Errorf("%s sees %q, want %q", user, got, want)
		}
	}
	if got := lockKeys(t, admin, "LOCKLIST"); !slices.Equal(got, []string{"lock:a", "lock:ab", "other"}) {
		t.Errorf("a client with all permissions sees %q", got)
	}
	if got := lockInfo(t, admin, "lock:a")["name"]; got != any("ann2") {
		t.Errorf("held by %v", got)
	}
	awaitLog(t, r.proxy, "client.user=operator removed=true")

	passwordUpstream := kit.StartRedis(t, "--requirepass", "x")
	client := kit.Connect(t, kit.StartProxy(t, redistest.URLs(r.masters), "--upstream", passwordUpstream.URL()))
	for _, command := range []string{"LOCKINFO lock:a", "LOCKLIST", "FORCEUNLOCK lock:a"} {
		kit.WantPrefix(t, client, command, loginError)
	}
}

// TestHoldersWithRedisCLI checks the commands, and their output, in redis-cli.
func TestHoldersWithRedisCLI(t *testing.T) {
	t.Parallel()
	f := kit.StartFleet(t)
	cli := func(args ...string) string {
		_, port, _ := strings.Cut(f.Proxies[0].Addr(), ":")
		output, err := exec.Command("redis-cli", append([]string{"-p", port}, args...)...).Output()
		kit.Must(t, err)
		return string(output)
	}
	cli("LOCK", "job:1", "secret", "PX", "60000")
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--no-raw", "LOCKINFO", "job:1"}, ` 1) "state"` + "\n" + ` 2) "held"` + "\n" + ` 3) "left"` + "\n" +
			` 4) (integer) `},
		{[]string{"--no-raw", "-3", "LOCKINFO", "job:1"}, `1# "state" => "held"` + "\n" + `2# "left" => (integer) `},
		{[]string{"--no-raw", "LOCKLIST", "MATCH", "job:*"}, `1)  1) "key"` + "\n" + `    2) "job:1"` + "\n"},
		{[]string{"--no-raw", "FORCEUNLOCK", "job:1"}, "(integer) 1\n"},
		{[]string{"--no-raw", "LOCKLIST"}, "(empty array)\n"},
	} {
		if got := cli(c.args...); !strings.HasPrefix(got, c.want) {
			t.Errorf("%q:\n%s", c.args, got)
		}
	}
}

// TestAuditLog checks that with audit-log there is a line for each grant and release, by any
// command, and never a token.
func TestAuditLog(t *testing.T) {
	t.Parallel()
	upstream, masters := kit.StartRedis(t), kit.StartMasters(t)
	unauditedProxy := kit.StartProxy(t, redistest.URLs(masters), kit.LockKeyArgs(upstream)...)
	proxy := kit.StartProxy(t, redistest.URLs(masters), append(kit.LockKeyArgs(upstream), "--audit-log")...)
	runCommands := func(proxy *harness.Proxy) {
		client := connectAs(t, proxy, "ann")
		for _, step := range [][2]string{
			{"LOCK a secret PX 60000", ""}, {"LOCK a secret2 PX 60000", "nil"}, {"UNLOCK a wrong", "0"},
			{"UNLOCK a secret", "1"},
			{"SET lock:b secret NX PX 60000", "OK"}, {"GETSET lock:b secret3", "secret"}, {"DEL lock:b", "1"},
			{"EVAL|return redis.call('set',KEYS[1],ARGV[1],'NX','PX',60000)|1|lock:c|secret", "OK"},
			{"FORCEUNLOCK lock:c", "1"},
		} {
			if got := kit.Do(t, client, splitCommand(step[0])...); step[1] != "" && kit.ReplyText(got) != step[1] {
				t.Errorf("%s: %v", step[0], got)
			}
		}
	}
	runCommands(unauditedProxy)
	runCommands(proxy)
	awaitLog(t, proxy, "action=forced") // the test reads the log with a delay
	awaitLog(t, unauditedProxy, "msg=FORCEUNLOCK")
	var got []string
	for line := range strings.Lines(proxy.Log()) {
		if _, event, found := strings.Cut(line, "msg=audit action="); found {
			action, suffix, _ := strings.Cut(event, " client.addr=127.0.0.1:")
			got = append(got, action)
			if !strings.HasSuffix(strings.TrimSpace(suffix), "client.name=ann client.user=default") {
				t.Errorf("%s", line)
			}
		}
	}
	want := []string{
		"granted db=0 key=a", "released db=0 key=a", "granted db=0 key=lock:b", "replaced db=0 key=lock:b",
		"released db=0 key=lock:b",
		"granted db=0 key=lock:c", "forced db=0 key=lock:c",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if strings.Contains(unauditedProxy.Log(), "msg=audit") || strings.Contains(proxy.Log(), "secret") {
		t.Errorf("the logs:\n%s\n%s", unauditedProxy.Log(), proxy.Log())
	}
}
