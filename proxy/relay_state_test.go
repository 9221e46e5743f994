package proxy_test

import (
	"bufio"
	"bytes"
	"io"
	"regexp"
	"strings"
	"testing"
	"time"

	"redlock-proxy/proxy"
)

// TestStateIsTheClientsOwn checks that clients do not share the state of a connection (RELAY.md,
// point 2).
func TestStateIsTheClientsOwn(t *testing.T) {
	r, _ := startRelay(t)
	a, b := r.connect(), r.connect()
	a.check("CLIENT SETNAME alice", "+OK\r\n")
	a.check("SELECT 3", "+OK\r\n")
	a.check("CLIENT NO-EVICT on", "+OK\r\n")
	a.check("SET k a", "+OK\r\n")
	b.check("GET k", "$-1\r\n")
	b.check("CLIENT GETNAME", "$-1\r\n")
	a.check("CLIENT GETNAME", bulk("alice"))
	for _, want := range []string{"name=alice ", " db=3 ", " flags=e "} {
		if got := a.ask("CLIENT INFO"); !strings.Contains(got, want) {
			t.Errorf("%q is not in %q", want, got)
		}
	}
	a.check("WATCH k", "+OK\r\n")
	b.check("SELECT 3", "+OK\r\n")
	b.check("SET k b", "+OK\r\n")
	a.send(lines("MULTI", "SET k c", "EXEC", "GET k"))
	a.expect("+OK\r\n+QUEUED\r\n*-1\r\n" + bulk("b"))
}

// TestLockIsInTheSelectedDatabase checks that locks of different databases are different. The proxy
// learns the database from the upstream's replies (RELAY.md, points 2 and 9).
func TestLockIsInTheSelectedDatabase(t *testing.T) {
	r, _ := startRelay(t)
	p := r.connect()
	for _, c := range []struct {
		setup, replies string
		db             int
	}{
		{"", "", 0},
		{lines("SELECT 2"), "+OK\r\n", 2},
		{lines("SELECT 99"), "-ERR DB index is out of range\r\n", 2},
		{lines("SELECT x"), "-ERR value is not an integer or out of range\r\n", 2},
		{"select 4\r\n", "+OK\r\n", 4},
		{lines("MULTI", "SELECT 5", "DISCARD"), "+OK\r\n+QUEUED\r\n+OK\r\n", 4},
		{lines("MULTI", "SELECT 5", "EXEC"), "+OK\r\n+QUEUED\r\n*1\r\n+OK\r\n", 5},
		{lines("MULTI", "SELECT 6", "SELECT", "EXEC"),
			"+OK\r\n+QUEUED\r\n-ERR wrong number of arguments for 'select' command\r\n" +
				"-EXECABORT Transaction discarded because of previous errors.\r\n", 5},
		{lines("WATCH w", "SET w 1", "MULTI", "SELECT 6", "EXEC"), "+OK\r\n+OK\r\n+OK\r\n+QUEUED\r\n*-1\r\n", 5},
		{lines("CLIENT REPLY SKIP", "SELECT 7"), "", 7},
		{lines("CLIENT REPLY SKIP", "SELECT 99"), "", 7},
		{lines("CLIENT REPLY OFF", "SELECT 8", "CLIENT REPLY ON"), "+OK\r\n", 8},
		{lines("RESET"), "+RESET\r\n", 0},
	} {
		p.send(c.setup + cmd("LOCK k t PX 1000"))
		p.expect(c.replies + ":1000\r\n")
		if got := r.locks.holder(c.db, "k"); got != "t" {
			t.Errorf("after %q the lock is not in database %d", c.setup, c.db)
		}
		p.check("UNLOCK k t", ":1\r\n")
	}
}

// TestHelloDecidesTheProtocol checks that the upstream answers HELLO, and that the proxy's own
// replies are in the protocol that the upstream grants (RELAY.md, point 3).
func TestHelloDecidesTheProtocol(t *testing.T) {
	r, server := startRelay(t)
	r.connect().check("LOCK held t PX 1000", ":1000\r\n")
	for _, c := range []struct{ pipeline, null string }{
		{"", "$-1\r\n"},
		{lines("HELLO"), "$-1\r\n"},
		{lines("HELLO 2"), "$-1\r\n"},
		{lines("HELLO 3"), "_\r\n"},
		{lines("hello 3 setname app"), "_\r\n"},
		{lines("HELLO 3 AUTH default x SETNAME app"), "_\r\n"},
		{lines("HELLO 4"), "$-1\r\n"},
		{lines("HELLO x"), "$-1\r\n"},
		{lines("HELLO 3 AUTH nobody wrong"), "$-1\r\n"},
		{lines("HELLO 3 SETNAME"), "$-1\r\n"},
		{lines("HELLO 3", "HELLO 4"), "_\r\n"},
		{lines("HELLO 3", "HELLO 2"), "$-1\r\n"},
		{"HELLO 3\r\n", "_\r\n"},
		{lines("HELLO 3", "RESET"), "$-1\r\n"},
		{lines("MULTI", "HELLO 3", "EXEC"), "_\r\n"},
		{lines("MULTI", "HELLO 3", "DISCARD"), "$-1\r\n"},
		{lines("CLIENT REPLY SKIP", "HELLO 3"), "_\r\n"},
		{lines("CLIENT REPLY SKIP", "HELLO 4"), "$-1\r\n"},
	} {
		p, direct := r.connect(), dial(t, server.Addr())
		p.send(c.pipeline + lines("LOCK held u PX 1000", "ECHO end"))
		direct.send(c.pipeline + cmd("ECHO end"))
		got := readUpTo(p, bulk("end"))
		want := strings.TrimSuffix(readUpTo(direct, bulk("end")), bulk("end")) + c.null + bulk("end")
		if withoutID(got) != withoutID(want) {
			t.Errorf("%q: got %q\nwant %q", c.pipeline, got, want)
		}
	}
}

// readUpTo reads up to a text that ends a line.
func readUpTo(p *peer, text string) string {
	p.Helper()
	var got []byte
	for !bytes.HasSuffix(got, []byte(text)) {
		line, err := p.in.ReadSlice('\n')
		got = append(got, line...)
		if err != nil && err != bufio.ErrBufferFull {
			p.Fatalf("got %.500q, %v", got, err)
		}
	}
	return string(got)
}

var idField = regexp.MustCompile(`(\$2\r\nid\r\n:)\d+`)

func withoutID(reply string) string { return idField.ReplaceAllString(reply, "$1") }

// TestReset checks that RESET resets everything, including the proxy's state of the connection
// (RELAY.md, point 5).
func TestReset(t *testing.T) {
	r, _ := startRelay(t)
	r.connect().check("LOCK held t PX 1000", ":1000\r\n")
	for _, c := range []struct{ before, replies string }{
		{lines("SELECT 3"), "+OK\r\n"},
		{lines("MULTI", "SET a 1"), "+OK\r\n+QUEUED\r\n"},
		{lines("SUBSCRIBE a b"), "*3\r\n" + bulk("subscribe") + bulk("a") + ":1\r\n*3\r\n" +
			bulk("subscribe") + bulk("b") + ":2\r\n"},
		{lines("CLIENT REPLY OFF"), ""},
		{lines("MONITOR"), "+OK\r\n"},
	} {
		p := r.connect()
		p.send(c.before + lines("RESET", "LOCK held u PX 1000", "PING"))
		p.expect(c.replies + "+RESET\r\n$-1\r\n+PONG\r\n")
	}
	p := r.connect()
	p.send(lines("CLIENT REPLY SKIP", "RESET", "LOCK held u PX 1000", "RESET x", "LOCK held u PX 1000"))
	p.expect("$-1\r\n-ERR wrong number of arguments for 'reset' command\r\n$-1\r\n")
}

// TestQuit checks that QUIT is answered and closes the connection. Nothing after it runs (RELAY.md,
// point 5).
func TestQuit(t *testing.T) {
	for _, rest := range []string{"", lines("LOCK k t PX 1000"), lines("SET a 1", "LOCK k t PX 1000", "GET a"),
		lines("INFO")} {
		r, server := startRelay(t)
		p := r.connect()
		p.send(lines("PING", "QUIT") + rest)
		p.expectAll("+PONG\r\n+OK\r\n")
		if got := r.locks.holder(0, "k"); got != "" {
			t.Errorf("%q: the lock was taken", rest)
		}
		dial(t, server.Addr()).check("EXISTS a", ":0\r\n")
	}
}

// TestClientIDs checks that CLIENT LIST finds a client by the ID that CLIENT ID returned (RELAY.md,
// point 6).
func TestClientIDs(t *testing.T) {
	r, server := startRelay(t)
	p, direct := r.connect(), dial(t, server.Addr())
	p.check("CLIENT SETNAME me", "+OK\r\n")
	id := strings.TrimSpace(p.ask("CLIENT ID")[1:])
	for _, list := range []string{p.ask("CLIENT LIST ID " + id), direct.ask("CLIENT LIST ID " + id)} {
		if !strings.Contains(list, "id="+id+" ") || !strings.Contains(list, " name=me ") {
			t.Errorf("client %s in the list: %q", id, list)
		}
	}
	direct.check("CLIENT KILL ID "+id, ":1\r\n")
	p.expectAll("")

	p = r.connect()
	id = strings.TrimSpace(p.ask("CLIENT ID")[1:])
	p.send(lines("PING", "CLIENT KILL ID "+id+" SKIPME no"))
	p.expectAll("+PONG\r\n:1\r\n")
}

// TestReplyModes checks that the proxy sends and awaits no replies while replies are off at the
// upstream (RELAY.md, point 7).
func TestReplyModes(t *testing.T) {
	off, skip, on := cmd("CLIENT REPLY OFF"), cmd("client reply SKIP"), cmd("CLIENT REPLY ON")
	lock, ping := cmd("LOCK k t PX 1000"), cmd("PING")
	info := cmd("INFO") + cmd("COMMAND COUNT")
	for _, c := range []struct{ name, sent, want string }{
		{"off", off + ping + lock + ping + on + ping, "+OK\r\n+PONG\r\n"},
		{"off, then info", off + info + lock + on + ping, "+OK\r\n+PONG\r\n"},
		{"skip a lock", skip + lock + ping, "+PONG\r\n"},
		{"skip a forwarded one", skip + ping + lock + ping, ":1000\r\n+PONG\r\n"},
		{"skip a state", skip + cmd("SELECT 1") + lock, ":1000\r\n"},
		{"skip info", skip + cmd("INFO") + ping, "+PONG\r\n"},
		{"skip skip", skip + skip + lock + ping, "+PONG\r\n"},
		{"skip within off", off + skip + lock + lock + on + ping, "+OK\r\n+PONG\r\n"},
		{"skip, then on", skip + on + lock, "+OK\r\n:1000\r\n"},
		{"off within skip", skip + off + lock + on + ping, "+OK\r\n+PONG\r\n"},
		{"skip the unknown", skip + cmd("NOSUCH") + ping, "+PONG\r\n"},
		{"off, then an error", off + cmd("CLIENT REPLY x") + lock + on, "+OK\r\n"},
		{"wrong argument", cmd("CLIENT REPLY x") + lock, "-ERR syntax error\r\n:1000\r\n"},
		{"wrong number", cmd("CLIENT REPLY") + lock,
			"-ERR wrong number of arguments for 'client|reply' command\r\n:1000\r\n"},
		{"in a transaction", cmd("MULTI") + off + ping + cmd("DISCARD") + lock,
			"+OK\r\n+QUEUED\r\n+QUEUED\r\n+OK\r\n:1000\r\n"},
		{"refused: subscribed", cmd("SUBSCRIBE a") + off + cmd("UNSUBSCRIBE") + lock,
			"*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n-ERR Can't execute 'client|reply': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context\r\n" +
				"*3\r\n$11\r\nunsubscribe\r\n$1\r\na\r\n:0\r\n:1000\r\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, _ := startRelay(t)
			p := r.connect()
			p.send(c.sent + cmd("ECHO end"))
			p.expect(c.want + bulk("end"))
		})
	}
}

// TestManyStateCommands sends a pipeline with more state commands than the proxy holds as pending
// (maxAwaited), and one of commands on lock keys at the upstream. While the upstream does not
// answer, the client must wait at this limit. When the upstream answers again, the client gets all
// replies.
func TestManyStateCommands(t *testing.T) {
	for sent, want := range map[string]string{"DISCARD": "-ERR DISCARD without MULTI\r\n", "GET lock:a": "$-1\r\n"} {
		server := startRedis(t)
		r := startBeforeMove(t, server.URL(), upstreamLocation{})
		p := r.connect()
		p.check(sent, want)
		if err := server.Pause(); err != nil {
			t.Fatal(err)
		}
		const n = 50_000
		go func() { _, _ = io.WriteString(p.conn, strings.Repeat(sent+"\r\n", n)+cmd("ECHO end")) }()
		eventually(t, "a client that must wait at the limit of pending replies: "+sent, func() bool {
			entries, waiting := r.server.AwaitedEntries()
			return waiting && entries == proxy.MaxAwaited
		})
		if err := server.Continue(); err != nil {
			t.Fatal(err)
		}
		for range n {
			p.expect(want)
		}
		p.expect(bulk("end"))
	}
}

// TestUnmatchedRepliesAreNotAwaited checks that the proxy remembers no command whose reply it cannot
// match, after a MULTI without a reply. The client would never have to wait for these replies.
func TestUnmatchedRepliesAreNotAwaited(t *testing.T) {
	r, _ := startRelay(t)
	p := r.connect()
	p.send(lines("CLIENT REPLY SKIP", "MULTI", "DISCARD"))
	p.expect("+OK\r\n")
	const n = 1000
	p.send(strings.Repeat(lines("SELECT 0", "PING"), n))
	p.expect(strings.Repeat("+OK\r\n+PONG\r\n", n))
	if entries, _ := r.server.AwaitedEntries(); entries > 0 {
		t.Errorf("%d entries for pending replies", entries)
	}
}

// TestSubscribingWithoutReplies subscribes with replies off, and then sends a lock command. In
// RESP2 replies look like messages, so a lock command ends the connection. The proxy sends no
// command of its own, and treats no message as a reply (RELAY.md, points 7 and 10).
func TestSubscribingWithoutReplies(t *testing.T) {
	const list = "*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$1\r\nb\r\n"
	for _, c := range []struct{ name, sent, end string }{
		{"a pattern", lines("CLIENT REPLY OFF", "PSUBSCRIBE a*"), "psubscribe\r\n"},
		{"none any more", lines("CLIENT REPLY OFF", "SUBSCRIBE a", "UNSUBSCRIBE"), "unsubscribe\r\n"},
		{"none at all", lines("CLIENT REPLY OFF", "UNSUBSCRIBE"), "unsubscribe\r\n"},
		{"refused, then a list", lines("CLIENT REPLY SKIP", "SUBSCRIBE", "LRANGE l 0 -1"), list},
		{"a transaction", lines("CLIENT REPLY OFF", "MULTI", "SET x 1"), ""},
	} {
		for _, lock := range []string{"LOCK k t PX 1000", "SET lock:k t"} {
			t.Run(c.name+", then "+lock, func(t *testing.T) {
				r, server := startWithLockKeys(t)
				direct := dial(t, server.Addr())
				direct.check("RPUSH l message a b", ":3\r\n")
				p := r.connect()
				p.send(c.sent)
				if c.end != "" {
					readUpTo(p, c.end)
				}
				p.send(cmd(lock))
				if got := p.readAll(); strings.Contains(got, "OK") || strings.Contains(got, "1000") {
					t.Errorf("it is answered: %q", got)
				}
				direct.check("EXISTS x lock:k", ":0\r\n")
				if holder := r.locks.holder(0, "k") + r.locks.holder(0, "lock:k"); holder != "" {
					t.Errorf("the lock was taken by %q", holder)
				}
			})
		}
	}
	r, server := startRelay(t)
	p := r.connect()
	p.send(cmd("HELLO 3"))
	p.readReply()
	p.send(lines("CLIENT REPLY SKIP", "SUBSCRIBE a", "LOCK k t PX 1000"))
	p.expect(ack(">", "subscribe", "a", 1) + ":1000\r\n")
	dial(t, server.Addr()).check("PUBLISH a m", ":1\r\n")
	p.expect(message(">", "a", "m"))
	p.send(lines("CLIENT REPLY OFF", "UNSUBSCRIBE a", "UNLOCK k t", "CLIENT REPLY ON"))
	p.expect(ack(">", "unsubscribe", "a", 0) + "+OK\r\n")
	if holder := r.locks.holder(0, "k"); holder != "" {
		t.Errorf("the lock is held by %q", holder)
	}
}

// TestCommandWithoutReplyThatDoesNotEnd checks that the proxy waits for a command without a reply
// before a lock command, but not forever (RELAY.md, point 7).
func TestCommandWithoutReplyThatDoesNotEnd(t *testing.T) {
	for _, replyMode := range []string{"OFF", "SKIP"} {
		server := startRedis(t)
		r := startProxyWith(t, server.URL(), proxy.Options{}, nil,
			func(s *proxy.Server) { s.SetTimeouts(50*time.Millisecond, testTimeout) })
		p := r.connect()
		p.send(lines("CLIENT REPLY "+replyMode, "BLPOP q 0", "LOCK k t PX 1000"))
		p.expectAll("")
		if holder := r.locks.holder(0, "k"); holder != "" {
			t.Errorf("the lock was taken by %q", holder)
		}
	}
}
