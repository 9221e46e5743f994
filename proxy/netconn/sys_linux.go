//go:build linux && !race

package netconn

import (
	"syscall"
	"unsafe"
)

const hasRawCalls = true

// sysRead reads from a nonblocking socket. It does not notify Go's scheduler, because that would
// cost time in every call.
func sysRead(fd uintptr, p []byte) (int, error) {
	return transfer(syscall.SYS_READ, fd, p)
}

// sysWrite writes to a nonblocking socket.
func sysWrite(fd uintptr, p []byte) (int, error) {
	return transfer(syscall.SYS_WRITE, fd, p)
}

// transfer reads or writes. It repeats a call that a signal has interrupted.
func transfer(call, fd uintptr, p []byte) (int, error) {
	for {
		n, _, errno := syscall.RawSyscall(call, fd, uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)))
		switch errno {
		case 0:
			return int(n), nil
		case syscall.EINTR:
		case syscall.EAGAIN:
			return 0, syscall.EAGAIN // converting a constant to an error allocates no memory
		default:
			return 0, errno
		}
	}
}
