//go:build unix && (!linux || race)

package wire

import "syscall"

// The race detector sees the order that bytes make between goroutines through these
// calls of Go's, and not through bare ones.

const canAttempt = true

func sysRead(fd uintptr, p []byte) (n int, err error) {
	for {
		if n, err = syscall.Read(int(fd), p); err != syscall.EINTR {
			return max(n, 0), err
		}
	}
}

func sysWrite(fd uintptr, p []byte) (n int, err error) {
	for {
		if n, err = syscall.Write(int(fd), p); err != syscall.EINTR {
			return max(n, 0), err
		}
	}
}
