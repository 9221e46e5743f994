package proxy

import (
	"io"
	"net"
	"testing"

	"redlock-proxy/internal/redistest"
	"redlock-proxy/proxy/netconn"
)

// TestClientWithOldestUnreadRepliesIsDisconnected checks that if too many bytes are unread, the
// client whose replies have been unread for the longest time is disconnected. Its unread bytes no
// longer count.
func TestClientWithOldestUnreadRepliesIsDisconnected(t *testing.T) {
	u := &unreadReplies{}
	u.setLimit(100)
	var disconnectedNames []string
	client := func(name string) *unreadClient {
		return &unreadClient{disconnect: func() { disconnectedNames = append(disconnectedNames, name) }}
	}
	a, b, c := client("a"), client("b"), client("c")
	u.add(a, 40)
	u.add(b, 40)
	u.remove(a, 40) // a has read its replies
	u.add(a, 20)
	u.add(c, 40)
	if total, _ := u.stats(); total != 100 || len(disconnectedNames) > 0 {
		t.Fatalf("%d are held, %v cut off", total, disconnectedNames)
	}
	u.add(a, 1)
	u.remove(b, 40) // the write to b has failed
	if total, disconnects := u.stats(); total != 61 || disconnects != 1 || len(disconnectedNames) != 1 || disconnectedNames[0] != "b" {
		t.Errorf("%d are held, %d cut off: %v", total, disconnects, disconnectedNames)
	}
	u.add(b, 30) // further bytes of a disconnected client are ignored
	u.remove(b, 30)
	u.setLimit(50)
	if total, disconnects := u.stats(); total != 40 || disconnects != 2 || disconnectedNames[1] != "a" {
		t.Errorf("%d are held, %d cut off: %v", total, disconnects, disconnectedNames)
	}
}

// TestMemoryOfUnreadReply checks that the memory of a large reply counts as unread, and not only
// its bytes.
func TestMemoryOfUnreadReply(t *testing.T) {
	for _, test := range []struct {
		size, memory int
		want         int64
	}{
		{100, 100, 100},
		{100, maxPending, 100},
		{100_000, 200_000, 200_000},
	} {
		client, conn := net.Pipe()
		u := &unreadReplies{limit: 1 << 20}
		var w clientWriter
		w.init(conn, netconn.New(conn, &netconn.PooledBuffer{}, &netconn.Activity{}), u, func() {})
		written := make(chan error)
		go func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			_, err := w.writeReplies(0, make([]byte, test.size, test.memory))
			written <- err
		}()
		redistest.Await(t, "the client leaves the reply unread", func() bool {
			total, _ := u.stats()
			return total == test.want
		})
		if _, err := io.ReadFull(client, make([]byte, test.size)); err != nil {
			t.Error(err)
		}
		if err := <-written; err != nil {
			t.Error(err)
		}
		if total, _ := u.stats(); total != 0 {
			t.Errorf("%d bytes are unread after the client has read all", total)
		}
		_ = client.Close()
	}
}
