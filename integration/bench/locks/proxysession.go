package locks

import (
	"context"
	"fmt"
)

// proxySession uses LOCK and UNLOCK.
type proxySession struct {
	caller  caller
	request []string // LOCK key token PX ms, and further words
}

const tokenIndex = 2 // index in request

func (c *sessionGroup) addProxySessions(ctx context.Context, addr string, kind clientKind, keys []string, words ...string) error {
	callers, err := c.newCallers(ctx, addr, kind, len(keys))
	if err != nil {
		return err
	}
	for i, key := range keys {
		request := append([]string{"LOCK", key, "", "PX", ttlMillis}, words...)
		c.sessions = append(c.sessions, &proxySession{caller: callers[i], request: request})
	}
	return nil
}

func (s *proxySession) lock(ctx context.Context) error {
	s.request[tokenIndex] = newToken()
	reply, err := s.caller.call(ctx, s.request...)
	if err != nil {
		return err
	}
	if validity, ok := reply.(int64); !ok || validity <= 0 {
		return fmt.Errorf("LOCK answered %v", reply)
	}
	return nil
}

func (s *proxySession) unlock(ctx context.Context) error {
	reply, err := s.caller.call(ctx, "UNLOCK", s.request[1], s.request[tokenIndex])
	if err == nil && reply != int64(1) {
		err = fmt.Errorf("UNLOCK answered %v", reply)
	}
	return err
}
