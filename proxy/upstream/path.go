package upstream

import (
	"context"
	"errors"
	"net"
	"time"

	"redlock-proxy/commands/server"
	"redlock-proxy/internal/resp"
)

// loopPause is how long after an upstream was found to lead back, or elsewhere, it is refused
// without being asked again.
const loopPause = 2 * time.Second

// Identify gives the proxy its identity. Then, before an upstream is used that has just come up,
// and now and then, it is asked whether it leads back to the proxy that has it: such a proxy sends
// itself each command again, over a new connection each time, until no descriptor is left. It is
// called before anything else.
func (u *Upstream) Identify(id string) { u.id = id }

// verifyEvery is how many connections are made before the upstream is asked again: what
// stands behind its address can change. It bounds what a loop costs. Each question counts
// as an error in the INFO of a Redis, so it is not asked more often.
const verifyEvery = 64

// verify asks on a new connection, if it is time. A Redis does not know the command, which
// is the answer wanted.
func (u *Upstream) verify(conn net.Conn) error {
	if u.id == "" || u.isVerified() {
		return nil
	}
	err := u.askPath(conn, []string{u.id})
	if err == nil {
		err = u.askMode(conn)
	}
	if err == nil {
		err = u.askServer(conn)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.unasked, u.vouched = verifyEvery, err == nil
	if err != nil {
		u.unasked = 0
	}
	return err
}

// isVerified takes one from the connections that need not ask, if there are any. When there
// are none left, and it has been asked since the upstream came up, one of those that come at
// once asks for all.
func (u *Upstream) isVerified() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.unasked == 0 {
		if u.vouched {
			u.unasked = verifyEvery
		}
		return false
	}
	u.unasked--
	return true
}

// askPath asks PROXY PATH. The error is server.ErrLoop where the answer says so.
func (u *Upstream) askPath(conn net.Conn, ids []string) error {
	answer, err := u.exchange(conn, append([]string{"PROXY", "PATH"}, ids...)...)
	if err == nil && resp.Begins(answer, "-LOOP ") {
		err = server.ErrLoop
	}
	return err
}

// Path asks the upstream PROXY PATH with these identities, for a proxy that asked this
// one: the error is server.ErrLoop where it leads back to one of them, or why it could
// not be asked.
func (u *Upstream) Path(ctx context.Context, ids []string) error {
	select {
	case u.dials <- struct{}{}:
		defer func() { <-u.dials }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if err := u.refused(); errors.Is(err, server.ErrLoop) {
		return err // any other dial that failed may have been to the proxy that asks, as it started
	}
	conn, err := u.dialNow(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := u.greet(conn); err != nil {
		return err
	}
	return u.askPath(conn, ids)
}

// pauseAfter is how long a failure is repeated without another dial, at least.
func pauseAfter(err error) time.Duration {
	if errors.Is(err, server.ErrLoop) || errors.Is(err, ErrCluster) || errors.Is(err, ErrMaster) {
		return loopPause
	}
	return dialPause / 2
}
