//go:build integration

package versions

import (
	"strings"
	"testing"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// servers starts one server of each version, until the test ends.
func servers(t *testing.T, versions ...string) []*redistest.Server {
	t.Helper()
	var all []*redistest.Server
	for _, version := range versions {
		all = append(all, redistest.New(t, redistest.Options{Version: version}))
	}
	return all
}

// TestRoles tests the oldest and newest Redis and Valkey as masters, as upstream, and mixed.
func TestRoles(t *testing.T) {
	all := redistest.Extremes()
	if len(all) == 0 {
		redistest.SkipMissing(t, "servers of other releases (scripts/versions fetches them)")
	}
	for i, version := range all {
		t.Run(version, func(t *testing.T) {
			wantShown(t, version)
			other := all[(i+1)%len(all)]
			exercise(t, servers(t, version, version, version), servers(t, other)[0])
		})
	}
	t.Run("mixed", func(t *testing.T) {
		mixed := append([]string{redistest.Installed}, all...)
		for len(mixed) < 5 {
			mixed = append(mixed, redistest.Installed)
		}
		exercise(t, servers(t, mixed...), servers(t, all[0])[0])
	})
}

// exercise lets clients of two proxies use every command, before and after a master lost its data.
func exercise(t *testing.T, masters []*redistest.Server, upstream *redistest.Server) {
	t.Helper()
	kit.Want(t, kit.Dial(t, upstream.Addr()), "OK", "ACL", "SETUSER", "few", "on", ">few", "~*", "+@all", "-@dangerous")
	kit.Want(t, kit.Dial(t, upstream.Addr()), "OK", "ACL", "SETUSER", "none", "on", ">none", "~data*", "+@all",
		"-@dangerous")
	fleet := &kit.Fleet{Masters: masters}
	for range 2 {
		fleet.Proxies = append(fleet.Proxies, kit.StartProxy(t, redistest.URLs(masters), kit.LockKeyArgs(upstream)...))
	}
	fleet.WantVoting(t, len(masters))
	lockInAllWays(t, fleet)
	kit.Must(t, masters[0].Restart())
	fleet.WantVoting(t, len(masters))
	lockInAllWays(t, fleet)
}

func lockInAllWays(t *testing.T, fleet *kit.Fleet) {
	t.Helper()
	one, other := kit.Connect(t, fleet.Proxies[0]), kit.Connect(t, fleet.Proxies[1])
	kit.WantGrant(t, one, "LOCK", "report", "a", "PX", "10000")
	kit.Does(t, other, "LOCK report b PX 10000", "nil")
	kit.Want(t, one, int64(1), "UNLOCK", "report", "a")

	kit.Does(t, one, "AUTH few few", "OK")
	kit.Does(t, other, "AUTH none none", "OK")
	kit.Does(t, other, "WATCH lock:report", "NOPERM")
	kit.Does(t, other, "AUTH few few", "OK")
	kit.Does(t, one, "SET lock:report a NX PX 10000", "OK")
	kit.Does(t, other, "SET lock:report b NX PX 10000", "nil")
	kit.Does(t, one, "WATCH lock:report", "OK")
	kit.Does(t, one, "MULTI", "OK")
	kit.Does(t, one, "PEXPIRE lock:report 20000", "QUEUED")
	kit.Does(t, one, "EXEC", "[1]")
	kit.Does(t, one, "EVAL|if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0|1|lock:report|a", "1")
	kit.Does(t, one, "EVAL|return server.call('SET', KEYS[1], 'a', 'NX', 'PX', 10000)|1|lock:script", "OK")
	kit.Does(t, other, "EVAL|local s = server or redis; return {s == redis, s.pcall('DEL', KEYS[1])}|1|lock:script", "[1 1]")
	kit.Does(t, other, "HSET lock:hash f v", "1")
	kit.Does(t, one, "HGETALL lock:hash", "[f v]")
	kit.Does(t, one, "DEL lock:hash", "1")
	kit.Does(t, one, "SET data v", "OK")
	kit.Does(t, other, "GET data", "v")
}

// wantShown fails the test unless check shows the version that the server reports.
func wantShown(t *testing.T, version string) {
	t.Helper()
	// check reports degraded, because there is only one master.
	output, _ := kit.Program(t, "check", "--master", servers(t, version)[0].URL()).Output()
	kind, number, _ := strings.Cut(version, "-")
	if want := strings.TrimPrefix(kind+" "+number, "redis "); !strings.Contains(string(output), "  "+want+"  ") {
		t.Errorf("check does not show %s:\n%s", want, output)
	}
}
