package upstream

import (
	"cmp"
	"errors"
	"net"

	"redlock-proxy/internal/redisinfo"
	"redlock-proxy/internal/resp"
)

// ErrCluster reports that an upstream is not standalone, although lock keys are configured.
var ErrCluster = errors.New("it is a node of a Redis Cluster, or a Sentinel, which redirects clients past the lock keys; " +
	"name the cluster with redis+cluster://, or a standalone Redis")

// RefuseClusters refuses an upstream that redirects clients to other servers. It must be called
// before all other methods.
func (u *Upstream) RefuseClusters() { u.mustBeStandalone = true }

// modeState records whether an upstream is standalone. The Upstream's mu guards it.
type modeState struct {
	// unknown is set if the upstream did not report its mode, for instance because it requires a
	// login first. cluster is set if it later reported to a client that it is not standalone.
	unknown, cluster bool
}

// askMode asks whether the upstream is standalone. It accepts an upstream that does not report its
// mode, until RecordMode gets the mode after a client's login. The proxy withholds redirects from
// clients in any case.
func (u *Upstream) askMode(conn net.Conn) error {
	switch {
	case u.node != nil:
		return u.askNode(conn)
	case !u.mustBeStandalone:
		return nil
	}
	answer, err := u.exchange(conn, "HELLO")
	// The server is too old for HELLO, or requires a login.
	if err == nil && resp.HasPrefix(answer, "-") {
		answer, err = u.exchange(conn, "INFO", "server")
	}
	if err != nil {
		return err
	}
	mode := parseMode(answer)
	u.mu.Lock()
	defer u.mu.Unlock()
	u.mode.unknown = mode == ""
	u.mode.cluster = u.mode.cluster && mode == ""
	if u.mode.cluster || redirects(mode) {
		return ErrCluster
	}
	return nil
}

// ModeUnknown reports whether the upstream must be standalone, but has not reported its mode.
func (u *Upstream) ModeUnknown() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.mode.unknown
}

// RecordMode records the upstream's reply to HELLO on the connection of a client that has logged
// in. If the upstream is not standalone, the proxy ends its connections to the upstream, and
// refuses the upstream.
func (u *Upstream) RecordMode(answer []byte) {
	mode := parseMode(answer)
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.mode.unknown || mode == "" {
		return
	}
	u.mode.unknown = false
	if redirects(mode) {
		u.mode.cluster = true
		u.uncheckedRemaining, u.verified = 0, false
		u.disconnectClients()
	}
}

// DisconnectCause returns the reason why the proxy ends connections of an earlier Term.
func (u *Upstream) DisconnectCause() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case u.mode.cluster:
		return ErrCluster
	case errors.Is(u.err, ErrGrantsLocks):
		return u.err
	case u.node != nil:
		return errNodeMoved
	}
	return ErrFailedOver
}

// parseMode returns the server's mode from a reply to HELLO or INFO; empty if the reply contains no
// mode.
func parseMode(reply []byte) string {
	info := redisinfo.Parse(string(reply))
	mode, _ := valueAfter(resp.Texts(reply), "mode")
	return cmp.Or(info["redis_mode"], info["server_mode"], mode) // Valkey has server_mode
}

// redirects reports whether a server in this mode redirects clients: a node of a cluster, or a
// Sentinel.
func redirects(mode string) bool { return mode == "cluster" || mode == "sentinel" }
