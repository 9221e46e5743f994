//go:build integration

package guard

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// redsyncContest holds one redsync mutex after another, and runs a rival that tries to take the
// held mutex. Both use the masters directly.
type redsyncContest struct {
	masters      []*redistest.Server
	mutexFactory *redsync.Redsync
	mutex        *redsync.Mutex
	locks        heldLocks
	stopping     atomic.Bool
	done         chan struct{}
}

func startRedsync(t *testing.T, masters []*redistest.Server) *redsyncContest {
	t.Helper()
	pools := make([]redsyncredis.Pool, len(masters))
	for i, master := range masters {
		client := redis.NewClient(&redis.Options{Addr: master.Addr(), MaxRetries: -1})
		t.Cleanup(func() { kit.NoError(t, client.Close()) })
		pools[i] = goredis.NewPool(client)
	}
	r := &redsyncContest{masters: masters, mutexFactory: redsync.New(pools...), done: make(chan struct{})}
	go r.compete()
	return r
}

// hold takes a mutex for a round. Only the victim and two other masters hold it.
func (r *redsyncContest) hold(t *testing.T, round, victim int) {
	t.Helper()
	lock := heldLock{key: fmt.Sprint("redsync:", round), round: round}
	r.mutex = r.mutexFactory.NewMutex(lock.key, redsync.WithExpiry(heldLockTTL))
	kit.Must(t, r.mutex.Lock())
	lock.onBareMajority = true
	for _, master := range r.masters {
		lock.onBareMajority = lock.onBareMajority && kit.CheckToken(master, "0", lock.key, r.mutex.Value()) == nil
	}
	for i := 3; lock.onBareMajority && i < len(r.masters); i++ {
		kit.Must(t, kit.SendToMaster(r.masters[(victim+i)%len(r.masters)], "DEL", lock.key))
	}
	r.locks.add(lock)
}

// release releases the mutex of the round. The result does not matter, because not all masters hold
// the mutex.
func (r *redsyncContest) release() {
	r.locks.withdraw(r.mutex.Name())
	_, _ = r.mutex.Unlock()
}

func (r *redsyncContest) compete() {
	defer close(r.done)
	for turn := 0; !r.stopping.Load(); turn++ {
		if lock, ok := r.locks.pick(turn); ok {
			rivalMutex := r.mutexFactory.NewMutex(lock.key, redsync.WithExpiry(time.Minute), redsync.WithTries(1))
			if rivalMutex.Lock() == nil {
				r.locks.recordDoubleGrant(lock, "a redsync rival")
				_, _ = rivalMutex.Unlock()
			}
		}
		time.Sleep(2 * time.Millisecond) // the pace of a client
	}
}

func (r *redsyncContest) stop() {
	r.stopping.Store(true)
	<-r.done
}
