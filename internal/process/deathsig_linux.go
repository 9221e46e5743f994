package process

import (
	"syscall"
)

// childAttributes returns attributes that make the kernel kill a child when its parent ends. The
// child has its own process group, so the terminal's ^C does not reach it. Only the parent ends it.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
