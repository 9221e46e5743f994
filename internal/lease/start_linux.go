package lease

import (
	"os/exec"
	"runtime"
	"syscall"
)

// start starts a command, and sends to ended when it has ended. If this process dies, the kernel
// sends SIGTERM to the command, because the lock would no longer be extended.
func start(cmd *exec.Cmd, ended chan<- error) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // the kernel sends the signal when the thread ends that started the command
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			ended <- cmd.Wait()
		}
	}()
	return <-started
}
