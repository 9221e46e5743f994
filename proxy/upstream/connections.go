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

// connections are those of the proxy's own, as long as they are open.
type connections struct {
	mu   sync.Mutex
	open map[*counted]struct{}
}

// counted is one of them.
type counted struct {
	net.Conn
	of *connections
}

func (c *connections) add(conn net.Conn) net.Conn {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open == nil {
		c.open = map[*counted]struct{}{}
	}
	one := &counted{conn, c}
	c.open[one] = struct{}{}
	return one
}

// Close is of net.Conn.
func (c *counted) Close() error {
	c.of.mu.Lock()
	delete(c.of.open, c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}

// OwnConnections are the proxy's ends of connections on which it asks for itself, and no command on
// a lock key goes.
func (u *Upstream) OwnConnections() (addresses []string) {
	c := &u.own.connections
	c.mu.Lock()
	defer c.mu.Unlock()
	for one := range c.open {
		addresses = append(addresses, one.LocalAddr().String())
	}
	return addresses
}

// Unblock has the upstream answer clients that wait there for something on these connections of the
// proxy's: as when their time is over, or with an error.
func (u *Upstream) Unblock(ctx context.Context, addresses []string, fail bool) error {
	client, err := u.own.client()
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
