package proxy

import (
	"bufio"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"redlock-proxy/internal/redistest"
)

// TestHostileBytes checks that a few invalid bytes close the connection, with Redis' error.
func TestHostileBytes(t *testing.T) {
	const badCount, badBulk = "-ERR Protocol error: invalid multibulk length\r\n",
		"-ERR Protocol error: invalid bulk length\r\n"
	const longLine, badQuotes = "-ERR Protocol error: too big inline request\r\n",
		"-ERR Protocol error: unbalanced quotes in request\r\n"
	const command = "LOCK k t PX 5000\r\n"
	attacks := map[string][2]string{
		"an index overflow in redcon":    {"*1\r\n$9223372036854775807\r\n", badBulk},
		"an endless loop in redcon":      {"*9223372036854775807\r\n", badCount},
		"a loop of seconds in redcon":    {"*1000000000000\r\n", badCount},
		"one argument more than allowed": {"*2147483648\r\n", badCount},
		"a byte more than allowed":       {"*2\r\n$3\r\nfoo\r\n$536870913\r\n", badBulk},
		"a byte more for a command ours": {"*2\r\n$4\r\nLOCK\r\n$536870913\r\n", badBulk},
		"a negative length":              {"*2\r\n$3\r\nfoo\r\n$-1\r\n", badBulk},
		"a wrapped length":               {"*1\r\n$18446744073709551619\r\nfoo\r\n", badBulk},
		"a wrapped count":                {"*18446744073709551617\r\n$4\r\nPING\r\n", badCount},
		"no length":                      {"*1\r\n$\r\n", badBulk},
		"a count that is none":           {"*x\r\n", badCount},
		"a zero in front":                {"*1\r\n$04\r\nPING\r\n", badBulk},
		"no bulk":                        {"*1\r\nPING\r\n", "-ERR Protocol error: expected '$', got 'P'\r\n"},
		"no bulk among arguments": {"*2\r\n$4\r\nLOCK\r\n:1\r\n",
			"-ERR Protocol error: expected '$', got ':'\r\n"},
		"a header without an end": {"*" + strings.Repeat("1", 64<<10),
			"-ERR Protocol error: too big mbulk count string\r\n"},
		"a bulk's header without an end": {"*1\r\n$" + strings.Repeat("1", 64<<10),
			"-ERR Protocol error: too big bulk count string\r\n"},
		"a line without an end":                  {strings.Repeat("x", 64<<10+1), longLine},
		"a line without an end behind a command": {command + strings.Repeat("x", 64<<10+1), ":5000\r\n" + longLine},
		"an open quote":                          {"PING \"x\r\n", badQuotes},
		"an attack by HTTP":                      {"POST / HTTP/1.1\r\n", ""},
		"an attack by HTTP and a header":         {"GET / HTTP/1.1\r\nHost: localhost:6380\r\n", ""},
		"an attack by HTTP in an array":          {array("post", "x"), ""},
	}
	b := serveLocks(t, &scriptedLocks{})
	b.checkMemoryDuring(32*megabyte, func() {
		for title, attack := range attacks {
			for range 3 {
				p := b.connect()
				p.send(attack[0])
				got := p.readAll()
				if attack[1] == "" { // the connection may close before the earlier reply
					got = strings.TrimPrefix(got,
						"-ERR unknown command 'GET', with args beginning with: '/' 'HTTP/1.1' (no upstream; set --upstream)\r\n")
				}
				if got != attack[1] {
					t.Errorf("%s: %q, want %q", title, got, attack[1])
				}
			}
		}
		b.waitClients(1)
	})
}

// TestProtocolErrorEndsProcessing checks that the proxy never runs bytes after a protocol
// error as a command.
func TestProtocolErrorEndsProcessing(t *testing.T) {
	b := serveLocks(t, newWaitingLocks())
	p := b.connect()
	p.send("*1\r\n$x\r\n" + blockingCommand)
	got := p.readAll() // the kernel may discard the reply, because not all input was read
	if want := "-ERR Protocol error: invalid bulk length\r\n"; got != want && got != "" {
		t.Errorf("got %q", got)
	}
	b.waitClients(0)
}

// writeBytes writes n bytes, one buffer at a time.
func writeBytes(conn io.Writer, n int) {
	chunk := []byte(strings.Repeat("x", 64<<10))
	for n > 0 {
		m, err := conn.Write(chunk[:min(n, len(chunk))])
		if err != nil {
			return
		}
		n -= m
	}
}

// TestHostileLargeValue checks that the proxy does not buffer a large value of a command that is
// not its own.
func TestHostileLargeValue(t *testing.T) {
	b := serveLocks(t, &scriptedLocks{})
	p := b.connect()
	b.checkMemoryDuring(16*megabyte, func() {
		p.send("*2\r\n$3\r\nSET\r\n$536870912\r\n")
		writeBytes(p.conn, 100*megabyte)
	})
	p.conn.Close()
	b.waitClients(1)
	p = b.connect()
	b.checkMemoryDuring(16*megabyte, func() {
		p.send("*2\r\n$3\r\nSET\r\n$33554432\r\n")
		writeBytes(p.conn, 32*megabyte)
		p.check("\r\n"+array("PING"), "-ERR unknown command 'SET', with args beginning with: '"+strings.Repeat("x",
			128)+"' (no upstream; set --upstream)\r\n"+pong)
	})
}

const commandTooLong = "-ERR command too long: commands that the proxy itself runs are limited to 1048576 bytes\r\n"

// TestHostileLockName checks that a lock name of megabytes is refused, and that its client
// continues.
func TestHostileLockName(t *testing.T) {
	b := serveLocks(t, &scriptedLocks{lock: nil})
	p := b.connect()
	b.checkMemoryDuring(24*megabyte, func() {
		for range 3 {
			p.send("*5\r\n$4\r\nLOCK\r\n$2097152\r\n")
			writeBytes(p.conn, 2*megabyte)
			p.check("\r\n$1\r\nt\r\n$2\r\nPX\r\n$4\r\n5000\r\n", commandTooLong)
			p.check(array("LOCK", "k", "t", "PX", "5000"), ":5000\r\n")
		}
	})
}

func TestHostileNumberOfArguments(t *testing.T) {
	const argCount = 1_000_000
	for _, test := range [][3]string{
		{"foo", "", "-ERR unknown command 'foo', with args beginning with: " + strings.Repeat("'' ", 43) + "\r\n"},
		{"foo", "0123456789", "-ERR unknown command 'foo', with args beginning with: " +
			strings.Repeat("'0123456789' ", 9) + "'0123456789' \r\n"},
		{"LOCK", "x", commandTooLong},
		{"PING", "", commandTooLong},
	} {
		b := serveLocks(t, &scriptedLocks{})
		p := b.connect()
		name, argument := array(test[0]), array(test[1])
		b.checkMemoryDuring(24*megabyte, func() {
			p.send("*1000000\r\n" + strings.TrimPrefix(name, "*1\r\n"))
			argument = strings.TrimPrefix(argument, "*1\r\n")
			p.flood(strings.Repeat(argument, 1000), argCount/1000-1)
			p.flood(argument, 999)
			p.check(array("PING"), test[2]+pong)
		})
		b.stop()
		b.waitStopped()
	}
}

// TestHostileArgumentCount checks that a command may announce two billion arguments, and that the
// announcement costs no memory.
func TestHostileArgumentCount(t *testing.T) {
	b := serveLocks(t, &scriptedLocks{})
	b.checkMemoryDuring(24*megabyte, func() {
		for _, name := range []string{"foo", "PING", "LOCK"} {
			p := b.connect()
			p.send("*2147483647\r\n" + strings.TrimPrefix(array(name), "*1\r\n"))
			p.flood(strings.Repeat("$1\r\nx\r\n", 5000), 100)
			p.conn.Close()
		}
		b.waitClients(1)
	})
}

// fillUntilStuck sends flood until the server stops reading, because its replies are not read.
func (p *peer) fillUntilStuck(flood string) {
	for {
		// If the deadline is too short, the flood is just smaller.
		_ = p.conn.SetWriteDeadline(time.Now().Add(300 * time.Millisecond))
		if _, err := io.WriteString(p.conn, flood); err != nil {
			if !isTimeout(err) {
				p.t.Errorf("the server closed: %v", err)
			}
			return
		}
	}
}

func TestHostileClientThatNeverReads(t *testing.T) {
	for title, flood := range map[string]string{
		"small replies":                  array("PING"),
		"replies longer than requests":   "COMMAND DOCS\r\n",
		"errors longer than requests":    "x\n",
		"replies as large as can be":     array("ECHO", strings.Repeat("x", megabyte-100)),
		"grants that nobody ever learns": array("LOCK", "k", "t", "PX", "5000"),
	} {
		t.Run(title, func(t *testing.T) {
			b := serveLocks(t, &scriptedLocks{})
			p := b.connect()
			b.checkMemoryDuring(32*megabyte, func() {
				p.fillUntilStuck(strings.Repeat(flood, 1+(16<<10)/len(flood)))
			})
			p.conn.Close()
			b.waitClients(1)
		})
	}
}

// TestHostileStreamThatNeverEndsOnACommand checks that commands that always arrive in parts do not
// pile up.
func TestHostileStreamThatNeverEndsOnACommand(t *testing.T) {
	b := serveLocks(t, &scriptedLocks{})
	p := b.connect()
	go func() { _, _ = io.Copy(io.Discard, p.conn) }()
	const beginning = "*3\r\n$3\r\nSE"
	flood := strings.TrimPrefix(strings.Repeat(array("SET", "k", "v"), 5000), beginning) + beginning
	b.checkMemoryDuring(16*megabyte, func() {
		p.send(beginning)
		p.flood(flood, 40)
	})
}

// TestHostileHalfCommands checks that many clients that each send half a command use little memory.
func TestHostileHalfCommands(t *testing.T) {
	b := serveLocks(t, &scriptedLocks{})
	b.checkMemoryDuring(32*megabyte, func() {
		for range 300 {
			b.connect().send("*5\r\n$4\r\nLOCK\r\n$1000000\r\nxxx")
		}
		b.waitClients(301)
	})
}

// byteConn returns one byte per read, without a system call for each byte.
type byteConn struct {
	net.Conn
	in *bufio.Reader
}

func (c byteConn) Read(p []byte) (int, error) { return c.in.Read(p[:min(1, len(p))]) }

type byteListener struct{ net.Listener }

func (l byteListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	return byteConn{conn, bufio.NewReader(conn)}, err
}

// TestHostileBulkByteByByte makes the server read a large bulk byte by byte. A parser that calls
// itself for each read of an unfinished command would run out of stack after about 700,000 reads.
func TestHostileBulkByteByByte(t *testing.T) {
	redistest.SkipShort(t)
	b := startTestServer(t, serverOptions{locks: &scriptedLocks{},
		listen: func(inner net.Listener) net.Listener { return byteListener{inner} }})
	const size = 1_000_000
	for command, want := range map[string]string{
		"*2\r\n$3\r\nfoo\r\n$1000000\r\n": "-ERR unknown command 'foo', with args beginning with: '" +
			strings.Repeat("x", 128) + "' \r\n",
		"*2\r\n$4\r\nPING\r\n$1000000\r\n": "$1000000\r\n" + strings.Repeat("x", size) + "\r\n",
	} {
		p := b.connect()
		b.checkMemoryDuring(32*megabyte, func() {
			go func() {
				_, _ = io.WriteString(p.conn, command)
				writeBytes(p.conn, size)
				_, _ = io.WriteString(p.conn, "\r\n"+array("PING"))
			}()
			p.expect(want + pong)
		})
	}
}
