package proxy

import (
	"strings"
	"testing"
	"time"

	"redlock-proxy/proxy/netconn"
)

// incompleteCommand holds the beginning of a long command, which the proxy has to buffer.
var incompleteCommand = "*4\r\n$4\r\nLOCK\r\n$950000\r\n" + strings.Repeat("x", 900_000)

// waitBufferedBytes waits until the server buffers between low and high bytes.
func (b *testServer) waitBufferedBytes(low, high int64) {
	b.Helper()
	for deadline := time.Now().Add(testTimeout); ; time.Sleep(2 * time.Millisecond) {
		buffered := b.server.Counts().InputBytes
		if buffered >= low && buffered <= high {
			return
		}
		if time.Now().After(deadline) {
			b.Fatalf("%d bytes are held, want %d to %d", buffered, low, high)
		}
	}
}

// TestInputMemoryIsBounded checks that the proxy limits the memory for the incomplete commands of
// all clients together. A client that exceeds the limit gets an error, and the proxy continues to
// serve other clients.
func TestInputMemoryIsBounded(t *testing.T) {
	const perClient, clients = 1 << 20, 4
	b := serveLocks(t, &scriptedLocks{})
	b.server.Apply(Settings{MaxInputMemory: clients * perClient})
	other := b.connect()
	other.check("PING\r\n", pong)
	first := b.connect()
	first.send(incompleteCommand)
	b.waitBufferedBytes(perClient, perClient)
	for i := range clients - 1 {
		b.connect().send(incompleteCommand)
		b.waitBufferedBytes(int64(i+2)*perClient, int64(i+2)*perClient)
	}
	excess := b.connect()
	excess.send(incompleteCommand[:netconn.BufferSize])
	excess.expect("-ERR out of memory for input: incomplete commands and data kept between commands are limited to 4194304 bytes for all clients; raise max-input-memory\r\n")
	other.check("PING\r\n", pong)
	if n := b.server.Counts().InputRefusals; n != 1 {
		t.Errorf("%d clients were refused", n)
	}
	// The rest completes the command, which gets an error.
	first.send(strings.Repeat("x", 50_000) + "\r\n$1\r\nt\r\n$1\r\nt\r\n")
	first.readLine()
	_ = first.conn.Close()
	b.waitBufferedBytes((clients-1)*perClient, (clients-1)*perClient)
	b.connect().send(incompleteCommand)
	b.waitBufferedBytes(clients*perClient, clients*perClient)
}
