//go:build unix

package redistest

import (
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// reserve reserves a port until this process ends, and reports whether no other process has
// reserved it. A server that is killed needs the same port when it starts again.
func reserve(port int) bool {
	folder := filepath.Join(os.TempDir(), "redlock-proxy-ports")
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return true // without a reservation
	}
	// An os.File would be closed when it is garbage collected.
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
