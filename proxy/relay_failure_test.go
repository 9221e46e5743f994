package proxy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"redlock-proxy/internal/redistest/faultlink"
)

// disconnectReply returns the reply to a command that the upstream received and did not answer.
func disconnectReply(addr string) string {
	return "-ERR upstream " + addr +
		": the upstream closed the connection before it answered: the command may or may not have taken effect\r\n"
}

// normalizeLoss replaces the error of a reset connection by the error of a closed connection,
// because a dying server causes either error.
func normalizeLoss(reply string) string {
	return strings.ReplaceAll(reply, ": connection reset by peer before", ": the upstream closed the connection before")
}

// TestNoUpstreamAtConnect checks that each command gets an error, in order, without an upstream.
// The client stays connected, and continues when the upstream is available (RELAY.md, point 24).
func TestNoUpstreamAtConnect(t *testing.T) {
	r, server := startRelay(t)
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	p := r.connect()
	refused := "-ERR upstream " + server.Addr() + ": connection refused\r\n"
	p.send(lines("PING", "GET a", "LOCK k t PX 1000", "SELECT 1", "SET b 1", "MULTI", "SUBSCRIBE x", "CLIENT REPLY OFF",
		"INFO", "COMMAND", "UNLOCK k t"))
	p.expect(refused + refused + ":1000\r\n" + strings.Repeat(refused, 7) + ":1\r\n")
	if got := p.ask("PROXY INFO"); !strings.Contains(got, "upstream_address:"+server.Addr()+"\r\n") {
		t.Errorf("PROXY INFO: %q", got)
	}
	// The proxy refuses the beginning of a large command before its end has arrived.
	p.send("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$100000\r\n" + strings.Repeat("v", 50_000))
	p.expect(refused)
	if err := server.Restart(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(100 * time.Millisecond) // longer than a failed dial is remembered
	p.send(strings.Repeat("v", 50_000) + "\r\n" + lines("EXISTS k", "SET a 1", "LOCK k t PX 1000", "GET a"))
	p.expect(":0\r\n+OK\r\n:1000\r\n" + bulk("1"))
}

// TestUpstreamDiesDuringCommands checks that each command that the upstream received and did not
// answer gets one error that says so. The next command reconnects (RELAY.md, point 23).
func TestUpstreamDiesDuringCommands(t *testing.T) {
	fake := startFake(t, func(c *fakeConn) {
		if c.read(3) {
			c.write("+one\r\n") // no reply to the other commands
		}
	})
	r := startProxy(t, fake.url())
	p := r.connect()
	p.send(lines("A", "B", "C", "LOCK k t PX 1000"))
	p.expect("+one\r\n" + disconnectReply(fake.addr()) + disconnectReply(fake.addr()) + ":1000\r\n")
	p.send(lines("D", "E", "F", "UNLOCK k t"))
	p.expect("+one\r\n" + disconnectReply(fake.addr()) + disconnectReply(fake.addr()) + ":1\r\n")
	if got := fake.commands(); !slices.Equal(got, []string{"A", "B", "C", "D", "E", "F"}) {
		t.Errorf("the upstream got %q", got) // it must get each command once
	}
}

// TestUpstreamDiesWhileTheClientDoesNotRead checks that a client that does not read the errors for
// lost commands delays only itself. When it reads, it gets all errors. Then the commands that it
// has sent meanwhile are answered, over a new connection (RELAY.md, point 23).
func TestUpstreamDiesWhileTheClientDoesNotRead(t *testing.T) {
	const pendingCommands = 100_000 // the errors for them do not fit into the sockets' buffers
	fake := startFake(t, func(c *fakeConn) { c.read(pendingCommands + 1) })
	r := startProxy(t, fake.url())
	p := r.connect()
	p.send(strings.Repeat(cmd("A"), pendingCommands+1))
	eventually(t, "errors that wait to be read", func() bool { return r.server.Counts().UnreadBytes > 0 })
	p.send(lines("LOCK k t PX 1000", "B"))
	r.connect().check("LOCK l t PX 1000", ":1000\r\n")
	if r.locks.holder(0, "k") != "" {
		t.Error("a command ran before the errors of those before it were read")
	}
	p.expect(strings.Repeat(disconnectReply(fake.addr()), pendingCommands+1) + ":1000\r\n")
	eventually(t, "nothing that waits to be read", func() bool { return r.server.Counts().UnreadBytes == 0 })
	p.send(strings.Repeat(cmd("B"), pendingCommands))
	p.expect(strings.Repeat(disconnectReply(fake.addr()), pendingCommands+1))
}

// TestUpstreamDiesWithinFirstCommand checks that the rest of a command is discarded if the
// upstream dies within the command. Commands that arrive in one piece with the rest are answered
// (RELAY.md, point 23).
func TestUpstreamDiesWithinFirstCommand(t *testing.T) {
	fake := startFake(t, func(c *fakeConn) {
		if begin, err := c.in.Peek(11); err == nil && string(begin) == "*2\r\n$3\r\nSET" {
			_, _ = c.in.Discard(100)
			return
		}
		c.read(2) // a second connection
		c.write("+one\r\n+two\r\n")
		c.read(1)
	})
	p := startProxy(t, fake.url()).connect()
	whole := array("SET", strings.Repeat("v", 50_000))
	p.send(whole[:len(whole)-10])
	if got := p.readReply(); normalizeLoss(got) != disconnectReply(fake.addr()) {
		t.Fatalf("a command that was sent in part: %q", got)
	}
	p.send(whole[len(whole)-10:] + lines("A", "B", "LOCK k t PX 1000"))
	p.expect("+one\r\n+two\r\n:1000\r\n")
}

// TestUpstreamDiesAndTheClientReadsSlowly checks that a client that slowly reads the errors for
// lost commands gets all errors, even after a half-close. The proxy holds a few errors at a time
// (RELAY.md, point 23).
func TestUpstreamDiesAndTheClientReadsSlowly(t *testing.T) {
	const pending = 100_000
	fake := startFake(t, func(c *fakeConn) { c.read(pending + 1) })
	r := startProxy(t, fake.url())
	r.server.SetTimeouts(2*time.Second, 3*time.Second)
	p := r.connect()
	p.send(strings.Repeat(cmd("A"), pending+1))
	eventually(t, "errors that wait to be read", func() bool { return r.server.Counts().UnreadBytes > 0 })
	if unread := r.server.Counts().UnreadBytes; unread > 100<<10 {
		t.Errorf("%d bytes are unread", unread)
	}
	if err := p.conn.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	part := strings.Repeat(disconnectReply(fake.addr()), pending/20)
	for range 20 {
		// In total this is longer than the limit for a client that reads nothing.
		time.Sleep(160 * time.Millisecond)
		p.expect(part)
	}
	p.expectAll(disconnectReply(fake.addr()))
}

// TestUpstreamDiesWithTheClientsState checks that the client's connection ends if the upstream dies
// and the client's connection to the upstream had state (RELAY.md, point 23).
func TestUpstreamDiesWithTheClientsState(t *testing.T) {
	for _, c := range []struct{ name, setup, replies, last, want string }{
		{"in a transaction", lines("MULTI", "SET a 1"), "+OK\r\n+QUEUED\r\n", "EXEC", ""},
		{"in MULTI itself", "", "", "MULTI", ""},
		{"subscribed", lines("SUBSCRIBE a"), ack("*", "subscribe", "a", 1), "PING", ""},
		{"in SUBSCRIBE itself", "", "", "SUBSCRIBE a", ""},
		{"monitoring", lines("MONITOR"), "+OK\r\n", "PING", ""},
		{"after SELECT", lines("SELECT 1"), "+OK\r\n", "GET a", "lost"},
		{"after a name", lines("CLIENT SETNAME x"), "+OK\r\n", "GET a", "lost"},
		{"after WATCH", lines("WATCH x"), "+OK\r\n", "GET a", "lost"},
		{"in QUIT", "", "", "QUIT", ""},
		{"with nothing asked", lines("ECHO x"), bulk("x"), "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, server := startRelay(t)
			p := r.connect()
			p.send(c.setup)
			p.expect(c.replies)
			if err := server.Pause(); err != nil {
				t.Fatal(err)
			}
			if c.last != "" {
				p.send(lines(c.last, "LOCK k t PX 1000"))
				// Whether the commands have arrived or not, the reply is the same.
				time.Sleep(20 * time.Millisecond)
			}
			if err := server.Kill(); err != nil {
				t.Fatal(err)
			}
			want := c.want
			if want == "lost" {
				want = disconnectReply(server.Addr())
			}
			if got := normalizeLoss(p.readAll()); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
			if r.locks.holder(0, "k") != "" {
				t.Error("a command ran for a client whose connection had ended")
			}
		})
	}
}

// TestUpstreamDiesAfterHalfAReply lets the upstream die after half a reply, which cannot be
// completed. The client's connection ends, and nothing is written into the reply (RELAY.md, point
// 23).
func TestUpstreamDiesAfterHalfAReply(t *testing.T) {
	for _, half := range []string{"$100\r\nhalf", "$3\r\nabc", "*3\r\n:1\r\n", "*2\r\n$1\r\nx\r\n*5\r\n", "+hal",
		"%1\r\n$1\r\n", "|1\r\n+a\r\n+b\r\n", ">2\r\n$3\r\nabc\r\n"} {
		fake := startFake(t, func(c *fakeConn) {
			c.read(2)
			c.write("+one\r\n" + half)
		})
		p := startProxy(t, fake.url()).connect()
		p.send(lines("A", "B", "LOCK k t PX 1000", "C"))
		p.expectAll("+one\r\n" + half)
	}
}

// TestUpstreamDiesWithinACommand checks that a command that was sent in part when the upstream died
// is answered. The rest of the command, which may look like commands, is discarded (RELAY.md, point
// 23).
func TestUpstreamDiesWithinACommand(t *testing.T) {
	commandsInValue := strings.Repeat(cmd("FLUSHALL"), 2000)
	fake := startFake(t, func(c *fakeConn) {
		if begin, err := c.in.Peek(11); err != nil || string(begin) != "*2\r\n$3\r\nSET" {
			c.read(1 << 20) // a second connection
			return
		}
		_, _ = c.in.Discard(100)
	})
	r := startProxy(t, fake.url())
	p := r.connect()
	whole := array("SET", commandsInValue)
	p.send(whole[:len(whole)/2])
	if got := p.readReply(); normalizeLoss(got) != disconnectReply(fake.addr()) {
		t.Fatalf("a command that was sent in part: %q", got)
	}
	p.send(whole[len(whole)/2:] + lines("LOCK k t PX 1000"))
	p.expect(":1000\r\n")
	p.send(cmd("GET after"))
	eventually(t, "the command behind", func() bool { return slices.Contains(fake.commands(), "GET") })
	if got := fake.commands(); !slices.Equal(got, []string{"GET"}) {
		t.Errorf("the upstream got %q", got)
	}
}

// TestUpstreamDisconnectsRepeatedly lets an upstream disconnect its clients under load. Each
// command gets one reply or the end of the connection, and no command is run twice (RELAY.md, point
// 23).
func TestUpstreamDisconnectsRepeatedly(t *testing.T) {
	server := startRedis(t)
	link, err := faultlink.New(server.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer link.Close()
	r := startProxy(t, "redis://"+link.Addr())
	stop := make(chan struct{})
	go func() {
		defer close(stop)
		for range 20 {
			time.Sleep(30 * time.Millisecond) // some commands pass between two resets
			link.Reset()
		}
	}()
	var counts incrCounts
	for stopped := false; !stopped; {
		p := r.connect()
		for alive := true; alive && !stopped; {
			alive = counts.sendRound(p, link.Addr())
			select {
			case <-stop:
				stopped = true
			default:
			}
		}
		p.conn.Close()
	}
	var n int
	_, _ = fmt.Sscanf(strings.Split(dial(t, server.Addr()).ask("GET n"), "\r\n")[1], "%d", &n)
	if n < counts.answered || n > counts.sent {
		t.Errorf("%+v, %d done", counts, n)
	}
	t.Logf("%+v, %d done", counts, n)
}

// incrCounts counts the INCRs that were sent, answered, and lost.
type incrCounts struct{ sent, answered, lost int }

// sendRound sends some INCRs and a lock, and reports whether the client is still connected after
// their replies.
func (c *incrCounts) sendRound(p *peer, upstream string) bool {
	const n = 20
	key := fmt.Sprintf("k%d", c.sent) // a lock of a connection that ended may still be held
	p.send(strings.Repeat(cmd("INCR n"), n) + lines("LOCK "+key+" t PX 1000", "UNLOCK "+key+" t"))
	c.sent += n
	for replies := range n + 2 {
		got, err := readReply(p.in)
		switch {
		case err != nil:
			return false
		case replies >= n && got == []string{":1000\r\n", ":1\r\n"}[replies-n]:
		case replies < n && got[0] == ':':
			c.answered++
		case replies < n && strings.HasPrefix(got, "-ERR upstream "+upstream+": "):
			c.lost++
		default:
			p.Fatalf("reply %d: %q", replies, got)
		}
	}
	return true
}

// TestLocksAndDataAreIndependent checks that locks work as usual while the upstream hangs or is
// down, and that data commands work while a client waits for a lock (RELAY.md, point 28).
func TestLocksAndDataAreIndependent(t *testing.T) {
	r, server := startRelay(t)
	data, locks := r.connect(), r.connect()
	data.check("SET a 1", "+OK\r\n")
	locks.check("PING", "+PONG\r\n")
	if err := server.Pause(); err != nil {
		t.Fatal(err)
	}
	data.send(cmd("GET a"))
	for range 100 {
		locks.check("LOCK k t PX 1000", ":1000\r\n")
		locks.check("UNLOCK k t", ":1\r\n")
	}
	if err := server.Continue(); err != nil {
		t.Fatal(err)
	}
	data.expect(bulk("1"))

	locks.check("LOCK k t PX 1000", ":1000\r\n")
	r.connect().send(cmd("LOCK k u PX 1000 BLOCK 0"))
	eventually(t, "the waiter", func() bool { return r.locks.waiters() == 1 })
	for range 100 {
		data.check("GET a", bulk("1"))
	}
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	data.expectAll("")
	p := r.connect()
	for range 100 {
		p.check("LOCK l t PX 1000", ":1000\r\n")
		p.check("UNLOCK l t", ":1\r\n")
	}
}
