//go:build integration

package hostile

import (
	"fmt"
	"strings"
	"testing"

	"redlock-proxy/integration/harness"
	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// TestLongReplies checks that a client that requests values longer than the limit of one read gets
// an error. The request has no further effects: no master counts as down, and all clients can lock.
func TestLongReplies(t *testing.T) {
	redistest.SkipShort(t)
	const replyCount, size = 80, 1_000_000 // together more than the limit of a batch of replies
	masters := []*redistest.Server{kit.StartRedis(t), kit.StartRedis(t), kit.StartRedis(t)}
	proxies, clients := make([]*harness.Proxy, 2), make([]*redistest.Client, 2)
	args := append(kit.LockKeyArgs(kit.StartRedis(t)), kit.LongMasterTimeoutArgs()...)
	for i := range proxies {
		proxies[i] = kit.StartProxy(t, redistest.URLs(masters), args...)
		clients[i] = kit.Connect(t, proxies[i])
	}
	keys := make([]string, replyCount)
	for i := range keys {
		keys[i] = fmt.Sprint("lock:long", i)
	}
	for _, m := range masters {
		masterClient := kit.Dial(t, m.Addr())
		for _, key := range keys {
			kit.Do(t, masterClient, "SETRANGE", key, fmt.Sprint(size-1), "x")
		}
	}
	wantLocks := func(session *redistest.Client) {
		t.Helper()
		for _, words := range [][]string{{"LOCK", "job", "me", "PX", "10000"}, {"UNLOCK", "job", "me"}} {
			kit.Eventually(t, func() error { // on a busy machine a reply may be too late to count
				got, err := session.Do(words...)
				if _, isInt := got.(int64); err != nil || !isInt {
					return fmt.Errorf("%s answered %v, %w", words[0], got, err)
				}
				return nil
			})
		}
	}
	for i, client := range clients {
		kit.WantPrefix(t, client, "MGET "+strings.Join(keys, " "),
			"ERR the values of the keys are too long for one read")
		wantLocks(clients[i])
		wantLocks(clients[1-i])
		// Shorter replies are complete.
		kit.WantPrefix(t, client, "EXISTS "+strings.Join(keys[:10], " "), "10")
		wantLocks(client)
	}
	for _, proxy := range proxies {
		if log := proxy.Log(); strings.Contains(log, "master down") {
			t.Errorf("a master was given up:\n%s", log)
		}
	}
}
