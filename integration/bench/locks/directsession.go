package locks

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"redlock-proxy/integration/bench/suite"
)

// releaseScript deletes a key if its value is the token.
const releaseScript = `if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call("DEL", KEYS[1]) end return 0`

// directSession locks on one Redis, as the documentation of Redis shows, and polls while another
// client holds the key. The proxy accepts the same commands on its lock keys.
type directSession struct {
	caller     caller
	key, token string
	scriptHash string
}

func (c *sessionGroup) addDirectSessions(ctx context.Context, addr string, kind clientKind, keys []string) error {
	callers, err := c.newCallers(ctx, addr, kind, len(keys))
	if err != nil {
		return err
	}
	hash, err := loadScript(ctx, callers[0], releaseScript)
	if err != nil {
		return err
	}
	for i, key := range keys {
		c.sessions = append(c.sessions, &directSession{caller: callers[i], key: key, scriptHash: hash})
	}
	return nil
}

func loadScript(ctx context.Context, c caller, script string) (hash string, err error) {
	reply, err := c.call(ctx, "SCRIPT", "LOAD", script)
	if err != nil {
		return "", err
	}
	hash, ok := reply.(string)
	if !ok {
		return "", fmt.Errorf("SCRIPT LOAD answered %v", reply)
	}
	return hash, nil
}

func (s *directSession) lock(ctx context.Context) error {
	s.token = newToken()
	for {
		reply, err := s.caller.call(ctx, "SET", s.key, s.token, "NX", "PX", ttlMillis)
		if err != nil || reply == "OK" {
			return err
		}
		if reply != nil {
			return fmt.Errorf("SET answered %v", reply)
		}
		if err := suite.Pause(ctx, pollDelay()); err != nil {
			return err
		}
	}
}

func (s *directSession) unlock(ctx context.Context) error {
	reply, err := s.caller.call(ctx, "EVALSHA", s.scriptHash, "1", s.key, s.token)
	if err == nil && reply != int64(1) {
		err = fmt.Errorf("EVALSHA answered %v", reply)
	}
	return err
}

// pollDelay returns a random time from 1 to 5 ms.
func pollDelay() time.Duration {
	return time.Millisecond + time.Duration(rand.Int64N(int64(4*time.Millisecond)))
}
