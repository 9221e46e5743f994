package process

import (
	"syscall"
)

// childAttributes makes the kernel kill a child when its parent ends. The child has a process group
// of its own, so that the terminal's ^C does not reach it and the parent decides when it ends.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
