package master

import (
	"context"
	"net"
)

// watchConn is a connection that its caller reads and writes. It ends with those of the links.
type watchConn struct {
	net.Conn
	transport *redisTransport
}

// Watch is of Transport.
func (t *redisTransport) Watch(ctx context.Context, db int) (net.Conn, error) {
	conn, life, err := t.connect(ctx, db)
	if err != nil {
		return nil, err
	}
	w := &watchConn{conn, t}
	if !t.keep(w, life, func() { _ = w.Close() }) {
		_ = w.Close()
		return nil, errOtherServer
	}
	return w, nil
}

// Close is of net.Conn.
func (w *watchConn) Close() error {
	w.transport.forget(w)
	return socketOf(w.Conn).Close() // the socket itself: TLS would say farewell
}

// Watch makes a connection on which the caller may learn of changes, apart from the lanes.
func (m *Master) Watch(ctx context.Context, db int) (net.Conn, error) {
	return m.transport.Watch(ctx, db)
}
