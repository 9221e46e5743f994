package commands

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// exchange is a command, with the beginning of its reply.
type exchange struct{ say, hear string }

const (
	map3        = "%7\r\n$6\r\nserver\r\n$5\r\nredis\r\n"
	map2        = "*14\r\n$6\r\nserver\r\n$5\r\nredis\r\n"
	noPassword  = "-ERR AUTH <password> called without any password configured for the default user."
	noCommand   = "-ERR unknown command '"
	noOption    = "-ERR unknown subcommand '"
	noClustered = "-ERR This instance has cluster support disabled\r\n"
	fine        = "+OK\r\n"
)

// handshakes lists the commands that client libraries send when they connect, in their current
// versions unless stated otherwise, with the replies that they need.
var handshakes = []struct {
	library   string
	exchanges []exchange
}{
	{"redis-cli", []exchange{
		{"COMMAND DOCS", "*"}, {"PING", "+PONG\r\n"}}},
	{"redis-cli -3 --stat", []exchange{
		{"HELLO 3", map3}, {"CONFIG GET databases", "%1\r\n$9\r\ndatabases\r\n$2\r\n16\r\n"}, {"INFO", "="}}},
	{"redis-benchmark", []exchange{
		{"CONFIG GET save", "*2\r\n$4\r\nsave\r\n$0\r\n\r\n"}, {"CONFIG GET appendonly",
			"*2\r\n$10\r\nappendonly\r\n$2\r\nno\r\n"}}},
	{"redis-py 8", []exchange{
		{"HELLO 3", map3}, {"CLIENT MAINT_NOTIFICATIONS ON moving-endpoint-type internal-ip", noOption},
		{"CLIENT SETNAME app", fine},
		{"CLIENT SETINFO LIB-NAME redis-py", fine}, {"CLIENT SETINFO LIB-VER 8.1.0", fine}, {"SELECT 3", fine},
		{"PING", "+PONG\r\n"}}},
	{"redis-py 8 with a password", []exchange{
		{"HELLO 3 AUTH default secret", map3}, {"CLIENT SETINFO LIB-NAME redis-py", fine}}},
	{"redis-py 4", []exchange{
		{"AUTH secret", noPassword}, {"AUTH default secret", fine}, {"CLIENT SETNAME app", fine}, {"SELECT 3", fine}}},
	{"go-redis 9", []exchange{
		{"HELLO 3 SETNAME app", map3}, {"SELECT 3", fine}, {"READONLY", noClustered},
		{"CLIENT MAINT_NOTIFICATIONS ON moving-endpoint-type none", noOption},
		{"CLIENT SETINFO LIB-NAME go-redis(,go1.26)", fine}, {"CLIENT SETINFO LIB-VER 9.23.0", fine}}},
	{"go-redis 9 in RESP2", []exchange{
		{"HELLO 2 AUTH default secret", map2}, {"CLIENT SETNAME app", fine}}},
	{"rueidis", []exchange{
		{"HELLO 3 SETNAME app", map3}, {"CLIENT TRACKING ON OPTIN", noOption}, {"SELECT 3", fine},
		{"CLIENT NO-TOUCH ON", fine}, {"CLIENT NO-EVICT ON", fine},
		{"CLIENT CAPA redirect", fine}, {"CLIENT SETINFO LIB-NAME rueidis", fine},
		{"CLIENT SETINFO LIB-VER 1.0.79", fine}, {"PING", "+PONG\r\n"}}},
	{"node-redis 6", []exchange{
		{"HELLO 3 AUTH default secret SETNAME app", map3}, {"SELECT 3", fine},
		{"CLIENT SETINFO LIB-NAME node-redis", fine}, {"CLIENT SETINFO LIB-VER 6.0.0", fine},
		{"CLIENT MAINT_NOTIFICATIONS ON moving-endpoint-type none", noOption}}},
	{"ioredis 5", []exchange{
		{"SELECT 3", fine}, {"CLIENT setname app", fine}, {"client SETINFO LIB-NAME ioredis", fine},
		{"client SETINFO LIB-VER 5.8.0", fine}, {"info", "$"}}},
	{"ioredis 6", []exchange{
		{"HELLO 3", map3}, {"CLIENT setname app", fine}, {"client SETINFO LIB-NAME ioredis", fine},
		{"client SETINFO LIB-VER 6.0.0", fine}, {"info", "="}}},
	{"redis-rb with redis-client", []exchange{
		{"HELLO 3", map3}, {"CLIENT SETNAME app", fine}, {"SELECT 3", fine}}},
	{"redis-rb 4", []exchange{
		{"AUTH default secret", fine}, {"SELECT 3", fine}, {"CLIENT SETNAME app", fine}, {"COMMAND", "*"}}},
	{"phpredis", []exchange{
		{"AUTH default secret", fine}, {"SELECT 3", fine}, {"CLIENT SETNAME app", fine}}},
	{"predis", []exchange{
		{"HELLO 3 SETNAME predis", map3}, {"CLIENT SETINFO LIB-NAME predis", fine},
		{"CLIENT SETINFO LIB-VER 3.0.0", fine}, {"SELECT 3", fine}}},
	{"Jedis", []exchange{
		{"HELLO 3 AUTH default secret", map3}, {"CLIENT SETNAME app", fine},
		{"CLIENT SETINFO LIB-NAME jedis(redisson_v3.1)", fine}, {"CLIENT SETINFO LIB-VER 8.0.0", fine},
		{"SELECT 3", fine}}},
	{"Lettuce", []exchange{
		{"HELLO 3", map3}, {"SELECT 3", fine}, {"READONLY", noClustered}, {"CLIENT SETNAME app", fine},
		{"CLIENT SETINFO lib-name Lettuce", fine}, {"CLIENT SETINFO lib-ver 7.0.0.RELEASE/0a1b2c3", fine},
		{"CLIENT MAINT_NOTIFICATIONS ON moving-endpoint-type none", noOption}}},
	{"Redisson", []exchange{
		{"AUTH secret", noPassword}, {"HELLO 3", map3}, {"SELECT 3", fine}, {"CLIENT SETNAME app", fine},
		{"CLIENT CAPA redirect", fine}, {"PING", "+PONG\r\n"}}},
	{"StackExchange.Redis", []exchange{
		{"HELLO 3 AUTH default secret SETNAME app", map3}, {"CLIENT SETNAME app", fine},
		{"CLIENT SETINFO lib-name SE.Redis", fine}, {"CLIENT SETINFO lib-ver 3.1.0", fine}, {"CLIENT ID", ":7\r\n"},
		{"CONFIG GET timeout", "%1\r\n$7\r\ntimeout\r\n$1\r\n0\r\n"},
		{"CONFIG GET replica-read-only", "%1\r\n$17\r\nreplica-read-only\r\n$3\r\nyes\r\n"},
		{"CONFIG GET databases", "%1\r\n$9\r\ndatabases\r\n$2\r\n16\r\n"},
		{"SENTINEL MASTERS", noCommand}, {"INFO replication", "="}, {"INFO server", "="},
		{"CLUSTER NODES", noClustered}, {"GET __Booksleeve_TieBreak", noCommand},
		{"ECHO \x9b\x01\r\n\x00\xffunique", "$12\r\n\x9b\x01\r\n\x00\xffunique\r\n"},
		{"SUBSCRIBE __Booksleeve_MasterChanged", noCommand}}},
	{"rslock, redlock-rs", []exchange{
		{"HELLO 3", map3}, {"CLIENT SETINFO LIB-NAME redis-rs", fine}, {"CLIENT SETINFO LIB-VER 1.0.0", fine}}},
	{"Redix", []exchange{
		{"AUTH secret", noPassword}, {"SELECT 0", fine}}},
}

func TestHandshakes(t *testing.T) {
	for _, h := range handshakes {
		b := newBench(t)
		for _, e := range h.exchanges {
			reply := b.say(e.say)
			if !strings.HasPrefix(reply, e.hear) {
				t.Errorf("%s: %q: %.200q, want %q", h.library, e.say, reply, e.hear)
			}
			if replies := readReplies(t, reply); len(replies) != 1 {
				t.Errorf("%s: %q: %d replies", h.library, e.say, len(replies))
			}
		}
	}
}

// notLikeRedis7 matches the commands of handshakes to which Redis 7.0 replies differently: commands
// of Redis 7.2, commands on data, and the whole table, whose order differs between servers.
var notLikeRedis7 = regexp.MustCompile(`(?i)\A(CLIENT (SETINFO|NO-TOUCH|TRACKING|CAPA)|GET|SUBSCRIBE|COMMAND( DOCS)?\z)`)

// TestHandshakesLikeRedis checks that the types of replies are those of Redis.
func TestHandshakesLikeRedis(t *testing.T) {
	socket := startRedis(t)
	for _, h := range handshakes {
		var said []string
		for _, e := range h.exchanges {
			said = append(said, e.say)
		}
		commands := dialogue(strings.Join(said, "; "))
		ours, theirs := readReplies(t, askOurs(t, commands)), readReplies(t, askRedis(t, socket, commands))
		if len(ours) != len(said)+len(goodbye) || len(theirs) != len(ours) {
			t.Errorf("%s: %d commands, %d replies, %d from redis", h.library, len(said), len(ours), len(theirs))
			continue
		}
		for i := range said {
			if notLikeRedis7.MatchString(said[i]) {
				continue
			}
			if diff := unlike(ours[i], theirs[i]); diff != "" {
				t.Errorf("%s: %q: %s", h.library, said[i], diff)
			}
			if ours[i].kind == '-' && ours[i].raw != theirs[i].raw {
				t.Errorf("%s: %q: %q, redis %q", h.library, said[i], ours[i].raw, theirs[i].raw)
			}
		}
	}
}

// likeRedis lists commands whose replies must have the shape of Redis' replies. The proxy's own
// commands are compared with a command of Redis that has the same kind of arguments.
var likeRedis = [][2]string{
	{"COMMAND INFO ping", ""}, {"COMMAND INFO info echo hello", ""}, {"COMMAND INFO ping nothing echo", ""},
	{"COMMAND INFO LOCK", "COMMAND INFO PEXPIRE"}, {"COMMAND COUNT", ""}, {"COMMAND LIST", ""},
	{"COMMAND DOCS ping", ""}, {"COMMAND DOCS echo nothing select", ""},
	{"COMMAND GETKEYS LOCK k t PX 10000", "COMMAND GETKEYS SET k t PX 10000"},
	{"TIME", ""}, {"INFO", ""}, {"INFO server", ""}, {"CLIENT INFO", ""}, {"CLIENT LIST", ""}, {"CLIENT ID", ""},
	{"CLIENT HELP", ""}, {"CONFIG GET *", ""}, {"CONFIG GET save appendonly", ""}, {"HELLO", ""}, {"PING", ""},
	{"AUTH default x", ""},
}

func TestShapesLikeRedis(t *testing.T) {
	socket := startRedis(t)
	for _, test := range likeRedis {
		ask, askThem := test[0], test[1]
		if askThem == "" {
			askThem = ask
		}
		for _, proto := range []string{"2", "3"} {
			ours := readReplies(t, askOurs(t, dialogue("HELLO "+proto+"; "+ask)))[1]
			theirs := readReplies(t, askRedis(t, socket, dialogue("HELLO "+proto+"; "+askThem)))[1]
			if proto == "2" && (ours.kind != theirs.kind || strings.HasPrefix(ask, "COMMAND DOCS")) {
				theirs = value{kind: ours.kind} // RESP2 has no maps: see TestResp2IsResp3Flattened
			}
			if diff := unlike(ours, theirs); diff != "" {
				t.Errorf("%s in RESP%s: %s", ask, proto, diff)
			}
		}
	}
}

// TestLockDocsLikeRedis checks that a lock command is documented in the same words as Redis' own.
func TestLockDocsLikeRedis(t *testing.T) {
	socket := startRedis(t)
	theirs := readReplies(t, askRedis(t, socket, dialogue("HELLO 3; COMMAND DOCS set")))[1].kids[1]
	for _, name := range []string{"lock", "unlock", "extend"} {
		docs := readReplies(t, askOurs(t, dialogue("HELLO 3; COMMAND DOCS "+name)))[1]
		if len(docs.kids) != 2 || docs.kids[0].text != name {
			t.Fatalf("docs of %s: %q", name, docs.raw)
		}
		ours := docs.kids[1]
		for i := 0; i < len(ours.kids); i += 2 {
			key := ours.kids[i].text
			if kid, ok := theirs.entry(key); !ok || key != "arguments" && unlike(ours.kids[i+1], kid) != "" {
				t.Errorf("%s: key %q is not as redis has it", name, key)
			}
		}
		arguments, _ := ours.entry("arguments")
		checkArguments(t, name, arguments)
	}
}

// checkArguments checks the rules of Redis' documentation of COMMAND DOCS.
func checkArguments(t *testing.T, of string, arguments value) {
	t.Helper()
	kinds := []string{"string", "integer", "double", "key", "pattern", "unix-time", "pure-token", "oneof", "block"}
	for _, a := range arguments.kids {
		name, _ := a.entry("name")
		kind, _ := a.entry("type")
		inner, nested := a.entry("arguments")
		_, shown := a.entry("display_text")
		flags, flagged := a.entry("flags")
		if name.text == "" || !slices.Contains(kinds, kind.text) ||
			nested != (kind.text == "oneof" || kind.text == "block") || shown == nested ||
			flagged && flags.kind != '~' {
			t.Errorf("%s: argument %q", of, a.raw)
		}
		checkArguments(t, of, inner)
	}
}

// TestResp2IsResp3Flattened checks that RESP2 has the content of RESP3, in the types of RESP2.
func TestResp2IsResp3Flattened(t *testing.T) {
	for _, ask := range []string{"COMMAND", "COMMAND DOCS", "COMMAND INFO lock ping nothing",
		"COMMAND DOCS lock ping nothing", "CONFIG GET *", "CONFIG GET nothing",
		"INFO server clients", "CLIENT GETNAME", "CLIENT HELP", "LOCK k * PX 10000", "LOCK k t PX 10000", "foo"} {
		b2, b3 := newBench(t), newBench(t)
		b3.client.Proto = 3
		got, want := b2.say(ask), readReplies(t, b3.say(ask))[0].resp2()
		if got != want {
			t.Errorf("%s: %.300q, want %.300q", ask, got, want)
		}
	}
}

// TestInfoLikeRedis checks that each field of INFO has the section and name that it has in Redis.
func TestInfoLikeRedis(t *testing.T) {
	socket := startRedis(t)
	ours := infoFields(readReplies(t, askOurs(t, dialogue("INFO")))[0].text)
	theirs := infoFields(readReplies(t, askRedis(t, socket, dialogue("INFO everything")))[0].text)
	for _, field := range ours {
		if !strings.HasPrefix(field, "Redlock ") && !strings.HasPrefix(field, "Server redlock_") &&
			!slices.Contains(theirs, field) {
			t.Errorf("field %q is not one of Redis", field)
		}
	}
	for _, field := range []string{"Server redis_version", "Persistence loading", "Replication role",
		"Replication connected_slaves", "Cluster cluster_enabled"} {
		if !slices.Contains(ours, field) {
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
	ours := clientFields(askOurs(t, dialogue("CLIENT LIST")))
	theirs := clientFields(askRedis(t, socket, dialogue("CLIENT LIST")))
	theirs = append(theirs, "lib-name", "lib-ver") // since Redis 7.2
	for _, field := range ours {
		at := slices.Index(theirs, field)
		if at < 0 {
			t.Fatalf("field %q is missing or out of order in Redis' %q", field, theirs)
		}
		theirs = theirs[at+1:]
	}
}

func clientFields(list string) (fields []string) {
	for _, m := range regexp.MustCompile(`([a-z-]+)=`).FindAllStringSubmatch(list, -1) {
		fields = append(fields, m[1])
	}
	return fields
}
