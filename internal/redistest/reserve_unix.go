//go:build unix

package redistest

import (
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// reserve keeps a port for this process until it ends, against all others that ask, and reports
// whether it could: a server that is killed and to come back has to find its port free.
func reserve(port int) bool {
	folder := filepath.Join(os.TempDir(), "redlock-proxy-ports")
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return true // it is only less sure
	}
	// A file of package os would be closed with the last reference to it.
	fd, err := syscall.Open(filepath.Join(folder, strconv.Itoa(port)), syscall.O_CREAT|syscall.O_RDWR|syscall.O_CLOEXEC, 0o666)
	if err != nil {
		return true
	}
	if err := syscall.Flock(fd, syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = syscall.Close(fd)
		return false
	}
	return true
}
