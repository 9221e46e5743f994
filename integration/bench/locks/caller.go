package locks

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"redlock-proxy/internal/redistest"
)

// clientKind is the kind of client that all contenders except redsync use.
type clientKind string

const (
	clientGoRedis clientKind = "goredis"
	clientRaw     clientKind = "raw"
)

func clientKinds() []clientKind { return []clientKind{clientGoRedis, clientRaw} }

const (
	// blockMillis limits the wait of a client of the proxy for the lock; readTimeout is longer.
	blockMillis = "60000"
	readTimeout = 70 * time.Second
	dialTimeout = 5 * time.Second
)

type caller interface {
	// call sends one command and returns its reply: nil, a string, an int64 or another value. It
	// returns an error reply as an error.
	call(ctx context.Context, args ...string) (any, error)
}

// newCallers opens n clients of a kind to addr.
func (c *sessionGroup) newCallers(ctx context.Context, addr string, kind clientKind, n int) ([]caller, error) {
	if kind == clientRaw {
		return c.newRawCallers(ctx, addr, n)
	}
	client := newGoRedis(addr, n)
	c.closers = append(c.closers, client.Close)
	all := make([]caller, n)
	for i := range all {
		all[i] = goRedisCaller{client}
	}
	return all, nil
}

// newGoRedis returns a go-redis client, with the same options for all contenders. As in an
// application, the clients of a run share it, and each uses one connection. When it connects, it
// sends no command that Redis 7.0 or a proxy answers with an error.
func newGoRedis(addr string, clients int) *redis.Client {
	return redis.NewClient(&redis.Options{
		Addr:                     addr,
		PoolSize:                 clients,
		ReadTimeout:              readTimeout,
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
}

type goRedisCaller struct{ client *redis.Client }

func (c goRedisCaller) call(ctx context.Context, args ...string) (any, error) {
	boxed := make([]any, len(args))
	for i, arg := range args {
		boxed[i] = arg
	}
	reply, err := c.client.Do(ctx, boxed...).Result()
	if errors.Is(err, redis.Nil) {
		return nil, nil
	}
	return reply, err
}

// newRawCallers opens n connections without deadlines, and closes them when ctx ends.
func (c *sessionGroup) newRawCallers(ctx context.Context, addr string, n int) ([]caller, error) {
	all := make([]caller, n)
	for i := range all {
		client, err := redistest.Dial(addr, dialTimeout)
		if err != nil {
			return nil, err
		}
		client.SetTimeout(0)
		c.closers = append(c.closers, client.Close)
		context.AfterFunc(ctx, func() { _ = client.Close() })
		all[i] = rawCaller{client}
	}
	return all, nil
}

type rawCaller struct{ client *redistest.Client }

func (c rawCaller) call(_ context.Context, args ...string) (any, error) {
	reply, err := c.client.Do(args...)
	if failure, bad := reply.(redistest.RespError); bad {
		return nil, failure
	}
	return reply, err
}
