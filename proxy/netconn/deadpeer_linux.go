package netconn

import (
	"net"

	"golang.org/x/sys/unix"
)

// setTCPUserTimeout limits the time for which sent bytes may stay without an acknowledgment.
// While there are such bytes, the system sends no probes.
func setTCPUserTimeout(conn *net.TCPConn) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(deadPeerTime.Milliseconds()))
	})
}
