package process

import (
	"syscall"
)

// childAttributes makes the kernel kill a child when its parent ends. The child has its own process
// group. So the terminal's ^C does not reach the child, and only the parent ends it.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
