//go:build integration

package tracking

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/harness"
	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

func TestMain(m *testing.M) { kit.Main(m) }

// start starts masters and two proxies with lock keys, with an upstream or as lock servers.
func start(t *testing.T, withUpstream bool, extraArgs ...string) *kit.Fleet {
	t.Helper()
	args := []string{"--lock-keys", "lock:*", "--guard=false"}
	if withUpstream {
		args = append(kit.LockKeyArgs(kit.StartRedis(t)), args[2:]...)
	}
	args = append(args, extraArgs...)
	f := &kit.Fleet{Masters: kit.StartMasters(t)}
	for range 2 {
		f.Proxies = append(f.Proxies, kit.StartProxy(t, redistest.URLs(f.Masters), args...))
	}
	connectWatches(t, f)
	return f
}

// connectWatches lets the first proxy connect to all masters to watch keys. A proxy sends a
// needless invalidation if it is not connected soon after a read.
func connectWatches(t *testing.T, f *kit.Fleet) {
	t.Helper()
	client, observer := connectTracking(t, f.Proxies[0]), kit.Connect(t, f.Proxies[0])
	kit.Eventually(t, func() error {
		// Reads repeatedly, because an invalidation ends the watch.
		kit.Must(t, client.Send(redistest.AppendCommand(nil, "GET", "lock:first")))
		return checkWatched(t, observer, len(f.Masters))
	})
	kit.Must(t, client.Close())
	kit.Eventually(t, func() error { return checkWatched(t, observer, 0) })
	kit.Must(t, observer.Close())
}

// checkWatched returns an error unless the observer's proxy watches one key on n masters.
func checkWatched(t *testing.T, observer *redistest.Client, n int) error {
	t.Helper()
	info := kit.ReplyText(kit.Do(t, observer, "PROXY", "INFO"))
	if got := strings.Count(info, ",watched_keys=1"); got != n {
		return fmt.Errorf("a key is watched on %d masters, want %d:\n%s", got, n, info)
	}
	return nil
}

// runInBothModes runs a test with proxies with an upstream, and with lock servers.
func runInBothModes(t *testing.T, run func(t *testing.T, f *kit.Fleet)) {
	t.Run("relay", func(t *testing.T) { run(t, start(t, true)) })
	t.Run("lock server", func(t *testing.T) { run(t, start(t, false)) })
}

// connectTracking connects a RESP3 client that tracks keys with the given options.
func connectTracking(t *testing.T, proxy *harness.Proxy, options ...string) *redistest.Client {
	t.Helper()
	client := kit.Connect(t, proxy)
	kit.Do(t, client, "HELLO", "3")
	kit.Want(t, client, "OK", append([]string{"CLIENT", "TRACKING", "ON"}, options...)...)
	return client
}

// wantInvalidation fails the test unless the next message to a client is the invalidation of a key.
func wantInvalidation(t *testing.T, client *redistest.Client, key string) {
	t.Helper()
	got, err := client.Receive()
	kit.Must(t, err)
	if want := (redistest.Push{"invalidate", []any{key}}); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("%#v, want %#v", got, want)
	}
}

// wantSilence fails the test if a client gets a message within half a second.
func wantSilence(t *testing.T, client *redistest.Client) {
	t.Helper()
	time.Sleep(500 * time.Millisecond) // a wrong message would arrive by then
	kit.Want(t, client, "PONG", "PING")
}
