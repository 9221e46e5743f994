package locks

import (
	"context"
	"fmt"
)

// extendSession locks once, and then only extends. Each EXTEND counts as a pair.
type extendSession struct {
	*proxySession
	isLocked bool
}

func (c *sessionGroup) addExtendSessions(ctx context.Context, addr string, kind clientKind, keys []string) error {
	if err := c.addProxySessions(ctx, addr, kind, keys); err != nil {
		return err
	}
	for i, s := range c.sessions {
		c.sessions[i] = &extendSession{proxySession: s.(*proxySession)}
	}
	return nil
}

func (s *extendSession) lock(ctx context.Context) error {
	if !s.isLocked {
		err := s.proxySession.lock(ctx)
		s.isLocked = err == nil
		return err
	}
	reply, err := s.caller.call(ctx, "EXTEND", s.request[1], s.request[tokenIndex], "PX", ttlMillis)
	if err != nil {
		return err
	}
	if validity, ok := reply.(int64); !ok || validity <= 0 {
		return fmt.Errorf("EXTEND answered %v", reply)
	}
	return nil
}

func (s *extendSession) unlock(context.Context) error { return nil }
