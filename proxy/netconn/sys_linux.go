//go:build linux && !race

package netconn

import (
	"syscall"
	"unsafe"
)

const hasRawCalls = true

// sysRead reads from a nonblocking socket. It does not notify Go's scheduler, which would cost time
// in every call and more in a second thread.
func sysRead(fd uintptr, p []byte) (int, error) {
	return transfer(syscall.SYS_READ, fd, p)
}

// sysWrite writes to a nonblocking socket.
func sysWrite(fd uintptr, p []byte) (int, error) {
	return transfer(syscall.SYS_WRITE, fd, p)
}

// transfer reads or writes, again if a signal interrupts it.
func transfer(call, fd uintptr, p []byte) (int, error) {
	for {
		n, _, errno := syscall.RawSyscall(call, fd, uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)))
		switch errno {
		case 0:
			return int(n), nil
		case syscall.EINTR:
		case syscall.EAGAIN:
			return 0, syscall.EAGAIN // a constant needs no memory
		default:
			return 0, errno
		}
	}
}
