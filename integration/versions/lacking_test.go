//go:build integration

package versions

import (
	"strings"
	"testing"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// TestUpstreamLacksCommand checks that users with all permissions can use a command on lock keys
// even if the upstream lacks the command. If the proxy has to check a user's permissions, the
// upstream cannot answer for this command, so the proxy refuses the command. Other commands are not
// refused.
func TestUpstreamLacksCommand(t *testing.T) {
	versions := redistest.OldestAndNewest()
	if len(versions) == 0 || !strings.HasPrefix(versions[0], "redis-6.0.") {
		redistest.SkipMissing(t, "a server Redis 6.0 (scripts/versions fetches it)")
	}
	upstream := startServers(t, versions[0])[0]
	kit.Want(t, kit.Dial(t, upstream.Addr()), "OK", "ACL", "SETUSER", "few", "on", ">few", "~lock:*", "+@all")
	masters := startServers(t, redistest.InstalledVersion, redistest.InstalledVersion, redistest.InstalledVersion)
	proxy := kit.StartProxy(t, redistest.URLs(masters), kit.LockKeyArgs(upstream)...)
	fullClient, limitedClient := kit.Connect(t, proxy), kit.Connect(t, proxy)
	kit.WantPrefix(t, limitedClient, "AUTH few few", "OK")
	for _, command := range []string{"GETDEL lock:a", "GETEX lock:a PX 1", "COPY lock:a lock:a2",
		"EVAL|return redis.call('getdel', KEYS[1])|1|lock:a"} {
		kit.WantPrefix(t, limitedClient, "SET lock:a v PX 60000", "OK")
		kit.WantPrefix(t, limitedClient, command, "ERR cannot check this client's permissions: ERR unknown command")
		kit.WantPrefix(t, limitedClient, "GET lock:a", "v")
		kit.WantPrefix(t, limitedClient, "PEXPIRE lock:a 60000", "1")
	}
	kit.WantPrefix(t, fullClient, "GETDEL lock:a", "v")
	kit.WantPrefix(t, fullClient, "EXISTS lock:a lock:a2", "0")
}
