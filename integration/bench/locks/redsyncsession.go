package locks

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
)

// errNotHeld means that redsync released the lock on less than a majority, without an error.
var errNotHeld = errors.New("redsync: Unlock answered false")

// redsyncSession locks a redsync mutex with its defaults, except for the expiry, which is the same
// for all contenders.
type redsyncSession struct{ mutex *redsync.Mutex }

func (c *sessionGroup) addRedsyncSessions(masters []string, keys []string, wait bool) {
	pools := make([]redsyncredis.Pool, len(masters))
	for i, addr := range masters {
		client := newGoRedis(addr, len(keys))
		c.closers = append(c.closers, client.Close)
		pools[i] = goredis.NewPool(client)
	}
	options := []redsync.Option{redsync.WithExpiry(10 * time.Second)}
	if wait {
		options = append(options, redsync.WithTries(math.MaxInt32)) // with its default delays
	}
	rs := redsync.New(pools...)
	for _, key := range keys {
		c.sessions = append(c.sessions, redsyncSession{rs.NewMutex(key, options...)})
	}
}

func (s redsyncSession) lock(ctx context.Context) error { return s.mutex.LockContext(ctx) }

func (s redsyncSession) unlock(ctx context.Context) error {
	ok, err := s.mutex.UnlockContext(ctx)
	if !ok && err == nil {
		err = errNotHeld
	}
	return err
}
