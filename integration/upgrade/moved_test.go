//go:build integration && history

package upgrade

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/harness"
	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
	"redlock-proxy/quorum/guard/script"
)

// TestEarlierProxyAfterAMove checks that the locks are not moved as long as the masters know of a
// proxy with protocol 1. If such a proxy is started after the move, it gets no votes, and disturbs
// no other proxy.
func TestEarlierProxyAfterAMove(t *testing.T) {
	old := buildCommit(t, earlierProtocols[1].commit)
	upstream, masters := kit.StartRedis(t, redistest.DurableArgs()...), kit.StartMasters(t)
	early := func() *harness.Proxy {
		t.Helper()
		proxy, err := harness.StartProxy(harness.ProxyOptions{Binary: old, Masters: redistest.URLs(masters),
			Args: append(kit.LockKeyArgs(upstream), "--fresh-start=false")})
		kit.Must(t, err)
		t.Cleanup(func() { kit.NoError(t, proxy.Close()) })
		return proxy
	}
	proxy := kit.StartProxy(t, redistest.URLs(masters), append(kit.LockKeyArgs(upstream), "--move-from-upstream")...)
	client := kit.Connect(t, proxy)
	kit.Want(t, client, "OK", "SET", "lock:held", "me", "NX", "PX", "600000")
	earlyClient := early()
	kit.Eventually(t, func() error {
		if output := runMove(t, proxy); !strings.Contains(output, "earlier version") {
			return fmt.Errorf("move says: %s", output)
		}
		return nil
	})
	kit.Must(t, earlyClient.Close())
	kit.Eventually(t, func() error {
		if said := runMove(t, proxy); !strings.Contains(said, "the locks are at the masters") {
			return fmt.Errorf("move says: %s", said)
		}
		return nil
	})
	before := readMarkers(t, masters)
	laterClient := kit.Connect(t, early())
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if reply := kit.ReplyText(kit.Do(t, laterClient, "SET", "lock:free", "other", "NX", "PX",
			"1000")); !strings.HasPrefix(reply, "NOQUORUM") {
			t.Errorf("the earlier proxy says %s", reply)
		}
		kit.Want(t, client, "me", "GET", "lock:held")
		kit.Want(t, client, nil, "SET", "lock:held", "me", "NX", "PX", "600000")
	}
	if after := readMarkers(t, masters); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}

// runMove runs the command move, and returns its output.
func runMove(t *testing.T, proxy *harness.Proxy) string {
	t.Helper()
	program, err := harness.BuildProxy(t.Context())
	kit.Must(t, err)
	// The proxy may refuse the move.
	out, _ := exec.Command(program, "move", "--addr", proxy.Addr()).CombinedOutput()
	return string(out)
}

// readMarkers returns the markers and records on masters.
func readMarkers(t *testing.T, masters []*redistest.Server) string {
	t.Helper()
	var text strings.Builder
	for _, master := range masters {
		stands, err := kit.QueryDatabase(master, "0", "MGET", script.MarkerKey, script.RecordKey)
		kit.Must(t, err)
		fmt.Fprintf(&text, "%q\n", stands)
	}
	return text.String()
}
