package commands

import (
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"redlock-proxy/internal/redistest"
	"redlock-proxy/internal/resp"
)

// startRedis starts a redis-server for the test, and returns its socket.
func startRedis(t *testing.T) (socket string) {
	t.Helper()
	return redistest.New(t, redistest.Options{Socket: true}).Socket()
}

// askRedis sends commands and then closingCommands over a new connection, and returns all replies.
func askRedis(t *testing.T, socket string, commands [][]string) string {
	t.Helper()
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	var request []byte
	for _, words := range slices.Concat(commands, closingCommands) {
		request = resp.AppendWords(request, words...)
	}
	_, _ = conn.Write(request) // after QUIT, Redis may close the connection before it reads the rest
	answer, err := io.ReadAll(conn)
	if err != nil && !errors.Is(err, syscall.ECONNRESET) {
		t.Fatalf("%q: %v", commands, err)
	}
	return string(answer)
}

// closingCommands makes Redis close the connection after the last reply. Redis does not close it
// after a QUIT without reply.
var closingCommands = [][]string{{"CLIENT", "REPLY", "ON"}, {"QUIT"}}

// askProxy runs commands and then closingCommands for a client of the table, and returns all
// replies.
func askProxy(t *testing.T, commands [][]string) string {
	b := newFixture(t)
	for _, words := range slices.Concat(commands, closingCommands) {
		if b.ask(words...); b.client.Closing {
			break
		}
	}
	return string(b.out.Bytes)
}

// parseDialogue splits a text at "; " into commands, and each command at blanks into words.
func parseDialogue(text string) (commands [][]string) {
	for line := range strings.SplitSeq(text, "; ") {
		commands = append(commands, strings.Split(line, " "))
	}
	return commands
}

// maskVariableValues hides values that differ between any two servers.
func maskVariableValues(replies string) string {
	replies = maskVersion.ReplaceAllString(replies, "${1}<version>\r\n")
	return maskID.ReplaceAllString(replies, "${1}<id>\r\n")
}

var (
	maskVersion = regexp.MustCompile(`(\$7\r\nversion\r\n)\$\d+\r\n[0-9.]+\r\n`)
	maskID      = regexp.MustCompile(`(\$2\r\nid\r\n):\d+\r\n`)
)

// redisDialogues lists conversations in which each byte must be the same as from Redis. Only the
// version and the ID of the client may differ.
var redisDialogues = []string{
	"HELLO", "HELLO 2", "HELLO 3", "HELLO 3; HELLO; HELLO 2", "hello 3 setname x; client getname",
	"HELLO 3 AUTH default any",
	"HELLO 3 AUTH default any SETNAME x; CLIENT GETNAME", "HELLO 3 SETNAME x AUTH default any; CLIENT GETNAME",
	"HELLO 3 SETNAME x SETNAME y; CLIENT GETNAME",
	"HELLO 0", "HELLO 1", "HELLO 4", "HELLO -3", "HELLO x", "HELLO ", "HELLO 3.0", "HELLO +3", "HELLO 03",
	"HELLO 9223372036854775808",
	"HELLO 4 foo", "HELLO x foo", "HELLO 3 foo", "HELLO 3 setname", "HELLO 3 AUTH", "HELLO 3 AUTH default",
	"HELLO 3 AUTH default x foo; PING", "HELLO 3 AUTH bad x; CLIENT GETNAME", "HELLO 3 AUTH bad x SETNAME",
	"HELLO 3 AUTH DEFAULT x",
	"HELLO 3 \u017fetname x", "HELLO 2 SETNAME ; CLIENT GETNAME",

	"AUTH", "AUTH x", "AUTH default x", "AUTH default ", "AUTH DEFAULT x", "AUTH foo x", "AUTH a b c",
	"PING", "ping x", "PING ", "PING x y", "PiNg", "ECHO", "ECHO x", "ECHO x y", "ECHO ", "QUIT; PING",
	"QUIT x y; PING", "PING; QUIT; PING",
	"TIME x", "RESET", "RESET x", "SELECT 3; HELLO 3 SETNAME x; RESET; CLIENT GETNAME",
	"SELECT 0", "SELECT 15", "SELECT 16", "SELECT -1", "SELECT", "SELECT 1 2", "SELECT x", "SELECT ", "SELECT 01",
	"SELECT +1", "SELECT 1.0",
	"SELECT 2147483647", "SELECT 2147483648", "SELECT -2147483648", "SELECT -2147483649",
	"SELECT 9223372036854775807", "SELECT 9223372036854775808",

	"CLIENT", "CLIENT foo", "CLIENT ", "client Foo bar", "CLIENT \u0130D", "CLIENT ID x", "CLIENT GETNAME",
	"HELLO 3; CLIENT GETNAME", "CLIENT GETNAME x",
	"CLIENT SETNAME", "CLIENT SETNAME x; CLIENT GETNAME; CLIENT SETNAME ; CLIENT GETNAME", "CLIENT SETNAME x y",
	"client SetName x\ty", "CLIENT SETNAME \u00fc", "CLIENT SETNAME ~!",
	"CLIENT INFO x", "CLIENT REPLY", "CLIENT REPLY foo", "CLIENT REPLY ON x", "CLIENT NO-EVICT",
	"CLIENT NO-EVICT ON; CLIENT no-evict off", "CLIENT NO-EVICT foo", "CLIENT NO-EVICT ON x",
	"ROLE", "ROLE x", "WAIT 0 10", "WAIT x 10", "WAIT 0 x", "WAIT 0 -1", "WAIT 0",
	"CLIENT MAINT_NOTIFICATIONS ON moving-endpoint-type internal-ip", "CLIENT HELP x",
	"PING; CLIENT REPLY OFF; PING; foo; CLIENT REPLY ON; PING", "CLIENT REPLY SKIP; foo; PING",
	"CLIENT REPLY SKIP; CLIENT REPLY SKIP; PING; PING",
	"CLIENT REPLY SKIP; CLIENT REPLY ON; PING", "CLIENT REPLY SKIP; CLIENT REPLY OFF; PING; CLIENT REPLY ON",
	"CLIENT REPLY OFF; CLIENT REPLY SKIP; PING; CLIENT REPLY ON",
	"CLIENT REPLY SKIP; CLIENT REPLY foo; PING", "CLIENT REPLY OFF; RESET; PING", "CLIENT REPLY SKIP; RESET; PING",
	"CLIENT REPLY OFF; PING x y; HELLO 3; CLIENT REPLY ON; CLIENT GETNAME",

	"CONFIG", "CONFIG GET", "CONFIG foo", "CONFIG foo bar", "CONFIG GET save", "CONFIG GET appendonly",
	"config get SAVE", "HELLO 3; CONFIG GET save", "CONFIG GET SaVe SAVE s?ve", "CONFIG GET s?ve SAVE",
	"CONFIG GET s\\ave", "CONFIG GET nothing", "HELLO 3; CONFIG GET nothing",
	"CONFIG GET databases", "CONFIG GET timeout", "CONFIG GET replica-read-only", "CONFIG GET slave-read-only",
	"CONFIG GET notify-keyspace-events", "CONFIG GET proto-max-bulk-len", "CONFIG GET s?ve", "CONFIG GET [^x]av\\e",
	"COMMAND COUNT x", "COMMAND LIST x", "COMMAND foo", "command Foo bar", "COMMAND GETKEYS",
	"COMMAND GETKEYS foo x y", "COMMAND GETKEYS ping x y",
	"COMMAND INFO foo", "COMMAND INFO foo bar; HELLO 3; COMMAND INFO foo", "COMMAND DOCS foo",
	"HELLO 3; COMMAND DOCS foo", "COMMAND INFO ",
	"CLUSTER", "CLUSTER INFO", "CLUSTER NODES", "cluster slots", "READONLY", "READONLY x", "INFO foo", "INFO foo bar",
	"HELLO 3; INFO foo",

	"SENTINEL MASTERS", "foo", "FOO bar", "foo  bar ", " ", "lockx k t", "CLIENT|SETNAME x",
	"foo " + strings.Repeat("ab ", 60), "foo" + strings.Repeat(" ", 100),
	strings.Repeat("foo", 100) + " " + strings.Repeat("bar", 100),
	"foo " + strings.Repeat("a", 123) + " bcdefg", "foo " + strings.Repeat("a", 125) + " bcdefg",
	"foo " + strings.Repeat("a", 126) + " b", strings.Repeat("f", 128), strings.Repeat("f", 129),
}

// exoticWords lists unusual words of a command.
var exoticWords = []string{"", "a b", "a\x00b", "\x00", "a\r\nb", "\r\n", "\n", "'", "\"", "\\", "\xff\xfe", "é",
	"-", "+OK", "$-1", "*", "%s%n",
	strings.Repeat("x", 127), strings.Repeat("x", 128), strings.Repeat("x", 129),
	strings.Repeat("\xc3", 200), strings.Repeat("long ", 4000)}

func TestRepliesAgainstRedis(t *testing.T) {
	socket := startRedis(t)
	connections := [][][]string{}
	for _, text := range redisDialogues {
		connections = append(connections, parseDialogue(text))
	}
	for _, w := range exoticWords {
		connections = append(connections, [][]string{{w}}, [][]string{{"foo", w}}, [][]string{{w, w, w}},
			[][]string{{"client", w}}, [][]string{{"CONFIG", w, w}},
			[][]string{{"COMMAND", w}}, [][]string{{"COMMAND", "INFO", w}}, [][]string{{"HELLO", w}},
			[][]string{{"HELLO", "3", w}},
			[][]string{{"CLIENT", "SETNAME", w}, {"CLIENT", "GETNAME"}},
			[][]string{{"HELLO", "2", "SETNAME", w}, {"CLIENT", "GETNAME"}},
			[][]string{{"HELLO", "2", "AUTH", w, w}}, [][]string{{"AUTH", w}},
			[][]string{{"AUTH", w, "x"}}, [][]string{{"AUTH", "default", w}},
			[][]string{{"SELECT", w}}, [][]string{{"PING", w}}, [][]string{{"ECHO", w}},
			[][]string{{"CLIENT", "REPLY", w}, {"PING"}}, [][]string{{"CLIENT", "NO-EVICT", w}})
	}
	for _, commands := range connections {
		proxyReply, redisReply := maskVariableValues(askProxy(t, commands)), maskVariableValues(askRedis(t, socket, commands))
		if proxyReply != redisReply {
			t.Errorf("%.200q:\n ours %.400q\nredis %.400q", commands, proxyReply, redisReply)
		}
	}
}

// TestConfigGetLikeRedis checks that patterns of CONFIG GET match the same settings as in Redis.
func TestConfigGetLikeRedis(t *testing.T) {
	socket := startRedis(t)
	all := readReplies(t, askProxy(t, parseDialogue("HELLO 3; CONFIG GET *")))[1]
	pieces := []string{"*", "*", "?", "[a-m]", "[^a-m]", "s", "a", "e", "-", "t", `\`, "[", "]", "i", "S", "E", "re",
		"ly", "max", "x"}
	for seed := range uint64(1000) {
		random := rand.New(rand.NewPCG(2, seed))
		pattern := ""
		for range 1 + random.IntN(8) {
			pattern += pieces[random.IntN(len(pieces))]
		}
		commands := [][]string{{"HELLO", "3"}, {"CONFIG", "GET", pattern}}
		proxyReply, redisReply := readReplies(t, askProxy(t, commands))[1], readReplies(t, askRedis(t, socket, commands))[1]
		for i := 0; i < len(all.elements); i += 2 {
			name := all.elements[i].text
			_, found := proxyReply.entry(name)
			if _, want := redisReply.entry(name); found != want {
				t.Errorf("CONFIG GET %q finds %s: %v, in Redis: %v", pattern, name, found, want)
			}
		}
	}
}

// differences lists the replies that deliberately differ from Redis 7.0, with the reason.
var differences = []struct {
	reason, commands, want string
}{
	{"Redis 7.2, which the proxy takes after, takes the name only if all of HELLO is right",
		"HELLO 3 SETNAME x foo; CLIENT GETNAME", "-ERR Syntax error in HELLO option 'foo'\r\n$-1\r\n"},
	{"the same", "HELLO 3 SETNAME x AUTH bad x; CLIENT GETNAME",
		"-WRONGPASS invalid username-password pair or user is disabled.\r\n$-1\r\n"},
	{"Redis 7.2 has CLIENT SETINFO", "CLIENT SETINFO LIB-NAME redis-py; client setinfo lib-ver 8.0.0", "+OK\r\n+OK\r\n"},
	{"the same", "CLIENT SETINFO foo bar", "-ERR Unrecognized option 'foo'\r\n"},
	{"the same", "CLIENT SETINFO Lib-Name a\tb",
		"-ERR Lib-Name cannot contain spaces, newlines or special characters.\r\n"},
	{"the same", "CLIENT SETINFO LIB-VER", "-ERR wrong number of arguments for 'client|setinfo' command\r\n"},
	{"the same", "CLIENT SETINFO LIB-VER ", "+OK\r\n"},
	{"Redis 7.2 has CLIENT NO-TOUCH", "CLIENT NO-TOUCH ON; CLIENT NO-TOUCH foo", "+OK\r\n-ERR syntax error\r\n"},
	{"Redis 7.2 takes two words there", "COMMAND GETKEYS foo", "-ERR Invalid command specified\r\n"},
	{"nothing is kept that could be tracked, so a library must not rely on it",
		"CLIENT TRACKING ON", "-ERR unknown subcommand 'TRACKING'. Try CLIENT HELP.\r\n"},
	{"nothing depends on what a client can do, and Valkey takes it", "CLIENT CAPA redirect", "+OK\r\n"},
	{"settings are changed on the command line", "CONFIG SET save x",
		"-ERR unknown subcommand 'SET'. Try CONFIG HELP.\r\n"},
	{"GET is all there is of CONFIG", "CONFIG HELP", "-ERR unknown subcommand 'HELP'. Try CONFIG HELP.\r\n"},
	{"there are no subcommands of a cluster that is none", "CLUSTER foo",
		"-ERR This instance has cluster support disabled\r\n"},
	{"there is no data", "GET k",
		"-ERR unknown command 'GET', with args beginning with: 'k' (no upstream; set --upstream)\r\n"},
	{"the lock commands are ours", "COMMAND GETKEYS LOCK k t PX 10000", "*1\r\n$1\r\nk\r\n"},
	{"the same", "COMMAND GETKEYS UNLOCK k", "-ERR Invalid number of arguments specified for command\r\n"},
}

func TestDifferencesFromRedis(t *testing.T) {
	socket := startRedis(t)
	for _, d := range differences {
		commands := parseDialogue(d.commands)
		if got := askProxy(t, commands); got != d.want+okReply+okReply {
			t.Errorf("%s: %q, want %q", d.commands, got, d.want)
		}
		if redisReply := askRedis(t, socket, commands); redisReply == d.want+okReply+okReply {
			t.Errorf("%s: no difference any more: %q", d.commands, redisReply)
		}
	}
}
