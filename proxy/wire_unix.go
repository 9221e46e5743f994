//go:build unix

package proxy

import (
	"io"
	"os"
	"syscall"
)

const canAttempt = true

// attempt reads if there is something, and reports whether that is an answer.
func (w *wire) attempt(fd uintptr) bool {
	p := w.room()
	w.n, w.err = syscall.Read(int(fd), p)
	for w.err == syscall.EINTR {
		w.n, w.err = syscall.Read(int(fd), p)
	}
	switch {
	case w.err == syscall.EAGAIN:
		w.rest()
		return false
	case w.err != nil:
		w.n, w.err = 0, os.NewSyscallError("read", w.err)
	case w.n == 0:
		w.err = io.EOF
	}
	return true
}
