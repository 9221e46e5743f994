package netconn

import (
	"net"
	"time"
)

// deadPeerTime is the time after which a connection fails whose other end no longer answers. Probes
// are sent at each quarter of it.
const deadPeerTime = time.Minute

// DetectDeadPeer makes the connection fail about a minute after the other machine, or the network,
// has failed without closing it, also if nothing is sent. Without it that takes up to an hour.
func (c *Conn) DetectDeadPeer() {
	conn := c.conn
	if tlsConn, ok := conn.(interface{ NetConn() net.Conn }); ok {
		conn = tlsConn.NetConn()
	}
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return
	}
	_ = tcp.SetKeepAliveConfig(net.KeepAliveConfig{
		Enable: true, Idle: deadPeerTime / 4, Interval: deadPeerTime / 4, Count: 3,
	})
	limitUnacknowledged(tcp)
}
