package proxy_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"
)

// ack returns a reply to a SUBSCRIBE or UNSUBSCRIBE. kind is "*" in RESP2, and ">" in RESP3.
func ack(kind, word, channel string, count int) string {
	return fmt.Sprintf("%s3\r\n%s%s:%d\r\n", kind, bulk(word), bulk(channel), count)
}

func message(kind, channel, text string) string {
	return kind + "3\r\n" + bulk("message") + bulk(channel) + bulk(text)
}

const (
	cannotLockError = "-ERR Can't execute 'lock': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context\r\n"
	nullAck         = "*3\r\n$11\r\nunsubscribe\r\n$-1\r\n:0\r\n"
)

// TestPushWhileLockWaits checks that an invalidation is pushed while the client waits for a LOCK,
// which is then granted (RELAY.md, point 8).
func TestPushWhileLockWaits(t *testing.T) {
	r, server := startRelay(t)
	holder, p, other := r.connect(), r.connect(), dial(t, server.Addr())
	holder.check("LOCK k t PX 1000", ":1000\r\n")
	p.send(cmd("HELLO 3"))
	p.readReply()
	p.send(lines("CLIENT TRACKING on", "GET a", "LOCK k u PX 1000 BLOCK 0", "GET a"))
	p.expect("+OK\r\n_\r\n")
	eventually(t, "the waiter", func() bool { return r.locks.waiters() == 1 })
	other.check("SET a 1", "+OK\r\n")
	p.expect(">2\r\n" + bulk("invalidate") + "*1\r\n" + bulk("a"))
	holder.check("UNLOCK k t", ":1\r\n")
	p.expect(":1000\r\n" + bulk("1"))
}

// TestLockAfterACommandWithoutReply checks that a command without a reply runs before a later lock
// command, as its invalidation shows (RELAY.md, point 7).
func TestLockAfterACommandWithoutReply(t *testing.T) {
	r, _ := startRelay(t)
	p := r.connect()
	p.send(cmd("HELLO 3"))
	p.readReply()
	p.send(lines("CLIENT TRACKING on", "GET a"))
	p.expect("+OK\r\n_\r\n")
	invalidated := ">2\r\n" + bulk("invalidate") + "*1\r\n" + bulk("a")
	for range 20 {
		p.send(lines("CLIENT REPLY SKIP", "SET a 1", "LOCK k t PX 1000"))
		p.expect(invalidated + ":1000\r\n")
		p.send(lines("GET a", "CLIENT REPLY SKIP", "SET a 1", "CLIENT REPLY SKIP", "UNLOCK k t", "LOCK k t PX 1000",
			"UNLOCK k t", "GET a"))
		p.expect(bulk("1") + invalidated + ":1000\r\n:1\r\n" + bulk("1"))
	}
}

// TestTrackingRedirect checks that in RESP2 a second connection gets the invalidations, as messages
// (RELAY.md, point 8).
func TestTrackingRedirect(t *testing.T) {
	r, server := startRelay(t)
	p, listener := r.connect(), r.connect()
	id := strings.TrimSpace(listener.ask("CLIENT ID")[1:])
	listener.check("SUBSCRIBE __redis__:invalidate", ack("*", "subscribe", "__redis__:invalidate", 1))
	p.check("CLIENT TRACKING on REDIRECT "+id, "+OK\r\n")
	p.check("GET a", "$-1\r\n")
	dial(t, server.Addr()).check("SET a 1", "+OK\r\n")
	listener.expect("*3\r\n" + bulk("message") + bulk("__redis__:invalidate") + "*1\r\n" + bulk("a"))
	p.check("LOCK k t PX 1000", ":1000\r\n")
}

// TestLockInTransactionAbortsIt checks that a lock command in a transaction makes the transaction
// fail, and that no lock is taken (RELAY.md, point 9).
func TestLockInTransactionAbortsIt(t *testing.T) {
	r, _ := startRelay(t)
	for _, line := range []string{"LOCK k t PX 1000", "UNLOCK k t", "EXTEND k t PX 1000", "PROXY INFO"} {
		p := r.connect()
		p.send(lines("MULTI", "SET a 1", line, "EXEC", "EXISTS a", "LOCK after t PX 1000", "UNLOCK after t"))
		p.expect("+OK\r\n+QUEUED\r\n")
		if got := p.readReply(); !strings.HasPrefix(got, "-ERR "+strings.Fields(line)[0]+" inside MULTI is not allowed") {
			t.Errorf("%s: %q", line, got)
		}
		p.expect("-EXECABORT Transaction discarded because of previous errors.\r\n:0\r\n:1000\r\n:1\r\n")
	}
	if got := r.locks.holder(0, "k"); got != "" {
		t.Errorf("the lock was taken by %q", got)
	}
	p := r.connect()
	p.send(lines("MULTI", "INFO redlock", "COMMAND COUNT", "EXEC"))
	p.expect("+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n$0\r\n\r\n:")
	p = r.connect()
	huge := strings.Repeat("k", 2<<20)
	p.send(lines("MULTI", "SET a 1", "LOCK "+huge+" t PX 1000", "EXEC"))
	p.expect("+OK\r\n+QUEUED\r\n-ERR unknown command 'LOCK'")
	if rest := readUpTo(p, "EXECABORT Transaction discarded because of previous errors.\r\n"); strings.Count(rest,
		"\r\n") != 2 {
		t.Errorf("a lock of 2 MB in a transaction: %q", rest)
	}
}

// TestTransactionEndsAsAtTheUpstream checks that for the proxy, a transaction begins and ends as at
// the upstream (RELAY.md, point 9).
func TestTransactionEndsAsAtTheUpstream(t *testing.T) {
	r, server := startRelay(t)
	other := dial(t, server.Addr())
	for _, c := range []struct{ name, sent, want string }{
		{"exec", lines("MULTI", "PING", "EXEC"), "+OK\r\n+QUEUED\r\n*1\r\n+PONG\r\n"},
		{"empty", lines("MULTI", "EXEC"), "+OK\r\n*0\r\n"},
		{"discard", lines("MULTI", "PING", "DISCARD"), "+OK\r\n+QUEUED\r\n+OK\r\n"},
		{"aborted", lines("MULTI", "NOSUCH", "EXEC"),
			"+OK\r\n-ERR unknown command 'NOSUCH', with args beginning with: \r\n-EXECABORT Transaction discarded because of previous errors.\r\n"},
		{"nested", lines("MULTI", "MULTI", "DISCARD"), "+OK\r\n-ERR MULTI calls can not be nested\r\n+OK\r\n"},
		{"exec outside", lines("EXEC"), "-ERR EXEC without MULTI\r\n"},
		{"discard outside", lines("DISCARD"), "-ERR DISCARD without MULTI\r\n"},
		{"multi with an argument", lines("MULTI x"), "-ERR wrong number of arguments for 'multi' command\r\n"},
		{"errors within", lines("SET a x", "MULTI", "INCR a", "EXEC"),
			"+OK\r\n+OK\r\n+QUEUED\r\n*1\r\n-ERR value is not an integer or out of range\r\n"},
	} {
		p := r.connect()
		p.send(c.sent + lines("LOCK k t PX 1000", "UNLOCK k t", "ECHO end"))
		p.expect(c.want + ":1000\r\n:1\r\n" + bulk("end"))
		p.conn.Close()
	}
	p := r.connect()
	p.check("WATCH w", "+OK\r\n")
	other.check("SET w 1", "+OK\r\n")
	p.send(lines("MULTI", "PING", "EXEC", "LOCK k t PX 1000"))
	p.expect("+OK\r\n+QUEUED\r\n*-1\r\n:1000\r\n")
}

// TestSubscriberInRESP2 checks that a RESP2 subscriber gets Redis' refusal of the proxy's own
// commands, until it has unsubscribed from the last channel (RELAY.md, point 10).
func TestSubscriberInRESP2(t *testing.T) {
	r, server := startRelay(t)
	p, publisher := r.connect(), dial(t, server.Addr())
	p.send(lines("SUBSCRIBE a b", "PSUBSCRIBE p*", "SSUBSCRIBE s", "LOCK k t PX 1000", "PING", "PING x"))
	p.expect(ack("*", "subscribe", "a", 1) + ack("*", "subscribe", "b", 2) + ack("*", "psubscribe", "p*", 3) +
		ack("*", "ssubscribe", "s", 1) +
		cannotLockError + "*2\r\n" + bulk("pong") + bulk("") + "*2\r\n" + bulk("pong") + bulk("x"))
	p.check("INFO", strings.Replace(cannotLockError, "lock", "info", 1))
	p.check("COMMAND COUNT", strings.Replace(cannotLockError, "lock", "command|count", 1))
	publisher.send(lines("PUBLISH a m", "PUBLISH px m", "SPUBLISH s m"))
	publisher.expect(":1\r\n:1\r\n:1\r\n")
	p.expect(message("*", "a", "m") + "*4\r\n" + bulk("pmessage") + bulk("p*") + bulk("px") + bulk("m") +
		strings.Replace(message("*", "s", "m"), bulk("message"), bulk("smessage"), 1))
	p.send(lines("UNSUBSCRIBE a", "LOCK k t PX 1000", "UNSUBSCRIBE", "LOCK k t PX 1000", "PUNSUBSCRIBE",
		"LOCK k t PX 1000", "SUNSUBSCRIBE", "LOCK k t PX 1000"))
	p.expect(ack("*", "unsubscribe", "a", 2) + cannotLockError + ack("*", "unsubscribe", "b", 1) + cannotLockError +
		ack("*", "punsubscribe", "p*", 0) + cannotLockError + ack("*", "sunsubscribe", "s", 0) + ":1000\r\n")
	p.send(lines("UNSUBSCRIBE", "UNSUBSCRIBE x", "SUBSCRIBE", "UNLOCK k t"))
	p.expect(nullAck + ack("*", "unsubscribe", "x", 0) +
		"-ERR wrong number of arguments for 'subscribe' command\r\n:1\r\n")
}

// TestUnsubscribeFromAll checks that an UNSUBSCRIBE without channels gets one reply for each
// subscribed channel (RELAY.md, point 10).
func TestUnsubscribeFromAll(t *testing.T) {
	r, _ := startRelay(t)
	p := r.connect()
	p.send(lines("SUBSCRIBE a b c a", "PSUBSCRIBE p", "UNSUBSCRIBE", "PUNSUBSCRIBE", "LOCK k t PX 1000"))
	p.expect(ack("*", "subscribe", "a", 1) + ack("*", "subscribe", "b", 2) + ack("*", "subscribe", "c", 3) +
		ack("*", "subscribe", "a", 3) +
		ack("*", "psubscribe", "p", 4))
	unsubscribed := map[string]bool{}
	for n := 3; n > 0; n-- { // in no particular order
		got := p.readReply()
		unsubscribed[got] = true
		if !strings.HasSuffix(got, fmt.Sprintf(":%d\r\n", n)) {
			t.Errorf("%d left: %q", n, got)
		}
	}
	if len(unsubscribed) != 3 {
		t.Errorf("unsubscribed from %v", unsubscribed)
	}
	p.expect(ack("*", "punsubscribe", "p", 0) + ":1000\r\n")
}

// TestSubscribeToMany checks that a SUBSCRIBE may be too long for the proxy to buffer (RELAY.md,
// point 10).
func TestSubscribeToMany(t *testing.T) {
	r, _ := startRelay(t)
	p := r.connect()
	words := []string{"SUBSCRIBE"}
	var want strings.Builder
	for i := range 20_000 {
		words = append(words, fmt.Sprintf("%0100d", i))
		want.WriteString(ack("*", "subscribe", words[i+1], i+1))
	}
	p.send(array(words...) + cmd("LOCK k t PX 1000") + array(append([]string{"UNSUBSCRIBE"}, words[1:]...)...) +
		cmd("LOCK k t PX 1000"))
	p.expect(want.String() + cannotLockError)
	for i := range 20_000 {
		p.expect(ack("*", "unsubscribe", words[i+1], 20_000-i-1))
	}
	p.expect(":1000\r\n")
}

// TestSubscriberInRESP3 checks that a RESP3 subscriber may send all commands, and that messages
// come between replies, never within a reply (RELAY.md, point 10).
func TestSubscriberInRESP3(t *testing.T) {
	r, server := startRelay(t)
	p, publisher := r.connect(), dial(t, server.Addr())
	p.send(cmd("HELLO 3"))
	p.readReply()
	p.send(lines("SUBSCRIBE a", "LOCK k t PX 1000", "SUBSCRIBE b c", "UNSUBSCRIBE b c", "LOCK k u PX 1000"))
	p.expect(ack(">", "subscribe", "a", 1) + ":1000\r\n" + ack(">", "subscribe", "b", 2) +
		ack(">", "subscribe", "c", 3) +
		ack(">", "unsubscribe", "b", 2) + ack(">", "unsubscribe", "c", 1) + "_\r\n")

	const n = 2000
	publisher.send(strings.Repeat(cmd("PUBLISH a "+strings.Repeat("m", 100)), n))
	sent := lines("LOCK k u PX 1000", "ECHO x", "INFO redlock", "COMMAND GETKEYS GET z")
	go func() { _, _ = p.conn.Write([]byte(strings.Repeat(sent, n/4))) }()
	messages, replies := 0, map[string]int{}
	for messages < n || replies["*1\r\n"+bulk("z")] < n/4 {
		got := p.readReply()
		if got == message(">", "a", strings.Repeat("m", 100)) {
			messages++
		} else {
			replies[regexp.MustCompile(`(?s)# Redlock.*`).ReplaceAllString(got, "")]++
		}
	}
	if len(replies) != 4 || replies["_\r\n"] != n/4 || replies[bulk("x")] != n/4 {
		t.Errorf("between %d messages: %v", messages, replies)
	}
}

// TestPublishToOneselfInTransaction checks that messages that a RESP3 subscriber publishes to
// itself in a transaction are pushed within EXEC's reply (RELAY.md, point 10).
func TestPublishToOneselfInTransaction(t *testing.T) {
	r, _ := startRelay(t)
	sent := lines("HELLO 3", "SUBSCRIBE a", "MULTI", "GET x", "PUBLISH a m", "PUBLISH a n", "GET x", "EXEC", "MULTI",
		"PUBLISH a m", "EXEC")
	p, direct := r.connect(), dial(t, startRedis(t).Addr())
	direct.send(sent + cmd("ECHO end"))
	want := readUpTo(direct, bulk("end"))
	p.send(sent + cmd("ECHO end"))
	if got := readUpTo(p, bulk("end")); withoutID(got) != withoutID(want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
	p = r.connect()
	p.send(sent + lines("LOCK k t PX 1000", "MULTI", "LOCK k u PX 1000", "EXEC", "ECHO end"))
	if got := readUpTo(p, bulk("end")); !strings.Contains(got,
		":1000\r\n+OK\r\n-ERR LOCK inside MULTI is not allowed") ||
		!strings.HasSuffix(got, "-EXECABORT Transaction discarded because of previous errors.\r\n"+bulk("end")) {
		t.Errorf("locks behind it: %q", got)
	}
}

// TestSubscribeInTransaction checks that after a SUBSCRIBE in a transaction the proxy only passes
// bytes (RELAY.md, point 10).
func TestSubscribeInTransaction(t *testing.T) {
	r, server := startRelay(t)
	sent := lines("MULTI", "SUBSCRIBE a b", "EXEC", "PING")
	p, direct := r.connect(), dial(t, server.Addr())
	p.send(sent)
	direct.send(sent)
	want := readUpTo(direct, bulk("pong")+bulk(""))
	p.expect(want)
	direct2 := dial(t, server.Addr())
	direct2.check("PUBLISH a m", ":2\r\n")
	p.expect(message("*", "a", "m"))
}

// TestBlockingCommand checks that commands before a blocking command are answered before it waits.
// It waits without limit, and commands after it run when it is done (RELAY.md, point 11).
func TestBlockingCommand(t *testing.T) {
	r, server := startRelay(t)
	p, other := r.connect(), dial(t, server.Addr())
	p.send(lines("SET a 1", "LOCK k t PX 1000", "BLPOP q 0", "UNLOCK k t", "LLEN q"))
	p.expect("+OK\r\n:1000\r\n")
	eventually(t, "the blocked client", func() bool {
		return strings.Contains(other.ask("INFO clients"), "blocked_clients:1")
	})
	time.Sleep(50 * time.Millisecond) // time in which an UNLOCK that does not wait would run
	if r.locks.holder(0, "k") != "t" {
		t.Error("UNLOCK ran while BLPOP waited")
	}
	other.check("RPUSH q x", ":1\r\n")
	p.expect("*2\r\n" + bulk("q") + bulk("x") + ":1\r\n:0\r\n")
}

// TestClientLeavesWhileBlocked checks that no element is popped for a client that has left
// (RELAY.md, point 11).
func TestClientLeavesWhileBlocked(t *testing.T) {
	for name, disconnect := range map[string]func(peerConn) error{
		"closes":      peerConn.Close,
		"is reset":    func(c peerConn) error { _ = c.SetLinger(0); return c.Close() },
		"half-closes": peerConn.CloseWrite,
	} {
		for _, sent := range []string{cmd("BLPOP q 0"), lines("BLPOP q 0", "LOCK k t PX 1000"),
			lines("PING", "brpop q 0", "PING", "INFO")} {
			t.Run(name+" behind "+strings.Fields(sent)[2], func(t *testing.T) {
				r, server := startRelay(t)
				p, other := r.connect(), dial(t, server.Addr())
				p.send(sent)
				eventually(t, "the blocked client", func() bool {
					return strings.Contains(other.ask("INFO clients"), "blocked_clients:1")
				})
				if err := disconnect(p.conn); err != nil {
					t.Fatal(err)
				}
				eventually(t, "the client's end", func() bool {
					return strings.Contains(other.ask("INFO clients"), "blocked_clients:0")
				})
				other.check("RPUSH q x", ":1\r\n")
				other.check("LLEN q", ":1\r\n")
				eventually(t, "the session's end", func() bool { return r.server.Clients() == 0 })
				if r.locks.holder(0, "k") != "" {
					t.Error("a client that left got a lock")
				}
			})
		}
	}
}
