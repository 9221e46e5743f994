//go:build unix && (!linux || race)

package netconn

import "syscall"

// Package syscall reports to the race detector in which order bytes synchronize goroutines; raw
// system calls do not.

const hasRawCalls = true

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
