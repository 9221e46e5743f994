package netconn

import "golang.org/x/sys/unix"

// IsReset reports whether the other end has reset the connection, and so reads nothing any more.
func (c *Conn) IsReset() (reset bool) {
	if c.raw == nil {
		return false
	}
	_ = c.raw.Control(func(fd uintptr) {
		asked := []unix.PollFd{{Fd: int32(fd)}}
		n, err := unix.Poll(asked, 0)
		reset = err == nil && n > 0 && asked[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0
	})
	return reset
}
