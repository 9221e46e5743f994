//go:build integration

package guard

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"redlock-proxy/integration/holdings"
	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

const (
	// churnKeys is the number of locks that all clients share.
	churnKeys = 16
	// churnClients is the number of clients.
	churnClients = 64
)

// churn is a group of clients that acquire and release a few locks, and poll while they wait. As
// in Redlock, a client measures its lease on its own clock, starting before it sends the request.
type churn struct {
	seed      uint64
	lease     time.Duration
	lateShare int // one of lateShare locks is kept for longer than its lease

	histories [churnKeys]*holdings.History
	stopping  atomic.Bool
	workers   sync.WaitGroup

	mu       sync.Mutex
	failures map[string]int // replies other than a grant or nil, by their first word
}

// startChurn connects the clients, half of them to each of two proxies, and starts them.
func startChurn(t *testing.T, f *kit.Fleet, c *churn) *churn {
	t.Helper()
	c.failures = map[string]int{}
	startedAt := time.Now()
	for i := range c.histories {
		c.histories[i] = holdings.HistorySince(startedAt)
	}
	for i := range churnClients {
		client, random := kit.Connect(t, f.Proxies[i%len(f.Proxies)]), rand.New(rand.NewPCG(c.seed, uint64(i)+1))
		client.SetTimeout(time.Minute)
		c.workers.Go(func() {
			for turn := 0; !c.stopping.Load(); turn++ {
				c.runTurn(client, random, fmt.Sprint(i, "-", turn))
				// Without this pause, the load would use all processors.
				time.Sleep(time.Duration(random.Int64N(int64(30 * time.Millisecond))))
			}
		})
	}
	return c
}

// runTurn requests a lock once, holds it, sometimes for longer than its lease, and releases it.
func (c *churn) runTurn(client *redistest.Client, random *rand.Rand, token string) {
	number := random.IntN(churnKeys)
	key, history := "lock:churn:"+strconv.Itoa(number), c.histories[number]
	sent := history.Now()
	reply, err := client.Do("LOCK", key, token, "PX", kit.Millis(c.lease))
	received := history.Now()
	validity, granted := reply.(int64)
	if !granted {
		c.countFailure("LOCK", reply, err)
		return
	}
	if random.IntN(c.lateShare) == 0 {
		time.Sleep(c.lease + c.lease/10) // the lease expires
	} else {
		// The client holds the lock.
		time.Sleep(time.Duration(random.Int64N(int64(10 * time.Millisecond))))
	}
	until := sent + time.Duration(validity)*time.Millisecond
	if holding := holdings.NewHolding(token, received, until, history.Now()); holding.From < holding.To {
		history.Add(holding)
	}
	if reply, err := client.Do("UNLOCK", key, token); err != nil || reply != any(int64(1)) && reply != any(int64(0)) {
		c.countFailure("UNLOCK", reply, err)
	}
}

// countFailure counts a failed command; nil is not a failure.
func (c *churn) countFailure(command string, reply any, err error) {
	if reply == nil && err == nil {
		return
	}
	kind := fmt.Sprintf("%s: %v, %v", command, reply, err)
	if failure, isError := reply.(redistest.RespError); isError {
		kind = command + ": " + kit.FirstWord(string(failure))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failures[kind]++
}

// stop lets all clients finish their turns. It returns the number of held locks, and the overlaps.
func (c *churn) stop() (grants int, overlaps []holdings.Overlap) {
	c.stopping.Store(true)
	c.workers.Wait()
	for _, history := range c.histories {
		overlaps = append(overlaps, history.Overlaps()...)
	}
	return c.grantCount(), overlaps
}

// grantCount returns the number of locks that have been held so far.
func (c *churn) grantCount() (grants int) {
	for _, history := range c.histories {
		grants += history.Count()
	}
	return grants
}
