package commands

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/command"
	"redlock-proxy/quorum"
)

// TestLocksAtUpstream checks that the lock commands fail on lock keys while the locks are at the
// upstream. For other keys, they use the masters.
func TestLocksAtUpstream(t *testing.T) {
	cluster := startCluster(t, 3)
	locker := quorum.NewLocker(cluster)
	opts := Options{Locks: locker, Register: cluster, Holdings: locker, Settings: Settings{MaxTTL: time.Hour},
		LockKeys: []string{"k*"}}
	table := NewTableAtUpstream(NewRelayTable(opts), opts)
	for _, c := range []struct{ line, wantOtherKey string }{
		{"LOCK k t PX 60000", ":5"}, {"LOCK k t PX 60000 BLOCK 0 FENCE", ""}, {"EXTEND k t PX 60000", ":"},
		{"LOCKINFO k", "*18\r\n"}, {"FENCE k", "$-1\r\n"},
		{"MLOCK 2 a k t PX 60000", ""}, {"MUNLOCK 1 k t", ""}, {"MEXTEND 2 a k t PX 60000", ""},
		{"UNLOCK k t", ":1\r\n"}, {"FORCEUNLOCK k", ":0\r\n"}, {"LOCKLIST", ""},
	} {
		words := strings.Fields(c.line)
		want := "-ERR " + words[0] + " needs the locks on the masters: they are at the upstream; run 'redlock-proxy move' first, or use Redis' own commands, such as SET NX PX\r\n"
		if got := replyOf(t, table, words, time.Time{}); got != want {
			t.Errorf("%s: %q, want %q", c.line, got, want)
		}
		if c.wantOtherKey == "" {
			continue
		}
		words[1] = "other"
		if got := replyOf(t, table, words, time.Time{}); !strings.HasPrefix(got, c.wantOtherKey) {
			t.Errorf("%q: %q, want %q", words, got, c.wantOtherKey)
		}
	}
	if got := replyOf(t, table, []string{"UNLOCK", "k"}, time.Time{}); !strings.HasPrefix(got,
		"-ERR wrong number of arguments for 'unlock' command") {
		t.Errorf("UNLOCK k: %q", got)
	}
}

// replyOf returns the reply of a table to a command that arrived at a time; zero means now.
func replyOf(t *testing.T, table *Table, words []string, arrival time.Time) string {
	t.Helper()
	var out command.Reply
	table.Run(table.Lookup([]byte(words[0])),
		command.Call{Ctx: t.Context(), Client: newClient(), Args: syntax.Bytes(words), Out: &out, FirstArrival: arrival})
	return string(out.Bytes)
}

// TestSecondRun checks that the wait of a LOCK counts from its first arrival if the LOCK runs
// again, as after an aborted move of the locks.
func TestSecondRun(t *testing.T) {
	table := NewTable(Options{Locks: quorum.NewLocker(startCluster(t, 3)), Settings: Settings{MaxTTL: time.Hour}})
	words, arrival := strings.Fields("LOCK k t PX 60000 AT BLOCK 1800000"), time.Now().Add(-time.Hour)
	if got := replyOf(t, table, words, arrival); !strings.HasPrefix(got, "*4\r\n$8\r\nvalidity\r\n:") ||
		!strings.Contains(got, "\r\nwaited\r\n:36") {
		t.Errorf("it is free: %q", got)
	}
	if got := replyOf(t, table, words, arrival); got != "$-1\r\n" {
		t.Errorf("it is held: %q", got)
	}
}

// TestNoServerNamesWhileAtUpstream checks that replies name no other server while the locks are at
// the upstream.
func TestNoServerNamesWhileAtUpstream(t *testing.T) {
	opts := Options{Locks: fakeLocker{}, LockKeys: []string{"lock:*"}}
	moved := NewRelayTable(opts)
	text := "# Replication\r\nrole:master\r\nslave0:ip=10.0.0.2,port=6379\r\n"
	for _, c := range []struct{ line, upstream, want string }{
		{"INFO replication", fmt.Sprintf("$%d\r\n%s\r\n", len(text), text), "$28\r\n# Replication\r\nrole:master\r\n\r\n"},
		{"ROLE", "*3\r\n$6\r\nmaster\r\n:9\r\n*1\r\n*3\r\n$8\r\n10.0.0.2\r\n$4\r\n6379\r\n$1\r\n9\r\n",
			"*3\r\n$6\r\nmaster\r\n:9\r\n*0\r\n"},
		{"CLUSTER SLOTS", "*0\r\n", "-ERR This instance has cluster support disabled\r\n"},
	} {
		s := newMergeFixture(t, 2, c.upstream, nil)
		s.table = NewTableAtUpstream(moved, opts)
		words := syntax.Bytes(strings.Fields(c.line))
		if s.table.Lookup(words[0]) == nil {
			t.Errorf("%s is passed on", c.line)
		} else if got := s.ask(c.line); got != c.want {
			t.Errorf("%s: %q", c.line, got)
		}
		multi := Situation{Upstream: Connection{Settled: true, Multi: true}}
		if d := s.table.Route(multi, words); d.Action != AbortUpstreamTx {
			t.Errorf("%s in MULTI: %v", c.line, d.Action)
		}
	}
}
