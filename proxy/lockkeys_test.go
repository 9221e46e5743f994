package proxy_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"redlock-proxy/internal/redistest"
	"redlock-proxy/internal/resp"
	"redlock-proxy/proxy"
)

// startWithLockKeys starts a redis-server and a proxy in front of it whose lock keys are lock:*.
func startWithLockKeys(t *testing.T, args ...string) (*testProxy, *redistest.Server) {
	t.Helper()
	server := startRedis(t, args...)
	return startProxyWith(t, server.URL(), proxy.Options{}, []string{"lock:*"}), server
}

// expectNoKeys fails if the upstream has any of these lock keys.
func expectNoKeys(t *testing.T, server *redistest.Server, keys ...string) {
	t.Helper()
	for _, key := range keys {
		dial(t, server.Addr()).check("EXISTS "+key, ":0\r\n")
	}
}

// exchange holds a command and the expected reply.
type exchange struct{ sent, want string }

// runExchanges sends the commands of all exchanges in one pipeline, and expects the replies.
func (p *peer) runExchanges(exchanges []exchange) {
	p.Helper()
	sent, want := "", ""
	for _, e := range exchanges {
		sent, want = sent+cmd(e.sent), want+e.want
	}
	p.send(sent)
	p.expect(want)
}

// mixedPipeline lists commands on lock keys and on other keys, in every form in which commands name
// keys.
var mixedPipeline = []exchange{
	{"SET a 1", "+OK\r\n"},
	{"SET lock:a me NX PX 30000", "+OK\r\n"},
	{"SET a 2", "+OK\r\n"},
	{"set lock:a you nx px 30000", "$-1\r\n"},
	{"GET a", bulk("2")},
	{"GET lock:a", bulk("me")},
	{"MGET a b", "*2\r\n" + bulk("2") + "$-1\r\n"},
	{"MGET lock:a lock:b", "*2\r\n" + bulk("me") + "$-1\r\n"},
	{"MSET b 3 c 4", "+OK\r\n"},
	{"DEL lock:b", ":0\r\n"},
	{"DEL b c", ":2\r\n"},
	{"UNLINK lock:a lock:b", ":1\r\n"},
	{"GET", "-ERR wrong number of arguments for 'get' command\r\n"},
	{"SETNX lock:a x", ":1\r\n"},
	{"EXISTS lock:a lock:b lock:a", ":2\r\n"},
	{"XADD lock:a * f x",
		"-ERR 'xadd' cannot run on lock key 'lock:a': lock keys support only string, hash, list, set and sorted-set commands; use another key\r\n"},
	{"DEL lock:a a", "-ERR 'del' mixes lock keys and other keys: 'lock:a' is on the lock masters, 'a' on the upstream; send two commands\r\n"},
	{"RENAME a lock:a", "-ERR 'rename' mixes lock keys and other keys: 'lock:a' is on the lock masters, 'a' on the upstream; send two commands\r\n"},
	{"OBJECT ENCODING lock:a", bulk("embstr")},
	{"HSET lock:h f v", ":1\r\n"},
	{"HGETALL lock:h", "*2\r\n" + bulk("f") + bulk("v")},
	{"HGETALL h", "*0\r\n"},
	{"BLPOP lock:h 0", "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n"},
	{"BLPOP h lock:h 0", "-ERR 'blpop' mixes lock keys and other keys: 'lock:h' is on the lock masters, 'h' on the upstream; send two commands\r\n"},
	{"DEL lock:h", ":1\r\n"},
	{"RPUSH lock:h a b", ":2\r\n"},
	{"BRPOP lock:b lock:h 0", "*2\r\n" + bulk("lock:h") + bulk("b")},
	{"BLMOVE lock:h lock:h LEFT RIGHT 0", bulk("a")},
	{"LMPOP 1 lock:h LEFT",
		"-ERR 'lmpop' cannot run on lock key 'lock:h': lock keys support only string, hash, list, set and sorted-set commands; use another key\r\n"},
	{"BLPOP lock:h 0", "*2\r\n" + bulk("lock:h") + bulk("a")},
	{"BLPOP lock:b lock:h 0.01", "*-1\r\n"},
	{"OBJECT ENCODING a", bulk("int")},
	{"XREAD COUNT 1 STREAMS lock:a 0",
		"-ERR 'xread' cannot run on lock key 'lock:a': lock keys support only string, hash, list, set and sorted-set commands; use another key\r\n"},
	{"LOCK lock:b me PX 1000", ":1000\r\n"},
	{"GET lock:b", bulk("me")},
	{"UNLOCK lock:b me", ":1\r\n"},
	{"DEL lock:a", ":1\r\n"},
	{"EXISTS lock:a", ":0\r\n"},
	{"PING", "+PONG\r\n"},
}

// TestLockKeysAreOnTheMasters checks that a lock key is on the masters and never on the upstream.
// Any other key is on the upstream, and a pipeline with both kinds of keys is answered in order.
func TestLockKeysAreOnTheMasters(t *testing.T) {
	r, server := startWithLockKeys(t)
	p := r.connect()
	p.check("SET lock:k me NX PX 30000", "+OK\r\n")
	p.check("SET other me NX PX 30000", "+OK\r\n")
	if got := r.locks.holder(0, "lock:k"); got != "me" {
		t.Errorf("the masters have %q", got)
	}
	expectNoKeys(t, server, "lock:k")
	dial(t, server.Addr()).check("GET other", bulk("me"))
	p.runExchanges(mixedPipeline)
	dial(t, server.Addr()).check("KEYS lock:*", "*0\r\n")
}

// TestLockKeysSplitInput checks that a lock key is found however the bytes are split.
func TestLockKeysSplitInput(t *testing.T) {
	redistest.SkipShort(t)
	r, server := startWithLockKeys(t)
	sent, want := "", ""
	for _, e := range mixedPipeline {
		sent, want = sent+cmd(e.sent), want+e.want
	}
	sent += "SET lock:a 'in line' NX\r\nSET b \"in line\"\r\n" + lines("DEL lock:a", "DEL b")
	want += "+OK\r\n+OK\r\n:1\r\n:1\r\n"
	p := r.connect()
	for at := 1; at < len(sent); at += 1 + at%3 {
		p.send(sent[:at])
		p.send(sent[at:])
		p.expect(want)
	}
	p = r.connect()
	for i := range len(sent) {
		p.send(sent[i : i+1])
	}
	p.expect(want)
	dial(t, server.Addr()).check("KEYS lock:*", "*0\r\n")
}

// TestLockKeysAreOfTheSelectedDatabase checks that lock keys of different databases are different,
// and that the proxy learns the database as it does for LOCK.
func TestLockKeysAreOfTheSelectedDatabase(t *testing.T) {
	r, _ := startWithLockKeys(t)
	p := r.connect()
	p.runExchanges([]exchange{
		{"SELECT 3", "+OK\r\n"}, {"SET lock:a three", "+OK\r\n"}, {"SELECT 0", "+OK\r\n"}, {"GET lock:a", "$-1\r\n"},
		{"CLIENT REPLY SKIP", ""}, {"SELECT 3", ""}, {"GET lock:a", bulk("three")},
	})
}

// TestCommandsOnAllKeys checks that commands on all keys see the keys of the upstream and the lock
// keys, and remove both. They do not see locks on other keys.
func TestCommandsOnAllKeys(t *testing.T) {
	r, server := startWithLockKeys(t)
	p := r.connect()
	flushInMulti := "-ERR FLUSHALL inside MULTI is not allowed: the proxy runs it at once, so it cannot be part of a transaction; send it before MULTI or after EXEC\r\n"
	p.runExchanges([]exchange{
		{"KEYS *", "*0\r\n"}, {"SCAN 0", "*2\r\n" + bulk("0") + "*0\r\n"}, {"RANDOMKEY", "$-1\r\n"}, {"DBSIZE", ":0\r\n"},
		{"SET lock:a me", ok}, {"LOCK other me PX 60000", ":60000\r\n"}, {"RANDOMKEY", "$-1\r\n"}, {"SET a 1", ok},
		{"KEYS *", "*2\r\n" + bulk("a") + bulk("lock:a")}, {"KEYS ?", "*1\r\n" + bulk("a")},
		{"KEYS lock:*", "*1\r\n" + bulk("lock:a")},
		{"SCAN 0", "*2\r\n" + bulk("0") + "*2\r\n" + bulk("a") + bulk("lock:a")},
		{"SCAN 0 MATCH *k* COUNT 100", "*2\r\n" + bulk("0") + "*1\r\n" + bulk("lock:a")},
		{"SCAN 0 TYPE String MATCH l*", "*2\r\n" + bulk("0") + "*1\r\n" + bulk("lock:a")},
		{"SCAN 0 TYPE hash", "*2\r\n" + bulk("0") + "*0\r\n"},
		{"SCAN x", "-ERR invalid cursor\r\n"}, {"SCAN 0 COUNT 0", "-ERR syntax error\r\n"},
		{"SCAN 4503599627370496 COUNT 0", "-ERR syntax error\r\n"},
		{"SCAN 4503599627370496", "*2\r\n" + bulk("0") + "*1\r\n" + bulk("lock:a")}, {"DBSIZE", ":2\r\n"},
		{"DBSIZE x", "-ERR wrong number of arguments for 'dbsize' command\r\n"},
		{"FLUSHDB now", "-ERR syntax error\r\n"}, {"GET lock:a", bulk("me")},
		{"SELECT 1", ok}, {"SET lock:a me", ok}, {"SET a 1", ok}, {"FLUSHDB", ok}, {"DBSIZE", ":0\r\n"},
		{"GET lock:a", "$-1\r\n"}, {"SET lock:b me", ok},
		{"SELECT 0", ok}, {"DBSIZE", ":2\r\n"}, {"MULTI", ok}, {"DBSIZE", "+QUEUED\r\n"}, {"EXEC", "*1\r\n:1\r\n"},
		{"MULTI", ok}, {"FLUSHALL", flushInMulti}, {"EXEC",
			"-EXECABORT Transaction discarded because of previous errors.\r\n"},
		{"CLIENT REPLY SKIP", ""}, {"FLUSHALL ASYNC", ""}, {"DBSIZE", ":0\r\n"}, {"GET lock:a", "$-1\r\n"},
		{"SELECT 1", ok}, {"GET lock:b", "$-1\r\n"}, {"SELECT 0", ok},
		{"LOCK other me PX 60000", "$-1\r\n"}, {"SET lock:a me", ok},
		{"EVAL return(redis.call('flushdb')) 0",
			"-ERR 'flushdb' cannot be called by a script: it must also remove the lock keys; send it by itself\r\n"},
		{"SUBSCRIBE lock:a", "*3\r\n" + bulk("subscribe") + bulk("lock:a") + ":1\r\n"},
		{"GET lock:a", "-ERR Can't execute 'get': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context\r\n"},
		{"DBSIZE x", "-ERR wrong number of arguments for 'dbsize' command\r\n"},
		{"COMMAND GETKEYS GET k", "-ERR Can't execute 'command|getkeys': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context\r\n"},
		{"FLUSHALL", "-ERR Can't execute 'flushall': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context\r\n"},
	})
	r.connect().check("GET lock:a", bulk("me"))
	dial(t, server.Addr()).check("PUBLISH lock:a m", ":1\r\n")
	p.expect("*3\r\n" + bulk("message") + bulk("lock:a") + bulk("m"))
}

// TestLockKeysNeedTheUpstreamsLogin checks that commands on lock keys need the upstream's login, as
// LOCK does.
func TestLockKeysNeedTheUpstreamsLogin(t *testing.T) {
	r, _ := startWithLockKeys(t, "--requirepass", "secret")
	p := r.connect()
	for _, line := range []string{"SET lock:a x", "GET lock:a", "DEL lock:a a", "LPUSH lock:a x", "EVAL s 1 lock:a",
		"WATCH lock:a", "SCRIPT LOAD x"} {
		p.check(line, noAuth)
	}
	p.runExchanges([]exchange{{"AUTH secret", "+OK\r\n"}, {"SET lock:a x", "+OK\r\n"}, {"WATCH lock:a", "+OK\r\n"},
		{"RESET", "+RESET\r\n"}, {"GET lock:a", noAuth}})
}

// TestLockKeysWithoutReplies checks that CLIENT REPLY turns off the replies to commands on lock
// keys, but that the commands run.
func TestLockKeysWithoutReplies(t *testing.T) {
	r, _ := startWithLockKeys(t)
	p := r.connect()
	p.runExchanges([]exchange{
		{"CLIENT REPLY SKIP", ""}, {"SET lock:a x", ""}, {"GET lock:a", bulk("x")},
		{"CLIENT REPLY OFF", ""}, {"SET lock:a y", ""}, {"WATCH lock:a", ""}, {"MULTI", ""}, {"DEL lock:a", ""},
		{"EXEC", ""}, {"SET a 1", ""},
		{"CLIENT REPLY ON", "+OK\r\n"}, {"GET lock:a", "$-1\r\n"}, {"GET a", bulk("1")},
	})
}

// TestLockKeyInATransactionWithoutRepliesEndsTheConnection sends a lock key after a MULTI without a
// reply. The proxy cannot know whether a transaction has begun, so it ends the connection, and no
// command has an effect.
func TestLockKeyInATransactionWithoutRepliesEndsTheConnection(t *testing.T) {
	r, server := startWithLockKeys(t)
	p := r.connect()
	p.send(lines("CLIENT REPLY OFF", "MULTI", "SET a 1", "SET lock:a x", "EXEC", "CLIENT REPLY ON"))
	p.expectAll("")
	expectNoKeys(t, server, "a", "lock:a")
	if got := r.locks.holder(0, "lock:a"); got != "" {
		t.Errorf("the masters have %q", got)
	}
}

// TestLongCommandsOnOtherKeys checks that commands on other keys, and the names of these keys,
// may have any length.
func TestLongCommandsOnOtherKeys(t *testing.T) {
	r, server := startWithLockKeys(t)
	p := r.connect()
	mega := strings.Repeat("v", 1<<20)
	long := "locks:" + mega
	p.send(array("SET", long, "x") + array("SET", "a", mega+mega) + array("MSET", "b", mega, "c", mega) +
		array("STRLEN", "c") + array("DEL", long, "a", "b", "c"))
	p.expect(fmt.Sprintf("+OK\r\n+OK\r\n+OK\r\n:%d\r\n:4\r\n", len(mega)))
	p.send(array("EVAL", "return #ARGV[1]", "1", "a", mega) + array("EVAL", "return #ARGV[1]", "0", mega))
	p.expect(fmt.Sprintf(":%d\r\n:%[1]d\r\n", len(mega)))
	tooLong := "-ERR command too long: commands that the proxy itself runs are limited to 1048576 bytes\r\n"
	p.send(array("SET", "lock:a", mega) + array("MSET", "lock:a", mega, "lock:b", mega) +
		array("EVAL", "return 1", "1", "lock:a", mega) +
		array("SORT", "a", "BY", mega, "STORE", "lock:a") + array("WATCH", "a", mega) + cmd("PING"))
	p.expect(strings.Repeat(tooLong, 5) + "+PONG\r\n")
	expectNoKeys(t, server, "lock:a", "lock:b", "a")
}

// TestLateLockKeyIsNotWritten sends a lock key after so many other keys that the
// beginning of the command was already forwarded. The connection ends, and the upstream does not
// run the command.
func TestLateLockKeyIsNotWritten(t *testing.T) {
	mega := strings.Repeat("v", 1<<20)
	refused := func(key string) string {
		return "-ERR command too long: it names lock key '" + key + "' beyond its first 1048576 bytes\r\n"
	}
	many := []string{"DEL"}
	for i := range 200_000 {
		many = append(many, fmt.Sprintf("key:%d", i))
	}
	for _, c := range []struct{ sent, want string }{
		{array("MSET", "a", mega, "lock:a", "x"), refused("lock:a")},
		{array("MSET", "a", mega, "lock:a", mega), refused("lock:a")},
		{array("MSET", "a", mega, "lock", "lock:a") + cmd("ECHO lock:a"), "+OK\r\n" + bulk("lock:a")},
		{array(many...), ":0\r\n"},
		{array(append(many, "lock:z")...), refused("lock:z")},
		{array("EVAL", "return redis.call('set', ARGV[2], 1)", "0", mega, "lock:e"), refused("lock:e")},
	} {
		r, server := startWithLockKeys(t)
		p := r.connect()
		p.send(cmd("PING"))
		p.send(c.sent)
		p.expect("+PONG\r\n" + c.want)
		if strings.HasPrefix(c.want, "-") {
			p.expectAll("")
			expectNoKeys(t, server, "a", "lock:a", "lock:z", "lock:e")
		}
	}
}

// TestManyThreadsOnOneConnection lets several threads share one connection, as in
// StackExchange.Redis. Their commands come in any order, a transaction in one burst, and each
// thread gets its own reply.
func TestManyThreadsOnOneConnection(t *testing.T) {
	r, _ := startWithLockKeys(t)
	p := r.connect()
	var mu sync.Mutex
	answers := make(chan chan string, 1000)
	go func() {
		for waiting := range answers {
			got, _ := readReply(p.in)
			waiting <- got
		}
	}()
	send := func(commands ...string) []string {
		var pendingReplies []chan string
		mu.Lock()
		for range commands {
			w := make(chan string, 1)
			pendingReplies = append(pendingReplies, w)
			answers <- w
		}
		p.send(lines(commands...))
		mu.Unlock()
		var got []string
		for _, w := range pendingReplies {
			got = append(got, <-w)
		}
		return got
	}
	var txMutex sync.Mutex // a transaction with a condition excludes other threads' commands
	var threads sync.WaitGroup
	for i := range 8 {
		threads.Go(func() {
			key, other := fmt.Sprintf("lock:%d", i), fmt.Sprintf("other:%d", i)
			for range 50 {
				if got := send("SET "+key+" me EX 30 NX", "INCR "+other); got[0] != "+OK\r\n" {
					t.Errorf("took %s: %q", key, got)
				}
				txMutex.Lock()
				if got := send("WATCH "+key, "GET "+key); got[0] != "+OK\r\n" || got[1] != bulk("me") {
					t.Errorf("read %s: %q", key, got)
				}
				if got := send("MULTI", "DEL "+key, "EXEC"); strings.Join(got, "") != "+OK\r\n+QUEUED\r\n*1\r\n:1\r\n" {
					t.Errorf("released %s: %q", key, got)
				}
				txMutex.Unlock()
			}
		})
	}
	threads.Wait()
	close(answers)
	for i := range 8 {
		r.connect().check(fmt.Sprintf("GET other:%d", i), bulk("50"))
	}
}

// TestCommandsOnAllKeysByTheUpstreamsRights checks that the upstream decides which clients may see
// or remove all keys. If it refuses, its error is the reply, and the lock keys stay.
func TestCommandsOnAllKeysByTheUpstreamsRights(t *testing.T) {
	r, server := startWithLockKeys(t, "--user", "app", "on", ">x", "~*", "&*", "+@all", "-flushall", "-flushdb",
		"-@dangerous", "-scan")
	for _, login := range []string{"AUTH app x"} {
		p := r.connect()
		p.check("SET lock:a me", ok)
		p.check(login, ok)
		for _, command := range []string{"FLUSHALL", "FLUSHDB", "KEYS *", "SCAN 0", "SCAN 4503599627370496"} {
			name := strings.ToLower(strings.Fields(command)[0])
			p.check(command, "-NOPERM this user has no permissions to run the '"+name+"' command\r\n")
		}
		p.check("GET lock:a", bulk("me"))
	}
	p := r.connect()
	dial(t, server.Addr()).check("REPLICAOF 127.0.0.1 1", ok)
	p.check("FLUSHDB", "-READONLY You can't write against a read only replica.\r\n")
	p.check("GET lock:a", bulk("me"))
}

// TestScanReturnsAllKeys adds and removes keys of both kinds during a SCAN. The SCAN returns all
// keys that exist throughout, as one Redis does, and each lock key once.
func TestScanReturnsAllKeys(t *testing.T) {
	r, server := startWithLockKeys(t)
	p, admin := r.connect(), dial(t, server.Addr())
	want := map[string]bool{}
	for i := range 700 {
		for _, key := range []string{fmt.Sprint("lock:", i), fmt.Sprint("k", i)} {
			p.check("SET "+key+" x", ok)
			want[key] = true
		}
	}
	times, calls := map[string]int{}, 0
	for cursor := "0"; calls == 0 || cursor != "0"; calls++ {
		reply := resp.Texts([]byte(p.ask("SCAN " + cursor + " COUNT 7")))
		cursor = reply[0]
		for _, key := range reply[1:] {
			times[key]++
		}
		p.check(fmt.Sprint("SET lock:new", calls, " x"), ok)
		p.ask(fmt.Sprint("DEL lock:new", calls-3))
		admin.check(fmt.Sprint("SET knew", calls, " x"), ok)
	}
	for key := range want {
		if n := times[key]; n == 0 || n > 1 && strings.HasPrefix(key, "lock:") {
			t.Errorf("%s was told %d times", key, n)
		}
	}
	if calls < 100 {
		t.Errorf("COUNT is no hint: %d calls", calls)
	}
}
