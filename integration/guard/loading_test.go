//go:build integration

package guard

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// loadedKeys is the number of keys of a master. Each key takes a millisecond to load.
const loadedKeys = 3000

// TestMasterLoadingData covers a master that loads its data, and replies to every command with an
// error for seconds. Meanwhile the other masters grant locks. Then the master gets these locks,
// regardless of the data that it loaded.
func TestMasterLoadingData(t *testing.T) {
	redistest.SkipShort(t)
	redistest.RequireFeature(t, "loading-process-events-interval-bytes", "6.2")
	t.Parallel()
	slowMaster := kit.StartRedis(t, "--key-load-delay", "1000", "--loading-process-events-interval-bytes", "1024")
	f := &kit.Fleet{Masters: []*redistest.Server{kit.StartRedis(t), kit.StartRedis(t), slowMaster}}
	var clients []*redistest.Client
	for range 2 {
		f.Proxies = append(f.Proxies, kit.StartProxy(t, redistest.URLs(f.Masters)))
		clients = append(clients, kit.Connect(t, f.Proxies[len(f.Proxies)-1]))
	}
	f.WantVoting(t, 3)
	kit.WantGrant(t, clients[0], "LOCK", "released", "t", "PX", "600000")
	kit.WantGrant(t, clients[0], "LOCK", "k", "t", "PX", "600000")
	kit.EachMaster(t, f.Masters, func(master *redistest.Server) error { return kit.CheckToken(master, "0", "released", "t") })
	kit.Must(t, kit.SendToDatabase(slowMaster, "7", "EVAL",
		"for i = 1, "+strconv.Itoa(loadedKeys)+" do redis.call('set', i, string.rep('x', 200) .. i) end", "0"))
	kit.Must(t, kit.SendToMaster(slowMaster, "SAVE"))
	kit.Want(t, clients[1], int64(1), "UNLOCK", "released", "t")
	kit.Must(t, slowMaster.Kill())

	revived, loadingReplies := make(chan error, 1), 0
	go func() { revived <- slowMaster.RestartWithData() }()
	for n, done := 0, false; !done; n++ {
		for i, client := range clients {
			key := fmt.Sprintf("during-%d-%d", i, n)
			kit.WantGrant(t, client, "LOCK", key, "t", "PX", "60000")
			kit.Want(t, client, nil, "LOCK", "k", "other", "PX", "60000")
			kit.Want(t, client, int64(1), "UNLOCK", key, "t")
		}
		if _, err := kit.QueryDatabase(slowMaster, "0", "GET", "k"); err != nil && strings.Contains(err.Error(), "LOADING") {
			loadingReplies++
		}
		select {
		case err := <-revived:
			kit.Must(t, err)
			done = true
		case <-time.After(10 * time.Millisecond):
		}
	}
	if loadingReplies < 3 {
		t.Errorf("the master was seen to load %d times: this shows nothing", loadingReplies)
	}
	f.WantVoting(t, 3)
	kit.EachMaster(t, f.Masters, func(master *redistest.Server) error { return kit.CheckToken(master, "0", "released", nil) })
	kit.EachMaster(t, f.Masters, func(master *redistest.Server) error { return kit.CheckToken(master, "0", "k", "t") })
	kit.Want(t, clients[1], nil, "LOCK", "k", "other", "PX", "60000")
	kit.Want(t, clients[1], int64(1), "UNLOCK", "k", "t")
}
