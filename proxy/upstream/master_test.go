package upstream

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"testing"
)

// TestLockMasterIsRefused checks that an upstream is refused if it is a lock master, a cluster with
// a lock master, or a redlock-proxy. The proxy recognizes such an upstream by its INFO, or by its
// reply to PROXY PATH. The address may have belonged to another server before. Connected clients
// are disconnected.
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
	proxy := [2]string{bulk("# Redlock\r\nredlock_masters:3\r\n"), ""}
	var pathReply, replies atomic.Value
	pathReply.Store("-ERR unknown command\r\n")
	replies.Store(standalone("other"))
	s := startScripted(t, func(command string) string {
		switch current := replies.Load().([2]string); strings.Fields(command)[0] {
		case "INFO":
			return current[0]
		case "CLUSTER":
			return current[1]
		case "PROXY":
			return pathReply.Load().(string)
		}
		return "+PONG\r\n"
	})
	up, err := New("redis://"+s.ln.Addr().String(), testTimeout, slog.New(slog.DiscardHandler))
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
	const masterError, proxyError = "it is the lock master 10.0.0.8:6379: ", "it is a redlock-proxy: "
	for _, c := range []struct {
		replies [2]string
		refused string
	}{
		{standalone("other"), ""}, {standalone("master"), masterError}, {standalone("other"), ""},
		{nodes("10.0.0.8:6379"), masterError}, {nodes("10.0.0.9:6379"), ""}, {[2]string{"-NOPERM no\r\n", ""}, ""},
		{proxy, proxyError}, {standalone("other"), ""},
	} {
		refused := c.refused != ""
		replies.Store(c.replies)
		up.mu.Lock()
		up.dialErr = nil
		up.mu.Unlock()
		term := up.Term()
		up.Probe(t.Context())
		_, err := up.Status()
		if errors.Is(err, ErrGrantsLocks) != refused || (up.Term() != term) != refused ||
			refused && !strings.HasPrefix(err.Error(), c.refused) {
			t.Errorf("%q: %v, and clients left: %v", c.replies, err, up.Term() != term)
		}
		if conn, err := up.Connect(t.Context()); errors.Is(err, ErrGrantsLocks) != refused {
			t.Errorf("%q: connected: %v", c.replies, err)
		} else if err == nil {
			conn.Close()
		}
	}
	pathReply.Store("+OK\r\n")
	replies.Store([2]string{"-NOAUTH no\r\n", ""})
	up.mu.Lock()
	up.uncheckedRemaining = 0
	up.mu.Unlock()
	if _, err := up.Connect(t.Context()); !errors.Is(err, errProxy) {
		t.Errorf("a server that answers PROXY PATH: %v", err)
	}
}

// TestLockMasterWithLogin checks that a lock master is refused by its address if it reports nothing
// without a login, which only the clients have.
func TestLockMasterWithLogin(t *testing.T) {
	s := startScripted(t, func(string) string { return "-NOAUTH Authentication required.\r\n" })
	addr := s.ln.Addr().String()
	_, port, _ := net.SplitHostPort(addr)
	for _, host := range []string{"127.0.0.1", "localhost"} {
		for master, refused := range map[string]bool{addr: true, "127.0.0.1:1": false} {
			up, err := New("redis://"+net.JoinHostPort(host, port), testTimeout, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(up.Close)
			up.SetProxyID("id")
			up.RefuseMasters(func(_, asked string) string {
				if asked == master {
					return master
				}
				return ""
			})
			conn, err := up.Connect(t.Context())
			if err == nil {
				conn.Close()
			}
			if errors.Is(err, ErrGrantsLocks) != refused {
				t.Errorf("%s, with the lock master %s: %v", host, master, err)
			}
		}
	}
}

// TestCheckNewMasters checks that a new lock master is compared with the upstream. An upstream that
// does not answer is accepted.
func TestCheckNewMasters(t *testing.T) {
	info := "run_id:same\r\n"
	s := startScripted(t, func(string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(info), info) })
	up, err := New("redis://"+s.ln.Addr().String(), testTimeout, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(up.Close)
	for runID, refused := range map[string]bool{"same": true, "other": false} {
		err := up.CheckNewMasters(t.Context(), func(asked, _ string) string {
			if asked == runID {
				return "localhost:7"
			}
			return ""
		})
		if errors.Is(err, ErrGrantsLocks) != refused {
			t.Errorf("%s: %v", runID, err)
		}
	}
	s.ln.Close()
	if err := up.CheckNewMasters(t.Context(), func(string, string) string { return "x" }); err != nil {
		t.Error(err)
	}
}
