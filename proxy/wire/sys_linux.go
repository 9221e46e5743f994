//go:build linux && !race

package wire

import (
	"syscall"
	"unsafe"
)

const canAttempt = true

// sysRead reads from a socket that never blocks. So Go's scheduler need not be told
// of the call, which costs time in every call and more in a second thread.
func sysRead(fd uintptr, p []byte) (int, error) {
	return transfer(syscall.SYS_READ, fd, p)
}

// sysWrite writes to a socket that never blocks.
func sysWrite(fd uintptr, p []byte) (int, error) {
	return transfer(syscall.SYS_WRITE, fd, p)
}

// transfer reads or writes, again where a signal comes between.
func transfer(call, fd uintptr, p []byte) (int, error) {
	for {
		n, _, errno := syscall.RawSyscall(call, fd, uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)))
		switch errno {
		case 0:
			return int(n), nil
		case syscall.EINTR:
		case syscall.EAGAIN:
			return 0, syscall.EAGAIN // a constant: no memory is needed for it
		default:
			return 0, errno
		}
	}
}
