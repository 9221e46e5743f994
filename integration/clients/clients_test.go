//go:build integration

package clients

import (
	"net"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"redlock-proxy/integration/harness"
	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// TestClients runs each client library with its default configuration.
func TestClients(t *testing.T) {
	RunAll(t, kit.StartFleet(t).Proxies[0])
}

// TestMasterKeys checks that the keys on the masters have the names of the clients' keys.
func TestMasterKeys(t *testing.T) {
	if _, err := exec.LookPath("redis-cli"); err != nil {
		redistest.SkipMissing(t, "redis-cli: apt-get install redis-tools")
	}
	f := kit.StartFleet(t)
	proxy, masters := f.Proxies[0], f.Masters
	lockReply := runRedisCLI(t, proxy, "LOCK", "k", "t", "PX", "10000")
	if ms, err := strconv.Atoi(lockReply); err != nil || ms <= 9000 || ms > 10000 {
		t.Fatalf("LOCK k t PX 10000: expected a validity in (9000..10000], got %q", lockReply)
	}
	for _, master := range masters {
		kit.AwaitShortly(t, func() error { return kit.CheckHeld(master, "k", "t") })
	}
	if unlockReply := runRedisCLI(t, proxy, "UNLOCK", "k", "t"); unlockReply != "1" {
		t.Fatalf("UNLOCK k t: expected 1, got %q", unlockReply)
	}
	for _, master := range masters {
		kit.AwaitShortly(t, func() error { return kit.CheckAbsent(master, "k") })
	}
}

func runRedisCLI(t *testing.T, proxy *harness.Proxy, args ...string) string {
	t.Helper()
	host, port, err := net.SplitHostPort(proxy.Addr())
	if err != nil {
		t.Fatal(err)
	}
	output, err := run(append([]string{"redis-cli", "-h", host, "-p", port}, args...)...)
	if err != nil {
		t.Fatalf("redis-cli %v: %v\n%s", args, err, output)
	}
	return strings.TrimSpace(output)
}
