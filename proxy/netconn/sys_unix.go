//go:build unix && (!linux || race)

package netconn

import "syscall"

// On systems other than Linux, and with the race detector, the proxy uses package syscall. Unlike
// raw system calls, that package reports to the detector that reads happen after writes.

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
