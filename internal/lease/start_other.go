//go:build !linux

package lease

import "os/exec"

// start starts a command, and tells when it has ended.
func start(cmd *exec.Cmd, ended chan<- error) error {
	err := cmd.Start()
	if err == nil {
		go func() { ended <- cmd.Wait() }()
	}
	return err
}
