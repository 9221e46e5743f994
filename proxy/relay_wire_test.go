package proxy_test

import (
	"bytes"
	"io"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"redlock-proxy/internal/redistest"
)

// expectSame fails unless the proxy answers bytes as the upstream itself does, up to the reply to
// an ECHO after them.
func expectSame(t *testing.T, r *testProxy, server *redistest.Server, sent string) {
	t.Helper()
	p, direct := r.connect(), dial(t, server.Addr())
	end := array("ECHO", "-end-")
	direct.send(sent + end)
	want := readUpTo(direct, bulk("-end-")) // first, because both write the same keys
	p.send(sent + end)
	if got := readUpTo(p, bulk("-end-")); withoutID(got) != withoutID(want) {
		t.Errorf("%.200q: got %.300q\nwant %.300q", sent, got, want)
	}
	p.conn.Close()
	direct.conn.Close()
}

// TestAllTypesOfReplies checks that every type of reply passes, in RESP2 and RESP3, with lock
// commands around it (RELAY.md, point 16).
func TestAllTypesOfReplies(t *testing.T) {
	r, server := startRelay(t, "--enable-debug-command", "yes")
	types := []string{"string", "integer", "double", "null", "array", "set", "map", "attrib", "push", "verbatim",
		"true", "false", "bignum", "nosuch"}
	for _, hello := range []string{"", lines("HELLO 3")} {
		commands := ""
		for _, kind := range types {
			expectSame(t, r, server, hello+cmd("DEBUG PROTOCOL "+kind))
			commands += cmd("DEBUG PROTOCOL " + kind)
		}
		expectSame(t, r, server, hello+commands)
		p, direct := r.connect(), dial(t, server.Addr())
		direct.send(hello + commands + cmd("ECHO end"))
		want := withoutID(readUpTo(direct, bulk("end")))
		mixed := strings.ReplaceAll(commands, cmd("DEBUG PROTOCOL map"),
			lines("LOCK k t PX 1000", "DEBUG PROTOCOL map", "UNLOCK k t"))
		p.send(hello + mixed + cmd("ECHO end"))
		got := withoutID(readUpTo(p, bulk("end")))
		got = strings.Replace(strings.Replace(got, ":1000\r\n", "", 1), "false\r\n:1\r\n", "false\r\n", 1)
		if len(got) != len(want)+len(":1\r\n") {
			t.Errorf("with locks between: got %q\nwant %q", got, want)
		}
	}
}

// TestShapesOfReplies covers nulls, empty and nested values, and all sizes of texts (RELAY.md,
// point 16).
func TestShapesOfReplies(t *testing.T) {
	r, server := startRelay(t)
	for _, lua := range []string{
		"return ''", "return false", "return {}", "return {{},{{}},false,''}", "return {1,{2,{3,{4,{'x'}}}}}",
		"return redis.status_reply('')", "return redis.error_reply('')",
		"return redis.status_reply(string.rep('s',3*1024*1024))",
		"return redis.error_reply('E '..string.rep('e',3*1024*1024))", "return string.rep('b',5*1024*1024)",
		"local t={} for i=1,20000 do t[i]=i end return t", "local t={} for i=1,3000 do t[i]={i,'v'..i} end return t",
		"return 9007199254740991", "return -1", "redis.setresp(3) return {map={a=1,b={set={x=true}}}}",
		"redis.setresp(3) return {double=3.14}",
		"return redis.error_reply('LOADING by script')", "error('wrong')", "syntax error",
		"return {err='-ERR two lines'}",
	} {
		for _, hello := range []string{"", lines("HELLO 3")} {
			expectSame(t, r, server, hello+array("EVAL", lua, "0")+cmd("GET none"))
		}
	}
	for _, sent := range []string{
		lines("SET e ") + cmd("GET e"), lines("GET none", "LRANGE none 0 -1", "HGETALL none", "BLPOP none 0.01",
			"ZSCORE none a", "MGET none none"),
		lines("HELLO 3") + lines("GET none", "HGETALL none", "BLPOP none 0.01", "ZSCORE none a", "MGET none none",
			"SMEMBERS none"),
		lines("INCRBYFLOAT f 3.5", "HELLO 3", "INCRBYFLOAT f 1", "ZADD z 1.5 a", "ZRANGE z 0 -1 WITHSCORES",
			"ZADD z 1e300 b", "ZSCORE z b", "DEL f z"),
		lines("CONFIG GET save", "COMMAND GETKEYS SET a b", "OBJECT HELP", "MEMORY DOCTOR", "LATENCY DOCTOR", "LOLWUT"),
		lines("HELLO 3", "CONFIG GET save", "MEMORY DOCTOR", "LATENCY DOCTOR", "LOLWUT"),
	} {
		expectSame(t, r, server, sent)
	}
}

// TestInlineCommands checks that the proxy answers inline commands as the upstream does, including
// the proxy's own commands, empty lines and every kind of line end (RELAY.md, point 17).
func TestInlineCommands(t *testing.T) {
	r, server := startRelay(t)
	for _, sent := range []string{
		"PING\r\n", "PING\n", "\r\n", "\n\n\nPING\n", "  PING  \r\n", "PING\thello\r\n", "ECHO \"a b\"\r\n",
		"ECHO 'a b'\r\n",
		`ECHO "\x41\n\"\\"` + "\r\n", "SET k v\nGET k\nDEL k\n",
		"*0\r\n", "*-1\r\n", "*0\r\nPING\r\n", "NOSUCH a b\r\n", "ECHO\r\n", "ECHO \"\"\r\n",
		"PING\r\n" + cmd("PING") + "PING\n", "$5 x\r\n",
	} {
		expectSame(t, r, server, sent)
	}
	p := r.connect()
	p.send("lock k t px 1000\nPING\r\nLOCK 'k' \"u\" PX 1000\r\n  unlock k t\n")
	p.expect(":1000\r\n+PONG\r\n$-1\r\n:1\r\n")
}

// TestProtocolErrors checks that bytes that are no request get Redis' error, after the replies to
// earlier commands. Then the connection is closed (RELAY.md, points 17 and 21).
func TestProtocolErrors(t *testing.T) {
	r, server := startRelay(t)
	for _, broken := range []string{
		"ECHO a'b\r\n", "ECHO \"a\r\n", "*1\r\n:1\r\n", "*1\r\n$-5\r\n", "*x\r\n", "*1\r\n$x\r\n", "*2147483648\r\n",
		"*2\r\n$3\r\nGET\r\n$536870913\r\n",
		"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n!1\r\n", "*3\r\n$4\r\nLOCK\r\n$1\r\nk\r\n!1\r\n", "*2\r\n$6\r\nSELECT\r\nx\r\n",
		"*2\r\n$9\r\nSUBSCRIBE\r\nx\r\n",
		strings.Repeat("x", 70<<10), "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$40000\r\n" + strings.Repeat("v", 40000) +
			"\r\n*1\r\n!\r\n",
	} {
		for _, before := range []string{"", cmd("PING"), lines("PING", "SET a 1", "GET a") + "PING\n"} {
			p, direct := r.connect(), dial(t, server.Addr())
			direct.send(before + broken)
			p.send(before + broken)
			if got, want := p.readAll(), direct.readAll(); got != want {
				t.Errorf("%.80q behind %.40q: got %q\nwant %q", broken, before, got, want)
			}
		}
	}
}

// TestHTTPIsClosed checks that a browser's request closes the connection without a reply, and that
// its body is not run as commands (RELAY.md, point 17).
func TestHTTPIsClosed(t *testing.T) {
	r, server := startRelay(t)
	for _, sent := range []string{"POST / HTTP/1.1\r\nHost: x\r\n\r\nSET a 1\r\n", "*1\r\n$5\r\nHost:\r\nSET a 1\r\n",
		"GET /\r\nHost: x\r\nSET a 1\r\n"} {
		p := r.connect()
		p.send(sent)
		if got := p.readAll(); got != "" && got != "$-1\r\n" {
			t.Errorf("%q: got %q", sent, got)
		}
	}
	dial(t, server.Addr()).check("EXISTS a", ":0\r\n")
}

// TestProtocolErrorInTheMiddle checks that an invalid frame that was already sent in part gets
// Redis' error, too, even while the upstream still runs an earlier command (RELAY.md, points 17 and
// 21).
func TestProtocolErrorInTheMiddle(t *testing.T) {
	r, server := startRelay(t, "--enable-debug-command", "yes")
	for _, c := range []struct{ first, second, want string }{
		{"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n", "!1\r\n", "-ERR Protocol error: expected '$', got '!'\r\n"},
		{cmd("PING") + "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n", "!1\r\n",
			"+PONG\r\n-ERR Protocol error: expected '$', got '!'\r\n"},
		{cmd("LOCK k t PX 1000") + "*3\r\n$4\r\nLOCK\r\n$1\r\nk\r\n", "!1\r\n",
			":1000\r\n-ERR Protocol error: expected '$', got '!'\r\n"},
		{cmd("DEBUG SLEEP 0.1"), lines("GET a") + "*x\r\n",
			"+OK\r\n$-1\r\n-ERR Protocol error: invalid multibulk length\r\n"},
		{cmd("CLIENT REPLY SKIP") + "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n", "!1\r\n",
			"-ERR Protocol error: expected '$', got '!'\r\n"},
		{"*2\r\n$9\r\nSUBSCRIBE\r\n$2000000\r\n" + strings.Repeat("c", 1500000),
			strings.Repeat("c", 500000) + "\r\nPOST\r\n", "*3\r\n"},
		{"*3\r\n$9\r\nSUBSCRIBE\r\n$2000000\r\n" + strings.Repeat("c", 1500000),
			strings.Repeat("c", 500000) + "\r\n!\r\n", "-ERR Protocol error: expected '$', got '!'\r\n"},
	} {
		p := r.connect()
		p.send(c.first)
		time.Sleep(20 * time.Millisecond) // so that the request arrives in two pieces
		p.send(c.second)
		if got := p.readAll(); !strings.HasPrefix(got, c.want) || c.want != "*3\r\n" && got != c.want {
			t.Errorf("%.80q, then %.80q: got %.200q\nwant %q", c.first, c.second, got, c.want)
		}
	}
	dial(t, server.Addr()).check("EXISTS k", ":0\r\n")
}

// TestHugeValuesStream checks that values of many megabytes are relayed in both directions, and not
// kept (RELAY.md, point 15). REDLOCK_TEST_VALUE_MB sets the size; Redis accepts at most 512.
func TestHugeValuesStream(t *testing.T) {
	megabytes := envNumber(t, "REDLOCK_TEST_VALUE_MB", 64)
	r, _ := startRelay(t)
	p := r.connect()
	p.check("LOCK k t PX 1000", ":1000\r\n")
	size := megabytes << 20
	chunk := bytes.Repeat([]byte("0123456789abcdef"), 64<<10/16)

	before := allocatedBytes()
	p.send("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$" + strconv.Itoa(size) + "\r\n")
	for range size / len(chunk) {
		if _, err := p.conn.Write(chunk); err != nil {
			t.Fatal(err)
		}
	}
	p.send("\r\n" + lines("UNLOCK k t", "STRLEN k", "GET k", "LOCK k t PX 1000"))
	p.expect("+OK\r\n:1\r\n:" + strconv.Itoa(size) + "\r\n$" + strconv.Itoa(size) + "\r\n")
	got := make([]byte, len(chunk))
	for range size / len(chunk) {
		if _, err := io.ReadFull(p.in, got); err != nil || !bytes.Equal(got, chunk) {
			t.Fatalf("the value is another one; %v", err)
		}
	}
	p.expect("\r\n:1000\r\n")
	if n := allocatedBytes() - before; n > 8<<20 {
		t.Errorf("%d MB there and back took %d bytes of memory", megabytes, n)
	}
}

// allocatedBytes returns the total memory ever allocated in this process.
func allocatedBytes() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// TestLargeCommandsAndReplies checks that large values pass in a transaction, too, and so do a
// command and a reply of a hundred thousand elements (RELAY.md, point 15).
func TestLargeCommandsAndReplies(t *testing.T) {
	r, server := startRelay(t)
	words := []string{"RPUSH", "list"}
	for i := range 100_000 {
		words = append(words, strconv.Itoa(i))
	}
	big := strings.Repeat("x", 3<<20)
	expectSame(t, r, server, lines("MULTI")+array("SET", "big", big)+lines("GET big", "EXEC", "DEL big"))
	expectSame(t, r, server, array(words...)+lines("LRANGE list 0 -1", "DEL list"))
	p := r.connect()
	p.send(array("LOCK", "k", big, "PX", "1000") + cmd("PING") + array("CLIENT", "SETNAME", big) + cmd("PING"))
	p.expect("-ERR command too long: commands that the proxy itself runs are limited to 1048576 bytes\r\n+PONG\r\n+OK\r\n+PONG\r\n")
}
