//go:build unix

package redistest

import (
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// reserve reserves a port until this process ends. It returns false if the port is already
// reserved. The reservation lets a killed server start again on the same port.
func reserve(port int) bool {
	folder := filepath.Join(os.TempDir(), "redlock-proxy-ports")
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return true // without a reservation
	}
	// The garbage collector would close an os.File, and so end the reservation.
	const flags = syscall.O_CREAT | syscall.O_RDWR | syscall.O_CLOEXEC
	fd, err := syscall.Open(filepath.Join(folder, strconv.Itoa(port)), flags, 0o666)
	if err != nil {
		return true
	}
	if err := syscall.Flock(fd, syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = syscall.Close(fd)
		return false
	}
	return true
}
