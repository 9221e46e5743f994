//go:build integration

package clients

import (
	"strings"
	"testing"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// TestLocksOfTwoKeys: a library stores a lock's owner and its expiry under two keys, and changes
// one key depending on the other. This works with a single Redis. The proxy refuses it with an
// error that names both keys, and changes neither.
func TestLocksOfTwoKeys(t *testing.T) {
	redistest.SkipShort(t)
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

// ownerAndEnd returns the two keys of a lock.
func ownerAndEnd(key string) []string { return []string{"lock:owner:" + key, "lock:expire:" + key} }
