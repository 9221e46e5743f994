package upstream

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"redlock-proxy/internal/redisinfo"
	"redlock-proxy/internal/resp"
)

// ErrGrantsLocks reports that the upstream is one of the lock masters, or a redlock-proxy.
var ErrGrantsLocks = errors.New("clients would change locks past the proxy; name another Redis")

// errProxy refuses a redlock-proxy, which grants locks itself.
var errProxy = fmt.Errorf("it is a redlock-proxy: %w", ErrGrantsLocks)

// RefuseMasters makes the proxy refuse an upstream that is a redlock-proxy or a lock master. The
// proxy recognizes a lock master by its run ID or address. masterName returns the name of the lock
// master; empty for other servers. RefuseMasters must be called before all other methods.
func (u *Upstream) RefuseMasters(masterName func(runID, addr string) string) {
	u.masterName = masterName
}

// CheckNewMasters returns an error if masterName, as in RefuseMasters, names the upstream as a lock
// master. It accepts an upstream that does not answer.
func (u *Upstream) CheckNewMasters(ctx context.Context, masterName func(runID, addr string) string) error {
	ctx, cancel := context.WithTimeout(ctx, internalCommandTimeout)
	defer cancel()
	conn, err := u.dialNow(ctx)
	if err != nil {
		return nil
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	if err = u.handshake(conn); err == nil {
		err = u.checkIdentity(conn, masterName)
	}
	if errors.Is(err, ErrGrantsLocks) {
		return u.Failure(err)
	}
	return nil
}

// askServer refuses redlock-proxies and lock masters. It accepts a server that does not report its
// identity.
func (u *Upstream) askServer(conn net.Conn) error {
	if u.masterName == nil {
		return nil
	}
	info, err := u.exchange(conn, "INFO", "redlock")
	if err != nil {
		return err
	}
	if _, isProxy := redisinfo.Parse(string(info))["redlock_masters"]; isProxy {
		return errProxy
	}
	return u.checkIdentity(conn, u.masterName)
}

// checkIdentity returns an error if masterName names the server as a lock master, by its run ID or
// its address: a server may report no run ID without a login. If the server is a cluster node, and
// is not served as one, it also checks the other nodes.
func (u *Upstream) checkIdentity(conn net.Conn, masterName func(runID, addr string) string) error {
	info, err := u.exchange(conn, "INFO", "server")
	if err != nil {
		return err
	}
	addrs := []string{u.Name(), conn.RemoteAddr().String()}
	if u.node == nil && parseMode(info) == "cluster" { // else the other nodes have upstreams of their own
		nodes, err := u.exchange(conn, "CLUSTER", "NODES")
		if err != nil {
			return err
		}
		addrs = append(addrs, parseNodes(nodes)...)
	}
	runID := redisinfo.Parse(string(info))["run_id"]
	for _, addr := range addrs {
		if master := masterName(runID, addr); master != "" {
			return fmt.Errorf("it is the lock master %s: %w", master, ErrGrantsLocks)
		}
	}
	return nil
}

// parseNodes returns the addresses in a reply to CLUSTER NODES.
func parseNodes(reply []byte) (addrs []string) {
	for line := range strings.SplitSeq(strings.Join(resp.Texts(reply), "\n"), "\n") {
		if words := strings.Fields(line); len(words) > 1 {
			addr, _, _ := strings.Cut(words[1], "@")
			addrs = append(addrs, addr)
		}
	}
	return addrs
}

// disconnectClients makes Run end the connections of clients.
func (u *Upstream) disconnectClients() {
	u.term.Add(1)
	select {
	case u.disconnectRequested <- struct{}{}:
	default:
	}
}
