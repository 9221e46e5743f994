package proxy

import (
	"strings"
	"testing"
	"time"

	"redlock-proxy/proxy/netconn"
)

// halfCommand is most of a long command, which the proxy has to hold.
var halfCommand = "*4\r\n$4\r\nLOCK\r\n$950000\r\n" + strings.Repeat("x", 900_000)

// waitHeldBytes waits until the server holds between least and most bytes.
func (b *testServer) waitHeldBytes(least, most int64) {
	b.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(2 * time.Millisecond) {
		held := b.server.Counts().HeldInput
		if held >= least && held <= most {
			return
		}
		if time.Now().After(deadline) {
			b.Fatalf("%d bytes are held, want %d to %d", held, least, most)
		}
	}
}

// TestHeldInputIsBounded: the incomplete commands of all clients together are limited. A client
// that exceeds the limit gets an error, and other clients are served.
func TestHeldInputIsBounded(t *testing.T) {
	const each, some = 1 << 20, 4
	b := serveLocks(t, &scriptedLocks{})
	b.server.Apply(Settings{HeldInput: some * each})
	honest := b.connect()
	honest.say("PING\r\n", pong)
	first := b.connect()
	first.send(halfCommand)
	b.waitHeldBytes(each, each)
	for i := range some - 1 {
		b.connect().send(halfCommand)
		b.waitHeldBytes(int64(i+2)*each, int64(i+2)*each)
	}
	over := b.connect()
	over.send(halfCommand[:netconn.BufferSize])
	over.expect("-ERR out of memory for input: incomplete commands and data kept between commands are limited to 4194304 bytes for all clients; raise max-input-memory\r\n")
	honest.say("PING\r\n", pong)
	if n := b.server.Counts().RefusedInput; n != 1 {
		t.Errorf("%d clients were refused", n)
	}
	first.send(strings.Repeat("x", 50_000) + "\r\n$1\r\nt\r\n$1\r\nt\r\n") // the command is complete, and an error
	first.line()
	_ = first.conn.Close()
	b.waitHeldBytes((some-1)*each, (some-1)*each)
	b.connect().send(halfCommand)
	b.waitHeldBytes(some*each, some*each)
}
