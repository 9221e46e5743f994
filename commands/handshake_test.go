package commands

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// exchange holds a command and the beginning of its reply.
type exchange struct{ request, want string }

const (
	helloMap3            = "%7\r\n$6\r\nserver\r\n$5\r\nredis\r\n"
	helloMap2            = "*14\r\n$6\r\nserver\r\n$5\r\nredis\r\n"
	noPasswordErr        = "-ERR AUTH <password> called without any password configured for the default user."
	unknownCommandErr    = "-ERR unknown command '"
	unknownSubcommandErr = "-ERR unknown subcommand '"
	noClusterErr         = "-ERR This instance has cluster support disabled\r\n"
	okReply              = "+OK\r\n"
)

// handshakes lists the commands that client libraries send when they connect, with the replies that
// they need. The versions are current unless stated otherwise.
var handshakes = []struct {
	library   string
	exchanges []exchange
}{
	{"redis-cli", []exchange{
		{"COMMAND DOCS", "*"}, {"PING", "+PONG\r\n"}}},
	{"redis-cli -3 --stat", []exchange{
		{"HELLO 3", helloMap3}, {"CONFIG GET databases", "%1\r\n$9\r\ndatabases\r\n$2\r\n16\r\n"}, {"INFO", "="}}},
	{"redis-benchmark", []exchange{
		{"CONFIG GET save", "*2\r\n$4\r\nsave\r\n$0\r\n\r\n"}, {"CONFIG GET appendonly",
			"*2\r\n$10\r\nappendonly\r\n$2\r\nno\r\n"}}},
	{"redis-py 8", []exchange{
		{"HELLO 3", helloMap3}, {"CLIENT MAINT_NOTIFICATIONS ON moving-endpoint-type internal-ip", unknownSubcommandErr},
		{"CLIENT SETNAME app", okReply},
		{"CLIENT SETINFO LIB-NAME redis-py", okReply}, {"CLIENT SETINFO LIB-VER 8.1.0", okReply}, {"SELECT 3", okReply},
		{"PING", "+PONG\r\n"}}},
	{"redis-py 8 with a password", []exchange{
		{"HELLO 3 AUTH default secret", helloMap3}, {"CLIENT SETINFO LIB-NAME redis-py", okReply}}},
	{"redis-py 4", []exchange{
		{"AUTH secret", noPasswordErr}, {"AUTH default secret", okReply}, {"CLIENT SETNAME app", okReply}, {"SELECT 3", okReply}}},
	{"go-redis 9", []exchange{
		{"HELLO 3 SETNAME app", helloMap3}, {"SELECT 3", okReply}, {"READONLY", noClusterErr},
		{"CLIENT MAINT_NOTIFICATIONS ON moving-endpoint-type none", unknownSubcommandErr},
		{"CLIENT SETINFO LIB-NAME go-redis(,go1.26)", okReply}, {"CLIENT SETINFO LIB-VER 9.23.0", okReply}}},
	{"go-redis 9 in RESP2", []exchange{
		{"HELLO 2 AUTH default secret", helloMap2}, {"CLIENT SETNAME app", okReply}}},
	{"rueidis", []exchange{
		{"HELLO 3 SETNAME app", helloMap3}, {"CLIENT TRACKING ON OPTIN", unknownSubcommandErr}, {"SELECT 3", okReply},
		{"CLIENT NO-TOUCH ON", okReply}, {"CLIENT NO-EVICT ON", okReply},
		{"CLIENT CAPA redirect", okReply}, {"CLIENT SETINFO LIB-NAME rueidis", okReply},
		{"CLIENT SETINFO LIB-VER 1.0.79", okReply}, {"PING", "+PONG\r\n"}}},
	{"node-redis 6", []exchange{
		{"HELLO 3 AUTH default secret SETNAME app", helloMap3}, {"SELECT 3", okReply},
		{"CLIENT SETINFO LIB-NAME node-redis", okReply}, {"CLIENT SETINFO LIB-VER 6.0.0", okReply},
		{"CLIENT MAINT_NOTIFICATIONS ON moving-endpoint-type none", unknownSubcommandErr}}},
	{"ioredis 5", []exchange{
		{"SELECT 3", okReply}, {"CLIENT setname app", okReply}, {"client SETINFO LIB-NAME ioredis", okReply},
		{"client SETINFO LIB-VER 5.8.0", okReply}, {"info", "$"}}},
	{"ioredis 6", []exchange{
		{"HELLO 3", helloMap3}, {"CLIENT setname app", okReply}, {"client SETINFO LIB-NAME ioredis", okReply},
		{"client SETINFO LIB-VER 6.0.0", okReply}, {"info", "="}}},
	{"redis-rb with redis-client", []exchange{
		{"HELLO 3", helloMap3}, {"CLIENT SETNAME app", okReply}, {"SELECT 3", okReply}}},
	{"redis-rb 4", []exchange{
		{"AUTH default secret", okReply}, {"SELECT 3", okReply}, {"CLIENT SETNAME app", okReply}, {"COMMAND", "*"}}},
	{"phpredis", []exchange{
		{"AUTH default secret", okReply}, {"SELECT 3", okReply}, {"CLIENT SETNAME app", okReply}}},
	{"predis", []exchange{
		{"HELLO 3 SETNAME predis", helloMap3}, {"CLIENT SETINFO LIB-NAME predis", okReply},
		{"CLIENT SETINFO LIB-VER 3.0.0", okReply}, {"SELECT 3", okReply}}},
	{"Jedis", []exchange{
		{"HELLO 3 AUTH default secret", helloMap3}, {"CLIENT SETNAME app", okReply},
		{"CLIENT SETINFO LIB-NAME jedis(redisson_v3.1)", okReply}, {"CLIENT SETINFO LIB-VER 8.0.0", okReply},
		{"SELECT 3", okReply}}},
	{"Lettuce", []exchange{
		{"HELLO 3", helloMap3}, {"SELECT 3", okReply}, {"READONLY", noClusterErr}, {"CLIENT SETNAME app", okReply},
		{"CLIENT SETINFO lib-name Lettuce", okReply}, {"CLIENT SETINFO lib-ver 7.0.0.RELEASE/0a1b2c3", okReply},
		{"CLIENT MAINT_NOTIFICATIONS ON moving-endpoint-type none", unknownSubcommandErr}}},
	{"Redisson", []exchange{
		{"AUTH secret", noPasswordErr}, {"HELLO 3", helloMap3}, {"SELECT 3", okReply}, {"CLIENT SETNAME app", okReply},
		{"CLIENT CAPA redirect", okReply}, {"PING", "+PONG\r\n"}}},
	{"StackExchange.Redis", []exchange{
		{"HELLO 3 AUTH default secret SETNAME app", helloMap3}, {"CLIENT SETNAME app", okReply},
		{"CLIENT SETINFO lib-name SE.Redis", okReply}, {"CLIENT SETINFO lib-ver 3.1.0", okReply}, {"CLIENT ID", ":7\r\n"},
		{"CONFIG GET timeout", "%1\r\n$7\r\ntimeout\r\n$1\r\n0\r\n"},
		{"CONFIG GET replica-read-only", "%1\r\n$17\r\nreplica-read-only\r\n$3\r\nyes\r\n"},
		{"CONFIG GET databases", "%1\r\n$9\r\ndatabases\r\n$2\r\n16\r\n"},
		{"SENTINEL MASTERS", unknownCommandErr}, {"INFO replication", "="}, {"INFO server", "="},
		{"CLUSTER NODES", noClusterErr}, {"GET __Booksleeve_TieBreak", unknownCommandErr},
		{"ECHO \x9b\x01\r\n\x00\xffunique", "$12\r\n\x9b\x01\r\n\x00\xffunique\r\n"},
		{"SUBSCRIBE __Booksleeve_MasterChanged", unknownCommandErr}}},
	{"rslock, redlock-rs", []exchange{
		{"HELLO 3", helloMap3}, {"CLIENT SETINFO LIB-NAME redis-rs", okReply}, {"CLIENT SETINFO LIB-VER 1.0.0", okReply}}},
	{"Redix", []exchange{
		{"AUTH secret", noPasswordErr}, {"SELECT 0", okReply}}},
}

func TestHandshakes(t *testing.T) {
	for _, h := range handshakes {
		b := newFixture(t)
		for _, e := range h.exchanges {
			reply := b.askLine(e.request)
			if !strings.HasPrefix(reply, e.want) {
				t.Errorf("%s: %q: %.200q, want %q", h.library, e.request, reply, e.want)
			}
			if replies := readReplies(t, reply); len(replies) != 1 {
				t.Errorf("%s: %q: %d replies", h.library, e.request, len(replies))
			}
		}
	}
}

// redis7Differences matches the commands of handshakes to which Redis 7.0 replies differently.
// These are commands of Redis 7.2, commands on data, and COMMAND for the whole table of commands,
// whose order differs between servers.
var redis7Differences = regexp.MustCompile(`(?i)\A(CLIENT (SETINFO|NO-TOUCH|TRACKING|CAPA)|GET|SUBSCRIBE|COMMAND( DOCS)?\z)`)

// TestHandshakesLikeRedis checks that the replies have the same types as the replies of Redis.
func TestHandshakesLikeRedis(t *testing.T) {
	socket := startRedis(t)
	for _, h := range handshakes {
		var lines []string
		for _, e := range h.exchanges {
			lines = append(lines, e.request)
		}
		commands := parseDialogue(strings.Join(lines, "; "))
		proxyReplies, redisReplies := readReplies(t, askProxy(t, commands)), readReplies(t, askRedis(t, socket, commands))
		if len(proxyReplies) != len(lines)+len(closingCommands) || len(redisReplies) != len(proxyReplies) {
			t.Errorf("%s: %d commands, %d replies, %d from redis", h.library, len(lines), len(proxyReplies), len(redisReplies))
			continue
		}
		for i := range lines {
			if redis7Differences.MatchString(lines[i]) {
				continue
			}
			if diff := shapeDiff(proxyReplies[i], redisReplies[i]); diff != "" {
				t.Errorf("%s: %q: %s", h.library, lines[i], diff)
			}
			if proxyReplies[i].kind == '-' && proxyReplies[i].raw != redisReplies[i].raw {
				t.Errorf("%s: %q: %q, redis %q", h.library, lines[i], proxyReplies[i].raw, redisReplies[i].raw)
			}
		}
	}
}

// shapeCommands lists commands whose replies must have the shape of Redis' replies. The test
// compares the proxy's own commands with a command of Redis that has the same kind of arguments.
var shapeCommands = [][2]string{
	{"COMMAND INFO ping", ""}, {"COMMAND INFO info echo hello", ""}, {"COMMAND INFO ping nothing echo", ""},
	{"COMMAND INFO LOCK", "COMMAND INFO PEXPIRE"}, {"COMMAND COUNT", ""}, {"COMMAND LIST", ""},
	{"COMMAND DOCS ping", ""}, {"COMMAND DOCS echo nothing select", ""},
	{"COMMAND GETKEYS LOCK k t PX 10000", "COMMAND GETKEYS SET k t PX 10000"},
	{"COMMAND GETKEYS MLOCK 2 k l t PX 10000", "COMMAND GETKEYS ZUNION 2 k l"},
	{"TIME", ""}, {"INFO", ""}, {"INFO server", ""}, {"CLIENT INFO", ""}, {"CLIENT LIST", ""}, {"CLIENT ID", ""},
	{"CLIENT HELP", ""}, {"CONFIG GET *", ""}, {"CONFIG GET save appendonly", ""}, {"HELLO", ""}, {"PING", ""},
	{"AUTH default x", ""},
}

func TestShapesLikeRedis(t *testing.T) {
	socket := startRedis(t)
	for _, test := range shapeCommands {
		line, redisLine := test[0], test[1]
		if redisLine == "" {
			redisLine = line
		}
		for _, proto := range []string{"2", "3"} {
			proxyReply := readReplies(t, askProxy(t, parseDialogue("HELLO "+proto+"; "+line)))[1]
			redisReply := readReplies(t, askRedis(t, socket, parseDialogue("HELLO "+proto+"; "+redisLine)))[1]
			if proto == "2" && (proxyReply.kind != redisReply.kind || strings.HasPrefix(line, "COMMAND DOCS")) {
				// RESP2 has no maps: see TestFlattenedReplies.
				redisReply = value{kind: proxyReply.kind}
			}
			if diff := shapeDiff(proxyReply, redisReply); diff != "" {
				t.Errorf("%s in RESP%s: %s", line, proto, diff)
			}
		}
	}
}

// TestLockDocsLikeRedis checks that the documentation of a lock command has only fields that Redis
// has, too, of the same types.
func TestLockDocsLikeRedis(t *testing.T) {
	socket := startRedis(t)
	redisDocs := readReplies(t, askRedis(t, socket, parseDialogue("HELLO 3; COMMAND DOCS set")))[1].elements[1]
	for _, name := range []string{"lock", "unlock", "extend", "mlock", "munlock", "mextend"} {
		docs := readReplies(t, askProxy(t, parseDialogue("HELLO 3; COMMAND DOCS "+name)))[1]
		if len(docs.elements) != 2 || docs.elements[0].text != name {
			t.Fatalf("docs of %s: %q", name, docs.raw)
		}
		proxyDocs := docs.elements[1]
		for i := 0; i < len(proxyDocs.elements); i += 2 {
			key := proxyDocs.elements[i].text
			if kid, ok := redisDocs.entry(key); !ok || key != "arguments" && shapeDiff(proxyDocs.elements[i+1], kid) != "" {
				t.Errorf("%s: key %q is not as redis has it", name, key)
			}
		}
		arguments, _ := proxyDocs.entry("arguments")
		checkArguments(t, name, arguments)
	}
}

// checkArguments checks that arguments follow the rules in Redis' documentation of COMMAND DOCS.
func checkArguments(t *testing.T, command string, arguments value) {
	t.Helper()
	kinds := []string{"string", "integer", "double", "key", "pattern", "unix-time", "pure-token", "oneof", "block"}
	for _, a := range arguments.elements {
		name, _ := a.entry("name")
		kind, _ := a.entry("type")
		inner, hasArguments := a.entry("arguments")
		_, hasDisplayText := a.entry("display_text")
		flags, hasFlags := a.entry("flags")
		if name.text == "" || !slices.Contains(kinds, kind.text) ||
			hasArguments != (kind.text == "oneof" || kind.text == "block") || hasDisplayText == hasArguments ||
			hasFlags && flags.kind != '~' {
			t.Errorf("%s: argument %q", command, a.raw)
		}
		checkArguments(t, command, inner)
	}
}

// TestFlattenedReplies checks that a reply in RESP2 has the content of the reply in RESP3, in
// the types of RESP2.
func TestFlattenedReplies(t *testing.T) {
	for _, line := range []string{"COMMAND", "COMMAND DOCS", "COMMAND INFO lock ping nothing",
		"COMMAND DOCS lock ping nothing", "CONFIG GET *", "CONFIG GET nothing",
		"INFO server clients", "CLIENT GETNAME", "CLIENT HELP", "LOCK k * PX 10000", "LOCK k t PX 10000", "foo"} {
		b2, b3 := newFixture(t), newFixture(t)
		b3.client.Proto = 3
		got, want := b2.askLine(line), readReplies(t, b3.askLine(line))[0].resp2()
		if got != want {
			t.Errorf("%s: %.300q, want %.300q", line, got, want)
		}
	}
}

// TestInfoLikeRedis checks that each field of INFO, except the proxy's own fields, has the section
// and name that it has in Redis.
func TestInfoLikeRedis(t *testing.T) {
	socket := startRedis(t)
	proxyFields := infoFields(readReplies(t, askProxy(t, parseDialogue("INFO")))[0].text)
	redisFields := infoFields(readReplies(t, askRedis(t, socket, parseDialogue("INFO everything")))[0].text)
	for _, field := range proxyFields {
		if !strings.HasPrefix(field, "Redlock ") && !strings.HasPrefix(field, "Server redlock_") &&
			!slices.Contains(redisFields, field) {
			t.Errorf("field %q is not one of Redis", field)
		}
	}
	for _, field := range []string{"Server redis_version", "Persistence loading", "Replication role",
		"Replication connected_slaves", "Cluster cluster_enabled"} {
		if !slices.Contains(proxyFields, field) {
			t.Errorf("clients look for %q", field)
		}
	}
}

// infoFields returns "Section field" for each line of INFO.
func infoFields(info string) (fields []string) {
	section := ""
	for line := range strings.SplitSeq(info, "\r\n") {
		if name, ok := strings.CutPrefix(line, "# "); ok {
			section = name
		} else if name, _, ok := strings.Cut(line, ":"); ok {
			fields = append(fields, fmt.Sprintf("%s %s", section, name))
		}
	}
	return fields
}

// TestClientListLikeRedis checks that CLIENT LIST has fields of Redis, in Redis' order.
func TestClientListLikeRedis(t *testing.T) {
	socket := startRedis(t)
	proxyFields := clientFields(askProxy(t, parseDialogue("CLIENT LIST")))
	redisFields := clientFields(askRedis(t, socket, parseDialogue("CLIENT LIST")))
	redisFields = append(redisFields, "lib-name", "lib-ver") // since Redis 7.2
	for _, field := range proxyFields {
		at := slices.Index(redisFields, field)
		if at < 0 {
			t.Fatalf("field %q is missing or out of order in Redis' %q", field, redisFields)
		}
		redisFields = redisFields[at+1:]
	}
}

func clientFields(list string) (fields []string) {
	for _, m := range regexp.MustCompile(`([a-z-]+)=`).FindAllStringSubmatch(list, -1) {
		fields = append(fields, m[1])
	}
	return fields
}
