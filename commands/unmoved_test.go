package commands

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net"
	"regexp"
	"strings"
	"testing"
	"time"

	"redlock-proxy/commands/catalog/keys"
	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/command"
	"redlock-proxy/commands/lockkeys"
	"redlock-proxy/commands/locks"
	"redlock-proxy/commands/locks/audit"
	"redlock-proxy/commands/locks/holders"
	"redlock-proxy/commands/locks/single"
	"redlock-proxy/internal/redistest"
	"redlock-proxy/internal/resp"
	"redlock-proxy/quorum"
)

// unmovedBench has the same commands at masters and at an upstream.
type unmovedBench struct {
	*testing.T
	table    *Table
	upstream map[string]*command.Command
	locks    *single.Locks
	server   *redistest.Server
	log      bytes.Buffer
}

func newUnmovedBench(t *testing.T) *unmovedBench {
	b := &unmovedBench{T: t, server: redistest.New(t, redistest.Options{}), upstream: map[string]*command.Command{}}
	cluster := startCluster(t, 3)
	locker := quorum.NewLocker(cluster)
	log := slog.New(slog.NewTextHandler(&b.log, nil))
	opts := Options{Locks: locker, Register: cluster, Holders: locker, Settings: Settings{MaxTTL: time.Hour}, LockKeys: []string{"k*"}, KeyPrefix: "p:", Logger: log, Audit: log}.orDefault()
	b.table = NewTable(opts)
	b.locks = single.New(single.Options{LockKeys: opts.LockKeys, Name: b.server.Addr})
	t.Cleanup(b.locks.Close)
	place := lockkeys.Places(opts.KeyPrefix, keys.Patterns{}, keys.Patterns{})
	for _, cmd := range (locks.Unmoved{
		Locking: &locks.Locking{Locks: locker, MaxTTL: b.table.current.maxTTL, Place: place, Random: func(p []byte) { _, _ = rand.Read(p) }, Audit: b.table.audit},
		Holders: holders.New(holders.Options{Locks: locker, Place: place, Prefix: opts.KeyPrefix, Logger: log, Audit: audit.New(log)}),
		Locks:   b.locks,
	}).Commands() {
		b.upstream[cmd.Name] = cmd
	}
	return b
}

// connect makes a client with a connection of its own to the upstream.
func (b *unmovedBench) connect(proto int, first ...[]string) *command.Client {
	conn, err := net.Dial("tcp", b.server.Addr())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = conn.Close() })
	in := bufio.NewReader(conn)
	client := newClient()
	client.Proto = proto
	client.Put = func(_ context.Context, words ...string) ([]byte, error) {
		if _, err := conn.Write(resp.AppendWords(nil, words...)); err != nil {
			return nil, err
		}
		return redistest.ReadRaw(in)
	}
	for _, words := range append([][]string{{"HELLO", fmt.Sprint(proto)}}, first...) {
		if reply, err := client.Put(b.Context(), words...); err != nil || resp.Begins(reply, "-") {
			b.Fatalf("%q: %q, %v", words, reply, err)
		}
	}
	return client
}

// put has the upstream itself do something.
func (b *unmovedBench) put(client *command.Client, line string) string {
	reply, err := client.Put(b.Context(), strings.Fields(line)...)
	if err != nil {
		b.Fatal(err)
	}
	return string(reply)
}

// say runs a command of a client at the upstream.
func (b *unmovedBench) say(client *command.Client, line string) string {
	words := strings.Fields(line)
	return b.run(b.upstream[strings.ToLower(words[0])], client, words, &command.Reply{})
}

func (b *unmovedBench) run(cmd *command.Command, client *command.Client, words []string, out *command.Reply) string {
	b.table.Run(cmd, command.Call{Ctx: b.Context(), Client: client, Args: syntax.Bytes(words), Out: out})
	return string(out.Bytes)
}

// varying is what differs from one time to the next, or between the upstream and the masters: times, tokens that were made, who voted, and who
// is known to hold it.
var varying = regexp.MustCompile(`:\d{3,}|waited\r\n:\d+|\$32\r\n[0-9a-f]{32}|(?s)(votes\r\n).*?(\$7\r\nwaiters)|(?s)(since\r\n).*?(\$4\r\naddr\r\n).*?(\$4\r\nname\r\n)(\$\d+\r\n\w+\r\n|\$-1\r\n|_\r\n)`)

// TestUnmovedAsMoved: the same dialogue has the same replies at the upstream and at the masters.
func TestUnmovedAsMoved(t *testing.T) {
	for _, proto := range []int{2, 3} {
		b := newUnmovedBench(t)
		client := b.connect(proto)
		for _, line := range []string{
			"LOCKINFO k", "UNLOCK k t", "EXTEND k t PX 60000", "FORCEUNLOCK k",
			"LOCK k t PX 60000", "LOCK k t PX 60000", "LOCK k u EX 60 AT", "LOCK k u EX 60 BLOCK 1", "LOCK k * PX 60000", "LOCKINFO k", "LOCKLIST", "LOCKLIST MATCH x*", "LOCKLIST COUNT 1",
			"EXTEND k u PX 60000", "EXTEND k t EX 70", "EXTEND k t PX 60000 AT", "EXTEND k t PX 3", "LOCK k t PX 3", "UNLOCK k u", "UNLOCK k t", "UNLOCK k t",
			"LOCK k * PX 60000", "FORCEUNLOCK k", "FORCEUNLOCK k", "LOCK k * PX 60000 AT", "FORCEUNLOCK k", "LOCK k t PX 60000 AT BLOCK 0", "UNLOCK k t",
			"LOCK k t", "LOCK k t PX", "LOCK k t PX 0", "LOCK k t PX x", "LOCK k t PX 60000 BLOCK -1", "LOCK k t EX 3601", "LOCK k t PX 60000 PX 60000", "EXTEND k t PX 60000 FENCE", "UNLOCK k",
			"LOCKINFO", "LOCKLIST COUNT 0", "LOCKLIST NEVER", "FORCEUNLOCK k k",
			"LOCK k \x00redlock:t PX 60000", "EXTEND k \x00redlock:t PX 60000", "UNLOCK k \x00redlock:u", "UNLOCK k \x00redlock:t",
		} {
			words := strings.Fields(line)
			here := varying.ReplaceAllString(b.say(client, line), "$1$2$3$4$5")
			there := varying.ReplaceAllString(b.run(b.table.Lookup([]byte(words[0])), client, words, &command.Reply{}), "$1$2$3$4$5")
			if here != there {
				t.Errorf("RESP%d, %s: %q, at the masters %q", proto, line, here, there)
			}
		}
	}
}

// TestUnmovedOfOneServer: what is so at the upstream alone.
func TestUnmovedOfOneServer(t *testing.T) {
	b := newUnmovedBench(t)
	client := b.connect(2)
	expect := func(line, want string) {
		t.Helper()
		if got := b.say(client, line); !regexp.MustCompile("^" + want + "$").MatchString(got) {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
	noFence := "-ERR FENCE needs the locks on the masters: it comes after 'redlock-proxy move' \\(docs/migration.md\\)\r\n"
	expect("LOCK k t PX 60000 FENCE", noFence)
	expect("FENCE k", noFence)
	expect("LOCK k t PX 60000", ":593\\d\\d\r\n")
	if got := b.put(client, "GET k"); got != "$1\r\nt\r\n" {
		t.Errorf("the upstream holds %q", got)
	}
	expect("LOCK other t PX 60000", ":593\\d\\d\r\n")
	if got := b.put(client, "EXISTS other"); got != ":0\r\n" {
		t.Errorf("a lock of the masters is at the upstream: %q", got)
	}
	expect("LOCK other t PX 60000 FENCE", "\\$-1\r\n")
	expect("FENCE other", "\\$-1\r\n")
	list := b.say(client, "LOCKLIST")
	if !strings.HasPrefix(list, "*2\r\n") || !strings.Contains(list, "\r\nk\r\n") || !strings.Contains(list, "\r\nother\r\n") {
		t.Errorf("listed: %q", list)
	}

	for kind, made := range map[string]string{"hash": "HSET k t 1", "zset": "ZADD k 1 t", "list": "RPUSH k t"} {
		b.put(client, "DEL k")
		b.put(client, made)
		expect("LOCK k t PX 60000", "\\$-1\r\n")
		expect("UNLOCK k t", ":0\r\n")
		expect("EXTEND k t PX 60000", "\\$-1\r\n")
		addr := b.server.Addr()
		expect("LOCKINFO k", regexp.QuoteMeta(fmt.Sprintf(
			"*16\r\n$5\r\nstate\r\n$4\r\nheld\r\n$4\r\nleft\r\n:-1\r\n$5\r\nvotes\r\n*2\r\n$%d\r\n%s\r\n$%d\r\nheld (%s)\r\n$7\r\nwaiters\r\n:0\r\n"+
				"$5\r\nfence\r\n$-1\r\n$5\r\nsince\r\n$-1\r\n$4\r\naddr\r\n$-1\r\n$4\r\nname\r\n$-1\r\n", len(addr), addr, len(kind)+7, kind)))
		expect("FORCEUNLOCK k", ":1\r\n")
	}
	token := "\x00redlock:l"
	expect("LOCK k "+token+" PX 60000", ":593\\d\\d\r\n")
	if got := b.put(client, "GET k"); got != fmt.Sprintf("$%d\r\n%s\r\n", len(token), token) {
		t.Errorf("the upstream holds %q", got)
	}
	expect("UNLOCK k "+token, ":1\r\n")
	for _, want := range []string{"action=granted", "action=forced", "FORCEUNLOCK"} {
		if !strings.Contains(b.log.String(), want) {
			t.Errorf("%q is not in the log", want)
		}
	}
}

// TestUnmovedErrors: what the upstream refuses to the client is its reply, and so is that it cannot be asked.
func TestUnmovedErrors(t *testing.T) {
	b := newUnmovedBench(t)
	root := b.connect(2)
	b.put(root, "ACL SETUSER few on >pw ~free* +@all -type")
	b.put(root, "ACL SETUSER blind on >pw ~k* +@all -get")
	b.put(root, "SET k t")
	few, blind := b.connect(2, []string{"AUTH", "few", "pw"}), b.connect(2, []string{"AUTH", "blind", "pw"})
	for line, same := range map[string]string{
		"LOCK k t PX 60000": "SET k t NX PX 60000", "UNLOCK k t": "DEL k", "EXTEND k t PX 60000": "DEL k", "FORCEUNLOCK k": "DEL k", "LOCKINFO k": "PTTL k",
	} {
		if got, want := b.say(few, line), b.put(few, same); got != want || !strings.HasPrefix(got, "-NOPERM ") {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
	for _, line := range []string{"UNLOCK k t", "EXTEND k t PX 60000"} { // not to be taken for a lock that another has
		if got := b.say(blind, line); !strings.HasPrefix(got, "-") || !strings.Contains(got, "permission") && !strings.Contains(got, "can't run this command") {
			t.Errorf("%s: %q", line, got)
		}
	}
	few.Put = func(context.Context, ...string) ([]byte, error) { return nil, fmt.Errorf("the client gets no replies") }
	for _, line := range []string{"LOCK k t PX 60000", "LOCK k t PX 60000 BLOCK 0", "UNLOCK k t", "EXTEND k t PX 60000", "FORCEUNLOCK k", "LOCKINFO k", "LOCKLIST"} {
		if got := b.say(few, line); got != "-ERR the client gets no replies\r\n" {
			t.Errorf("%s: %q", line, got)
		}
	}
}

// TestRunAgain: a LOCK that is run again where the locks are now has waited since it came.
func TestRunAgain(t *testing.T) {
	b := newUnmovedBench(t)
	client := b.connect(2)
	for _, lock := range []*command.Command{b.upstream["lock"], b.table.Lookup([]byte("lock"))} {
		for _, want := range []string{`\*4\r\n\$8\r\nvalidity\r\n:\d+\r\n\$6\r\nwaited\r\n:36\d{5}\r\n`, `\$-1\r\n`} {
			var out command.Reply
			words := strings.Fields("LOCK k t PX 60000 AT BLOCK 1800000")
			b.table.Run(lock, command.Call{Ctx: b.Context(), Client: client, Args: syntax.Bytes(words), Out: &out, Came: time.Now().Add(-time.Hour)})
			if got := string(out.Bytes); !regexp.MustCompile("^" + want + "$").MatchString(got) {
				t.Errorf("%q, want %q", got, want)
			}
		}
	}
}

// TestUnmovedUndelivered: a lock whose reply did not reach its client is left to its TTL.
func TestUnmovedUndelivered(t *testing.T) {
	b := newUnmovedBench(t)
	client := b.connect(2)
	var out command.Reply
	b.run(b.upstream["lock"], client, strings.Fields("LOCK k t PX 60000"), &out)
	out.Undelivered()
	if got := b.put(client, "GET k"); got != "$1\r\nt\r\n" || !strings.Contains(b.log.String(), "action=withdrawn") {
		t.Errorf("the upstream holds %q; logged: %s", got, b.log.String())
	}
}

// TestUnmovedNamesNoServers: clients are led to no other server while the locks are at the upstream, either.
func TestUnmovedNamesNoServers(t *testing.T) {
	opts := Options{Locks: fakeLocker{}, LockKeys: []string{"lock:*"}}
	moved := NewRelayTable(opts)
	locks := single.New(single.Options{LockKeys: opts.LockKeys, Name: func() string { return "" }})
	t.Cleanup(locks.Close)
	text := "# Replication\r\nrole:master\r\nslave0:ip=10.0.0.2,port=6379\r\n"
	for _, c := range []struct{ line, upstream, want string }{
		{"INFO replication", fmt.Sprintf("$%d\r\n%s\r\n", len(text), text), "$28\r\n# Replication\r\nrole:master\r\n\r\n"},
		{"ROLE", "*3\r\n$6\r\nmaster\r\n:9\r\n*1\r\n*3\r\n$8\r\n10.0.0.2\r\n$4\r\n6379\r\n$1\r\n9\r\n", "*3\r\n$6\r\nmaster\r\n:9\r\n*0\r\n"},
		{"CLUSTER SLOTS", "*0\r\n", "-ERR This instance has cluster support disabled\r\n"},
	} {
		s := newSplicing(t, 2, c.upstream, nil)
		s.table = NewUnmovedTable(moved, opts, locks)
		words := syntax.Bytes(strings.Fields(c.line))
		if s.table.Lookup(words[0]) == nil {
			t.Errorf("%s is passed on", c.line)
		} else if got := s.ask(c.line); got != c.want {
			t.Errorf("%s: %q", c.line, got)
		}
		multi := Situation{Upstream: Connection{Settled: true, Multi: true}}
		if d := s.table.Route(multi, words); d.Verb != Spoil {
			t.Errorf("%s in MULTI: %v", c.line, d.Verb)
		}
	}
}
