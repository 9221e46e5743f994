package handover

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"redlock-proxy/internal/redistest"
)

// contender describes a way to wait for a lock.
type contender struct {
	name string
	// openSessions opens a session for each client.
	openSessions func(c *sessionGroup, ctx context.Context, f *fleet, set settings, key string) error
}

const (
	nameProxies = "proxies"
	nameRedsync = "redsync"
)

func contenders() []contender {
	return []contender{{nameProxies, (*sessionGroup).openProxySessions}, {nameRedsync, (*sessionGroup).openRedsyncSessions}}
}

// leaseTime is the lease of all locks. It must be longer than settlePause plus a window.
const leaseTime = time.Minute

// session is one client. It holds the lock from a successful call of lock until unlock.
type session interface {
	lock(ctx context.Context) error
	unlock(ctx context.Context) error
}

// sessionGroup holds the sessions of a run and their shared connections.
type sessionGroup struct {
	sessions []session
	closers  []func() error
}

func (c *sessionGroup) close() {
	for _, closer := range c.closers {
		_ = closer()
	}
}

func (c *sessionGroup) openProxySessions(ctx context.Context, f *fleet, set settings, key string) error {
	for i := range set.clients {
		client, err := redistest.Dial(f.proxies[set.proxyIndex(i)].Addr(), time.Second)
		if err != nil {
			return err
		}
		client.SetTimeout(0)
		context.AfterFunc(ctx, func() { _ = client.Close() })
		c.closers = append(c.closers, client.Close)
		c.sessions = append(c.sessions, &proxySession{client: client, key: key, token: "client " + strconv.Itoa(i)})
	}
	return nil
}

// proxySession uses LOCK and UNLOCK.
type proxySession struct {
	client     *redistest.Client
	key, token string
}

func (s *proxySession) lock(context.Context) error {
	ttl := strconv.FormatInt(leaseTime.Milliseconds(), 10)
	reply, err := s.client.Do("LOCK", s.key, s.token, "PX", ttl, "BLOCK", "600000")
	if validity, ok := reply.(int64); err == nil && (!ok || validity <= 0) {
		err = fmt.Errorf("LOCK answered %v", reply)
	}
	return err
}

func (s *proxySession) unlock(context.Context) error {
	reply, err := s.client.Do("UNLOCK", s.key, s.token)
	if err == nil && reply != any(int64(1)) {
		err = fmt.Errorf("UNLOCK answered %v", reply)
	}
	return err
}

// openRedsyncSessions opens a set of connections to the masters in place of each proxy, and a
// session for each client.
func (c *sessionGroup) openRedsyncSessions(_ context.Context, f *fleet, set settings, key string) error {
	processes := make([]*redsync.Redsync, set.proxies)
	for p := range processes {
		var pools []redsyncredis.Pool
		for _, master := range f.Masters {
			client := redis.NewClient(&redis.Options{
				Addr: master.Addr(), PoolSize: set.clients, DisableIdentity: true,
				MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
			})
			c.closers = append(c.closers, client.Close)
			pools = append(pools, goredis.NewPool(client))
		}
		processes[p] = redsync.New(pools...)
	}
	for i := range set.clients {
		mutex := processes[set.proxyIndex(i)].NewMutex(key, redsync.WithExpiry(leaseTime), redsync.WithTries(math.MaxInt32))
		c.sessions = append(c.sessions, redsyncSession{mutex})
	}
	return nil
}

type redsyncSession struct{ mutex *redsync.Mutex }

func (s redsyncSession) lock(ctx context.Context) error { return s.mutex.LockContext(ctx) }

var errNotHeld = errors.New("redsync: Unlock answered false")

func (s redsyncSession) unlock(ctx context.Context) error {
	ok, err := s.mutex.UnlockContext(ctx)
	if !ok && err == nil {
		err = errNotHeld
	}
	return err
}
