package main

import (
	"context"
	"slices"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
)

// waitDelay is the time between two attempts of a client that waits. The client makes 32 attempts,
// redsync's default.
const waitDelay = 20 * time.Millisecond

// redsyncLocks uses redsync with one pool, as for a single Redis. mutexes holds the client's
// mutexes, by key.
type redsyncLocks struct {
	redsync *redsync.Redsync
	options []redsync.Option
	mutexes map[string]*redsync.Mutex
}

func newRedsync(rdb *redis.Client, options ...redsync.Option) *redsyncLocks {
	return &redsyncLocks{redsync.New(goredis.NewPool(rdb)), options, map[string]*redsync.Mutex{}}
}

// retakeOptions returns the option with which an extension takes the lock again if it is free.
func retakeOptions() []redsync.Option { return []redsync.Option{redsync.WithSetNXOnExtend()} }

func (l *redsyncLocks) do(ctx context.Context, r request) (any, error) {
	switch r.operation {
	case "take":
		l.mutexes[r.key] = l.mutex(r)
		return "granted", l.mutexes[r.key].TryLockContext(ctx)
	case "wait":
		l.mutexes[r.key] = l.mutex(r, redsync.WithRetryDelay(waitDelay))
		return "granted", l.mutexes[r.key].LockContext(ctx)
	case "release":
		return l.mutexes[r.key].UnlockContext(ctx)
	case "extend": // by the lease with which the lock was taken
		return l.mutexes[r.key].ExtendContext(ctx)
	case "valid":
		return time.Now().Before(l.mutexes[r.key].Until()), nil
	}
	return nil, errOperation
}

func (l *redsyncLocks) mutex(r request, extra ...redsync.Option) *redsync.Mutex {
	options := slices.Concat(l.options, extra, []redsync.Option{redsync.WithExpiry(r.duration(0))})
	return l.redsync.NewMutex(r.key, options...)
}
