//go:build integration

package chaos

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// observers measure whether locks are available: one observer for each proxy requests locks that no
// other client uses. The other clients cannot measure it, because clients of a stopped proxy hold
// their locks until the leases expire.
type observers struct {
	over  atomic.Bool
	tasks sync.WaitGroup

	mu     sync.Mutex
	grants []time.Duration // times at which grants were received
}

// observed is an observer's pause between two locks.
const observed = 20 * time.Millisecond

// observe starts the observers. Their locks are not recorded in the ledger.
func observe(c *cluster, l *ledger) *observers {
	o := &observers{}
	for i, proxy := range c.proxies {
		own := newLedger()
		locker := lockCommands{&connection{ledger: own, addrs: []string{proxy.addr}}, nil}
		o.tasks.Go(func() {
			for n := 0; !o.over.Load(); n++ {
				o.turn(locker, fmt.Sprintf("lock:free:%d:%d", i, n), l)
				time.Sleep(observed) // the pace of a client
			}
		})
	}
	return o
}

func (o *observers) turn(l lockCommands, key string, clock *ledger) {
	if got, _ := validity(l.do("LOCK", key, "observer", "PX", "1500")); got != yes {
		return
	}
	o.mu.Lock()
	o.grants = append(o.grants, clock.now())
	o.mu.Unlock()
	l.unlock(key, "observer")
}

func (o *observers) stop() {
	o.over.Store(true)
	o.tasks.Wait()
}

// with returns all grants, including the given grants of clients, in order.
func (o *observers) with(clients []time.Duration) []time.Duration {
	return slices.Sorted(slices.Values(slices.Concat(o.grants, clients)))
}
