//go:build integration

package integration

import (
	"strings"
	"testing"

	"redlock-proxy/integration/harness"
)

// TestLocksOfOtherTypes: locks that are hashes or sorted sets work on a Redis by itself. The proxy refuses them with an error that
// names the key and the command, and leaves nothing anywhere.
func TestLocksOfOtherTypes(t *testing.T) {
	for _, test := range []struct {
		dialect dialect
		command string // that cannot be carried out
		program func(*testing.T) []string
	}{
		{dialect{name: "redisson", taken: "granted"}, "hincrby", javaLocks},
		{dialect{name: "symfony", taken: "true"}, "zremrangebyscore", phpLocks},
	} {
		t.Run(test.dialect.name, func(t *testing.T) {
			program, key := test.program(t), test.dialect.key("life")
			plain := startPlain(t, program)
			plain.take(plain.a, test.dialect, key, longLease)
			plain.refuse(plain.b, test.dialect, key)
			plain.say(plain.a, test.dialect, "release", key)
			plain.take(plain.b, test.dialect, key, longLease)

			proxied := startProxied(t, program)
			reply := proxied.say(proxied.a, test.dialect, "take", key, millis(longLease))
			if want := "ERR lock key '" + key + "': '" + test.command + "' "; !strings.Contains(reply, want) {
				t.Errorf("got %s, want an error with %s", reply, want)
			}
			everywhere(t, append(proxied.masters, proxied.data), func(server *harness.Redis) error { return lacks(server, key) })
		})
	}
}
