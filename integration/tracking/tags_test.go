//go:build integration

package tracking

import (
	"testing"
	"time"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// TestTags checks that a client gets invalidations for a key that it has read, and none for other
// keys with the same tag.
func TestTags(t *testing.T) {
	redistest.SkipShort(t)
	f := start(t, true, "--lock-tags", "*")
	client, otherClient := connectTracking(t, f.Proxies[0]), kit.Connect(t, f.Proxies[1])
	for _, key := range []string{"lock:t", "lock:x:{lock:t}"} {
		kit.Want(t, otherClient, "OK", "SET", key, "token", "PX", "100000")
		kit.Want(t, client, "token", "GET", key)
		wantSilence(t, client)
		for _, otherCommand := range [][]string{{"SET", "lock:y:{lock:t}", "1"}, {"PEXPIRE", "lock:y:{lock:t}", "500000"},
			{"DEL", "lock:y:{lock:t}"}} {
			kit.Do(t, otherClient, otherCommand...)
			wantSilence(t, client)
		}
		kit.Want(t, otherClient, int64(1), "RPUSH", "lock:y:{lock:t}", "1")
		kit.Want(t, otherClient, "OK", "SET", key, "another", "KEEPTTL")
		wantInvalidation(t, client, key)
		kit.Want(t, client, "another", "GET", key)
		kit.Want(t, otherClient, int64(1), "PEXPIRE", key, "400")
		wantInvalidation(t, client, key)
		kit.Want(t, otherClient, int64(1), "DEL", "lock:y:{lock:t}")
	}
}

// TestExpiryInATag checks that a client that has read a key gets an invalidation immediately after
// the key expires. No master reports the expiry of a key in a shared cell, and a cell with one
// remaining key expires later. If the key was extended before, the client gets an invalidation for
// the extension.
func TestExpiryInATag(t *testing.T) {
	redistest.SkipShort(t)
	f := start(t, true, "--lock-tags", "*")
	client, otherClient := connectTracking(t, f.Proxies[0]), kit.Connect(t, f.Proxies[1])
	for name, neighbour := range map[string]string{"beside another key": "lock:y:{lock:t}", "in a cell of its own": ""} {
		for _, key := range []string{"lock:t", "lock:x:{lock:t}"} {
			t.Run(name+", "+key, func(t *testing.T) {
				if neighbour != "" {
					kit.Want(t, otherClient, "OK", "SET", neighbour, "1", "PX", "100000")
				}
				expiry := time.Now().Add(3 * time.Second)
				kit.Want(t, otherClient, "OK", "SET", key, "token", "PX", "3000")
				kit.Want(t, client, "token", "GET", key)
				wantSilence(t, client)
				wantInvalidation(t, client, key)
				if delay := time.Since(expiry); delay < 0 || delay > kit.GrantLimit {
					t.Errorf("it was notified %v after the end", delay)
				}
				kit.Want(t, client, nil, "GET", key)
				kit.Do(t, otherClient, "SET", key, "again")
				wantInvalidation(t, client, key)
				kit.Want(t, otherClient, int64(1), "DEL", key)
				if neighbour != "" {
					kit.Want(t, otherClient, int64(1), "DEL", neighbour)
				}
			})
		}
	}
}
