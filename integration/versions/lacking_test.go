//go:build integration

package versions

import (
	"strings"
	"testing"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// TestUpstreamThatLacksACommand: users with all permissions can use a command on lock keys even if
// the upstream lacks it. If the proxy has to check a user's permissions, the upstream cannot answer
// for this command, so the proxy refuses it; other commands are not refused.
func TestUpstreamThatLacksACommand(t *testing.T) {
	all := redistest.Extremes()
	if len(all) == 0 || !strings.HasPrefix(all[0], "redis-6.0.") {
		redistest.SkipMissing(t, "a server Redis 6.0 (scripts/versions fetches it)")
	}
	upstream := servers(t, all[0])[0]
	kit.Want(t, kit.Dial(t, upstream.Addr()), "OK", "ACL", "SETUSER", "few", "on", ">few", "~lock:*", "+@all")
	masters := servers(t, redistest.Installed, redistest.Installed, redistest.Installed)
	proxy := kit.StartProxy(t, redistest.URLs(masters), kit.LockKeyArgs(upstream)...)
	open, few := kit.Connect(t, proxy), kit.Connect(t, proxy)
	kit.Does(t, few, "AUTH few few", "OK")
	for _, command := range []string{"GETDEL lock:a", "GETEX lock:a PX 1", "COPY lock:a lock:a2",
		"EVAL|return redis.call('getdel', KEYS[1])|1|lock:a"} {
		kit.Does(t, few, "SET lock:a v PX 60000", "OK")
		kit.Does(t, few, command, "ERR cannot check this client's permissions: ERR unknown command")
		kit.Does(t, few, "GET lock:a", "v")
		kit.Does(t, few, "PEXPIRE lock:a 60000", "1")
	}
	kit.Does(t, open, "GETDEL lock:a", "v")
	kit.Does(t, open, "EXISTS lock:a lock:a2", "0")
}
