package proxy_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"redlock-proxy/internal/redistest"
	"redlock-proxy/proxy"
)

// TestInternalCommandsToAHungUpstream checks that the proxy limits its wait for the upstream's
// replies to internal commands. The client gets an error, and continues when the upstream answers
// again.
func TestInternalCommandsToAHungUpstream(t *testing.T) {
	server := startRedis(t)
	r := startProxyWithin(t, time.Second, server.URL(), proxy.Options{}, nil)
	noAnswer := "-ERR upstream " + server.Addr() + ": no answer in time to the proxy's own command\r\n"
	unused, used := r.connect(), r.connect()
	used.runExchanges([]exchange{{"PING", "+PONG\r\n"}, {"SELECT 1", ok}})
	if err := server.Pause(); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"COMMAND", "INFO", "COMMAND DOCS", "COMMAND COUNT"} {
		unused.check(line, noAnswer)
	}
	used.send(cmd("INFO"))
	used.expectAll(noAnswer) // the client's database is lost with the connection
	if err := server.Continue(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "an answer", func() bool { return unused.ask("PING") == "+PONG\r\n" })
	eventually(t, "an answer to INFO", func() bool { return strings.Contains(unused.ask("INFO server"), "redis_version") })
}

// TestHungUpstreamAndClientThatDoesNotRead checks that the proxy disconnects a half-closed client that
// does not read its messages, if the upstream does not answer the client's script. The next
// half-closed client gets its turn.
func TestHungUpstreamAndClientThatDoesNotRead(t *testing.T) {
	fake := startFake(t, func(c *fakeConn) {
		for c.read(1) {
			received := c.fake.commands()
			switch received[len(received)-1] {
			case "MULTI":
				c.write("+OK\r\n")
			case "publish":
				c.write("+QUEUED\r\n")
			case "EXEC":
				c.write(strings.Repeat(">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\na\r\n", 1<<20))
			default:
				c.write("+PONG\r\n")
			}
		}
	})
	r := startProxyWithin(t, 200*time.Millisecond, fake.url(), proxy.Options{}, []string{"lock:*"},
		func(s *proxy.Server) { s.SetTimeouts(200*time.Millisecond, testTimeout) })
	script := array("EVAL", "redis.call('publish', 'c', 'm') return redis.call('set', KEYS[1], 'v')", "1", "lock:a")
	nonReader, next := r.connect(), r.connect()
	_ = nonReader.conn.SetReadBuffer(4 << 10)
	nonReader.send(cmd("GET data") + script)
	if err := nonReader.conn.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the script's EXEC", func() bool { return slices.Contains(fake.commands(), "EXEC") })
	next.send(cmd("LOCK k t PX 1000"))
	if err := next.conn.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	next.expectAll(":1000\r\n")
	eventually(t, "the end of the client that does not read", func() bool { return r.server.Clients() == 0 })
}

// TestEndlessReplies checks that the proxy limits the size of a reply to an internal command.
func TestEndlessReplies(t *testing.T) {
	redistest.SkipShort(t)
	const tooLongError = "its answer to the proxy's own command is longer than 16777216 bytes"
	for begin, cause := range map[string]string{"+": tooLongError, "$500000000\r\n": tooLongError, "*50000000\r\n": tooLongError,
		"*999999999\r\n$9999999999\r\n": tooLongError, "?1\r\n": "the upstream's reply is not RESP"} {
		stopped := make(chan struct{}, 8)
		fake := startFake(t, func(c *fakeConn) {
			if !c.read(1) {
				return
			}
			if received := c.fake.commands(); received[len(received)-1] != "INFO" {
				c.write("+PONG\r\n")
				c.read(1)
				return
			}
			c.write(begin)
			_ = c.SetWriteDeadline(time.Now().Add(testTimeout))
			chunk := []byte(strings.Repeat("$1000\r\n"+strings.Repeat("x", 1000)+"\r\n", 64))
			if begin != "*50000000\r\n" {
				chunk = []byte(strings.Repeat("x", 64<<10))
			}
			for {
				if _, err := c.Conn.Write(chunk); err != nil {
					break
				}
			}
			stopped <- struct{}{}
		})
		r := startProxy(t, fake.url())
		p := r.connect()
		p.check("INFO", "-ERR upstream "+fake.addr()+": "+cause+"\r\n")
		await(t, "the end of the answer", stopped)
		p.check("PING", "+PONG\r\n")
	}
}

// TestEndlessLoginReply checks that the proxy also limits the size of the upstream's reply to the
// proxy's login.
func TestEndlessLoginReply(t *testing.T) {
	stopped := make(chan struct{}, 8)
	fake := startFake(t, func(c *fakeConn) {
		if c.read(1) {
			chunk := []byte("+" + strings.Repeat("x", 64<<10))
			for {
				if _, err := c.Conn.Write(chunk); err != nil {
					break
				}
			}
			stopped <- struct{}{}
		}
	})
	r := startProxy(t, "redis://:secret@"+fake.addr())
	if got := r.connect().ask("GET a"); !strings.Contains(got, "its answer is too long") {
		t.Errorf("%q", got)
	}
	await(t, "the end of the answer", stopped)
}

// TestZeroBytesInErrors checks that errors show an option up to a zero byte, as in C.
func TestZeroBytesInErrors(t *testing.T) {
	r, server := startWithLockKeys(t)
	p, direct := r.connect(), dial(t, server.Addr())
	p.check("SET lock:a v", ok)
	direct.check("SET a v", ok)
	for _, words := range [][]string{
		{"EXPIRE", "%", "100", "a\x00b"}, {"EXPIRE", "%", "100", "a\r\nb\x00\r\n+OK"},
		{"PEXPIREAT", "%", "100", "\x00"}, {"SET", "%", "v", "\x00"},
		{"EVAL", "return redis.error_reply('a\x00b')", "1", "%"}, {"EVAL",
			"return redis.call('expire', KEYS[1], 1, 'a\\0b')", "1", "%"},
	} {
		p.send(strings.ReplaceAll(array(words...), "$1\r\n%", "$6\r\nlock:a"))
		direct.send(strings.ReplaceAll(array(words...), "%", "a"))
		got, want := p.readReply(), direct.readReply()
		if strings.ContainsRune(got, 0) || words[0] != "EVAL" && got != want {
			t.Errorf("%q: %q, want %q", words, got, want)
		}
	}
}
