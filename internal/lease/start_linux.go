package lease

import (
	"os/exec"
	"runtime"
	"syscall"
)

// start starts a command, and tells when it has ended. It is told to end should this process die:
// nobody would extend the lock then.
func start(cmd *exec.Cmd, ended chan<- error) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // the end of the thread that started it counts as our end
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			ended <- cmd.Wait()
		}
	}()
	return <-started
}
