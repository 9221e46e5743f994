//go:build integration && history

package upgrade

import (
	"strings"
	"testing"

	"redlock-proxy/integration/harness"
	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// lastWithoutHolders is the last commit of 0.3.0, which does not know SHARED and SLOTS.
const lastWithoutHolders = "ec08b84c"

// TestHoldersNextToEarlierProxy checks that SHARED and SLOTS are refused while a proxy of 0.3.0
// runs. If such a proxy is started later, it neither takes, extends nor releases a lock with
// holders; its FORCEUNLOCK ends one.
func TestHoldersNextToEarlierProxy(t *testing.T) {
	old, masters := buildCommit(t, lastWithoutHolders), kit.StartMasters(t)
	startEarlier := func() *harness.Proxy {
		t.Helper()
		proxy, err := harness.StartProxy(harness.ProxyOptions{Binary: old, Masters: redistest.URLs(masters),
			Args: []string{"--fresh-start=false"}})
		kit.Must(t, err)
		t.Cleanup(func() { kit.NoError(t, proxy.Close()) })
		return proxy
	}
	client := kit.Connect(t, kit.StartProxy(t, redistest.URLs(masters)))
	kit.WantGrant(t, client, "LOCK", "first", "t", "PX", "60000") // the masters vote
	earlier := startEarlier()
	kit.Await(t, "SHARED is refused", func() bool {
		reply := kit.ReplyText(kit.Do(t, client, "LOCK", "k", "r", "PX", "100", "SHARED"))
		return strings.HasPrefix(reply, "ERR SHARED and SLOTS need all proxies of this version: ")
	})
	kit.WantPrefix(t, client, "LOCK k s PX 60000 SLOTS 2", "ERR SHARED and SLOTS need all proxies of this version: ")
	kit.WantGrant(t, client, "LOCK", "x", "t", "PX", "60000")
	kit.WantGrant(t, kit.Connect(t, earlier), "LOCK", "y", "t", "PX", "60000")
	kit.Must(t, earlier.Close())
	kit.Await(t, "SHARED is granted", func() bool {
		_, granted := kit.Do(t, client, "LOCK", "k", "r1", "PX", "60000", "SHARED").(int64)
		return granted
	})
	kit.WantGrant(t, client, "LOCK", "lone", "r1", "PX", "60000", "SLOTS", "2")
	kit.WantGrant(t, client, "LOCK", "k", "r2", "PX", "60000", "SHARED")
	late := kit.Connect(t, startEarlier())
	for _, key := range []string{"k", "lone"} {
		kit.Want(t, late, nil, "LOCK", key, "w", "PX", "60000")
		kit.Want(t, late, int64(0), "UNLOCK", key, "r1")
		kit.Want(t, late, nil, "EXTEND", key, "r1", "PX", "90000")
	}
	for _, words := range []string{"EXTEND k r1 PX 60000", "EXTEND k r2 PX 60000", "EXTEND lone r1 PX 60000"} {
		kit.WantGrant(t, client, strings.Fields(words)...)
	}
	kit.Want(t, late, int64(1), "FORCEUNLOCK", "k")
	kit.Want(t, client, int64(0), "UNLOCK", "k", "r1")
	kit.Want(t, client, int64(1), "UNLOCK", "lone", "r1")
}
