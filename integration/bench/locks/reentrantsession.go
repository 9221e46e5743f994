package locks

import (
	"context"
	"fmt"

	"redlock-proxy/integration/bench/suite"
)

// The scripts of a reentrant lock, which is a hash with the holder's name and a counter.
const (
	// reentrantLockScript returns nil if the caller now holds the lock, else the remaining time of
	// the current holder in ms.
	reentrantLockScript = `if redis.call('exists', KEYS[1]) == 1 and redis.call('hexists', KEYS[1], ARGV[2]) == 0 then return redis.call('pttl', KEYS[1]) end
redis.call('hincrby', KEYS[1], ARGV[2], 1)
redis.call('pexpire', KEYS[1], ARGV[1])
return nil`
	// reentrantUnlockScript returns nil if the caller does not hold the lock, 0 if the caller still
	// holds it, and 1 if the lock is free.
	reentrantUnlockScript = `if redis.call('hexists', KEYS[1], ARGV[2]) == 0 then return nil end
if redis.call('hincrby', KEYS[1], ARGV[2], -1) > 0 then redis.call('pexpire', KEYS[1], ARGV[1]) return 0 end
redis.call('del', KEYS[1])
return 1`
	// reentrantUnlockAndPublishScript does the same as reentrantUnlockScript, and notifies waiters,
	// as Redisson's lock does.
	reentrantUnlockAndPublishScript = `if redis.call('hexists', KEYS[1], ARGV[2]) == 0 then return nil end
if redis.call('hincrby', KEYS[1], ARGV[2], -1) > 0 then redis.call('pexpire', KEYS[1], ARGV[1]) return 0 end
redis.call('del', KEYS[1])
redis.call('publish', 'channel:' .. KEYS[1], '0')
return 1`
)

// reentrantSession locks lock keys with these scripts, and polls while another client holds the
// key.
type reentrantSession struct {
	caller               caller
	key, token           string
	lockHash, unlockHash string // hashes of the scripts
}

func (c *sessionGroup) addReentrantSessions(ctx context.Context, addr string, kind clientKind, keys []string, unlockScript string) error {
	callers, err := c.newCallers(ctx, addr, kind, len(keys))
	if err != nil {
		return err
	}
	takeHash, err := loadScript(ctx, callers[0], reentrantLockScript)
	if err != nil {
		return err
	}
	giveHash, err := loadScript(ctx, callers[0], unlockScript)
	if err != nil {
		return err
	}
	for i, key := range keys {
		c.sessions = append(c.sessions, &reentrantSession{caller: callers[i], key: key, lockHash: takeHash, unlockHash: giveHash})
	}
	return nil
}

func (s *reentrantSession) lock(ctx context.Context) error {
	s.token = newToken()
	for {
		reply, err := s.caller.call(ctx, "EVALSHA", s.lockHash, "1", s.key, ttlMillis, s.token)
		if err != nil || reply == nil {
			return err
		}
		if _, held := reply.(int64); !held {
			return fmt.Errorf("EVALSHA answered %v", reply)
		}
		if err := suite.Pause(ctx, pollDelay()); err != nil {
			return err
		}
	}
}

func (s *reentrantSession) unlock(ctx context.Context) error {
	reply, err := s.caller.call(ctx, "EVALSHA", s.unlockHash, "1", s.key, ttlMillis, s.token)
	if err == nil && reply != int64(1) {
		err = fmt.Errorf("EVALSHA answered %v", reply)
	}
	return err
}
