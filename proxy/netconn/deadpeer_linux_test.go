package netconn

import (
	"net"
	"testing"

	"golang.org/x/sys/unix"
)

// TestDetectDeadPeer checks the socket options of a connection.
func TestDetectDeadPeer(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	conn, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	New(conn, nil, &Activity{}).DetectDeadPeer()
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	_ = raw.Control(func(fd uintptr) {
		for _, test := range []struct{ level, option, want int }{
			{unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1}, {unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, 15},
			{unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, 15}, {unix.IPPROTO_TCP, unix.TCP_KEEPCNT, 3},
			{unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, 60000},
		} {
			if got, err := unix.GetsockoptInt(int(fd), test.level, test.option); err != nil || got != test.want {
				t.Errorf("option %d: %d, %v, want %d", test.option, got, err, test.want)
			}
		}
	})
	pipe, other := net.Pipe()
	defer pipe.Close()
	defer other.Close()
	New(pipe, nil, &Activity{}).DetectDeadPeer() // must ignore a connection without a socket
}
