package netconn

import (
	"net"
	"time"
)

// deadPeerTime is the time after which a connection fails if the other end no longer answers. The
// system sends a probe after each quarter of this time.
const deadPeerTime = time.Minute

// DetectDeadPeer makes the connection fail about a minute after the other machine, or the network,
// has failed without closing it. This also applies if the proxy sends nothing. Without
// DetectDeadPeer, the connection may take up to an hour to fail.
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
	setTCPUserTimeout(tcp)
}
