package process

import (
	"errors"
	"os"
	"syscall"
)

// Alive reports whether a process with this ID exists, even if it belongs to another user.
func Alive(pid int) bool {
	process, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	err = process.Signal(syscall.Signal(0))
	return err == nil || errors.Is(err, os.ErrPermission)
}
