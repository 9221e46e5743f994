package proxy_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestOrderOfOwnAndForwardedReplies checks that every request has one reply, in the order of the
// requests, from the proxy or the upstream. The proxy's own commands take effect in the order of
// the pipeline (RELAY.md, point 1).
func TestOrderOfOwnAndForwardedReplies(t *testing.T) {
	r, _ := startRelay(t)
	p := r.connect()
	var sent, want strings.Builder
	expect := func(line, reply string) {
		sent.WriteString(cmd(line))
		want.WriteString(reply)
	}
	const count = 10_000
	for i := 0; i < count; {
		for range 1 + i%17 {
			expect(fmt.Sprintf("ECHO %d", i), bulk(fmt.Sprint(i)))
			i++
		}
		expect("LOCK k t PX 1000", ":1000\r\n")
		expect(fmt.Sprintf("SET at %d", i), "+OK\r\n")
		expect("LOCK k u PX 1000", "$-1\r\n")
		expect("EXTEND k t PX 2000", ":2000\r\n")
		expect("UNLOCK k t", ":1\r\n")
		expect("GET at", bulk(fmt.Sprint(i)))
		i += 6
	}
	p.send(sent.String()) // send everything before the first read
	p.expect(want.String())
	p.check("PING", "+PONG\r\n")
}

// TestWaitingLockStopsItsOwnClientOnly checks that a waiting LOCK delays the replies of its own
// client only (RELAY.md, point 1).
func TestWaitingLockStopsItsOwnClientOnly(t *testing.T) {
	r, _ := startRelay(t)
	holder, waiter := r.connect(), r.connect()
	holder.check("LOCK k t PX 1000", ":1000\r\n")
	waiter.send(lines("SET a 1", "LOCK k u PX 1000 BLOCK 0", "SET a 2"))
	waiter.expect("+OK\r\n")
	eventually(t, "the waiter", func() bool { return r.locks.waiters() == 1 })
	for range 100 {
		holder.check("GET a", bulk("1"))
	}
	holder.send(lines("SET a 3", "UNLOCK k t"))
	holder.expect("+OK\r\n:1\r\n")
	waiter.expect(":1000\r\n+OK\r\n")
	holder.check("GET a", bulk("2"))
}

// TestPipelineIsReadWhileRepliesWait sends ten thousand commands before it reads the first reply.
// The replies are more than all sockets on the way can hold (RELAY.md, point 18).
func TestPipelineIsReadWhileRepliesWait(t *testing.T) {
	r, _ := startRelay(t)
	p := r.connect()
	value := strings.Repeat("v", 2<<10)
	p.check("SET k "+value, "+OK\r\n")
	const n = 10_000
	p.send(strings.Repeat(cmd("GET k"), n))
	for range n {
		p.expect(bulk(value))
	}
	p.check("PING", "+PONG\r\n")
}

// TestPipelineOfLargeCommands checks that a pipeline may contain many megabytes of commands whose
// replies are small (RELAY.md, point 18).
func TestPipelineOfLargeCommands(t *testing.T) {
	r, _ := startRelay(t)
	p := r.connect()
	const n = 200
	sent := strings.Repeat(array("SET", "k", strings.Repeat("v", 100<<10))+lines("LOCK k t PX 1000", "UNLOCK k t"), n)
	go func() { _, _ = io.WriteString(p.conn, sent) }()
	p.expect(strings.Repeat("+OK\r\n:1000\r\n:1\r\n", n))
}

// TestSplitCommands checks that a stream of commands may be split anywhere (RELAY.md, point
// 21).
func TestSplitCommands(t *testing.T) {
	r, _ := startRelay(t)
	stream := lines("SET k "+strings.Repeat("v", 40), "LOCK l t PX 1000") + "GET k\r\n" +
		lines("MULTI", "GET k", "EXEC", "SELECT 1", "UNLOCK l t", "SELECT 0", "UNLOCK l t")
	value := bulk(strings.Repeat("v", 40))
	want := "+OK\r\n:1000\r\n" + value + "+OK\r\n+QUEUED\r\n*1\r\n" + value + "+OK\r\n:0\r\n+OK\r\n:1\r\n"
	for at := 1; at < len(stream); at += 3 {
		p := r.connect()
		p.send(stream[:at])
		p.send(stream[at:])
		p.expect(want)
		p.conn.Close()
	}
	rng := rand.New(rand.NewPCG(3, 21))
	for range 5 {
		p := r.connect()
		for _, b := range split(stream, rng) {
			p.send(b)
		}
		p.expect(want)
		p.conn.Close()
	}
	p := r.connect()
	for _, b := range stream {
		p.send(string(b))
	}
	p.expect(want)
}

// split splits s into pieces of random sizes, mostly small. It limits the number of pieces.
func split(s string, rng *rand.Rand) (pieces []string) {
	maxSize := max(1<<rng.IntN(12), len(s)/500)
	for len(s) > 0 {
		n := min(1+rng.IntN(maxSize), len(s))
		pieces, s = append(pieces, s[:n]), s[n:]
	}
	return pieces
}

// TestNamesAreCaseInsensitiveAndArgumentsBinary checks that a command is identified by its name
// alone, in upper or lower case, and that arguments are bytes (RELAY.md, point 22).
func TestNamesAreCaseInsensitiveAndArgumentsBinary(t *testing.T) {
	r, _ := startRelay(t)
	p := r.connect()
	token := "\x00\r\n*1\r\n$4\r\nPING\r\n\xff"
	p.send(array("lOcK", "LOCK", token, "Px", "1000"))
	p.expect(":1000\r\n")
	if got := r.locks.holder(0, "LOCK"); got != token {
		t.Errorf("the token arrived as %q", got)
	}
	p.send(array("SET", "UNLOCK", token) + array("gEt", "UNLOCK") + array("UNLOCK", "LOCK", "x"))
	p.expect("+OK\r\n" + bulk(token) + ":0\r\n")
	long := strings.Repeat("L", 100)
	p.send(array("LOCKS", "a") + array(long) + array("", "LOCK") + array("PING"))
	for _, name := range []string{"LOCKS", long, ""} {
		if got := p.readReply(); !strings.HasPrefix(got, "-ERR unknown command '"+name+"'") {
			t.Errorf("%q: %q", name, got)
		}
	}
	p.expect("+PONG\r\n")
}

// TestSplitReplies checks that replies that arrive in pieces stay whole, with the proxy's own
// replies between them (RELAY.md, point 21).
func TestSplitReplies(t *testing.T) {
	replies := "*2\r\n$3\r\nabc\r\n:7\r\n" + "$0\r\n\r\n" + "-ERR no\r\n" + "*-1\r\n"
	for at := 1; at < len(replies); at += 2 {
		fake := startFake(t, func(c *fakeConn) {
			c.read(4)
			c.write(replies[:at])
			time.Sleep(time.Millisecond) // so that the replies arrive in two pieces
			c.write(replies[at:])
			c.read(1)
			c.write("+PONG\r\n")
		})
		p := startProxy(t, fake.url()).connect()
		p.send(lines("A", "B", "C", "D", "LOCK k t PX 1000", "PING"))
		p.expect(replies + ":1000\r\n+PONG\r\n")
	}
}

// TestOwnRepliesInOnePipeline checks that the proxy's own replies may be many, and large, in one
// pipeline.
func TestOwnRepliesInOnePipeline(t *testing.T) {
	r, server := startRelay(t)
	p := r.connect()
	direct := dial(t, server.Addr())
	plain := []string{"COMMAND GETKEYS SET a b", "PING", "LOCK k t PX 1000", "COMMAND DOCS get", "UNLOCK k t",
		"COMMAND INFO get"}
	want := ""
	for _, line := range plain {
		switch {
		case strings.HasPrefix(line, "LOCK"):
			want += ":1000\r\n"
		case strings.HasPrefix(line, "UNLOCK"):
			want += ":1\r\n"
		default:
			want += direct.ask(line)
		}
	}
	p.send(strings.Repeat(lines(plain...), 20))
	p.expect(strings.Repeat(want, 20))
	p.send(lines(slices.Repeat([]string{"COMMAND"}, 20)...))
	for range 20 {
		p.readReply()
	}
	p.check("PING", "+PONG\r\n")
}
