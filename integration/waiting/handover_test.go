//go:build integration

package waiting

import (
	"fmt"
	"sync"
	"testing"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// TestHandovers: a lock passes a thousand times between clients of two proxies; each client takes
// it equally often. If a wake-up were lost, a client would wait for longer than the test.
func TestHandovers(t *testing.T) {
	const clients, times = 20, 50
	f := start(t, 2)
	f.WantVoting(t, 5)
	var held sync.Mutex
	var waiting sync.WaitGroup
	failed := make(chan error, clients)
	for i := range clients {
		client := kit.Connect(t, f.Proxies[i%2])
		waiting.Go(func() { failed <- contend(client, fmt.Sprint("client ", i), times, &held) })
	}
	waiting.Wait()
	for range clients {
		kit.Must(t, <-failed)
	}
}

// contend takes and releases the lock the given number of times. While it has the lock, it tries to
// lock held, which fails if another client has the lock, too.
func contend(client *redistest.Client, token string, times int, held *sync.Mutex) error {
	for n := range times {
		reply, err := client.Do("LOCK", "k", token, "PX", longLease, "BLOCK", "600000")
		if validity, ok := reply.(int64); err != nil || !ok || validity <= 0 {
			return fmt.Errorf("%s, lock %d of %d: %v, %w", token, n+1, times, reply, err)
		}
		if !held.TryLock() {
			return fmt.Errorf("%s: two hold the lock", token)
		}
		held.Unlock()
		if reply, err := client.Do("UNLOCK", "k", token); err != nil || reply != any(int64(1)) {
			return fmt.Errorf("%s, unlock %d of %d: %v, %w", token, n+1, times, reply, err)
		}
	}
	return nil
}
