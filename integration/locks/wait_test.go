//go:build integration

package locks

import (
	"testing"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// TestWaitMasterCount checks that WAIT returns the number of masters beyond a majority that have
// the client's changes, as Redis counts replicas.
func TestWaitMasterCount(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	f := startPair(t, "--lock-keys", "l:*")
	client, other := kit.Connect(t, f.Proxies[0]), kit.Connect(t, f.Proxies[1])
	kit.Want(t, client, int64(0), "WAIT", "0", "0")
	kit.Want(t, client, int64(0), "WAIT", "1", "50") // this client has changed nothing yet
	kit.WantGrant(t, client, "LOCK", "k", "t", "PX", "60000")
	kit.Want(t, client, int64(2), "WAIT", "2", "0")
	kit.Want(t, client, "OK", "SET", "l:a", "v", "NX", "PX", "60000")
	kit.Want(t, client, int64(1), "EVAL", "return redis.call('del', KEYS[1])", "1", "l:a")
	kit.Want(t, client, int64(2), "WAIT", "2", "0")
	kit.Must(t, f.Masters[4].Kill())
	kit.WantGrant(t, client, "LOCK", "m", "t", "PX", "60000")
	kit.Want(t, client, int64(1), "WAIT", "1", "0")
	kit.Want(t, client, int64(1), "WAIT", "2", "200")
	kit.Must(t, f.Masters[4].Restart())
	kit.Want(t, client, int64(2), "WAIT", "2", "0") // the lock is restored on the restarted master
	kit.Want(t, other, int64(1), "UNLOCK", "m", "t")
	kit.Want(t, other, int64(2), "WAIT", "2", "0")
}
