//go:build integration

package waiting

import (
	"fmt"
	"sync"
	"testing"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// TestHandovers passes a lock a thousand times between clients of two proxies; each client takes
// the lock equally often. If a wake-up were lost, a client would wait for longer than the test.
func TestHandovers(t *testing.T) {
	const clients, times = 20, 50
	f := start(t, 2)
	f.WantVoting(t, 5)
	var holderMutex sync.Mutex
	var clientsDone sync.WaitGroup
	errs := make(chan error, clients)
	for i := range clients {
		client := kit.Connect(t, f.Proxies[i%2])
		clientsDone.Go(func() { errs <- contend(client, fmt.Sprint("client ", i), times, &holderMutex) })
	}
	clientsDone.Wait()
	for range clients {
		kit.Must(t, <-errs)
	}
}

// contend takes and releases the lock the given number of times. While the client has the lock,
// contend also locks holderMutex, without waiting. The mutex is locked already if another client
// has the lock, too.
func contend(client *redistest.Client, token string, times int, holderMutex *sync.Mutex) error {
	for n := range times {
		reply, err := client.Do("LOCK", "k", token, "PX", longLease, "BLOCK", "600000")
		if validity, ok := reply.(int64); err != nil || !ok || validity <= 0 {
			return fmt.Errorf("%s, lock %d of %d: %v, %w", token, n+1, times, reply, err)
		}
		if !holderMutex.TryLock() {
			return fmt.Errorf("%s: two hold the lock", token)
		}
		holderMutex.Unlock()
		if err := release(client, "k", token); err != nil {
			return fmt.Errorf("unlock %d of %d: %w", n+1, times, err)
		}
	}
	return nil
}
