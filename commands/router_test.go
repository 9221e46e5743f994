package commands

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"redlock-proxy/commands/catalog/keys"
	"redlock-proxy/commands/catalog/spec"
	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/command"
	"redlock-proxy/commands/lockkeys/eval"
)

// routeTable returns the table of a proxy with an upstream, and lock keys lock:*.
func routeTable() *Table {
	return NewRelayTable(Options{Locks: &fakeLocks{}, LockKeys: []string{"lock:*"}})
}

// settledSituation is the situation of a client whose upstream has replied to everything.
var settledSituation = Situation{Upstream: Connection{Settled: true}}

// decisionText describes a decision: "" for the upstream, "run", or an error.
func decisionText(t *Table, words [][]byte) string {
	d := t.Route(settledSituation, words)
	if d.Action == Resolve {
		d = t.ResolveScript(context.Background(), &command.Client{}, settledSituation, words)
	}
	switch d.Action {
	case Forward:
		return ""
	case Run:
		return "run"
	}
	return "-" + d.Text
}

// TestRoute checks every decision, by the state of the client.
func TestRoute(t *testing.T) {
	const sha = "e0e1f9fabfc9d4800c877a703b823ac0578ff8db"
	withUpstream := func(change func(u *Connection)) Situation {
		at := settledSituation
		change(&at.Upstream)
		return at
	}
	initial := Situation{}
	multi := withUpstream(func(u *Connection) { u.Multi = true })
	lateInMulti := withUpstream(func(u *Connection) { u.Multi, u.Queued = true, true })
	watching := withUpstream(func(u *Connection) { u.Watching = true })
	inMulti := Situation{InMulti: true, Upstream: settledSituation.Upstream}
	lockWatch := Situation{Watching: true, Upstream: settledSituation.Upstream}
	down := Situation{Connected: true, UpstreamError: "ERR upstream: down", Upstream: settledSituation.Upstream}
	ownDown := Situation{InMulti: true, UpstreamError: "ERR upstream: down", Upstream: settledSituation.Upstream}
	for _, c := range []struct {
		title, line string
		at          Situation
		want        Action
		text        string // a part of the error
	}{
		{"any command", "GET a", initial, Forward, ""},
		{"one on a lock key waits for its turn", "GET lock:a", initial, WaitUpstream, ""},
		{"and is run", "GET lock:a", settledSituation, Run, ""},
		{"one that is none", "XADD lock:a * f x", settledSituation, Refuse, "cannot run on lock key"},
		{"keys of both kinds", "DEL lock:a b", settledSituation, Refuse, "send two commands"},
		{"the client leaves", "GET lock:a", withUpstream(func(u *Connection) { u.Quitting = true }), Quit, ""},
		{"bytes that are no replies", "GET lock:a", withUpstream(func(u *Connection) { u.Stream = true }), Close, ""},
		// The command itself refuses to run for a subscriber.
		{"subscribed", "GET lock:a", withUpstream(func(u *Connection) { u.Restricted = true }), Run, ""},

		{"ours waits for its turn", "LOCK k t PX 9", initial, WaitUpstream, ""},
		{"ours", "LOCK k t PX 9", settledSituation, Run, ""},
		{"ours after QUIT", "LOCK k t PX 9", withUpstream(func(u *Connection) { u.Quitting = true }), Quit, ""},
		{"ours in the upstream's MULTI", "LOCK k t PX 9", multi, AbortUpstreamTx, "ERR LOCK inside MULTI"},
		{"ours in our MULTI", "LOCK k t PX 9", inMulti, Abort, "ERR LOCK inside MULTI"},
		{"ours in a stream", "LOCK k t PX 9", withUpstream(func(u *Connection) { u.Stream = true }), Close, ""},
		{"INFO", "INFO", settledSituation, Run, ""},
		{"INFO in MULTI", "INFO", multi, AbortUpstreamTx, "ERR INFO inside MULTI"},
		{"INFO in a stream", "INFO", withUpstream(func(u *Connection) { u.Stream = true }), Close, ""},
		// The reply may contain the addresses of replicas.
		{"the same of a section", "info server REPLICATION\x00x", lateInMulti, AbortUpstreamTx, "ERR INFO inside MULTI"},
		{"INFO without these", "INFO server", multi, Forward, ""},
		{"ROLE in MULTI", "ROLE", multi, AbortUpstreamTx, "ERR ROLE inside MULTI"},
		{"INFO of a silent client", "INFO", withUpstream(func(u *Connection) { u.RepliesOff = true }), Forward, ""},
		{"INFO of a subscribed client", "INFO", withUpstream(func(u *Connection) { u.Restricted = true }), Run, ""},
		{"INFO without these, of a subscribed client", "INFO server", withUpstream(func(u *Connection) { u.Restricted = true }), Forward, ""},
		{"INFO while monitoring", "INFO", withUpstream(func(u *Connection) { u.Monitoring = true }), Forward, ""},
		{"LOCK of a silent client", "LOCK k t PX 9", withUpstream(func(u *Connection) { u.RepliesOff = true }), Run, ""},

		{"MULTI", "MULTI", initial, Connect, ""},
		{"MULTI with an upstream", "MULTI", Situation{Connected: true}, Forward, ""},
		{"MULTI without one", "MULTI", down, Run, ""},
		{"MULTI without one, unsettled", "MULTI", Situation{Connected: true, UpstreamError: "x"}, WaitUpstream, ""},
		{"MULTI of lock keys", "MULTI", lockWatch, Run, ""},
		{"MULTI in ours", "MULTI", inMulti, Run, ""}, // MULTI itself replies with the error
		{"EXEC", "EXEC", initial, Forward, ""},
		{"EXEC of ours", "EXEC", inMulti, Run, ""},
		{"QUIT in ours", "QUIT", inMulti, Forward, ""},
		{"RESET in ours", "RESET", inMulti, Forward, ""},
		{"UNWATCH", "UNWATCH", initial, Forward, ""},
		{"UNWATCH of lock keys", "UNWATCH", lockWatch, Run, ""},
		{"UNWATCH in ours", "UNWATCH", inMulti, Run, ""},
		{"the upstream's MULTI is empty", "GET lock:a", multi, AdoptTx, ""},
		{"it is not", "GET lock:a", lateInMulti, AbortUpstreamTx, "'get' on a lock key cannot be part of a transaction on other keys"},
		{"a lock key in ours", "GET lock:a", inMulti, Run, ""},
		{"a wrong one in ours", "XADD lock:a * f x", inMulti, Abort, "cannot run on lock key"},
		{"another key in ours", "GET a", inMulti, Abort, "'a' is on the upstream"},
		{"another key, and no upstream", "GET a", ownDown, Abort, "ERR upstream: down"},
		{"unsettled in ours", "GET lock:a", Situation{InMulti: true}, WaitUpstream, ""},

		{"WATCH", "WATCH a", initial, Forward, ""},
		{"WATCH of a lock key", "WATCH lock:a", settledSituation, Run, ""},
		{"of both", "WATCH lock:a b", settledSituation, Refuse, "send two commands"},
		{"of another while lock keys are watched", "WATCH a", lockWatch, Refuse, "watch one kind at a time"},
		{"of a lock key while others are watched", "WATCH lock:a", watching, Refuse, "watch one kind at a time"},
		{"of a lock key in the upstream's MULTI", "WATCH lock:a", multi, Forward, ""},
		{"in ours", "WATCH lock:a", inMulti, Run, ""}, // WATCH itself replies with the error
		{"a watch beside MULTI", "GET lock:a", withUpstream(func(u *Connection) { u.Multi, u.Watching = true, true }),
			AbortUpstreamTx,
			"send two transactions"},

		{"a script on lock keys", "EVAL s 1 lock:a", settledSituation, Run, ""},
		{"one on others", "EVAL return 0", settledSituation, Forward, ""},
		{"one that is not known", "EVALSHA " + sha + " 0", settledSituation, Resolve, ""},
		{"not before its turn", "EVALSHA " + sha + " 0", initial, WaitUpstream, ""},
		{"nor where it is refused", "EVALSHA " + sha + " 0", withUpstream(func(u *Connection) { u.Restricted = true }), Forward, ""},
		{"where some carry it out", "EVALSHA " + sha + " 0", withUpstream(func(u *Connection) { u.Monitoring = true }), Resolve, ""},
		{"nor where nobody knows", "EVALSHA " + sha + " 0", withUpstream(func(u *Connection) { u.Stream = true }), Close, ""},
		{"in the upstream's MULTI", "EVALSHA " + sha + " 0", multi, Resolve, ""},
		{"in ours it is queued", "EVALSHA " + sha + " 0", inMulti, Run, ""},
		{"a debugger", "SCRIPT DEBUG SYNC", settledSituation, Run, ""}, // the command itself replies with the error
		{"of a silent client", "script debug yes", withUpstream(func(u *Connection) { u.RepliesOff = true }), Run, ""},
		{"beyond a zero byte", "SCRIPT debug\x00 yes\x00x", withUpstream(func(u *Connection) { u.Monitoring = true }), Run, ""},
		{"in the upstream's MULTI", "SCRIPT DEBUG YES", multi, AbortUpstreamTx, "ERR SCRIPT inside MULTI"},
		{"in a stream", "SCRIPT DEBUG YES", withUpstream(func(u *Connection) { u.Stream = true }), Close, ""},
		{"SCRIPT LOAD in MULTI", "SCRIPT LOAD x", multi, Forward, ""},
		{"of a silent client", "SCRIPT DEBUG NO", withUpstream(func(u *Connection) { u.RepliesOff = true }), Forward, ""},
		{"too long", "SET lock:a x", Situation{TooLong: true}, Refuse, "ERR command too long"},
		{"too long, and not known", "EVALSHA " + sha, Situation{TooLong: true}, Refuse, syntax.NoScript},
	} {
		d := routeTable().Route(c.at, syntax.Bytes(strings.Split(c.line, " ")))
		if d.Action != c.want || !strings.Contains(d.Text, c.text) || (d.Text == "") != (c.text == "") {
			t.Errorf("%s: %s: %d %q, want %d %q", c.title, c.line, d.Action, d.Text, c.want, c.text)
		}
		hasCommand := d.Action == Run || d.Action == Refuse || d.Action == Abort || d.Action == Resolve
		if hasCommand != (d.Command != nil) {
			t.Errorf("%s: %s: verb %d with command %v", c.title, c.line, d.Action, d.Command)
		}
	}
}

// TestUnknownScript checks that, for an unknown script, the upstream returns the error inside its
// transaction, and the proxy outside.
func TestUnknownScript(t *testing.T) {
	words := syntax.Bytes([]string{"EVALSHA", strings.Repeat("f", 40), "0"})
	table := routeTable()
	if d := table.ResolveScript(t.Context(), &command.Client{}, settledSituation, words); d.Action != Refuse || d.Text != syntax.NoScript {
		t.Errorf("%d %q", d.Action, d.Text)
	}
	at := settledSituation
	at.Upstream.Multi = true
	if d := table.ResolveScript(t.Context(), &command.Client{}, at, words); d.Action != NoScript {
		t.Errorf("in MULTI: %d %q", d.Action, d.Text)
	}
}

// TestRouteOfALockServer checks that without an upstream every command gets a reply.
func TestRouteOfALockServer(t *testing.T) {
	table := NewTable(Options{Locks: &fakeLocks{}, LockKeys: []string{"lock:*"}})
	for _, c := range []struct {
		line string
		at   Situation
		want Action
		text string
	}{
		{"PING", Situation{}, Run, ""}, {"GET lock:a", Situation{}, Run, ""}, {"SCRIPT LOAD x", Situation{}, Run, ""},
		{"MULTI", Situation{}, Run, ""}, {"EXEC", Situation{}, Run, ""},
		{"UNWATCH", Situation{}, Run, ""}, {"WATCH lock:a", Situation{}, Run, ""},
		{"EVALSHA f 0", Situation{}, Resolve, ""},
		{"GET a", Situation{}, Refuse, "key 'a' is not a lock key"},
		{"WATCH a", Situation{}, Refuse, "key 'a' is not a lock key"},
		{"EVAL return 0", Situation{}, Refuse, "names no lock key"},
		{"GET", Situation{}, Refuse, "wrong number of arguments for 'get'"},
		{"WATCH", Situation{}, Refuse, "wrong number of arguments for 'watch'"},
		{"PING", Situation{InMulti: true}, Run, ""},
		{"ECHO x", Situation{InMulti: true}, Abort, "it is not a command on lock keys"},
		{"QUIT", Situation{InMulti: true}, Run, ""}, {"GET lock:a", Situation{InMulti: true}, Run, ""},
		{"WATCH a", Situation{Watching: true}, Refuse, "watch one kind at a time"},
	} {
		d := table.Route(c.at, syntax.Bytes(strings.Split(c.line, " ")))
		if d.Action != c.want || !strings.Contains(d.Text, c.text) || d.Command == nil {
			t.Errorf("%s: %d %q, want %d %q", c.line, d.Action, d.Text, c.want, c.text)
		}
	}
	for name, want := range map[string]bool{"ping": true, "GET": true, "lpush": true, "multi": true, "script": true,
		"nosuch": false, "publish": false, "get\x00": false} {
		if known := table.Lookup([]byte(name)) != nil || table.KeyRule([]byte(name)) != nil; known != want {
			t.Errorf("%q is known: %v", name, known)
		}
	}
}

func TestLockCommand(t *testing.T) {
	unfit := func(name string) string {
		return "-ERR '" + name + "' cannot run on lock key 'lock:a': lock keys support only string, hash, list, set and sorted-set commands; use another key"
	}
	mixed := func(name, other string) string {
		return "-ERR '" + name + "' mixes lock keys and other keys: 'lock:a' is on the lock masters, '" +
			other + "' on the upstream; send two commands"
	}
	const noScript = "-" + syntax.NoScript
	table := routeTable()
	for _, c := range []struct{ command, want string }{
		{"SET lock:a x", "run"}, {"sEt lock:a x NX PX 5", "run"}, {"SET a x", ""}, {"SET", ""}, {"GET lock:a", "run"},
		{"GET lock", ""},
		{"DELEX lock:a IFEQ x", "run"}, {"DELIFEQ lock:a x", "run"}, {"DEL lock:a lock:b", "run"}, {"DEL a b", ""},
		{"DEL lock:a b", mixed("del", "b")}, {"DEL b lock:a", mixed("del", "b")},
		{"MSETNX lock:a lock:b lock:c d", "run"}, {"MSETNX a lock:b c d", ""}, {"MGET lock:a b", mixed("mget", "b")},
		{"PING lock:a", ""}, {"NOSUCH lock:a", unfit("nosuch")}, {"NOSUCH a", ""}, {"KEYS lock:a", "run"},
		{"FLUSHALL", "run"}, {"SWAPDB 0 1", ""},
		{"EVAL return(redis.call('FlushDB')) 0", "-" + eval.FlushRefusal("flushdb")}, {"PUBLISH lock:a x", ""},
		{"SUBSCRIBE lock:a", ""},
		{"LPUSH lock:a x", "run"}, {"HSET lock:a f v", "run"}, {"XADD lock:a * f v", unfit("xadd")},
		{"PFADD lock:a m", unfit("pfadd")}, {"BLPOP lock:a 0", "run"}, {"OBJECT FREQ lock:a", "run"},
		{"OBJECT HELP", ""},
		{"RENAME lock:a b", mixed("rename", "b")}, {"COPY b lock:a", mixed("copy", "b")},
		{"DUMP lock:a", unfit("dump")}, {"RESTORE lock:a 0 x", unfit("restore")},
		{"SORT b STORE lock:a", unfit("sort")}, {"SORT lock:a GET b", unfit("sort")}, {"SORT b BY lock:a", ""},
		{"MIGRATE h 1  0 5 KEYS b lock:a", unfit("migrate")}, {"ZINTERSTORE b 2 c lock:a", mixed("zinterstore", "c")},
		{"ZINTERSTORE lock:a 1 b", mixed("zinterstore", "b")}, {"ZUNIONSTORE b 1 lock:a", unfit("zunionstore")},
		{"LMPOP 1 lock:a LEFT", unfit("lmpop")}, {"BZMPOP 0 1 lock:a MIN", unfit("bzmpop")},
		{"SMOVE b lock:a m", unfit("smove")},
		{"EVAL s 1 lock:a", "run"}, {"EVAL s 2 lock:a b", "run"}, {"EVAL return 1 b lock:a", ""},
		{"EVAL return 0", ""}, {"EVAL return 0 b", ""}, {"EVAL return 0 lock:a", "run"}, {"EVAL s 1 b", "run"},
		{"EVAL s", ""}, {"EVAL", ""},
		{"EVALSHA s 1 lock:a", "run"}, {"EVALSHA_RO s 1 lock:a", "run"}, {"eval_ro s 1 lock:a", "run"},
		{"EVALSHA s 0 b", noScript}, {"EVALSHA s 0 lock:a", noScript}, {"EVALSHA s 2 a", ""},
		{"FCALL f 1 lock:a", unfit("fcall")}, {"FCALL f 0 lock:a", ""}, {"FCALL f 1 b", ""},
	} {
		if got := decisionText(table, syntax.Bytes(strings.Split(c.command, " "))); got != c.want {
			t.Errorf("%s: %q, want %q", c.command, got, c.want)
		}
	}
}

// unsupportedCommands lists commands that cannot run on a lock key, each with lock:a as its first
// key.
var unsupportedCommands = []string{
	"XADD lock:a * f v", "PFADD lock:a v",
	"GEOADD lock:a 1 1 m", "GEODIST lock:a m n", "GEOHASH lock:a m", "GEOPOS lock:a m",
	"GEOSEARCH lock:a FROMMEMBER m BYRADIUS 1 m",
	"GEOSEARCHSTORE lock:a lock:b FROMMEMBER m BYRADIUS 1 m", "GEORADIUS lock:a 1 1 1 m STORE lock:b",
	"GEORADIUS_RO lock:a 1 1 1 m",
	"GEORADIUSBYMEMBER lock:a m 1 m STOREDIST lock:b", "GEORADIUSBYMEMBER_RO lock:a m 1 m",
	"LCS lock:a lock:b", "SETBIT lock:a 7 1", "GETBIT lock:a 7", "BITCOUNT lock:a", "BITPOS lock:a 1",
	"BITOP AND lock:a lock:b", "BITOP NOT lock:a b",
	"BITFIELD lock:a GET u8 0", "BITFIELD lock:a SET u8 0 1", "BITFIELD_RO lock:a GET u8 0",
}

// TestUnsupportedCommands checks that the proxy refuses the commands of unsupportedCommands, also
// in MULTI and in a script, with and without an upstream. On other keys the commands go to the
// upstream.
func TestUnsupportedCommands(t *testing.T) {
	relay, server := routeTable(), NewTable(Options{Locks: &fakeLocks{}, LockKeys: []string{"lock:*"}})
	inMulti := Situation{InMulti: true, Upstream: settledSituation.Upstream}
	for _, line := range unsupportedCommands {
		words := strings.Fields(line)
		want := "ERR '" + strings.ToLower(words[0]) + "' cannot run on lock key 'lock:a': lock keys support only string, hash, list, set and sorted-set commands; use another key"
		for _, table := range []*Table{relay, server} {
			if d := table.Route(settledSituation, syntax.Bytes(words)); d.Action != Refuse || d.Text != want {
				t.Errorf("%s: %d %q", line, d.Action, d.Text)
			}
			if d := table.Route(inMulti, syntax.Bytes(words)); d.Action != Abort || d.Text != want {
				t.Errorf("%s in MULTI: %d %q", line, d.Action, d.Text)
			}
		}
		b := newRegisterFixture(t)
		for _, function := range []string{"call", "pcall"} {
			script := "redis.call('set', KEYS[1], 'v') return redis." + function + "(unpack(ARGV))"
			if got := b.run(append([]string{"EVAL", script, "1", "lock:a"}, words...)...); got != want {
				t.Errorf("%s in a script: %q", line, got)
			}
		}
		b.expectSideEffects()
		if got := decisionText(relay, syntax.Bytes(strings.Fields(strings.ReplaceAll(line, "lock:", "")))); got != "" {
			t.Errorf("%s on other keys: %q", line, got)
		}
	}
}

// commandsWithKeys returns the commands that have keys.
func commandsWithKeys() (all []*spec.Command) {
	for c := range spec.All() {
		if c.Keys != nil {
			all = append(all, c)
		}
	}
	return all
}

// TestNoRoutesWithoutLockKeys checks that, without lock keys, the proxy searches no command for
// lock keys.
func TestNoRoutesWithoutLockKeys(t *testing.T) {
	table := NewRelayTable(Options{Locks: &fakeLocks{}})
	for _, c := range commandsWithKeys() {
		name := c.Name
		if table.KeyRule([]byte(name)) != nil ||
			table.Route(Situation{}, syntax.Bytes([]string{name, "lock:a"})).Action != Forward {
			t.Errorf("%s is routed", name)
		}
	}
	if table.LockKeys().HasPatterns() || table.Lookup([]byte("script")) != nil {
		t.Error("there is something to route")
	}
}

// TestLockKeysNotForwarded checks that every command with a lock key runs on the
// masters or is refused. No such command goes only to the upstream.
func TestLockKeysNotForwarded(t *testing.T) {
	table := routeTable()
	for _, c := range commandsWithKeys() {
		name, named := c.Name, false
		for _, first := range []string{"lock:a", "1", "lock:a 1", "streams", "encoding", "usage", "groups", "create",
			"object", "memory"} {
			words := append(strings.Fields(name+" "+first), "lock:a", "lock:a", "lock:a", "lock:a", "lock:a")
			places, _ := c.Keys.Places(syntax.Bytes(words), len(words))
			if lock, _ := table.router.lockKeys.Split(syntax.Bytes(words), places); lock < 0 {
				continue
			}
			named = true
			if got := decisionText(table, syntax.Bytes(words)); got != "run" &&
				!strings.HasPrefix(got, "-ERR '"+name+"' cannot run on lock key 'lock:a'") &&
				!strings.HasPrefix(got, "-ERR '"+name+"' mixes lock keys and other keys") {
				t.Errorf("%q: %q", words, got)
			}
		}
		if !named {
			t.Errorf("%s was never given a lock key", name)
		}
	}
}

func TestPreview(t *testing.T) {
	table := routeTable()
	for _, c := range []struct {
		first  string
		total  int
		locked bool
		known  bool
		last   int
	}{
		{"MSET a 1 b", 100, false, true, 99}, {"MSET a 1 lock:b", 100, true, true, 99},
		{"MSET a lock:b", 100, false, true, 99},
		{"DEL a", 5, false, true, 4}, {"EVAL s", 5, false, false, -1}, {"EVAL return 2 a", 9, false, true, 4},
		{"EVAL return 2 a b x", 9, false, true, 4}, {"EVAL s 2 a", 9, true, true, 4},
		{"EVAL s 2 a lock:b", 9, true, true, 4}, {"EVAL return 0 a", 9, false, true, 8},
		{"EVAL return 0 lock:a", 9, true, true, 8}, {"SORT a", 9, false, false, -1}, {"PING x", 9, false, true, -1},
		{"XREAD STREAMS a", 9, false, false, -1}, {"BLPOP a b", 5, false, true, 3},
	} {
		places, locked, known := table.Preview(t.Context(), syntax.Bytes(strings.Fields(c.first)), c.total)
		if locked != c.locked || known != c.known || places.Last() != c.last {
			t.Errorf("%s of %d words: locked %v, known %v, last %d", c.first, c.total, locked, known, places.Last())
		}
	}
}

// FuzzLockCommand checks that no words cause a panic, and that no command that names a lock key
// goes to the upstream. If Preview finds no lock key in the first words, its places must include
// each key among the remaining words.
func FuzzLockCommand(f *testing.F) {
	for _, seed := range []string{
		"SET|lock:a|x", "DEL|lock:a|b", "EVAL|return 1|1|lock:a|x", "EVAL|s|-1", "XREAD|STREAMS|lock:a|0",
		"MIGRATE|h|1||0|5|KEYS|lock:a", "SORT|a|STORE|lock:a",
		"OBJECT|FREQ|lock:a", "ZUNIONSTORE|d|9223372036854775807|lock:a", "MSETEX|2|a|1|lock:b|2", "", "|",
		"WATCH|lock:a|b", "EVALSHA|e0e1f9fabfc9d4800c877a703b823ac0578ff8db|0|lock:a",
	} {
		f.Add([]byte(seed))
	}
	table := routeTable()
	f.Fuzz(func(t *testing.T, text []byte) {
		words := bytes.Split(text, []byte{'|'})
		named := false
		if rule := spec.KeysOf(words[0]); rule != nil {
			places, known := rule.Places(words, len(words))
			if !known {
				t.Fatalf("%q: all words do not tell", words)
			}
			for i := range places.All() {
				named = named || table.LockKeys().Match(words[i])
			}
		}
		if got := decisionText(table, words); named && got == "" {
			t.Errorf("%q goes to the upstream", words)
		}
		if table.Route(Situation{InMulti: true}, words).Action == Forward &&
			!strings.EqualFold(string(words[0]), "quit") && !strings.EqualFold(string(words[0]), "reset") {
			t.Errorf("%q has no place in a transaction", words)
		}
		for n := 1; n <= len(words); n++ {
			places, locked, known := table.Preview(t.Context(), words[:n], len(words))
			for i := n; i < len(words) && known && !locked; i++ {
				if whole, _ := keyRuleOrNone(words[0]).Places(words, len(words)); whole.Has(i) && !places.Has(i) {
					t.Errorf("%q: the first %d do not tell of word %d", words, n, i)
				}
			}
		}
	})
}

// keyRuleOrNone is like spec.KeysOf, but returns a rule without keys for a command without keys.
func keyRuleOrNone(name []byte) *keys.Rule {
	if rule := spec.KeysOf(name); rule != nil {
		return rule
	}
	return &keys.Rule{}
}
