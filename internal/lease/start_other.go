//go:build !linux

package lease

import "os/exec"

// start starts a command, and sends to exited when the command has ended.
func start(cmd *exec.Cmd, exited chan<- error) error {
	err := cmd.Start()
	if err == nil {
		go func() { exited <- cmd.Wait() }()
	}
	return err
}
