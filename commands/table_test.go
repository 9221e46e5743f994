package commands

import (
	"fmt"
	"strings"
	"testing"

	"redlock-proxy/commands/command"
	"redlock-proxy/internal/resp"
)

func TestLookup(t *testing.T) {
	table := newFixture(t).table
	for name, want := range map[string]string{
		"lock": "lock", "LOCK": "lock", "LoCk": "lock", "unlock": "unlock", "Extend": "extend", "PING": "ping",
		"": "", "LOC": "", "LOCKS": "", "lock\x00": "", " lock": "", "get": "", "LOC\u212a": "", "c\u0131ient": "",
		strings.Repeat("l", 32): "", strings.Repeat("l", 33): "", strings.Repeat("lock", 1000): "",
	} {
		got := ""
		if cmd := table.Lookup([]byte(name)); cmd != nil {
			got = cmd.Name
		}
		if got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

// listedCommands returns the commands that COMMAND lists, and checks that Lookup finds each of
// them.
func (b *fixture) listedCommands() (all []*command.Command) {
	b.Helper()
	for _, name := range resp.Texts([]byte(b.ask("COMMAND", "LIST"))) {
		cmd := b.table.Lookup([]byte(strings.ToUpper(name)))
		if cmd == nil || cmd.Name != name {
			b.Fatalf("%s is not found", name)
		}
		all = append(all, cmd)
	}
	if len(all) < 15 {
		b.Fatalf("only %d commands are listed", len(all))
	}
	return all
}

func TestUnknownCommand(t *testing.T) {
	long := strings.Repeat("x", 300)
	tests := []struct {
		words []string
		want  string
	}{
		{[]string{"foo"}, "-ERR unknown command 'foo', with args beginning with: \r\n"},
		{[]string{""}, "-ERR unknown command '', with args beginning with: \r\n"},
		{[]string{"FoO", "bar", ""}, "-ERR unknown command 'FoO', with args beginning with: 'bar' '' \r\n"},
		{[]string{"f\x00oo", "b\x00ar", "\x00"}, "-ERR unknown command 'f', with args beginning with: 'b' '' \r\n"},
		{[]string{"f\r\n+oo", "'\"", "\n\r"}, "-ERR unknown command 'f  +oo', with args beginning with: ''\"' '  ' \r\n"},
		{[]string{"\xff\xfe", "\x80"}, "-ERR unknown command '\xff\xfe', with args beginning with: '\x80' \r\n"},
		{[]string{long, long}, fmt.Sprintf("-ERR unknown command '%.128s', with args beginning with: '%.128s' \r\n",
			long, long)},
		{[]string{"foo", "1", long},
			fmt.Sprintf("-ERR unknown command 'foo', with args beginning with: '1' '%.124s' \r\n", long)},
		{strings.Fields("foo" + strings.Repeat(" ab", 100)), "-ERR unknown command 'foo', with args beginning with: " +
			strings.Repeat("'ab' ", 26) + "\r\n"},
	}
	for _, test := range tests {
		if got := newFixture(t).ask(test.words...); got != test.want {
			t.Errorf("%.80q:\n got %q\nwant %q", test.words, got, test.want)
		}
	}
}

func TestArity(t *testing.T) {
	b := newFixture(t)
	for _, cmd := range b.listedCommands() {
		minWords := max(cmd.Arity, -cmd.Arity)
		usage := ""
		if cmd.IsOwn() && len(cmd.Docs.Args) > 0 {
			usage = ": " + cmd.Usage()
		}
		wrong := fmt.Sprintf("-ERR wrong number of arguments for '%s' command%s\r\n", cmd.Name, usage)
		if minWords > 1 {
			b.expect(cmd.Name+strings.Repeat(" x", minWords-2), wrong)
		}
		if cmd.Arity > 0 {
			b.expect(cmd.Name+strings.Repeat(" x", minWords), wrong)
		}
	}
	b.expectCalls()
}

func TestClientReply(t *testing.T) {
	const pong, unknownError, ok = "+PONG\r\n", "-ERR unknown command 'foo', with args beginning with: \r\n", "+OK\r\n"
	const busyError = "-ERR busy\r\n"
	tests := [][2]string{
		{"OFF; PING; foo; PING x y; on", ok},
		{"OFF; PING; on; PING", ok + pong},
		{"off; LOCK k t PX 10000; on; UNLOCK k t", ok + ":1\r\n"},
		{"SKIP; PING; foo", unknownError},
		{"SKIP; foo; PING", pong},
		{"SKIP; PING x y; PING", pong},
		{"SKIP; SKIP; PING; PING", pong},
		{"SKIP; on; PING", ok + pong},
		{"SKIP; OFF; PING; on", ok},
		{"OFF; SKIP; PING; on", ok},
		{"SKIP; sometimes; PING", pong},
		{"sometimes; PING", "-ERR syntax error\r\n" + pong},
		{"PING; OFF; PING; QUIT", pong},
		{"OFF; RESET; PING", "+RESET\r\n" + pong},
		{"SKIP; RESET; PING", pong},
		{"PING; OFF; PING; on", pong + ok},
		{"OFF; refuse; on; refuse", ok + busyError},
		{"SKIP; refuse; refuse", busyError},
	}
	for _, test := range tests {
		b := newFixture(t)
		for line := range strings.SplitSeq(test[0], "; ") {
			switch line {
			case "OFF", "off", "on", "SKIP", "sometimes":
				b.askLine("CLIENT REPLY " + line)
			case "refuse":
				b.client.Refuse("ERR busy", &b.out)
			default:
				b.askLine(line)
			}
		}
		if got := string(b.out.Bytes); got != test[1] {
			t.Errorf("%s: %q, want %q", test[0], got, test[1])
		}
	}
}

// TestSilentGrant checks that a grant with a suppressed reply is still a grant. The proxy undoes
// the grant only if the connection fails.
func TestSilentGrant(t *testing.T) {
	b := newFixture(t)
	b.askLine("CLIENT REPLY OFF")
	b.askLine("LOCK k t PX 10000")
	b.expectCalls("lock 0/k by t for 10s, waiting 0s")
	b.out.UndoUndelivered()
	b.expectCalls("withdraw 0/k of t")
}
