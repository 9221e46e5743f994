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

// redsyncBeside holds a redsync mutex, and runs a rival that tries to take it, on the masters.
type redsyncBeside struct {
	masters []*redistest.Server
	sync    *redsync.Redsync
	held    *redsync.Mutex
	stakes  stakes
	over    atomic.Bool
	done    chan struct{}
}

func startRedsync(t *testing.T, masters []*redistest.Server) *redsyncBeside {
	t.Helper()
	pools := make([]redsyncredis.Pool, len(masters))
	for i, master := range masters {
		client := redis.NewClient(&redis.Options{Addr: master.Addr(), MaxRetries: -1})
		t.Cleanup(func() { kit.NoError(t, client.Close()) })
		pools[i] = goredis.NewPool(client)
	}
	r := &redsyncBeside{masters: masters, sync: redsync.New(pools...), done: make(chan struct{})}
	go r.compete()
	return r
}

// hold takes a mutex for a round. Only the victim and two other masters hold it.
func (r *redsyncBeside) hold(t *testing.T, round, victim int) {
	t.Helper()
	one := stake{key: fmt.Sprint("redsync:", round), round: round}
	r.held = r.sync.NewMutex(one.key, redsync.WithExpiry(stakeTTL))
	kit.Must(t, r.held.Lock())
	one.thin = true
	for _, master := range r.masters {
		one.thin = one.thin && kit.Stands(master, "0", one.key, r.held.Value()) == nil
	}
	for i := 3; one.thin && i < len(r.masters); i++ {
		kit.Must(t, kit.Tell(r.masters[(victim+i)%len(r.masters)], "DEL", one.key))
	}
	r.stakes.add(one)
}

// release releases the mutex of the round. The result does not matter: two masters lack it.
func (r *redsyncBeside) release() {
	r.stakes.withdraw(r.held.Name())
	_, _ = r.held.Unlock()
}

func (r *redsyncBeside) compete() {
	defer close(r.done)
	for turn := 0; !r.over.Load(); turn++ {
		if one, ok := r.stakes.pick(turn); ok {
			mutex := r.sync.NewMutex(one.key, redsync.WithExpiry(time.Minute), redsync.WithTries(1))
			if mutex.Lock() == nil {
				r.stakes.recordDouble(one, "a redsync rival")
				_, _ = mutex.Unlock()
			}
		}
		time.Sleep(2 * time.Millisecond) // the pace of a client
	}
}

func (r *redsyncBeside) stop() {
	r.over.Store(true)
	<-r.done
}
