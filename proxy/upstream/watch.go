package upstream

import (
	"context"
	"net"
)

// IsDown reports whether it is known not to answer.
func (u *Upstream) IsDown() bool {
	_, err := u.Status()
	return err != nil
}

// Watch makes a connection to a database on which changes of keys can be reported: it is for nothing but that.
func (u *Upstream) Watch(ctx context.Context, db int) (net.Conn, error) {
	conn, err := u.ConnectAs(ctx, 2, db)
	if err != nil {
		return nil, err
	}
	return u.own.connections.add(conn), nil
}
