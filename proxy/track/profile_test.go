package track

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

const unknownSub = "-ERR unknown subcommand 'X'. Try CLIENT HELP.\r\n"

// What is left on a connection after commands and the upstream's answers to them: what another one is to be given, or more than that.
func TestProfile(t *testing.T) {
	for _, c := range []struct{ name, sent, replies, want string }{
		{"nothing", "PING", "+PONG\r\n", "[]"},
		{"resp3", "HELLO 3", helloMap, "[[HELLO 3]]"},
		{"resp3 and back", "HELLO 3\nHELLO 2", helloMap + helloArray, "[]"},
		{"hello without more", "HELLO", helloArray, "[]"},
		{"hello refused", "HELLO 4", "-NOPROTO x\r\n", "[]"},
		{"hello with a name", "HELLO 3 SETNAME x", helloMap, "[[HELLO 3] [CLIENT SETNAME x]]"},
		{"hello with a name, refused", "HELLO 3 SETNAME x", "-ERR x\r\n", "more"},
		{"hello with two names", "HELLO 3 SETNAME x SETNAME y", helloMap, "more"},
		{"hello with a login", "HELLO 3 AUTH u p", helloMap, "more"},
		{"hello with a wrong login", "HELLO 3 AUTH u p", "-WRONGPASS x\r\n", "more"},
		{"a login", "AUTH p", "+OK\r\n", "more"},
		{"a refused login", "AUTH p", "-WRONGPASS x\r\n", "more"},
		{"a database", "SELECT 7", "+OK\r\n", "[[SELECT 7]]"},
		{"a database and back", "SELECT 7\nSELECT 0", "+OK\r\n+OK\r\n", "[]"},
		{"no database", "SELECT 99", "-ERR DB index is out of range\r\n", "[]"},
		{"a name", "CLIENT SETNAME x", "+OK\r\n", "[[CLIENT SETNAME x]]"},
		{"another name", "CLIENT SETNAME x\nclient setname y", "+OK\r\n+OK\r\n", "[[CLIENT SETNAME y]]"},
		{"a refused name", "CLIENT SETNAME x\nCLIENT SETNAME y", "+OK\r\n-NOPERM x\r\n", "[[CLIENT SETNAME x]]"},
		{"a long name", "CLIENT SETNAME " + strings.Repeat("x", maxLabel+1), "+OK\r\n", "more"},
		{"a long name by hello", "HELLO 2 SETNAME " + strings.Repeat("x", maxLabel+1), helloArray, "more"},
		{"asking for the name", "CLIENT GETNAME", "$-1\r\n", "[]"},
		{"a library", "CLIENT SETINFO lib-name x\nCLIENT SETINFO LIB-VER 1", "+OK\r\n+OK\r\n", "[[CLIENT SETINFO LIB-NAME x] [CLIENT SETINFO LIB-VER 1]]"},
		{"a library that the upstream does not want", "CLIENT SETINFO LIB-NAME x", unknownSub, "[]"},
		{"a new attribute of a library", "CLIENT SETINFO LIB-COLOR x", "+OK\r\n", "more"},
		{"what the upstream does not know", "CLIENT MAINT_NOTIFICATIONS ON", unknownSub, "[]"},
		{"what Redis 6 does not know", "CLIENT SETINFO LIB-NAME x", "-ERR Unknown subcommand or wrong number of arguments for 'X'. Try CLIENT HELP.\r\n", "[]"},
		{"what is not known here", "CLIENT MAINT_NOTIFICATIONS ON", "+OK\r\n", "more"},
		{"what is not known here, refused", "CLIENT MAINT_NOTIFICATIONS ON", "-ERR no\r\n", "more"},
		{"its id", "CLIENT ID", ":7\r\n", "more"},
		{"tracking", "CLIENT TRACKING ON", "+OK\r\n", "more"},
		{"a name in a transaction", "MULTI\nCLIENT SETNAME x\nEXEC", "+OK\r\n+QUEUED\r\n*1\r\n+OK\r\n", "more"},
		{"a database in a transaction", "MULTI\nSELECT 1\nEXEC", "+OK\r\n+QUEUED\r\n*1\r\n+OK\r\n", "more"},
		{"within a transaction", "MULTI", "+OK\r\n", "more"},
		{"after a transaction", "SELECT 1\nMULTI\nGET x\nEXEC", "+OK\r\n+OK\r\n+QUEUED\r\n*1\r\n:1\r\n", "[[SELECT 1]]"},
		{"watched keys", "WATCH x", "+OK\r\n", "more"},
		{"a subscription", "SUBSCRIBE a", acks2("subscribe", "a", 1), "more"},
		{"a subscription and its end", "HELLO 3\nSUBSCRIBE a\nUNSUBSCRIBE a", helloMap + acks3("subscribe", "a", 1) + acks3("unsubscribe", "a", 0), "[[HELLO 3]]"},
		{"RESET", "HELLO 3\nRESET", helloMap + "+RESET\r\n", "more"},
	} {
		for _, whole := range []bool{true, false} {
			l := newLesson()
			l.send(c.sent)
			l.replies(c.replies, whole)
			got := "more"
			if l.Settled() && l.State.IsProfile() {
				got = fmt.Sprint(l.State.Commands(0))
			}
			if got != c.want {
				t.Errorf("%s: got %s, want %s", c.name, got, c.want)
			}
		}
	}
}

// What the client did not want to be answered is not known.
func TestProfileInSilence(t *testing.T) {
	for _, sent := range []string{"CLIENT SETNAME x", "HELLO 3", "HELLO 3 SETNAME x", "SELECT 1", "CLIENT ID"} {
		l := newLesson()
		if l.silent = true; true {
			l.send(sent)
		}
		if l.State.IsProfile() {
			t.Errorf("%s is taken for done, or for not done", sent)
		}
	}
}

// A profile that is put onto a new connection, and followed there, is the same again, whatever it is.
func TestProfilesArePutOnWhole(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	text := func() string { return strings.Repeat("x", random.IntN(3)) }
	for range 500 {
		begins := random.IntN(3)
		want := Profile{2 + random.IntN(2), random.IntN(3), text(), text(), text()}
		l := &lesson{Tracker: NewTracker(begins, false)}
		for _, words := range want.Commands(begins) {
			l.send(strings.Join(words, " "))
			reply := "+OK\r\n"
			if words[0] == "HELLO" {
				reply = helloMap
			}
			l.replies(reply, true)
		}
		if !l.State.IsProfile() || l.State.Profile != want {
			t.Fatalf("got %+v, want %+v", l.State.Profile, want)
		}
	}
}

// FuzzProfile: whatever is sent and answered, what is taken for a profile is made of what was said in words that the table knows.
func FuzzProfile(f *testing.F) {
	f.Add("HELLO 3 SETNAME x\nSELECT 3\nCLIENT SETINFO LIB-NAME l", helloMap+"+OK\r\n+OK\r\n")
	f.Add("MULTI\nCLIENT SETNAME x\nEXEC", "+OK\r\n+QUEUED\r\n*1\r\n+OK\r\n")
	f.Add("AUTH x\nCLIENT ID\nCLIENT NO-EVICT ON", "+OK\r\n:1\r\n+OK\r\n")
	f.Fuzz(func(t *testing.T, sent, replies string) {
		l := newLesson()
		var said []string
		for line := range strings.SplitSeq(sent, "\n") {
			if len(strings.Fields(line)) > 0 {
				said = append(said, line)
				l.send(line)
			}
		}
		l.replies(replies, true)
		if !l.Settled() || !l.State.IsProfile() {
			return
		}
		p := l.State.Profile
		for _, label := range []string{p.Name, p.LibName, p.LibVer} {
			if len(label) > maxLabel || !strings.Contains(strings.Join(said, "\n"), label) {
				t.Errorf("%q was never said", label)
			}
		}
		for _, line := range said {
			words := strings.Fields(strings.ToLower(line))
			if words[0] == "auth" || words[0] == "hello" && strings.Contains(line, " AUTH ") {
				t.Errorf("%q left nothing behind", line)
			}
		}
	})
}
