package proxy

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"redlock-proxy/quorum"
)

const (
	pong         = "+PONG\r\n"
	okReply      = "+OK\r\n"
	nullReply    = "$-1\r\n"
	unknownReply = "-ERR unknown command 'foo', with args beginning with: \r\n"
)

// TestLockOnMasters checks LOCK and UNLOCK on the whole way from a client to the masters.
func TestLockOnMasters(t *testing.T) {
	locker, masters := startMasters(t, 3)
	b := serveLocks(t, locker)
	alice, bob := b.connect(), b.connect()
	alice.send(array("LOCK", "k", "alice", "PX", "600000"))
	if reply := alice.readLine(); !strings.HasPrefix(reply, ":59") {
		t.Fatalf("LOCK: %q", reply)
	}
	for _, m := range masters {
		b.eventually("a master with the key", func() bool { return m.Exists("k") })
		if v, err := m.Get("k"); !strings.HasPrefix(v, "#p") || !strings.HasSuffix(v, "alice") || err != nil ||
			m.TTL("k") <= 0 {
			t.Errorf("a master holds %q for %v, %v", v, m.TTL("k"), err)
		}
	}
	bob.check(array("LOCK", "k", "bob", "PX", "60000"), nullReply)
	bob.check(array("UNLOCK", "k", "bob"), ":0\r\n")
	bob.check(array("EXTEND", "k", "bob", "PX", "60000"), nullReply)
	bob.check("SELECT 3\r\n", okReply)
	bob.check(array("UNLOCK", "k", "alice"), ":0\r\n")
	alice.check(array("UNLOCK", "k", "alice"), ":1\r\n")
	for _, m := range masters { // the last master may get the command later
		b.eventually("a master without the key", func() bool { return !m.Exists("k") })
	}
}

// conversation lists requests with their replies.
var conversation = []struct{ sent, want string }{
	{array("PING"), pong},
	{"PING\r\n", pong},
	{"PING\n", pong},
	{"\r\n", ""},
	{"\n   \r\n", ""},
	{"*0\r\n", ""},
	{"*-1\r\n", ""},
	{"  ping  'a b'\r\n", "$3\r\na b\r\n"},
	{`PING "\x41\r\n\"\t"` + "\r\n", "$5\r\nA\r\n\"\t\r\n"},
	{`PING 'it\'s'` + "\n", "$4\r\nit's\r\n"},
	{"PING ''\r\n", "$0\r\n\r\n"},
	{"foo\r\n", unknownReply},
	{"'' bar\r\n", "-ERR unknown command '', with args beginning with: 'bar' \r\n"},
	{array("foo", "a b", "\r\n"), "-ERR unknown command 'foo', with args beginning with: 'a b' '  ' \r\n"},
	{array("ECHO", "\r\n*1\r\n$4\r\nPING\r\n"), "$16\r\n\r\n*1\r\n$4\r\nPING\r\n\r\n"},
	{array("LOCK", "k", "t", "PX", "5000"), ":5000\r\n"},
	{"LOCK k t EX 5\r\n", ":5000\r\n"},
	{array("LOCK", "k", "t", "PX"),
		"-ERR wrong number of arguments for 'lock' command: LOCK key token PX milliseconds|EX seconds [SHARED|SLOTS slots] [KEEPALIVE [MAXHOLD milliseconds]] [BLOCK milliseconds] [FENCE] [AT]\r\n"},
	{array("lock", "k", "t", "px", "x"), "-ERR value is not an integer or out of range\r\n"},
	{array("LOCK", "k", "t", "PX", "5000", "BLOCK", "0"), ":5000\r\n"},
	{"lock k t block 10 px 5000\r\n", ":5000\r\n"},
	{array("", "x"), "-ERR unknown command '', with args beginning with: 'x' \r\n"},
	{array(strings.Repeat("n", 70)), "-ERR unknown command '" + strings.Repeat("n",
		70) + "', with args beginning with: \r\n"},
	{array(strings.Repeat("n", 200), strings.Repeat("x", 3000)),
		"-ERR unknown command '" + strings.Repeat("n", 128) + "', with args beginning with: '" +
			strings.Repeat("x", 128) + "' \r\n"},
	{array("HELLO", "2", "SETNAME", "me"), helloReply},
	{array("CLIENT", "GETNAME"), "$2\r\nme\r\n"},
	{array("CLIENT", "REPLY", "SKIP"), ""},
	{array("UNLOCK", "k", "t"), ""},
	{array("UNLOCK", "k", "t"), ":1\r\n"},
	{array("QUIT"), okReply},
	{array("PING"), ""}, // after QUIT there is no reply
}

const helloReply = "*14\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$5\r\n7.2.4\r\n$5\r\nproto\r\n:2\r\n$2\r\nid\r\n:ID\r\n$4\r\nmode\r\n" +
	"$10\r\nstandalone\r\n$4\r\nrole\r\n$6\r\nmaster\r\n$7\r\nmodules\r\n*0\r\n"

// wholeConversation returns the conversation in one piece, for the client with this number.
func wholeConversation(id int) (sent, want string) {
	for _, c := range conversation {
		sent += c.sent
		want += c.want
	}
	return sent, strings.ReplaceAll(want, ":ID", fmt.Sprint(":", id))
}

func TestPipelineIsAnsweredInOrder(t *testing.T) {
	b := serveLocks(t, &scriptedLocks{})
	sent, want := wholeConversation(1)
	p := b.connect()
	p.send(sent)
	p.expect(want)
	p.expectClosed()
}

func TestOneByOneIsAnsweredInOrder(t *testing.T) {
	b := serveLocks(t, &scriptedLocks{})
	p := b.connect()
	for _, c := range conversation {
		p.check(c.sent, strings.ReplaceAll(c.want, ":ID", ":1"))
	}
	p.expectClosed()
}

// TestSplitRequestsAreAnsweredTheSame checks that the replies are the same however the bytes are
// split.
func TestSplitRequestsAreAnsweredTheSame(t *testing.T) {
	var ln *pipeListener
	startTestServer(t, serverOptions{locks: &scriptedLocks{}, listen: func(inner net.Listener) net.Listener {
		ln = newPipeListener(inner)
		return ln
	}})
	sent, _ := wholeConversation(0)
	for at := range len(sent) {
		_, want := wholeConversation(at + 1)
		checkReplies(t, ln.dial(), want, sent[:at], sent[at:])
	}
	_, want := wholeConversation(len(sent) + 1)
	checkReplies(t, ln.dial(), want, strings.Split(sent, "")...)
}

// TestSplitRequestsAreAnsweredTheSameOverTCP repeats TestSplitRequestsAreAnsweredTheSame over a TCP
// connection, where the kernel may join pieces.
func TestSplitRequestsAreAnsweredTheSameOverTCP(t *testing.T) {
	b := serveLocks(t, &scriptedLocks{})
	sent, _ := wholeConversation(0)
	for i, at := 0, 0; at < len(sent); i, at = i+1, at+7 {
		_, want := wholeConversation(i + 1)
		checkReplies(t, b.connect().conn, want, sent[:at], sent[at:])
	}
}

// checkReplies writes the chunks one by one, and expects the replies, and then the end of the
// stream.
func checkReplies(t *testing.T, conn net.Conn, want string, chunks ...string) {
	t.Helper()
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(connTimeout))
	go func() {
		for _, chunk := range chunks {
			_, _ = io.WriteString(conn, chunk) // bytes after QUIT are not read
		}
	}()
	if got, _ := io.ReadAll(conn); string(got) != want {
		t.Fatalf("cut behind %d bytes:\n got %q\nwant %q", len(chunks[0]), got, want)
	}
}

// TestLimitOfOwnCommands checks that the limit for the proxy's own commands does not depend on how
// they arrive.
func TestLimitOfOwnCommands(t *testing.T) {
	b := serveLocks(t, &scriptedLocks{})
	const refusedReply = "-ERR command too long: commands that the proxy itself runs are limited to 1048576 bytes\r\n"
	overhead := len(array("ECHO", strings.Repeat("x", 1<<20))) - 1<<20
	for _, size := range []int{maxFrame - 1, maxFrame, maxFrame + 1, maxFrame + 1000, 3 * maxFrame} {
		frame := array("ECHO", strings.Repeat("x", size-overhead))
		want := strings.TrimPrefix(frame, "*2\r\n$4\r\nECHO\r\n")
		if size > maxFrame {
			want = refusedReply
		}
		for _, chunk := range []int{len(frame), 100_000} {
			p := b.connect()
			go func() {
				for rest := frame + array("PING"); rest != ""; {
					n := min(chunk, len(rest))
					_, _ = io.WriteString(p.conn, rest[:n])
					rest = rest[n:]
				}
			}()
			p.expect(want + pong)
		}
	}
}

// TestSilentRefusal checks that a client with replies off gets no refusal either, because the
// refusal would look like the reply to another command.
func TestSilentRefusal(t *testing.T) {
	b := serveLocks(t, &scriptedLocks{})
	long := strings.Repeat("x", 2<<20)
	p := b.connect()
	p.send(array("CLIENT", "REPLY", "SKIP") + array("ECHO", long) + array("PING"))
	p.expect(pong)
	p.send(array("CLIENT", "REPLY", "OFF") + array("LOCK", long, "t", "PX", "1000") + array("GET", long) +
		array("CLIENT", "REPLY", "ON"))
	p.expect(okReply)
	p.send(array("CLIENT", "REPLY", "OFF") + "*x\r\n")
	p.expectClosed()
}

func TestProtocolErrorFollowsTheReplies(t *testing.T) {
	b := serveLocks(t, &scriptedLocks{})
	p := b.connect()
	p.send("PING\r\n" + array("LOCK", "k", "t", "PX", "5000") + "*1\r\n$x\r\nPING\r\n")
	p.expect(pong + ":5000\r\n-ERR Protocol error: invalid bulk length\r\n")
	p.expectClosed()
}

// TestLineEndings checks that the proxy, unlike Redis, checks the bytes after each argument of
// the proxy's own commands. The proxy refuses a command in which different bytes than CRLF follow
// an argument.
func TestLineEndings(t *testing.T) {
	locks := &scriptedLocks{lock: func(context.Context, quorum.LockRequest) (time.Duration, error) { panic("run") }}
	b := serveLocks(t, locks)
	p := b.connect()
	p.send("*1\r\n$3\r\nfooXY" + "*5\r\n$4\r\nLOCKXY$1\r\nkXY$1\r\ntXY$2\r\nPXXY$1\r\n1XY")
	p.expect(unknownReply + "-ERR Protocol error: expected CRLF\r\n")
	p.expectClosed()
}

func TestPanicEndsOneConnection(t *testing.T) {
	locks := &scriptedLocks{}
	locks.lock = func(_ context.Context, req quorum.LockRequest) (time.Duration, error) {
		if req.Keys[0].Name == "bad" {
			panic("on purpose")
		}
		return req.TTL, nil
	}
	b := serveLocks(t, locks)
	other := b.connect()
	other.check("PING\r\n", pong)
	for _, command := range []string{array("LOCK", "bad", "t", "PX", "1"), "LOCK bad t PX 1 BLOCK 0\r\n"} {
		p := b.connect()
		p.send(command)
		p.expectClosed()
	}
	b.waitClients(1)
	other.check("PING\r\n", pong)
	if log := b.log.String(); strings.Count(log, "on purpose") != 2 || !strings.Contains(log, "session_test.go") {
		t.Errorf("the log does not say where: %s", log)
	}
}
