package commands

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"redlock-proxy/commands/command"
	"redlock-proxy/commands/server"
	"redlock-proxy/quorum"
	"redlock-proxy/quorum/availability"
)

// mergeFixture holds a client of a proxy whose upstream sends the replies of the test.
type mergeFixture struct {
	*testing.T
	table    *Table
	client   *command.Client
	askCount int
}

func newMergeFixture(t *testing.T, proto int, upstream string, err error) *mergeFixture {
	s := &mergeFixture{T: t, client: &command.Client{Proto: proto}}
	s.table = NewRelayTable(Options{
		Locks: fakeLocker{}, Settings: Settings{MaxTTL: time.Hour, MaxClients: 77},
		Server: server.Options{
			Version: "1.2.3", Clients: func() int { return 5 },
			Upstream: func() (string, error) { return "10.0.0.1:6379", err },
			Masters: func() []quorum.MasterStatus {
				return []quorum.MasterStatus{{Name: "m0"}, {Name: "m1", Err: errors.New("no route")}, {Name: "m2"}}
			},
			Availability: func() availability.Inputs { return availability.Inputs{Masters: 3, VotingMasters: 2, Known: true} },
		},
	})
	s.client.Ask = func(context.Context) ([]byte, error) {
		s.askCount++
		return []byte(upstream), err
	}
	return s
}

// ask runs a command, given as words separated by blanks.
func (s *mergeFixture) ask(line string) string {
	var args [][]byte
	for word := range strings.SplitSeq(line, " ") {
		args = append(args, []byte(word))
	}
	out := command.Reply{}
	s.table.Run(s.table.Lookup(args[0]), command.Call{Ctx: s.Context(), Client: s.client, Args: args, Out: &out})
	return string(out.Bytes)
}

// ownEntries returns the entries of the proxy's own commands in COMMAND INFO.
func ownEntries(proto int, names ...string) string {
	table := NewRelayTable(Options{})
	out := command.Reply{Proto: proto}
	for _, name := range names {
		table.Lookup([]byte(name)).WriteInfo(&out)
	}
	return string(out.Bytes)
}

// ownDocs returns the documentation of the proxy's own commands, each after its name.
func ownDocs(proto int, names ...string) string {
	table := NewRelayTable(Options{})
	out := command.Reply{Proto: proto}
	for _, name := range names {
		out.WriteBulk(name)
		table.Lookup([]byte(name)).Docs.Write(&out)
	}
	return string(out.Bytes)
}

var ownNames = []string{"lock", "unlock", "extend", "fence", "mlock", "munlock", "mextend", "lockinfo", "locklist", "forceunlock", "proxy"}

const ownNamesReply = "$4\r\nlock\r\n$6\r\nunlock\r\n$6\r\nextend\r\n$5\r\nfence\r\n" +
	"$5\r\nmlock\r\n$7\r\nmunlock\r\n$7\r\nmextend\r\n$8\r\nlockinfo\r\n$8\r\nlocklist\r\n$11\r\nforceunlock\r\n$5\r\nproxy\r\n"

const getEntry = "*10\r\n$3\r\nget\r\n:2\r\n*2\r\n+readonly\r\n+fast\r\n:1\r\n:1\r\n:1\r\n*1\r\n+@read\r\n*0\r\n*0\r\n*0\r\n"

const invalidCommandReply = "-ERR Invalid command specified\r\n"

// mergeExamples lists replies of the upstream, and the merged replies.
var mergeExamples = []struct {
	line     string
	proto    int
	upstream string
	want     string
}{
	{"COMMAND", 2, "*1\r\n" + getEntry, "*12\r\n" + getEntry + ownEntries(2, ownNames...)},
	{"COMMAND", 3, "*1\r\n" + getEntry, "*12\r\n" + getEntry + ownEntries(3, ownNames...)},
	{"COMMAND", 2, "*0\r\n", "*11\r\n" + ownEntries(2, ownNames...)},
	{"command count", 2, ":240\r\n", ":251\r\n"},
	{"COMMAND COUNT x", 2, "-ERR wrong number of arguments for 'command|count' command\r\n",
		"-ERR wrong number of arguments for 'command|count' command\r\n"},

	{"COMMAND LIST", 2, "*1\r\n$3\r\nget\r\n", "*12\r\n$3\r\nget\r\n" + ownNamesReply},
	{"COMMAND LIST FILTERBY PATTERN *lock", 2, "*0\r\n",
		"*5\r\n$4\r\nlock\r\n$6\r\nunlock\r\n$5\r\nmlock\r\n$7\r\nmunlock\r\n$11\r\nforceunlock\r\n"},
	{"COMMAND LIST filterby pattern L*", 2, "*1\r\n$4\r\nllen\r\n",
		"*4\r\n$4\r\nllen\r\n$4\r\nlock\r\n$8\r\nlockinfo\r\n$8\r\nlocklist\r\n"},
	{"COMMAND LIST FILTERBY PATTERN [a-k]*", 2, "*0\r\n", "*3\r\n$6\r\nextend\r\n$5\r\nfence\r\n$11\r\nforceunlock\r\n"},
	{"COMMAND LIST FILTERBY PATTERN nosuch", 2, "*0\r\n", "*0\r\n"},
	{"COMMAND LIST FILTERBY ACLCAT write", 2, "*1\r\n$3\r\nset\r\n",
		"*8\r\n$3\r\nset\r\n$4\r\nlock\r\n$6\r\nunlock\r\n$6\r\nextend\r\n$5\r\nmlock\r\n$7\r\nmunlock\r\n$7\r\nmextend\r\n$11\r\nforceunlock\r\n"},
	{"COMMAND LIST FILTERBY ACLCAT admin", 2, "*0\r\n", "*2\r\n$11\r\nforceunlock\r\n$5\r\nproxy\r\n"},
	{"COMMAND LIST FILTERBY ACLCAT read", 2, "*1\r\n$3\r\nget\r\n",
		"*4\r\n$3\r\nget\r\n$5\r\nfence\r\n$8\r\nlockinfo\r\n$8\r\nlocklist\r\n"},
	{"COMMAND LIST FILTERBY MODULE m", 2, "*0\r\n", "*0\r\n"},
	{"COMMAND LIST FILTERBY", 2, "-ERR syntax error\r\n", "-ERR syntax error\r\n"},

	{"COMMAND INFO", 2, "*1\r\n" + getEntry, "*12\r\n" + getEntry + ownEntries(2, ownNames...)},
	{"COMMAND INFO get", 2, "*1\r\n" + getEntry, "*1\r\n" + getEntry},
	{"COMMAND INFO LOCK", 2, "*1\r\n*-1\r\n", "*1\r\n" + ownEntries(2, "lock")},
	{"COMMAND INFO lock", 3, "*1\r\n_\r\n", "*1\r\n" + ownEntries(3, "lock")},
	{"COMMAND INFO get lock nosuch unlock get", 2, "*5\r\n" + getEntry + "*-1\r\n*-1\r\n*-1\r\n" + getEntry,
		"*5\r\n" + getEntry + ownEntries(2, "lock") + "*-1\r\n" + ownEntries(2, "unlock") + getEntry},
	// The proxy does not change an unexpected reply.
	{"COMMAND INFO lock", 2, "*2\r\n*-1\r\n*-1\r\n", "*2\r\n*-1\r\n*-1\r\n"},
	{"COMMAND INFO lock get", 2, "*2\r\n*-1\r\n*3\r\n:1\r\n", "*2\r\n*-1\r\n*3\r\n:1\r\n"},

	{"COMMAND DOCS", 2, "*2\r\n$3\r\nget\r\n*0\r\n", "*24\r\n$3\r\nget\r\n*0\r\n" + ownDocs(2, ownNames...)},
	{"COMMAND DOCS", 3, "%1\r\n$3\r\nget\r\n%0\r\n", "%12\r\n$3\r\nget\r\n%0\r\n" + ownDocs(3, ownNames...)},
	{"COMMAND DOCS get", 3, "%1\r\n$3\r\nget\r\n%0\r\n", "%1\r\n$3\r\nget\r\n%0\r\n"},
	{"COMMAND DOCS lock", 2, "*0\r\n", "*2\r\n" + ownDocs(2, "lock")},
	{"COMMAND DOCS get Extend nosuch", 3, "%1\r\n$3\r\nget\r\n%0\r\n", "%2\r\n$3\r\nget\r\n%0\r\n" +
		ownDocs(3, "extend")},

	{"COMMAND GETKEYS lock k t PX 1", 2, invalidCommandReply, "*1\r\n$1\r\nk\r\n"},
	{"COMMAND GETKEYS UNLOCK k t", 3, invalidCommandReply, "*1\r\n$1\r\nk\r\n"},
	{"COMMAND GETKEYS MLOCK 2 a b t PX 1", 2, invalidCommandReply, "*2\r\n$1\r\na\r\n$1\r\nb\r\n"},
	{"COMMAND GETKEYS MUNLOCK 1 a t", 3, invalidCommandReply, "*1\r\n$1\r\na\r\n"},
	{"COMMAND GETKEYS forceunlock k", 2, invalidCommandReply, "*1\r\n$1\r\nk\r\n"},
	{"COMMAND GETKEYSANDFLAGS lockinfo k", 2, invalidCommandReply, "*1\r\n*2\r\n$1\r\nk\r\n*2\r\n+RO\r\n+access\r\n"},
	{"COMMAND GETKEYS locklist", 2, invalidCommandReply, "-ERR The command has no key arguments\r\n"},
	{"COMMAND GETKEYS lock k", 2, invalidCommandReply, "-ERR Invalid number of arguments specified for command\r\n"},
	{"COMMAND GETKEYS proxy info", 2, invalidCommandReply, "-ERR The command has no key arguments\r\n"},
	{"COMMAND GETKEYS lock k t PX 1", 2, "-NOAUTH Authentication required.\r\n", "-NOAUTH Authentication required.\r\n"},
	{"COMMAND GETKEYS get a", 2, "*1\r\n$1\r\na\r\n", "*1\r\n$1\r\na\r\n"},
	{"COMMAND GETKEYS", 2, "-ERR wrong number of arguments\r\n", "-ERR wrong number of arguments\r\n"},
	{"COMMAND GETKEYSANDFLAGS extend k t PX 1", 2, invalidCommandReply, "*1\r\n*2\r\n$1\r\nk\r\n*2\r\n+RW\r\n+update\r\n"},
	{"COMMAND GETKEYSANDFLAGS extend k t PX 1", 3, invalidCommandReply, "*1\r\n*2\r\n$1\r\nk\r\n~2\r\n+RW\r\n+update\r\n"},
	{"COMMAND GETKEYSANDFLAGS MUNLOCK 2 a b t", 2, invalidCommandReply,
		"*2\r\n*2\r\n$1\r\na\r\n*2\r\n+RW\r\n+update\r\n*2\r\n$1\r\nb\r\n*2\r\n+RW\r\n+update\r\n"},
	{"COMMAND GETKEYSANDFLAGS lock k", 2, invalidCommandReply, "-ERR Invalid number of arguments specified for command\r\n"},
	{"COMMAND GETKEYSANDFLAGS lock k t PX 1", 2, "-ERR unknown subcommand 'GETKEYSANDFLAGS'.\r\n",
		"-ERR unknown subcommand 'GETKEYSANDFLAGS'.\r\n"},

	{"COMMAND HELP", 2, "*1\r\n+COMMAND\r\n", "*1\r\n+COMMAND\r\n"},
	{"COMMAND NOSUCH", 2, "-ERR unknown subcommand 'NOSUCH'. Try COMMAND HELP.\r\n",
		"-ERR unknown subcommand 'NOSUCH'. Try COMMAND HELP.\r\n"},
	{"COMMAND", 2, "-NOAUTH Authentication required.\r\n", "-NOAUTH Authentication required.\r\n"},
	{"COMMAND DOCS", 3, "-NOPERM this user has no permissions\r\n", "-NOPERM this user has no permissions\r\n"},
	{"COMMAND LIST", 2, "$-1\r\n", "$-1\r\n"}, // a type of list that no Redis uses
	{"COMMAND COUNT", 2, "+many\r\n", "+many\r\n"},
	{"COMMAND COUNT", 2, "", ""},
}

func TestMergedCommand(t *testing.T) {
	for _, c := range mergeExamples {
		s := newMergeFixture(t, c.proto, c.upstream, nil)
		if got := s.ask(c.line); got != c.want {
			t.Errorf("%s in RESP%d of %.80q:\n got %.400q\nwant %.400q", c.line, c.proto, c.upstream, got, c.want)
		}
		if s.askCount != 1 {
			t.Errorf("%s asked the upstream %d times", c.line, s.askCount)
		}
	}
}

const redlockSection = "# Redlock\r\nredlock_available:yes\r\nredlock_unavailable_cause:\r\nredlock_masters:3\r\nredlock_masters_up:2\r\nredlock_masters_voting:2\r\nredlock_majority:2\r\nredlock_removals_pending:0\r\nredlock_kept_locks:0\r\nredlock_lock_renewals_total:0\r\nredlock_kept_locks_lost_total:0\r\nredlock_master0:address=m0,"

func TestMergedInfo(t *testing.T) {
	text := "# Server\r\nredis_version:7.0.15\r\n"
	bulk := func(s string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(s), s) }
	verbatim := func(s string) string { return fmt.Sprintf("=%d\r\ntxt:%s\r\n", len("txt:")+len(s), s) }
	for _, c := range []struct {
		line       string
		proto      int
		upstream   string
		wantPrefix string // the text after the length
	}{
		{"INFO", 2, bulk(text), text + "\r\n" + redlockSection},
		{"INFO", 3, verbatim(text), "txt:" + text + "\r\n" + redlockSection},
		{"info redlock", 2, bulk(""), redlockSection},
		{"info redlock", 3, verbatim(""), "txt:" + redlockSection},
		{"INFO all", 2, bulk(text), text + "\r\n" + redlockSection},
		{"INFO Everything", 3, verbatim(text), "txt:" + text + "\r\n" + redlockSection},
		{"INFO default", 2, bulk(text), text + "\r\n" + redlockSection},
		{"INFO server REDLOCK", 2, bulk(text), text + "\r\n" + redlockSection},
	} {
		got := newMergeFixture(t, c.proto, c.upstream, nil).ask(c.line)
		kind, size, rest := byte('$'), 0, ""
		if c.proto == 3 {
			kind = '='
		}
		header, rest, _ := strings.Cut(got, "\r\n")
		_, _ = fmt.Sscanf(header[1:], "%d", &size)
		if header[0] != kind || len(rest) != size+2 || !strings.HasPrefix(rest, c.wantPrefix) ||
			!strings.HasSuffix(rest, "\r\n\r\n") {
			t.Errorf("%s in RESP%d of %.80q: %q", c.line, c.proto, c.upstream, got)
		}
	}
	for _, c := range []struct{ line, upstream string }{
		{"INFO server", bulk(text)},
		{"INFO commandstats keyspace", bulk(text)},
		{"INFO nosuch", bulk("")},
		{"INFO", "-NOAUTH Authentication required.\r\n"},
		{"INFO", "-LOADING Redis is loading the dataset in memory\r\n"},
		{"INFO", "+QUEUED\r\n"},
		{"INFO", "$100\r\nshort\r\n"},
		{"INFO", ""},
	} {
		if got := newMergeFixture(t, 2, c.upstream, nil).ask(c.line); got != c.upstream {
			t.Errorf("%s of %q: %q", c.line, c.upstream, got)
		}
	}
}

func TestMergeWithoutUpstream(t *testing.T) {
	down := errors.New("upstream 10.0.0.1:6379: connection refused")
	for _, line := range []string{"INFO", "INFO redlock", "COMMAND", "COMMAND COUNT", "COMMAND GETKEYS lock k t PX 1"} {
		if got := newMergeFixture(t, 2, "", down).ask(line); got != "-ERR "+down.Error()+"\r\n" {
			t.Errorf("%s: %q", line, got)
		}
	}
	got := newMergeFixture(t, 2, "", down).ask("PROXY INFO")
	for _, want := range []string{"proxy_version:1.2.3\r\n", "proxy_connected_clients:5\r\n",
		"proxy_maxclients:77\r\n", "upstream_address:10.0.0.1:6379\r\nupstream_state:down\r\nupstream_cause:" +
			down.Error() + "\r\n", redlockSection} {
		if !strings.Contains(got, want) {
			t.Errorf("PROXY INFO lacks %q: %q", want, got)
		}
	}
	if got := newMergeFixture(t, 3, "", nil).ask("proxy info"); got[0] != '=' ||
		!strings.Contains(got, "upstream_state:up\r\n") {
		t.Errorf("PROXY INFO in RESP3: %q", got)
	}
}

func TestProxyCommand(t *testing.T) {
	for line, want := range map[string]string{
		"PROXY":        "-ERR wrong number of arguments for 'proxy' command\r\n",
		"PROXY NOSUCH": "-ERR unknown subcommand 'NOSUCH'. Try PROXY HELP.\r\n",
		"PROXY INFO x": "-ERR wrong number of arguments for 'proxy|info' command\r\n",
		"PROXY HELP x": "-ERR wrong number of arguments for 'proxy|help' command\r\n",
		"proxy help": "*13\r\n+PROXY <subcommand>. Subcommands are:\r\n+INFO\r\n+    Return the state of the proxy, its upstream and the masters.\r\n" +
			"+PATH <id> [<id> ...]\r\n+    Used between proxies: return whether one of them is its own upstream.\r\n+HEALTH\r\n+    Return whether locks are available. Requires no login.\r\n+RELOAD\r\n+    Reload the configuration. Return what changed, and what requires a restart.\r\n" +
			"+MOVE [BACK | ABORT] [EVENIFOTHERS]\r\n+    Move the locks on lock keys to the masters, or back to the upstream, or abort it. Return the result.\r\n+HELP\r\n+    Print this help.\r\n",
		"PROXY MOVE":            "-ERR this proxy cannot move locks: it has no upstream, or no lock-keys; run the command on a proxy that has both\r\n",
		"PROXY MOVE BACK BACK":  "-ERR syntax error\r\n",
		"PROXY MOVE ABORT BACK": "-ERR syntax error\r\n",
		"PROXY PATH":            "-ERR wrong number of arguments for 'proxy|path' command\r\n",
		"PROXY PATH x":          "+OK\r\n",
	} {
		s := newMergeFixture(t, 2, "", nil)
		if got := s.ask(line); got != want || s.askCount != 0 {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}

// TestCommandsThatRequireLogin checks that only the commands on locks, and PROXY, require a login.
func TestCommandsThatRequireLogin(t *testing.T) {
	table := NewRelayTable(Options{})
	for name, want := range map[string]bool{"lock": true, "unlock": true, "extend": true, "fence": true,
		"mlock": true, "munlock": true, "mextend": true,
		"lockinfo": true, "locklist": true, "forceunlock": true, "proxy": true, "info": false, "command": false} {
		if got := table.Lookup([]byte(name)).RequiresLogin; got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
	for _, name := range []string{"get", "hello", "client", "ping", "select", "quit", "config"} {
		if table.Lookup([]byte(name)) != nil {
			t.Errorf("%s is the upstream's", name)
		}
	}
}

// TestDocsOfAServerWithoutDocs checks the reply if the upstream treats COMMAND DOCS as COMMAND:
// redis-cli would abort when it reads the table of commands.
func TestDocsOfAServerWithoutDocs(t *testing.T) {
	for proto, want := range map[int]string{2: "*2\r\n$5\r\nproxy\r\n", 3: "%1\r\n$5\r\nproxy\r\n"} {
		s := newMergeFixture(t, proto, "*1\r\n*2\r\n$3\r\nget\r\n:2\r\n", nil)
		if got := s.ask("COMMAND DOCS proxy"); !strings.HasPrefix(got, want) {
			t.Errorf("RESP%d: %q, want %q …", proto, got, want)
		}
	}
}
