package netconn

import "golang.org/x/sys/unix"

// IsReset reports whether the other end has reset the connection, and so no longer reads.
func (c *Conn) IsReset() (reset bool) {
	if c.rawConn == nil {
		return false
	}
	_ = c.rawConn.Control(func(fd uintptr) {
		fds := []unix.PollFd{{Fd: int32(fd)}}
		n, err := unix.Poll(fds, 0)
		reset = err == nil && n > 0 && fds[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0
	})
	return reset
}
