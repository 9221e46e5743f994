//go:build integration

package lockkeys

import (
	"strings"
	"testing"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// TestLongScriptOfClosedClient lets clients send a script and close their sending side. A script
// that runs or compiles for a long time ends before the time limit of scripts. A short script gets
// its reply.
func TestLongScriptOfClosedClient(t *testing.T) {
	t.Parallel()
	f := startLockKeyFleet(t, 1)
	const disconnectText = "closed the connection, or its sending side"
	for script, want := range map[string]string{
		"redis.call('set', KEYS[1], 'x') while true do end":           disconnectText,
		"while true do loadstring('return ' .. ('x '):rep(1000)) end": disconnectText,
		"return redis.call('set', KEYS[1], 'short', 'px', 60000)":     "OK",
	} {
		client := kit.Connect(t, f.Proxies[0])
		kit.Must(t, client.Send(redistest.AppendCommand(nil, "EVAL", script, "1", "lock:k")))
		kit.Must(t, client.CloseWrite())
		if replies, err := client.ReceiveAll(); err != nil || !strings.Contains(string(replies), want) {
			t.Errorf("%s: got %q, %v, want %s", script, replies, err, want)
		}
	}
	kit.Want(t, kit.Connect(t, f.Proxies[0]), "short", "GET", "lock:k")
}
