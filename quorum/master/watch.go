package master

import (
	"context"
	"net"
)

// watchConn wraps a connection that its caller reads and writes. The transport closes the
// connection together with its links.
type watchConn struct {
	net.Conn
	transport *redisTransport
}

// Watch implements Transport.
func (t *redisTransport) Watch(ctx context.Context, db int) (net.Conn, error) {
	conn, serverNumber, err := t.connect(ctx, db)
	if err != nil {
		return nil, err
	}
	w := &watchConn{conn, t}
	if !t.addLink(w, serverNumber, func() { _ = w.Close() }) {
		_ = w.Close()
		return nil, errDifferentServer
	}
	return w, nil
}

// Close implements net.Conn.
func (w *watchConn) Close() error {
	w.transport.removeLink(w)
	return socketOf(w.Conn).Close() // the socket itself: TLS would send a close message first
}

// Watch opens a connection to a database, outside of the lanes, on which the master can push
// messages. The caller reads and writes the connection.
func (m *Master) Watch(ctx context.Context, db int) (net.Conn, error) {
	return m.transport.Watch(ctx, db)
}
