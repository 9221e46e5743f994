package lease

import (
	"os/exec"
	"runtime"
	"syscall"
)

// start starts a command, and sends to exited when the command has ended. If this process dies, it
// no longer extends the lock. So the kernel then sends SIGTERM to the command.
func start(cmd *exec.Cmd, exited chan<- error) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	startErr := make(chan error)
	go func() {
		// The kernel sends the signal when the thread that started the command ends.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		startErr <- err
		if err == nil {
			exited <- cmd.Wait()
		}
	}()
	return <-startErr
}
