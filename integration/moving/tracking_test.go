//go:build integration

package moving

import (
	"fmt"
	"testing"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// TestCachesDuringMove checks that a client that caches (CLIENT TRACKING) gets an invalidation of
// all keys when the locks move, in either direction. The invalidation covers even absent keys, for
// which neither the upstream nor the masters send one.
func TestCachesDuringMove(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	r := startRig(t)
	clientA, clientB := r.clients()
	kit.Do(t, clientA, "HELLO", "3")
	kit.Want(t, clientA, "OK", "CLIENT", "TRACKING", "ON")
	for _, flags := range [][]string{nil, {backFlag}} {
		kit.Want(t, clientA, nil, "GET", "lock:absent")
		r.mustMove(1, flags...)
		wantPush(t, clientA, nil)
		kit.Want(t, clientA, nil, "GET", "lock:absent")
		kit.Want(t, clientB, "OK", "SET", "lock:absent", "x", "NX", "PX", "60000")
		wantPush(t, clientA, []any{"lock:absent"})
		kit.Want(t, clientB, int64(1), "DEL", "lock:absent")
	}
}

// wantPush waits for an invalidation of the keys, or, if keys is nil, of all keys. It ignores
// earlier invalidations, because the proxy may invalidate a key that it cannot watch during the
// move.
func wantPush(t *testing.T, client *redistest.Client, keys any) {
	t.Helper()
	for want := fmt.Sprint(redistest.Push{"invalidate", keys}); ; {
		got, err := client.Receive()
		kit.Must(t, err)
		if fmt.Sprint(got) == want {
			return
		}
	}
}
