package proxy_test

import (
	"fmt"
	"net"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"redlock-proxy/proxy"
)

// TestMonitor checks that MONITOR's lines come until RESET, with other replies in between
// (RELAY.md, point 12).
func TestMonitor(t *testing.T) {
	r, server := startRelay(t)
	p, other := r.connect(), dial(t, server.Addr())
	p.check("MONITOR", "+OK\r\n")
	const n = 1000
	other.send(strings.Repeat(cmd("SET a 1"), n))
	p.send(strings.Repeat(lines("LOCK k t PX 1000", "PING", "UNLOCK k t", "COMMAND COUNT"), n/10))
	monitorLine := regexp.MustCompile(`^\+\d+\.\d+ \[0 127.0.0.1:\d+\] "`)
	monitored, replies := 0, map[string]int{}
	for monitored < n || replies["+PONG\r\n"] < n/10 || replies[":1\r\n"] < n/10 {
		got := p.readReply()
		switch {
		case strings.Contains(got, `"SET" "a" "1"`):
			monitored++
		case !monitorLine.MatchString(got):
			replies[got]++
		}
	}
	if replies[":1000\r\n"] != n/10 {
		t.Errorf("beside %d lines: %v", monitored, replies)
	}
	p.send(cmd("RESET"))
	for p.readReply() != "+RESET\r\n" {
	}
	other.check("SET a 2", "+OK\r\n")
	p.check("LOCK k t PX 1000", ":1000\r\n")
}

// TestSecondMonitor checks that the proxy does not wait for a reply to a second MONITOR, which Redis
// ignores (RELAY.md, point 12). In a transaction, and with an argument, Redis replies.
func TestSecondMonitor(t *testing.T) {
	r, _ := startRelay(t)
	p := r.connect()
	p.send(lines("MONITOR", "MONITOR", "MONITOR x", "MULTI", "MONITOR", "DISCARD", "MONITOR", "LOCK k t PX 1000"))
	for _, want := range []string{"+OK\r\n", "-ERR wrong number of arguments for 'monitor' command\r\n", "+OK\r\n", "+QUEUED\r\n",
		"+OK\r\n", ":1000\r\n"} {
		got := p.readReply()
		for strings.Contains(got, "[0 127.0.0.1:") {
			got = p.readReply()
		}
		if got != want {
			t.Fatalf("got %q, want %q", got, want)
		}
	}
}

// TestSync checks that SYNC streams the data set in its own format (RELAY.md, point 12).
func TestSync(t *testing.T) {
	r, server := startRelay(t, "--repl-diskless-sync", "no")
	p, other := r.connect(), dial(t, server.Addr())
	other.check("SET a "+strings.Repeat("x", 100<<10), "+OK\r\n")
	p.send(lines("PSYNC", "LOCK k t PX 1000", "UNLOCK k t"))
	p.expect("-ERR wrong number of arguments for 'psync' command\r\n:1000\r\n:1\r\n")
	p.send(cmd("SYNC"))
	header, err := p.in.ReadString('\n')
	for header == "\n" { // the server sends empty lines while it prepares the data
		header, err = p.in.ReadString('\n')
	}
	size, numberErr := strconv.Atoi(strings.TrimSpace(header[1:]))
	if err != nil || numberErr != nil || header[0] != '$' {
		t.Fatalf("SYNC: %q, %v", header, err)
	}
	p.expect("REDIS")
	rest := make([]byte, size-len("REDIS"))
	for n := 0; n < len(rest); {
		m, err := p.in.Read(rest[n:])
		if n += m; err != nil {
			t.Fatal(err)
		}
	}
	other.check("SET b 1", "+OK\r\n")
	for {
		if got := p.readReply(); strings.Contains(got, "\r\nb\r\n") {
			break // PINGs and a SELECT come before the SET
		}
	}
}

// TestReplicaThroughProxy checks that a real replica replicates through the proxy: PSYNC, the
// payload, later writes, and its acknowledgements (RELAY.md, point 12).
func TestReplicaThroughProxy(t *testing.T) {
	skipOverTLS(t)
	for _, diskless := range []string{"yes", "no"} {
		r, master := startRelay(t, "--repl-diskless-sync", diskless, "--repl-diskless-sync-delay", "0")
		source := dial(t, master.Addr())
		source.check("SET before "+strings.Repeat("x", 1<<20), "+OK\r\n")
		host, port, _ := net.SplitHostPort(r.addr)
		replica := dial(t, startRedis(t, "--replicaof", host+" "+port, "--repl-ping-replica-period", "1").Addr())
		eventually(t, "the replica", func() bool {
			return strings.Contains(replica.ask("INFO replication"), "master_link_status:up")
		})
		source.check("SET after 1", "+OK\r\n")
		source.check("WAIT 1 10000", ":1\r\n") // the replica acknowledges through the proxy
		replica.check("GET after", bulk("1"))
		replica.check("STRLEN before", ":1048576\r\n")
	}
}

// TestReplconf checks that acknowledgements get no reply, from any client, and that refused ones do
// (RELAY.md, point 12). If an option precedes the acknowledgement, the proxy cannot know whether a
// reply comes, and a lock command ends the connection.
func TestReplconf(t *testing.T) {
	r, server := startRelay(t)
	for _, c := range []struct{ sent, want string }{
		{lines("REPLCONF ACK 0", "LOCK k t PX 1000", "UNLOCK k t", "PING"), ":1000\r\n:1\r\n+PONG\r\n"},
		{lines("replconf listening-port 7", "LOCK k t PX 1000", "UNLOCK k t"), "+OK\r\n:1000\r\n:1\r\n"},
		{lines("REPLCONF GETACK *", "LOCK k t PX 1000", "UNLOCK k t"), ":1000\r\n:1\r\n"},
		{lines("REPLCONF x", "LOCK k t PX 1000", "UNLOCK k t"), dial(t,
			server.Addr()).ask("REPLCONF x") + ":1000\r\n:1\r\n"},
		{lines("CLIENT REPLY SKIP", "REPLCONF ACK 0", "LOCK k t PX 1000", "UNLOCK k t"), ":1000\r\n:1\r\n"},
		{lines("REPLCONF ACK", "LOCK k t PX 1000", "UNLOCK k t", "PING"), "-ERR syntax error\r\n:1000\r\n:1\r\n+PONG\r\n"},
		{lines("REPLCONF GETACK * capa", "LOCK k t PX 1000", "UNLOCK k t"), "-ERR syntax error\r\n:1000\r\n:1\r\n"},
		{lines("CLIENT REPLY SKIP", "REPLCONF x 1 ACK 1", "LOCK k t PX 1000", "UNLOCK k t"), ":1000\r\n:1\r\n"},
		{lines("MULTI", "REPLCONF ACK", "EXEC", "LOCK k t PX 1000", "UNLOCK k t"),
			"+OK\r\n+QUEUED\r\n*1\r\n-ERR syntax error\r\n:1000\r\n:1\r\n"},
	} {
		p := r.connect()
		p.send(c.sent)
		p.expect(c.want)
	}
	for sent, want := range map[string]string{
		"REPLCONF x 1 ACK 1":              "-ERR Unrecognized REPLCONF option: x\r\n",
		"REPLCONF listening-port 1 ACK 1": "",
	} {
		p := r.connect()
		p.send(lines(sent, "PING"))
		p.expect(want + "+PONG\r\n")
		p.send(cmd("LOCK k t PX 1000"))
		p.expectAll("")
	}
}

// TestSubscriberThatNeverReadsIsDisconnected checks that a subscriber that never reads is
// disconnected, and that the other subscribers get every message (RELAY.md, point 19).
func TestSubscriberThatNeverReadsIsDisconnected(t *testing.T) {
	server := startRedis(t, "--client-output-buffer-limit", "pubsub 1mb 1mb 1")
	r := startProxy(t, server.URL())
	r.server.SetTimeouts(300*time.Millisecond, time.Second)
	for _, mode := range []string{"SUBSCRIBE a", "MONITOR"} {
		nonReader, other, publisher := r.connect(), r.connect(), dial(t, server.Addr())
		_ = nonReader.conn.SetReadBuffer(4 << 10)
		nonReader.ask(mode)
		other.check("SUBSCRIBE a", ack("*", "subscribe", "a", 1))
		text := strings.Repeat("m", 50<<10)
		for range 600 {
			publisher.send(cmd("PUBLISH a " + text))
			publisher.readReply()
			other.expect(message("*", "a", text))
		}
		eventually(t, "the end of the one that does not read", func() bool { return r.server.Clients() == 1 })
		other.conn.Close()
		eventually(t, "the other's end", func() bool { return r.server.Clients() == 0 })
	}
}

// TestSlowReaderOfItsOwnReplies checks that a client that reads its own replies slowly is not
// disconnected, as in Redis, and delays no other client (RELAY.md, point 19).
func TestSlowReaderOfItsOwnReplies(t *testing.T) {
	r, _ := startRelay(t)
	r.server.SetTimeouts(100*time.Millisecond, time.Second)
	slow, other := r.connect(), r.connect()
	value := strings.Repeat("v", 1<<20)
	other.check("SET k "+value, "+OK\r\n")
	slow.send(strings.Repeat(cmd("GET k"), 30))
	for range 40 {
		other.check("LOCK k t PX 1000", ":1000\r\n")
		other.check("UNLOCK k t", ":1\r\n")
		time.Sleep(10 * time.Millisecond) // the slow client reads meanwhile
	}
	for range 30 {
		slow.expect(bulk(value))
	}
}

// TestHalfClose checks that a client that has half-closed its connection still gets its replies,
// and then the end of the stream (RELAY.md, point 20).
func TestHalfClose(t *testing.T) {
	r, server := startRelay(t, "--enable-debug-command", "yes")
	dial(t, server.Addr()).check("SET big "+strings.Repeat("b", 1<<20), "+OK\r\n")
	big := bulk(strings.Repeat("b", 1<<20))
	for _, c := range []struct{ sent, want string }{
		{"", ""},
		{cmd("PING"), "+PONG\r\n"},
		{cmd("LOCK k t PX 1000") + cmd("UNLOCK k t"), ":1000\r\n:1\r\n"},
		{lines("PING", "LOCK k t PX 1000", "PING", "UNLOCK k t", "PING"), "+PONG\r\n:1000\r\n+PONG\r\n:1\r\n+PONG\r\n"},
		{lines("EVAL return(1) 0", "LOCK k t PX 1000", "UNLOCK k t"), ":1\r\n:1000\r\n:1\r\n"},
		{lines("DEBUG SLEEP 0.2", "LOCK k t PX 1000", "UNLOCK k t"), "+OK\r\n:1000\r\n:1\r\n"},
		{lines("DEBUG SLEEP 0.2", "COMMAND GETKEYS GET x"), "+OK\r\n*1\r\n$1\r\nx\r\n"},
		{lines("GET big", "LOCK k t PX 1000", "GET big", "UNLOCK k t"), big + ":1000\r\n" + big + ":1\r\n"},
		{strings.Repeat(lines("SET a 1", "LOCK k t PX 1000", "UNLOCK k t"), 300),
			strings.Repeat("+OK\r\n:1000\r\n:1\r\n", 300)},
		{strings.Repeat(lines("SET a 1", "LOCK k t PX 1000", "UNLOCK k t"), 3000), // more than is read ahead
			strings.Repeat("+OK\r\n:1000\r\n:1\r\n", 3000)},
		{lines("SUBSCRIBE a"), ack("*", "subscribe", "a", 1)},
	} {
		p := r.connect()
		p.send(c.sent)
		if err := p.conn.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if got := p.readAll(); got != c.want {
			t.Errorf("%.80q: got %.200q\nwant %.200q", c.sent, got, c.want)
		}
	}
	eventually(t, "the sessions' ends", func() bool { return r.server.Clients() == 0 })
}

// TestCloseAfterTheLastByte checks that a client gets its last reply even if its last command and
// the end of its stream arrive together (RELAY.md, point 20).
func TestCloseAfterTheLastByte(t *testing.T) {
	r, _ := startRelay(t)
	for range 500 {
		p := r.connect()
		p.send("PING\r\n")
		_ = p.conn.CloseWrite()
		p.expectAll("+PONG\r\n")
		p.conn.Close()
	}
	eventually(t, "the sessions' ends", func() bool { return r.server.Clients() == 0 })
}

// TestClientsLeaveAnUpstreamThatHangs checks that clients that leave while the upstream hangs are
// not kept for long (RELAY.md, point 20).
func TestClientsLeaveAnUpstreamThatHangs(t *testing.T) {
	r, server := startRelay(t)
	r.server.SetTimeouts(200*time.Millisecond, 200*time.Millisecond)
	var peers []*peer
	for i := range 20 {
		p := r.connect()
		p.check("PING", "+PONG\r\n")
		if i%2 == 0 {
			p.send(cmd("GET a"))
		} else {
			p.send(lines("GET a", fmt.Sprintf("LOCK k%d t PX 1000", i)))
		}
		peers = append(peers, p)
	}
	for _, p := range peers {
		p.readReply()
	}
	if err := server.Pause(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = server.Continue() }()
	for i, p := range peers {
		p.send(lines("GET a", "LOCK late t PX 1000"))
		if i%3 == 0 {
			_ = p.conn.CloseWrite()
		} else {
			p.conn.Close()
		}
	}
	eventually(t, "the sessions' ends", func() bool { return r.server.Clients() == 0 })
	if r.locks.holder(0, "late") != "" {
		t.Error("a client that left got a lock")
	}
}

// TestDrain checks that a stopping proxy waits for running commands, and refuses commands that wait
// for other clients (RELAY.md, point 29).
func TestDrain(t *testing.T) {
	server := startRedis(t, "--enable-debug-command", "yes")
	r := startProxyWith(t, server.URL(), proxy.Options{DrainTimeout: 6 * time.Second}, nil)
	idle, busy, blocked, subscriber, incomplete := r.connect(), r.connect(), r.connect(), r.connect(), r.connect()
	idle.check("PING", "+PONG\r\n")
	subscriber.check("SUBSCRIBE a", ack("*", "subscribe", "a", 1))
	blocked.check("BLPOP none 0.01", "*-1\r\n")
	incomplete.check("PING", "+PONG\r\n")
	sent := r.server.Counts().BytesToUpstream
	blocked.send(cmd("BLPOP none 0"))
	incomplete.send("*2\r\n$4\r\nECHO\r\n$5\r\nhel")
	busy.send(lines("DEBUG SLEEP 0.3", "LOCK k t PX 1000", "GET a", "BRPOP none 0"))
	forwarded := int64(len(cmd("BLPOP none 0") + cmd("DEBUG SLEEP 0.3")))
	eventually(t, "both at the upstream", func() bool { return r.server.Counts().BytesToUpstream >= sent+forwarded })
	r.stop()
	idle.expectAll("")
	subscriber.expectAll("")
	incomplete.expectAll("")
	const unblockedError = "-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n"
	if got := busy.readAll(); got != "+OK\r\n:1000\r\n$-1\r\n"+unblockedError {
		t.Errorf("the busy one got %q", got)
	}
	if got := blocked.readAll(); got != unblockedError {
		t.Errorf("the blocked one got %q", got)
	}
	await(t, "the server's end", r.serveDone)
}

// TestDrainWithAnUpstreamThatHangs checks that an upstream that hangs, and accepts no more bytes,
// does not keep the proxy from stopping (RELAY.md, point 29).
func TestDrainWithAnUpstreamThatHangs(t *testing.T) {
	server := startRedis(t)
	r := startProxyWith(t, server.URL(), proxy.Options{DrainTimeout: 100 * time.Millisecond}, nil)
	p := r.connect()
	p.check("PING", "+PONG\r\n")
	if err := server.Pause(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = server.Continue() }()
	_ = p.conn.SetWriteDeadline(time.Now().Add(500 * time.Millisecond))
	flood := strings.Repeat(cmd("SET a "+strings.Repeat("x", 1<<20)), 10)
	for n := 1; n > 0; { // until neither the proxy nor the upstream accepts more
		var err error
		if n, err = p.conn.Write([]byte(flood)); err != nil {
			break
		}
	}
	r.stop()
	await(t, "the server's end", r.serveDone)
}
