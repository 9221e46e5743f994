package upstream

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
)

// TestLockMasterIsRefused: a server is refused if it is a lock master or a cluster with one as a
// node, even if the address belonged to another server before. Connected clients are disconnected.
func TestLockMasterIsRefused(t *testing.T) {
	bulk := func(text string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(text), text) }
	standalone := func(runID string) [2]string {
		return [2]string{bulk("redis_mode:standalone\r\nrun_id:" + runID + "\r\n"), "-ERR no\r\n"}
	}
	nodes := func(addr string) [2]string {
		return [2]string{bulk("redis_mode:cluster\r\nrun_id:other\r\n"),
			bulk("x 10.0.0.7:6379@16379,n myself,master - 0 0 1 connected 0-5460\ny " + addr +
				"@16380 master - 0 0 2 connected\n")}
	}
	var replies atomic.Value
	replies.Store(standalone("other"))
	s := startScripted(t, func(command string) string {
		switch current := replies.Load().([2]string); strings.Fields(command)[0] {
		case "INFO":
			return current[0]
		case "CLUSTER":
			return current[1]
		case "PROXY":
			return "-ERR unknown command\r\n"
		}
		return "+PONG\r\n"
	})
	up, err := New("redis://"+s.ln.Addr().String(), patience, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(up.Close)
	up.SetProxyID("id")
	up.RefuseMasters(func(runID, addr string) string {
		if runID == "master" || addr == "10.0.0.8:6379" {
			return "10.0.0.8:6379"
		}
		return ""
	})
	for _, c := range []struct {
		replies [2]string
		refused bool
	}{
		{standalone("other"), false}, {standalone("master"), true}, {standalone("other"), false},
		{nodes("10.0.0.8:6379"), true}, {nodes("10.0.0.9:6379"), false}, {[2]string{"-NOPERM no\r\n", ""}, false},
	} {
		replies.Store(c.replies)
		up.mu.Lock()
		up.dialErr = nil
		up.mu.Unlock()
		term := up.Term()
		up.Probe(t.Context())
		_, err := up.Status()
		if errors.Is(err, ErrMaster) != c.refused || (up.Term() != term) != c.refused ||
			c.refused != strings.HasPrefix(fmt.Sprint(err), "it is the lock master 10.0.0.8:6379: ") {
			t.Errorf("%q: %v, and clients left: %v", c.replies, err, up.Term() != term)
		}
		if conn, err := up.Connect(t.Context()); errors.Is(err, ErrMaster) != c.refused {
			t.Errorf("%q: connected: %v", c.replies, err)
		} else if err == nil {
			conn.Close()
		}
	}
}
