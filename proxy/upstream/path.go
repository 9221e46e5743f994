package upstream

import (
	"errors"
	"net"
	"time"

	"redlock-proxy/commands/server"
	"redlock-proxy/internal/resp"
)

// unusablePause is the time for which the proxy refuses an unusable upstream without checking it
// again. An upstream is unusable if it leads back to the proxy, for example.
const unusablePause = 2 * time.Second

// SetProxyID sets the proxy's identity. From then on the proxy checks whether the upstream is a
// redlock-proxy, or this proxy itself: when the upstream has come up, and regularly later. A proxy
// that is its own upstream would send each command to itself over new connections until it has no
// file descriptors left. SetProxyID must be called before all other methods.
func (u *Upstream) SetProxyID(id string) { u.proxyID = id }

// verifyInterval is the number of connections that are made between two checks. The proxy repeats
// the check, because the server behind the address can change. It does not check each connection,
// because a Redis counts each check as an error in its INFO.
const verifyInterval = 64

// verify checks the upstream on a new connection, if a check is due. The expected reply to PROXY
// PATH is Redis' error for an unknown command.
func (u *Upstream) verify(conn net.Conn) error {
	if u.proxyID == "" || u.isVerified() {
		return nil
	}
	err := u.askPath(conn)
	if err == nil {
		err = u.askMode(conn)
	}
	if err == nil {
		err = u.askServer(conn)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.uncheckedRemaining, u.verified = verifyInterval, err == nil
	if err != nil {
		u.uncheckedRemaining = 0
	}
	return err
}

// isVerified reports whether a new connection needs no check. When a check of a verified upstream
// is due, only the first of several concurrent connections does the check.
func (u *Upstream) isVerified() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.uncheckedRemaining == 0 {
		if u.verified {
			u.uncheckedRemaining = verifyInterval
		}
		return false
	}
	u.uncheckedRemaining--
	return true
}

// askPath sends PROXY PATH. The error is server.ErrLoop if this proxy itself replies, and errProxy
// if another redlock-proxy does.
func (u *Upstream) askPath(conn net.Conn) error {
	answer, err := u.exchange(conn, "PROXY", "PATH", u.proxyID)
	switch {
	case err != nil:
		return err
	case resp.HasPrefix(answer, "-LOOP "):
		return server.ErrLoop
	case resp.HasPrefix(answer, "+OK"):
		return errProxy
	}
	return nil
}

// pauseAfter returns the minimum time for which a failure is returned again without another dial.
func pauseAfter(err error) time.Duration {
	if errors.Is(err, server.ErrLoop) || errors.Is(err, ErrCluster) || errors.Is(err, ErrNoCluster) || errors.Is(err, ErrGrantsLocks) {
		return unusablePause
	}
	return dialPause / 2
}
