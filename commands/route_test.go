package commands

import (
	"bytes"
	"strings"
	"testing"
)

// routeTable is that of a relay whose lock keys are lock:*.
func routeTable() *Table {
	return NewRelayTable(Options{Locks: &fakeLocks{}, LockKeys: []string{"lock:*"}})
}

// routed says what becomes of a command: "" for the upstream, "run", or an error.
func routed(t *Table, words [][]byte) string {
	cmd := t.LockCommand(words)
	switch {
	case cmd == nil:
		return ""
	case t.locked[cmd.Name] == cmd:
		return "run"
	}
	var out Reply
	cmd.run(t, nil, &Client{Proto: 2}, words, &out)
	return strings.TrimSpace(string(out.Bytes))
}

func TestLockCommand(t *testing.T) {
	unfit := func(name string) string {
		return "-ERR lock key 'lock:a': '" + name + "' cannot run on the lock masters; a lock key is a string with an expiry, held by a majority of them"
	}
	mixed := func(name, other string) string {
		return "-ERR '" + name + "' names lock keys and others: 'lock:a' stands on the lock masters, '" + other + "' on the upstream; send two commands"
	}
	table := routeTable()
	for _, c := range []struct{ command, want string }{
		{"SET lock:a x", "run"}, {"sEt lock:a x NX PX 5", "run"}, {"SET a x", ""}, {"SET", ""}, {"GET lock:a", "run"}, {"GET lock", ""},
		{"DELEX lock:a IFEQ x", "run"}, {"DELIFEQ lock:a x", "run"}, {"DEL lock:a lock:b", "run"}, {"DEL a b", ""}, {"DEL lock:a b", mixed("del", "b")}, {"DEL b lock:a", mixed("del", "b")},
		{"MSETNX lock:a lock:b lock:c d", "run"}, {"MSETNX a lock:b c d", ""}, {"MGET lock:a b", mixed("mget", "b")}, {"PING lock:a", ""}, {"NOSUCH lock:a", ""}, {"PUBLISH lock:a x", ""}, {"SUBSCRIBE lock:a", ""},
		{"LPUSH lock:a x", unfit("lpush")}, {"HSET lock:a f v", unfit("hset")}, {"ZADD lock:a 1 m", unfit("zadd")}, {"OBJECT FREQ lock:a", unfit("object")}, {"OBJECT HELP", ""},
		{"RENAME lock:a b", unfit("rename")}, {"COPY b lock:a", unfit("copy")}, {"DUMP lock:a", unfit("dump")}, {"RESTORE lock:a 0 x", unfit("restore")}, {"SORT b STORE lock:a", unfit("sort")}, {"SORT b BY lock:a", ""},
		{"BITOP AND b lock:a", unfit("bitop")}, {"MIGRATE h 1  0 5 KEYS b lock:a", unfit("migrate")}, {"ZUNIONSTORE b 2 c lock:a", unfit("zunionstore")}, {"ZUNIONSTORE lock:a 1 b", unfit("zunionstore")},
		{"EVAL s 1 lock:a", "run"}, {"EVAL s 2 lock:a b", "run"}, {"EVAL s 1 b lock:a", ""}, {"EVAL s 0", ""}, {"EVAL s 0 b", ""}, {"EVAL s 0 lock:a", "run"}, {"EVAL s", ""}, {"EVAL", ""},
		{"EVALSHA s 1 lock:a", "run"}, {"EVALSHA_RO s 1 lock:a", "run"}, {"eval_ro s 1 lock:a", "run"}, {"EVALSHA s 0 b", ""}, {"EVALSHA s 0 lock:a", "run"},
		{"FCALL f 1 lock:a", unfit("fcall")}, {"FCALL f 0 lock:a", ""}, {"FCALL f 1 b", ""},
	} {
		if got := routed(table, bytesOf(strings.Split(c.command, " "))); got != c.want {
			t.Errorf("%s: %q, want %q", c.command, got, c.want)
		}
	}
}

// Without lock keys nothing has keys that matter.
func TestWithoutLockKeysNothingIsRouted(t *testing.T) {
	table := NewRelayTable(Options{Locks: &fakeLocks{}})
	for name := range keyRules {
		if table.Keyed([]byte(name)) != nil || table.LockCommand(bytesOf([]string{name, "lock:a"})) != nil || table.multi("multi") != nil {
			t.Errorf("%s is routed", name)
		}
	}
	if table.Routes() || table.Lookup([]byte("script")) != nil {
		t.Error("there is something to route")
	}
}

// Every command that has keys and is given a lock key is run on the masters or
// refused; that the upstream alone gets it is never the answer.
func TestNoCommandOnALockKeyGoesToTheUpstream(t *testing.T) {
	table := routeTable()
	for name, rule := range keyRules {
		words := []string{name, "lock:a", "lock:a", "lock:a", "lock:a", "lock:a", "lock:a"}
		switch {
		case rule.counted > 0:
			words[rule.counted] = "1"
		case rule.subs != "":
			words[1] = strings.Fields(rule.subs)[0]
		case name == "xread" || name == "xreadgroup":
			words[1] = "streams"
		}
		if got := routed(table, bytesOf(words)); got != "run" && !strings.HasPrefix(got, "-ERR lock key 'lock:a': '"+name+"' cannot run") {
			t.Errorf("%q: %q", words, got)
		}
	}
}

func TestAhead(t *testing.T) {
	table := routeTable()
	for _, c := range []struct {
		first  string
		total  int
		locked bool
		known  bool
		last   int
	}{
		{"MSET a 1 b", 100, false, true, 99}, {"MSET a 1 lock:b", 100, true, true, 99}, {"MSET a lock:b", 100, false, true, 99},
		{"DEL a", 5, false, true, 4}, {"EVAL s", 5, false, false, -1}, {"EVAL s 2 a", 9, false, true, 4}, {"EVAL s 2 a b x", 9, false, true, 4},
		{"EVAL s 2 a lock:b", 9, true, true, 4}, {"EVAL s 0 a", 9, false, true, 8}, {"EVAL s 0 lock:a", 9, true, true, 8}, {"SORT a", 9, false, false, -1}, {"PING x", 9, false, true, -1},
		{"XREAD STREAMS a", 9, false, false, -1}, {"BLPOP a b", 5, false, true, 3},
	} {
		places, locked, known := table.Ahead(bytesOf(strings.Fields(c.first)), c.total)
		if locked != c.locked || known != c.known || places.Last() != c.last {
			t.Errorf("%s of %d words: locked %v, known %v, last %d", c.first, c.total, locked, known, places.Last())
		}
	}
}

// Whatever the words are: nothing panics, what names a lock key does not go to the
// upstream, and the first words never tell that there is no lock key where there is.
func FuzzLockCommand(f *testing.F) {
	for _, seed := range []string{
		"SET|lock:a|x", "DEL|lock:a|b", "EVAL|return 1|1|lock:a|x", "EVAL|s|-1", "XREAD|STREAMS|lock:a|0", "MIGRATE|h|1||0|5|KEYS|lock:a", "SORT|a|STORE|lock:a",
		"OBJECT|FREQ|lock:a", "ZUNIONSTORE|d|9223372036854775807|lock:a", "MSETEX|2|a|1|lock:b|2", "", "|", "WATCH|lock:a|b", "EVALSHA|e0e1f9fabfc9d4800c877a703b823ac0578ff8db|0|lock:a",
	} {
		f.Add([]byte(seed))
	}
	table := routeTable()
	f.Fuzz(func(t *testing.T, text []byte) {
		words := bytes.Split(text, []byte{'|'})
		named := false
		if rule := keyRule(words[0]); rule != nil {
			places, known := rule.Places(words, len(words))
			if !known {
				t.Fatalf("%q: all words do not tell", words)
			}
			for i := range places.all() {
				named = named || table.IsLockKey(words[i])
			}
		}
		client := &Client{Proto: 2}
		if got := routed(table, words); named && got == "" {
			t.Errorf("%q goes to the upstream", words)
		}
		if table.MultiCommand(client, words) == nil && !strings.EqualFold(string(words[0]), "quit") && !strings.EqualFold(string(words[0]), "reset") {
			t.Errorf("%q has no place in a transaction", words)
		}
		if strings.EqualFold(string(words[0]), "watch") {
			table.WatchCommand(client, words)
		}
		for n := 1; n <= len(words); n++ {
			places, locked, known := table.Ahead(words[:n], len(words))
			for i := n; i < len(words) && known && !locked; i++ {
				if whole, _ := keyRuleOrNone(words[0]).Places(words, len(words)); whole.Has(i) && !places.Has(i) {
					t.Errorf("%q: the first %d do not tell of word %d", words, n, i)
				}
			}
		}
	})
}

// keyRuleOrNone is keyRule, and for a command without keys a rule that finds none.
func keyRuleOrNone(name []byte) *KeyRule {
	if rule := keyRule(name); rule != nil {
		return rule
	}
	return &KeyRule{}
}
