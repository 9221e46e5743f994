//go:build integration

package clients

import (
	"strings"
	"testing"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
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
			reply := proxied.say(proxied.a, test.dialect, "take", key, kit.Millis(longLease))
			if want := "ERR lock key '" + key + "': '" + test.command + "' "; !strings.Contains(reply, want) {
				t.Errorf("got %s, want an error with %s", reply, want)
			}
			kit.Everywhere(t, append(proxied.masters, proxied.data), func(server *redistest.Server) error { return kit.Lacks(server, key) })
		})
	}
}

// TestLocksOfTwoKeys: a library that keeps a lock's owner and its end under two keys, and replaces one under the condition of the other,
// works on a Redis by itself. The proxy refuses that with an error that names both, and changes neither.
func TestLocksOfTwoKeys(t *testing.T) {
	d, program := dialect{name: "redis-lock", taken: "true", stored: ownerAndEnd}, rubyLocks(t)
	key := d.key("life")
	plain := startPlain(t, program)
	plain.take(plain.a, d, key, longLease)
	plain.refuse(plain.b, d, key)
	plain.say(plain.a, d, "extend", key, kit.Millis(longerLease))
	plain.say(plain.a, d, "release", key)
	plain.take(plain.b, d, key, longLease)

	proxied := startProxied(t, program)
	proxied.take(proxied.a, d, key, longLease)
	proxied.refuse(proxied.b, d, key)
	proxied.undisturbed(d, key, func() {
		for _, operation := range [][]string{{"extend", kit.Millis(longerLease)}, {"release"}} {
			reply := proxied.say(proxied.a, d, operation[0], key, operation[1:]...)
			for _, part := range append(ownerAndEnd(key), "cannot be changed together") {
				if !strings.Contains(reply, part) {
					t.Errorf("%s: got %s, want an error with %q", operation[0], reply, part)
				}
			}
		}
	})
}

// ownerAndEnd are two keys for one lock.
func ownerAndEnd(key string) []string { return []string{"lock:owner:" + key, "lock:expire:" + key} }
