//go:build integration

package schedules

import (
	"testing"

	"redlock-proxy/integration/kit"
)

// TestWatchedMSetNX: a client of one proxy watches a key that is absent, and a client of another takes it together with a second one. What
// the watch left on the masters does not keep it from that; whoever watches is told of it, and of nothing where nothing was taken.
func TestWatchedMSetNX(t *testing.T) {
	t.Parallel()
	f := startFleet(t, 3)
	one, other := connect(t, f.proxy(t)), connect(t, f.proxy(t))

	kit.Want(t, one, "OK", "WATCH", "lock:a")
	kit.Want(t, other, int64(1), "MSETNX", "lock:b", "theirs", "lock:a", "theirs")
	kit.Want(t, one, "OK", "MULTI")
	kit.Want(t, one, "QUEUED", "SET", "lock:a", "mine")
	kit.Want(t, one, nil, "EXEC")
	kit.Want(t, one, "theirs", "GET", "lock:a")

	kit.Want(t, one, "OK", "WATCH", "lock:c")
	kit.Want(t, other, int64(0), "MSETNX", "lock:b", "again", "lock:c", "again")
	kit.Want(t, one, "OK", "MULTI")
	kit.Want(t, one, "QUEUED", "SET", "lock:c", "mine")
	if reply := kit.Do(t, one, "EXEC"); reply == nil {
		t.Error("EXEC was told of a change, and there was none")
	}
	kit.Want(t, other, "mine", "GET", "lock:c")
}
