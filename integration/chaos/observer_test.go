//go:build integration

package chaos

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// observers measure whether locks are available. One observer for each proxy requests locks that no
// other client uses. The other clients cannot measure this, because clients of a stopped proxy hold
// their locks until the leases expire.
type observers struct {
	stopping atomic.Bool
	tasks    sync.WaitGroup

	mu     sync.Mutex
	grants []time.Duration // times at which grants were received
}

// observerPause is an observer's pause between two locks.
const observerPause = 20 * time.Millisecond

// startObservers starts the observers. The ledger l does not record their locks; it only provides
// the clock.
func startObservers(c *cluster, l *ledger) *observers {
	o := &observers{}
	for i, proxy := range c.proxies {
		ownLedger := newLedger()
		locker := lockCommands{&connection{ledger: ownLedger, addrs: []string{proxy.addr}}, nil}
		o.tasks.Go(func() {
			for n := 0; !o.stopping.Load(); n++ {
				o.runTurn(locker, fmt.Sprintf("lock:free:%d:%d", i, n), l)
				time.Sleep(observerPause) // the pace of a client
			}
		})
	}
	return o
}

func (o *observers) runTurn(l lockCommands, key string, clock *ledger) {
	if reply, _ := validity(l.do("LOCK", key, "observer", "PX", "1500")); reply != resultYes {
		return
	}
	o.mu.Lock()
	o.grants = append(o.grants, clock.now())
	o.mu.Unlock()
	l.unlock(key, "observer")
}

func (o *observers) stop() {
	o.stopping.Store(true)
	o.tasks.Wait()
}

// allGrants returns all grants, including the given grants of clients, in order.
func (o *observers) allGrants(clients []time.Duration) []time.Duration {
	return slices.Sorted(slices.Values(slices.Concat(o.grants, clients)))
}
