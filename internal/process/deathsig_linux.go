package process

import (
	"syscall"
)

// childAttributes lets a child die with its parent, and keeps the terminal's ^C away from it: the
// parent decides when it ends.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
