//go:build !linux

package lease

import "os/exec"

// start starts a command, and sends to ended when the command has ended.
func start(cmd *exec.Cmd, ended chan<- error) error {
	err := cmd.Start()
	if err == nil {
		go func() { ended <- cmd.Wait() }()
	}
	return err
}
