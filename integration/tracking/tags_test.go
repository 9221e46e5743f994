//go:build integration

package tracking

import (
	"testing"

	"redlock-proxy/integration/kit"
)

// TestTags: who has read a key hears of its changes, and of none of what stands in its cell beside it.
func TestTags(t *testing.T) {
	f := start(t, true, "--lock-tags", "*")
	client, other := tracks(t, f.Proxies[0]), kit.Connect(t, f.Proxies[1])
	for _, key := range []string{"lock:t", "lock:x:{lock:t}"} {
		kit.Want(t, other, "OK", "SET", key, "token", "PX", "100000")
		kit.Want(t, client, "token", "GET", key)
		wantSilence(t, client)
		for _, beside := range [][]string{{"SET", "lock:y:{lock:t}", "1"}, {"PEXPIRE", "lock:y:{lock:t}", "500000"}, {"DEL", "lock:y:{lock:t}"}} {
			kit.Do(t, other, beside...)
			wantSilence(t, client)
		}
		kit.Want(t, other, int64(1), "RPUSH", "lock:y:{lock:t}", "1")
		kit.Want(t, other, "OK", "SET", key, "another", "KEEPTTL")
		wantInvalidation(t, client, key)
		kit.Want(t, client, "another", "GET", key)
		kit.Want(t, other, int64(1), "PEXPIRE", key, "400")
		wantInvalidation(t, client, key)
		kit.Want(t, other, int64(1), "DEL", "lock:y:{lock:t}")
	}
}
