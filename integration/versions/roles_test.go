//go:build integration

package versions

import (
	"strings"
	"testing"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// startServers starts one server of each version, until the test ends.
func startServers(t *testing.T, versions ...string) []*redistest.Server {
	t.Helper()
	var startedServers []*redistest.Server
	for _, version := range versions {
		startedServers = append(startedServers, redistest.New(t, redistest.Options{Version: version}))
	}
	return startedServers
}

// TestRoles tests the oldest and newest Redis and Valkey as masters, as upstream, and mixed.
func TestRoles(t *testing.T) {
	versions := redistest.OldestAndNewest()
	if len(versions) == 0 {
		redistest.SkipMissing(t, "servers of other releases (scripts/versions fetches them)")
	}
	for i, version := range versions {
		t.Run(version, func(t *testing.T) {
			wantVersionShown(t, version)
			otherVersion := versions[(i+1)%len(versions)]
			testRoles(t, startServers(t, version, version, version), startServers(t, otherVersion)[0])
		})
	}
	t.Run("mixed", func(t *testing.T) {
		mixed := append([]string{redistest.InstalledVersion}, versions...)
		for len(mixed) < 5 {
			mixed = append(mixed, redistest.InstalledVersion)
		}
		testRoles(t, startServers(t, mixed...), startServers(t, versions[0])[0])
	})
}

// testRoles lets clients of two proxies send lock commands, ordinary commands, transactions and
// scripts, before and after a master lost its data.
func testRoles(t *testing.T, masters []*redistest.Server, upstream *redistest.Server) {
	t.Helper()
	kit.Want(t, kit.Dial(t, upstream.Addr()), "OK", "ACL", "SETUSER", "few", "on", ">few", "~*", "+@all", "-@dangerous")
	kit.Want(t, kit.Dial(t, upstream.Addr()), "OK", "ACL", "SETUSER", "none", "on", ">none", "~data*", "+@all",
		"-@dangerous")
	fleet := &kit.Fleet{Masters: masters}
	for range 2 {
		fleet.Proxies = append(fleet.Proxies, kit.StartProxy(t, redistest.URLs(masters), kit.LockKeyArgs(upstream)...))
	}
	fleet.WantVoting(t, len(masters))
	runSampleCommands(t, fleet)
	kit.Must(t, masters[0].Restart())
	fleet.WantVoting(t, len(masters))
	runSampleCommands(t, fleet)
}

func runSampleCommands(t *testing.T, fleet *kit.Fleet) {
	t.Helper()
	clientA, clientB := kit.Connect(t, fleet.Proxies[0]), kit.Connect(t, fleet.Proxies[1])
	kit.WantGrant(t, clientA, "LOCK", "report", "a", "PX", "10000")
	kit.WantPrefix(t, clientB, "LOCK report b PX 10000", "nil")
	kit.Want(t, clientA, int64(1), "UNLOCK", "report", "a")

	kit.WantPrefix(t, clientA, "AUTH few few", "OK")
	kit.WantPrefix(t, clientB, "AUTH none none", "OK")
	kit.WantPrefix(t, clientB, "WATCH lock:report", "NOPERM")
	kit.WantPrefix(t, clientB, "AUTH few few", "OK")
	kit.WantPrefix(t, clientA, "SET lock:report a NX PX 10000", "OK")
	kit.WantPrefix(t, clientB, "SET lock:report b NX PX 10000", "nil")
	kit.WantPrefix(t, clientA, "WATCH lock:report", "OK")
	kit.WantPrefix(t, clientA, "MULTI", "OK")
	kit.WantPrefix(t, clientA, "PEXPIRE lock:report 20000", "QUEUED")
	kit.WantPrefix(t, clientA, "EXEC", "[1]")
	kit.WantPrefix(t, clientA, "EVAL|if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0|1|lock:report|a", "1")
	kit.WantPrefix(t, clientA, "EVAL|return server.call('SET', KEYS[1], 'a', 'NX', 'PX', 10000)|1|lock:script", "OK")
	kit.WantPrefix(t, clientB, "EVAL|local s = server or redis; return {s == redis, s.pcall('DEL', KEYS[1])}|1|lock:script", "[1 1]")
	kit.WantPrefix(t, clientB, "HSET lock:hash f v", "1")
	kit.WantPrefix(t, clientA, "HGETALL lock:hash", "[f v]")
	kit.WantPrefix(t, clientA, "DEL lock:hash", "1")
	kit.WantPrefix(t, clientA, "SET data v", "OK")
	kit.WantPrefix(t, clientB, "GET data", "v")
}

// wantVersionShown fails the test unless check shows the version that the server reports.
func wantVersionShown(t *testing.T, version string) {
	t.Helper()
	// check reports degraded, because there is only one master.
	output, _ := kit.ProxyCommand(t, "check", "--master", startServers(t, version)[0].URL()).Output()
	kind, number, _ := strings.Cut(version, "-")
	if want := strings.TrimPrefix(kind+" "+number, "redis "); !strings.Contains(string(output), "  "+want+"  ") {
		t.Errorf("check does not show %s:\n%s", want, output)
	}
}
