//go:build integration

package hostile

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"redlock-proxy/internal/redistest"
)

// attack is one kind of hostile or harmless client. rounds counts the rounds of all clients of this
// kind; each round uses a new connection.
type attack struct {
	name    string
	clients int
	run     func(ctx context.Context, conn *net.TCPConn)
	rounds  atomic.Int64
}

func attacks() []*attack {
	return []*attack{
		{name: "frames", clients: 4, run: sendInvalidFrames}, {name: "noise", clients: 2, run: sendCorruptedRequests},
		{name: "floods", clients: 2, run: flood},
		{name: "half-closed", clients: 4, run: closeHalf}, {name: "script bombs", clients: 20, run: sendScriptBombs},
		{name: "odd EVALs", clients: 6, run: sendOddEvals},
		{name: "big keys", clients: 2, run: sendBigKeys}, {name: "idle with half a command", clients: 50, run: sendPartialCommand},
		{name: "transactions", clients: 3, run: sendTransactions}, {name: "replies that nobody reads", clients: 8, run: leaveRepliesUnread},
		{name: "long values", clients: 2, run: sendLongValues}, {name: "long texts", clients: 6, run: sendLongTexts},
		{name: "globs", clients: 4, run: sendGlobs},
		{name: "scripts that are all different", clients: 2, run: sendManyScripts},
		{name: "odd logins", clients: 2, run: sendOddLogins},
		{name: "wide reads", clients: 20, run: sendWideReads}, {name: "state commands", clients: 2, run: sendStateCommands},
		{name: "waits on many keys", clients: 20, run: waitOnManyKeys}, {name: "unread reports", clients: 2, run: leaveInvalidationsUnread},
		{name: "scripts of clients that left", clients: 2, run: abandonScripts},
	}
}

// attackUntil runs rounds of an attack until ctx ends.
func attackUntil(ctx context.Context, a *attack, addr string) {
	for ctx.Err() == nil {
		conn, err := net.DialTimeout("tcp", addr, replyTimeout)
		if err != nil {
			pause(ctx)
			continue
		}
		_ = conn.SetDeadline(time.Now().Add(replyTimeout))
		stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
		a.run(ctx, conn.(*net.TCPConn))
		a.rounds.Add(1)
		stop()
		_ = conn.Close()
	}
}

func pick[T any](items []T) T { return items[rand.IntN(len(items))] }

func command(words ...string) string { return string(redistest.AppendCommand(nil, words...)) }

func send(conn net.Conn, text string) { _, _ = conn.Write([]byte(text)) }

// readUpTo reads up to n bytes. It ends early when no byte arrives for the time idle, or soon after
// ctx ends.
func readUpTo(ctx context.Context, conn net.Conn, n int, idle time.Duration) {
	buf := make([]byte, min(n, 64<<10))
	for n > 0 && ctx.Err() == nil {
		_ = conn.SetReadDeadline(time.Now().Add(idle))
		m, err := conn.Read(buf)
		if n -= m; err != nil {
			return
		}
	}
}

// sendInvalidFrames sends bytes that are not a request, or only the beginning of one.
func sendInvalidFrames(ctx context.Context, conn *net.TCPConn) {
	send(conn, pick([]string{
		"*1\r\n$9223372036854775807\r\n", "*9223372036854775807\r\n", "*2147483648\r\n",
		"*2\r\n$4\r\nLOCK\r\n$536870913\r\n", "*1\r\n$-1\r\n", "*x\r\n", "*1\r\nPING\r\n",
		strings.Repeat("x", 70_000), "*" + strings.Repeat("1", 70_000), "PING \"x\r\n",
		"POST / HTTP/1.1\r\nHost: x\r\n\r\n", "*3\r\n$4\r\nLOCK\r\n:1\r\n", "\r\n\r\n\x00\x00\r\n",
		"*1000000\r\n$3\r\nDEL\r\n" + strings.Repeat("$6\r\nlock:x\r\n", 2000), "*2147483647\r\n$4\r\nMGET\r\n" +
			strings.Repeat("$1\r\nx\r\n", 2000),
	}))
	readUpTo(ctx, conn, 1<<20, 50*time.Millisecond)
}

// sendCorruptedRequests sends three valid requests with some bytes changed.
func sendCorruptedRequests(ctx context.Context, conn *net.TCPConn) {
	request := []byte(command("SET", "lock:9", "v", "NX", "PX", "1000") + command("EVAL",
		"return redis.call('get', KEYS[1])", "1", "lock:9") + command("LOCK", "lock:8", "t", "PX", "1000"))
	for range 1 + rand.IntN(4) {
		request[rand.IntN(len(request))] = byte(rand.Uint32())
	}
	send(conn, string(request))
	readUpTo(ctx, conn, 1<<16, 50*time.Millisecond)
}

// flood sends many commands and reads nothing.
func flood(ctx context.Context, conn *net.TCPConn) {
	_ = conn.SetWriteDeadline(time.Now().Add(time.Second))
	request := strings.Repeat(pick([]string{
		command("PING"), command("LOCK", "flood", "t", "PX", "100"), command("GET", "lock:flood"), "x\r\n",
		command("PROXY", "INFO"), command("COMMAND", "DOCS"),
		command("EVAL", releaseScript, "1", "lock:flood", "t"), command("SET", "data", strings.Repeat("x", 2000)),
		command("GET", "data"),
	}), 200)
	pause(ctx)
	for range 10 {
		if _, err := conn.Write([]byte(request)); err != nil {
			return
		}
	}
}

// closeHalf closes its sending direction, and then reads, resets the connection, or closes it.
func closeHalf(ctx context.Context, conn *net.TCPConn) {
	send(conn, strings.Repeat(pick([]string{
		command("LOCK", "half", "t", "PX", "50", "BLOCK", "1000"), command("BLPOP", "none", "1"),
		command("SUBSCRIBE", "c"), command("GET", "a"), command("EVAL", "while true do end", "1", "lock:half"),
		command("SET", "lock:half", "t", "NX", "PX", "50"),
	}), 1+rand.IntN(3)))
	_ = conn.CloseWrite()
	switch rand.IntN(3) {
	case 0:
		readUpTo(ctx, conn, 1<<16, time.Second)
	case 1:
		_ = conn.SetLinger(0)
	}
}

// sendScriptBombs sends scripts that would use up a resource.
func sendScriptBombs(ctx context.Context, conn *net.TCPConn) {
	body := pick([]string{
		`while true do end`,
		`local t = {} while true do t[#t + 1] = {} end`,
		`local s = "x" while true do s = s .. s end`,
		`local t = {} while true do t[#t + 1] = function() return t end end`,
		`local function f() return 1 + f() end while true do pcall(f) end`,
		`local function f() return xpcall(f, f) end return f()`,
		`return ("a"):rep(30000):find(("a-"):rep(20) .. "b")`,
		`for i = 1, 1e9 do redis.call("get", KEYS[1]) end`,
		`for i = 1, 1e5 do redis.call("get", "lock:bomb:" .. i) end`,
		`return ("x"):rep(1e8)`,
		`local t = {} for i = 1, 1e6 do t[i] = i end return t`,
		`local t = {} for i = 1, 2e5 do t[i] = i % 7 end while true do table.sort(t, function(a, b) return a * 31 % 7 < b * 31 % 7 end) end`,
		`return cjson.decode(("["):rep(1e5))`,
		`while true do pcall(error, {}) end`,
	})
	send(conn, command("EVAL", body, "1", fmt.Sprintf("lock:bomb%d", rand.IntN(50))))
	readUpTo(ctx, conn, 1<<20, 3*time.Second)
}

// sendOddEvals sends scripts and script commands in unusual forms.
func sendOddEvals(ctx context.Context, conn *net.TCPConn) {
	for range 20 {
		send(conn, pick([]string{
			command("EVAL"), command("EVAL", "return 1"), command("EVAL", "return 1", "x", "lock:a"),
			command("EVAL", "return 1", "-1", "lock:a"), command("EVAL", "return 1", "9", "lock:a"),
			command("EVALSHA", strings.Repeat("f", 40), "1", "lock:a"), command("EVALSHA", "zz", "1", "lock:a"),
			command("EVAL", "return {{{", "1", "lock:a"),
			command("EVAL", "#!lua flags=no-writes\nreturn redis.call('set',KEYS[1],1)", "1", "lock:a"),
			command("EVAL_RO", "return redis.call('del',KEYS[1])", "1", "lock:a"),
			command("EVAL", "return redis.call('hset',KEYS[1],'f','v')", "1", "lock:a"),
			command("EVAL", "return redis.call('eval','return 1',0)", "1", "lock:a"),
			command("EVAL", "return setmetatable(_G,{__index=error})", "1", "lock:a"),
			command("EVAL", "return redis.call('set',KEYS[1],ARGV[1],'PX',50)", "2", "lock:a", "b", "c"),
			command("EVAL", string([]byte{0, 1, 2, 255}), "1", "lock:a"),
			command("SCRIPT", "LOAD", "return "+fmt.Sprint(rand.Int())), command("SCRIPT", "KILL"),
			command("SCRIPT", "FLUSH"),
			command("EVAL", "return redis.error_reply(ARGV[1])", "1", "lock:a", "a\r\nb\x00c"),
			command("EVAL", strings.Repeat("local a=1 ", 250), "1", "lock:a"),
			command("EVAL", "return "+strings.Repeat("(", 3000)+"1"+strings.Repeat(")", 3000), "1", "lock:a"),
		}))
	}
	readUpTo(ctx, conn, 1<<20, 200*time.Millisecond)
}

// sendBigKeys sends keys and numbers of keys that are far too large.
func sendBigKeys(ctx context.Context, conn *net.TCPConn) {
	large, many := strings.Repeat("k", 1+rand.IntN(2<<20)), make([]string, 1+rand.IntN(5000))
	for i := range many {
		many[i] = fmt.Sprintf("lock:many%d", i)
	}
	send(conn, pick([]string{
		command("LOCK", large, "t", "PX", "100"), command("SET", "lock:"+large, "v", "NX", "PX", "100"),
		command("SET", "lock:big", large, "PX", "100"), command("GET", "lock:"+large),
		command(append([]string{"DEL"}, many...)...), command(append([]string{"MGET"}, many...)...),
		command(append([]string{"WATCH"}, many...)...),
		command(append([]string{"EVAL", "return 1", fmt.Sprint(len(many))}, many...)...),
		command("EVAL", "--"+large, "1", "lock:big"),
	}))
	readUpTo(ctx, conn, 1<<20, time.Second)
}

// sendPartialCommand sends the beginning of a command, and then nothing.
func sendPartialCommand(ctx context.Context, conn *net.TCPConn) {
	send(conn, pick([]string{
		"*5\r\n$4\r\nLOCK\r\n$1000000\r\n" + strings.Repeat("x", 100_000), "*2\r\n$4\r\nAUTH\r\n$900000\r\n" +
			strings.Repeat("x", 500_000), "*3\r\n$3\r\nSET\r\n$6\r\nlock:x\r\n$1000000\r\nxx", "*", "",
	}))
	select {
	case <-ctx.Done():
	case <-time.After(time.Duration(rand.IntN(5000)) * time.Millisecond):
	}
}

// sendTransactions sends transactions, among them long, endless and incomplete ones.
func sendTransactions(ctx context.Context, conn *net.TCPConn) {
	send(conn, pick([]string{
		command("MULTI") + strings.Repeat(command("EVAL", "while true do end", "1", "lock:tx"), 5) + command("EXEC"),
		command("WATCH", "lock:tx") + command("MULTI") + command("SET", "lock:tx", "v", "PX", "50"),
		command("MULTI") + command("GET", "data") + command("SET", "lock:tx", "v", "PX", "50") + command("EXEC"),
		command("MULTI") + strings.Repeat(command("SET", "lock:tx", "v", "PX", "50"), 2000) + command("EXEC"),
	}))
	readUpTo(ctx, conn, 1<<20, time.Second)
}

// leaveRepliesUnread requests more than any buffer holds, subscribes, and reads nothing for a
// while.
func leaveRepliesUnread(ctx context.Context, conn *net.TCPConn) {
	send(conn, command("SET", "lock:long", strings.Repeat("x", 900_000), "PX", "60000")+command("SUBSCRIBE",
		"news")+strings.Repeat(command("GET", "lock:long"), 12))
	select {
	case <-ctx.Done():
	case <-time.After(time.Duration(rand.IntN(5000)) * time.Millisecond):
	}
}

// sendLongValues reads one long value several times, and then many long values with one command.
func sendLongValues(ctx context.Context, conn *net.TCPConn) {
	key := fmt.Sprint("lock:value", rand.IntN(50))
	send(conn, command("SET", key, strings.Repeat("x", 900_000), "PX", "60000")+strings.Repeat(command("GET", key), 5))
	many := []string{"MGET"}
	for i := range 50 {
		many = append(many, fmt.Sprint("lock:value", i))
	}
	send(conn, command(many...))
	readUpTo(ctx, conn, 64<<20, time.Second)
}

// sendLongTexts sends scripts that repeatedly parse, compare or search a long argument.
func sendLongTexts(ctx context.Context, conn *net.TCPConn) {
	body := pick([]string{
		`for i = 1, 1e9 do local x = ARGV[1] + 1 end`,
		`for i = 1, 1e9 do local x = tonumber(ARGV[1]) end`,
		`for i = 1, 1e9 do local x = tonumber(ARGV[1], 16) end`,
		`for i = 1, 1e9 do pcall(string.format, "%d", ARGV[1]) end`,
		`for i = 1, 1e9 do redis.pcall(ARGV[1]) end`,
		`for i = 1, 1e9 do pcall(error, ARGV[1]) end`,
		`return string.find(ARGV[1], "[b" .. ("b"):rep(60000) .. "a]*$")`,
		`return string.find(ARGV[1], ("1*"):rep(30) .. "2")`,
		`for i = 1, 1e9 do local x = ARGV[1] .. i < ARGV[1] end`,
		`redis.call("hset", KEYS[1], ARGV[1], "v") return redis.call("hscan", KEYS[1], 0, "match", ("*1"):rep(40) .. "2")`,
		`return cjson.encode({ARGV[1], ARGV[1], ARGV[1]})`,
	})
	send(conn, command("EVAL", body, "1", fmt.Sprintf("lock:text%d", rand.IntN(50)), strings.Repeat("1", 900_000)))
	readUpTo(ctx, conn, 1<<20, 3*time.Second)
}

// sendGlobs sends patterns that take long to compare with long names.
func sendGlobs(ctx context.Context, conn *net.TCPConn) {
	long, glob := strings.Repeat("a", 100_000), strings.Repeat("*a", 30)+"*b"
	send(conn, pick([]string{
		command("LOCK", "lock:"+long, "t", "PX", "1000") + command("LOCKLIST", "MATCH", "*"+glob),
		command("KEYS", "lock:"+glob), command("SCAN", "0", "MATCH", "lock:"+glob, "COUNT", "1000"),
		command("PSUBSCRIBE", glob), command("PUBLISH", long, "m"), command("CONFIG", "GET", glob),
		command("COMMAND", "LIST", "FILTERBY", "PATTERN", glob),
	}))
	readUpTo(ctx, conn, 1<<20, time.Second)
}

// sendManyScripts sends long scripts, all different.
func sendManyScripts(ctx context.Context, conn *net.TCPConn) {
	body := fmt.Sprintf("local n = %d ", rand.Int()) + strings.Repeat("n = n + 1 ", 1+rand.IntN(90_000)) + "return n"
	send(conn, pick([]string{command("SCRIPT", "LOAD", body), command("EVAL", body, "1", "lock:script")}))
	readUpTo(ctx, conn, 1<<16, 2*time.Second)
}

// sendOddLogins sends invalid names and passwords.
func sendOddLogins(ctx context.Context, conn *net.TCPConn) {
	send(conn, pick([]string{
		command("HELLO", "3", "AUTH\x00", "lim", "x"), command("AUTH", "lim\x00", "x"),
		command("AUTH", strings.Repeat("u", 1<<20), "x"), command("HELLO", "3", "AUTH", "lim"),
		command("RESET") + command("HELLO", "99999999999999999999"), command("CLIENT", "SETNAME", "a\nb"),
		command("ACL", "WHOAMI"),
	}))
	readUpTo(ctx, conn, 1<<16, 200*time.Millisecond)
}

// lockKeys returns n different lock keys with a prefix.
func lockKeys(prefix string, n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprint("lock:", prefix, i)
	}
	return keys
}

// sendWideReads reads a thousand lock keys with one command.
func sendWideReads(ctx context.Context, conn *net.TCPConn) {
	prefix := fmt.Sprint("wide", rand.IntN(100), ":")
	send(conn, command(append([]string{pick([]string{"EXISTS", "MGET", "DEL", "WATCH"})}, lockKeys(prefix, 1000)...)...))
	readUpTo(ctx, conn, 1<<20, time.Second)
}

// sendStateCommands sends many commands that may change the connection's state, and reads the
// replies late or never.
func sendStateCommands(ctx context.Context, conn *net.TCPConn) {
	_ = conn.SetWriteDeadline(time.Now().Add(time.Second))
	request := strings.Repeat(pick([]string{"DISCARD\r\n", "SELECT 0\r\n", "UNWATCH\r\n", "MULTI\r\nDISCARD\r\n"}), 10_000)
	for range 20 {
		if _, err := conn.Write([]byte(request)); err != nil {
			break
		}
	}
	pause(ctx)
	readUpTo(ctx, conn, rand.IntN(1<<20), 100*time.Millisecond)
}

// waitOnManyKeys waits with BLPOP for elements of a thousand lock keys.
func waitOnManyKeys(ctx context.Context, conn *net.TCPConn) {
	prefix := fmt.Sprint("waits", rand.IntN(1000), ":")
	send(conn, command(append(append([]string{"BLPOP"}, lockKeys(prefix, 1000)...), "2")...))
	pause(ctx)
	readUpTo(ctx, conn, 1<<16, time.Second)
}

// leaveInvalidationsUnread tracks lock keys with long names, changes them, and reads no
// invalidation.
func leaveInvalidationsUnread(_ context.Context, conn *net.TCPConn) {
	_ = conn.SetWriteDeadline(time.Now().Add(5 * time.Second))
	send(conn, command("HELLO", "3")+command("CLIENT", "TRACKING", "ON")+command("CLIENT", "REPLY", "OFF"))
	for i := range 100 {
		key := fmt.Sprint("lock:reports", i, strings.Repeat("x", 100_000))
		if _, err := conn.Write([]byte(command("GET", key) + command("SET", key, "v", "PX", "1000"))); err != nil {
			return
		}
	}
}

// abandonScripts sends many scripts that never end, and closes the connection.
func abandonScripts(_ context.Context, conn *net.TCPConn) {
	_ = conn.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
	_, _ = conn.Write([]byte(strings.Repeat(command("EVAL", "while true do end", "1", "lock:departed"), 5000)))
}
