package acl

import (
	"slices"
	"strings"
	"testing"

	"redlock-proxy/commands/catalog/keys"
	"redlock-proxy/commands/catalog/spec"
	"redlock-proxy/commands/catalog/syntax"
)

// catalog returns a Catalog of Redis' commands and some of the proxy's own.
func catalog() *Catalog {
	return NewCatalog(
		OwnCommand{Name: "lock", Categories: spec.CategoriesOf("write slow"), Keys: keys.InSpan(1, 1, 1),
			Access: spec.ChangesValue},
		OwnCommand{Name: "mlock", Categories: spec.CategoriesOf("write slow"), Keys: keys.CountedKeys(1, 1),
			Access: spec.ChangesValue},
		OwnCommand{Name: "forceunlock", Categories: spec.CategoriesOf("write admin slow dangerous"),
			Keys: keys.InSpan(1, 1, 1), Access: spec.ChangesValue},
		OwnCommand{Name: "proxy", Categories: spec.CategoriesOf("admin slow dangerous")},
	)
}

// parseUser returns the user of a file with one line.
func parseUser(t *testing.T, rules string) *User {
	t.Helper()
	set, err := Parse("users.acl", "user ann "+rules+"\n", catalog())
	if err != nil {
		t.Fatalf("%s: %v", rules, err)
	}
	return set.Find("ann")
}

// TestCheck checks the refusal of commands under different rules.
func TestCheck(t *testing.T) {
	const run, key, channel = "NOPERM this user has no permissions to run the '",
		"NOPERM this user has no permissions to access one of the keys used as arguments",
		"NOPERM this user has no permissions to access one of the channels used as arguments"
	for _, c := range []struct{ rules, words, want string }{
		{"+lock ~lock:*", "LOCK lock:a t PX 1", ""},
		{"+lock ~lock:*", "LOCK other t PX 1", key},
		{"+mlock ~lock:*", "MLOCK 2 lock:a lock:b t PX 1", ""},
		{"+mlock ~lock:*", "MLOCK 2 lock:a other t PX 1", key},
		{"+mlock ~lock:*", "MLOCK 2 other lock:a t PX 1", key},
		{"+mlock %R~lock:*", "MLOCK 1 lock:a t PX 1", key},
		{"+lock ~lock:*", "MLOCK 1 lock:a t PX 1", run + "mlock' command"},
		{"+lock ~lock:*", "FORCEUNLOCK lock:a", run + "forceunlock' command"},
		{"+@all -@dangerous ~lock:*", "lock lock:a t PX 1", ""},
		{"+@all -@dangerous ~lock:*", "forceunlock lock:a", run + "forceunlock' command"},
		{"+@all -@dangerous ~lock:*", "proxy info", run + "proxy' command"},
		{"+proxy|info", "PROXY INFO", ""},
		{"+proxy|info", "PROXY RELOAD", run + "proxy' command"},
		{"", "GET a", run + "get' command"},
		{"", "AUTH x", ""}, {"", "HELLO 3", ""}, {"", "QUIT", ""}, {"", "RESET", ""}, // as in Redis
		{"+get", "GET a", key},
		{"+get %W~a", "GET a", key},
		{"+get %R~a", "GET a", ""},
		{"+set %W~a", "SET a v", ""},
		{"+set %W~a", "SET a v GET", key},
		{"+set %W~a %R~a", "SET a v get", ""},
		{"+mget ~a*", "MGET a a1 b", key},
		{"+config|get", "CONFIG GET x", ""},
		{"+config|get", "CONFIG SET x y", run + "config|set' command"},
		{"+config|get", "CONFIG", run + "config' command"},
		{"+config -config|set", "CONFIG SET x y", run + "config|set' command"},
		{"+config -config|set", "CONFIG SET\x00 x y", run + "config' command"},
		{"+@all -flushall ~* &*", "FLUSHALL\x00x", run + "flushall' command"},
		{"+@all -flushall ~* &*", "NOSUCH a", run + "nosuch' command"},
		{"+@all ~* &*", "NOSUCH a", ""},
		{"+@all ~*", "NOSUCH a", run + "nosuch' command"},
		{"+@all ~* &*", "config|get x", ""},
		{"+@all -get ~* &*", "config|get x", run + "config|get' command"},
		{"+@all ~a", "FT.SEARCH idx q", key}, // the command may read keys that it does not name
		{"+@all -@write ~*", "json.set a $ 1", run + "json.set' command"},
		{"+@read ~*", "json.get a", run + "json.get' command"},
		{"+json.get ~a", "json.get a", ""},
		{"+json.get %R~a", "json.get a", key}, // the access to the key is unknown
		{"+subscribe &news.*", "SUBSCRIBE news.a news.b", ""},
		{"+subscribe &news.*", "SUBSCRIBE news.a x", channel},
		{"+psubscribe &news.*", "PSUBSCRIBE news.*", ""},
		{"+psubscribe &news.*", "PSUBSCRIBE news.a", channel},
		{"+psubscribe &news.*", "PSUBSCRIBE *", channel},
		{"+unsubscribe", "UNSUBSCRIBE x", ""},
		{"+publish &news.*", "PUBLISH news.a x", ""},
		{"+publish &news.*", "PUBLISH old x", channel},
		{"+get ~a (+set ~b)", "SET b v", ""},
		{"+get ~a (+set ~b)", "SET a v", key},
		{"+get ~a (+set ~b)", "GET b", key},
		{"+get ~a (+set ~b)", "DEL b", run + "del' command"},
		{"+eval ~a*", "EVAL s 2 a1 a2 x", ""},
		{"+eval ~a*", "EVAL s 2 a1 b a", key},
	} {
		if got := parseUser(t, c.rules).Check(syntax.Bytes(strings.Split(c.words, " "))).Error(); got != c.want {
			t.Errorf("%s: %q: got %q, want %q", c.rules, c.words, got, c.want)
		}
	}
}

// TestCheckPrefix checks the beginning of a command that is too long to be held in memory.
// CheckPrefix must deny the command if the missing words could require a permission that the user
// lacks.
func TestCheckPrefix(t *testing.T) {
	for _, c := range []struct {
		rules, words string
		total        int
		allowed      bool
	}{
		{"+set ~a", "SET a", 3, true},
		{"+set ~a", "SET b", 3, false},
		{"+set %W~a", "SET a", 4, false}, // a GET may follow
		{"+set %W~a", "SET a v", 3, true},
		{"+mset ~a", "MSET a v", 5, false},
		{"+eval ~a", "EVAL s 1 a", 6, true},
		{"+eval ~a", "EVAL s 2 a", 6, false},
		{"+sort ~a", "SORT a", 6, false},
		{"+subscribe &a", "SUBSCRIBE a", 3, false},
		{"+@all &* ~*", "SUBSCRIBE a", 3, true},
	} {
		words := syntax.Bytes(strings.Split(c.words, " "))
		if got := parseUser(t, c.rules).CheckPrefix(words, c.total); (got.Cause == NoCause) != c.allowed {
			t.Errorf("%s: %q of %d: %q", c.rules, c.words, c.total, got.Error())
		}
	}
}

// TestDeniedReason checks commands that the user may send, but that the upstream must not run.
func TestDeniedReason(t *testing.T) {
	const script = "NOPERM this user has no permissions to run the 'eval' command at the upstream: the proxy cannot check what a script does there; the user needs ~* &* +@all"
	for _, c := range []struct{ rules, words, want string }{
		{"+eval ~a", "EVAL s 1 a", script},
		{"+@all ~*", "EVAL s 1 a", script},
		{"+@all ~* &* -get", "EVAL s 0", script},
		{"+@all ~* &*", "EVAL s 0", ""},
		{"+get (+@all ~* &*)", "EVAL s 0", ""},
		{"+get ~a", "GET a", ""},
		{"+sort ~a", "SORT a", ""},
		{"+sort ~a", "SORT a BY nosort", ""},
		{"+sort ~a", "SORT a BY w_*", "ERR BY option of SORT denied due to insufficient ACL permissions."},
		{"+sort ~a", "SORT a LIMIT BY 1 GET #", "ERR GET option of SORT denied due to insufficient ACL permissions."},
		{"+sort ~a", "SORT a GET\x00x w_*", "ERR GET option of SORT denied due to insufficient ACL permissions."},
		{"+sort ~a ~*", "SORT a BY w_*", ""},
		{"+sort ~a %R~*", "SORT a BY w_*", ""},
		{"+sort ~a %W~*", "SORT a BY w_*", "ERR BY option of SORT denied due to insufficient ACL permissions."},
		{"+sort ~a (~* +get)", "SORT a BY w_*", "ERR BY option of SORT denied due to insufficient ACL permissions."},
	} {
		if got := parseUser(t, c.rules).DeniedReason(syntax.Bytes(strings.Split(c.words, " "))); got != c.want {
			t.Errorf("%s: %q: got %q, want %q", c.rules, c.words, got, c.want)
		}
	}
}

// TestCheckPassword checks that passwords may be given in plain text or by their hash. A user may
// have several passwords, none, or accept any password.
func TestCheckPassword(t *testing.T) {
	const hash = "2bd806c97f0e00af1a1fc3328fa763a9269723c8db8fac4f93af71db186d6e90" // of alice
	for _, c := range []struct {
		rules, password string
		want            bool
	}{
		{"on >alice", "alice", true}, {"on >alice", "Alice", false}, {"on >alice", "", false},
		{"on #" + hash, "alice", true}, {"off >alice", "alice", false},
		{"on >alice >bob", "bob", true}, {"on >alice >bob <bob", "bob", false},
		{"on >alice !" + hash, "alice", false}, {"on", "", false},
		{"on nopass", "whatever", true}, {"off nopass", "whatever", false}, {"on nopass >alice", "bob", false},
		{"on >alice nopass resetpass", "alice", false}, {"on >", "", true},
	} {
		proof, ok := parseUser(t, c.rules).CheckPassword([]byte(c.password))
		if ok != c.want {
			t.Errorf("%s: %q: %v", c.rules, c.password, ok)
		}
		if ok != (ok && parseUser(t, c.rules).AcceptsPasswordHash(proof)) {
			t.Errorf("%s: the proof of the login is not accepted", c.rules)
		}
	}
	proof, _ := parseUser(t, "on >alice").CheckPassword([]byte("alice"))
	for rules, want := range map[string]bool{"on >alice >bob": true, "on >bob": false, "off >alice": false,
		"on nopass": true, "on": false} {
		if got := parseUser(t, rules).AcceptsPasswordHash(proof); got != want {
			t.Errorf("a client that logged in as alice is one of %s: %v", rules, got)
		}
	}
}

// TestDescribe checks that the description of a user parses to the same user.
func TestDescribe(t *testing.T) {
	for rules, want := range map[string]string{
		"": "user ann off resetchannels -@all",
		"on nopass allkeys allchannels allcommands":        "user ann on nopass ~* &* +@all",
		"on +@all -@dangerous +config|GET ~a %R~b %W~c &x": "user ann on ~a %R~b %W~c resetchannels &x +@all -@dangerous +config|get",
		"+GET|X +select|0 skip-sanitize-payload":           "user ann off skip-sanitize-payload resetchannels -@all +get|X +select|0",
		"(+get ~a) ( +set   &b )":                          "user ann off resetchannels -@all (~a resetchannels -@all +get) (resetchannels &b -@all +set)",
		"on >x (+get) reset":                               "user ann off resetchannels -@all",
		"%R~a %W~a":                                        "user ann off ~a resetchannels -@all",
		"#2bd806c97f0e00af1a1fc3328fa763a9269723c8db8fac4f93af71db186d6e90 clearselectors": "user ann off #2bd806c97f0e00af1a1fc3328fa763a9269723c8db8fac4f93af71db186d6e90 resetchannels -@all",
	} {
		u := parseUser(t, rules)
		if got := u.Describe(); got != want {
			t.Errorf("%s: got %q, want %q", rules, got, want)
		}
		if reparsed := parseUser(t, strings.TrimPrefix(u.Describe(), "user ann ")).Describe(); reparsed != want {
			t.Errorf("%s: read again: %q", rules, reparsed)
		}
	}
}

// TestDefaultUserAndUnchangedUsers checks that the default user is open if the file does not define
// it, as in Redis. Users that a new version of the file does not change keep their identity.
func TestDefaultUserAndUnchangedUsers(t *testing.T) {
	c := catalog()
	read := func(text string) *Set {
		set, err := Parse("f", text, c)
		if err != nil {
			t.Fatal(err)
		}
		return set
	}
	before := read("user ann on >a +get\nuser bob on >b\n")
	if !before.IsOpen() || !before.Find("default").HasAllPermissions() {
		t.Error("the default user is not open")
	}
	after := read("user default off\nuser bob on >b\n\nuser ann on >a +get +set\n")
	after.ReuseUnchanged(before)
	if after.IsOpen() || after.Find("bob") != before.Find("bob") || after.Find("ann") == before.Find("ann") {
		t.Error("ReuseUnchanged does not tell changed users from unchanged ones")
	}
	var names []string
	for _, u := range after.All() {
		names = append(names, u.Name)
	}
	if !slices.Equal(names, []string{"ann", "bob", "default"}) {
		t.Errorf("users %q", names)
	}
}

// TestErrorLimit checks that a file that is not an ACL file gets an error of limited length.
func TestErrorLimit(t *testing.T) {
	_, err := Parse("f", strings.Repeat("x\n", 1_000_000), catalog())
	if err == nil || len(err.Error()) > 10_000 || !strings.HasSuffix(err.Error(), " Further lines were not read.") {
		t.Errorf("%.200v", err)
	}
}

// TestPasswordsInErrors checks that no error reveals a password.
func TestPasswordsInErrors(t *testing.T) {
	for _, rules := range []string{">hush <hushhush", "#hush", "!hush", ">a hush", "hush", "(>hush)", "(>hush",
		"on >hush bad", "~hush ~* ~hush"} {
		_, err := Parse("f", "user ann "+rules, catalog())
		if err == nil || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: %v", rules, err)
		}
	}
}
