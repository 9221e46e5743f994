package upstream

import (
	"context"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"

	"redlock-proxy/internal/clientlist"
)

// connections holds the proxy's own open connections.
type connections struct {
	mu        sync.Mutex
	openConns map[*ownConn]struct{}
}

// ownConn removes itself from its set when it is closed.
type ownConn struct {
	net.Conn
	set *connections
}

func (c *connections) add(conn net.Conn) net.Conn {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.openConns == nil {
		c.openConns = map[*ownConn]struct{}{}
	}
	own := &ownConn{conn, c}
	c.openConns[own] = struct{}{}
	return own
}

// Close implements net.Conn.
func (c *ownConn) Close() error {
	c.set.mu.Lock()
	delete(c.set.openConns, c)
	c.set.mu.Unlock()
	return c.Conn.Close()
}

// OwnConnections returns the local addresses of the proxy's own connections, which carry no command
// on a lock key.
func (u *Upstream) OwnConnections() (addresses []string) {
	c := &u.pool.connections
	c.mu.Lock()
	defer c.mu.Unlock()
	for conn := range c.openConns {
		addresses = append(addresses, conn.LocalAddr().String())
	}
	return addresses
}

// Unblock makes the upstream answer the clients that are blocked on the connections from these
// local addresses. The clients get the reply of a timeout or, if fail is set, an error.
func (u *Upstream) Unblock(ctx context.Context, addresses []string, fail bool) error {
	client, err := u.pool.client()
	if err != nil {
		return err
	}
	list, err := client.ClientList(ctx).Result()
	if err != nil {
		return err
	}
	unblock := client.ClientUnblock
	if fail {
		unblock = client.ClientUnblockWithError
	}
	for _, c := range clientlist.Parse(list) {
		if !strings.Contains(c["flags"], "b") || !slices.Contains(addresses, c.Addr()) {
			continue
		}
		if id, err := strconv.ParseInt(c["id"], 10, 64); err == nil {
			if err := unblock(ctx, id).Err(); err != nil {
				return err
			}
		}
	}
	return nil
}
