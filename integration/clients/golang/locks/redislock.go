package main

import (
	"context"

	"github.com/bsm/redislock"
	"github.com/redis/go-redis/v9"
)

// redislockLocks uses bsm/redislock, with one or several keys for one lock.
type redislockLocks struct {
	client *redislock.Client
	locks  map[string]*redislock.Lock
}

func newRedislock(rdb *redis.Client) *redislockLocks {
	return &redislockLocks{redislock.New(rdb), map[string]*redislock.Lock{}}
}

func (l *redislockLocks) do(ctx context.Context, r request) (any, error) {
	lock := l.locks[r.key] // may be nil: then the library returns an error
	switch r.operation {
	case "take":
		return l.obtain(ctx, r, nil)
	case "take-as": // with the caller's token, which lets the caller take the lock again
		return l.obtain(ctx, r, &redislock.Options{Token: r.arguments[1], Metadata: r.arguments[2]})
	case "release":
		return "released", lock.Release(ctx)
	case "extend":
		return "extended", lock.Refresh(ctx, r.duration(0), nil)
	case "left": // returns true if more than this time remains
		remaining, err := lock.TTL(ctx)
		return remaining > r.duration(0), err
	case "metadata":
		return lock.Metadata(), nil
	}
	return nil, errOperation
}

func (l *redislockLocks) obtain(ctx context.Context, r request, options *redislock.Options) (any, error) {
	lock, err := l.client.ObtainMulti(ctx, r.keys(), r.duration(0), options)
	if err == nil {
		l.locks[r.key] = lock
	}
	return "granted", err
}
