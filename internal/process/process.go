package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// ErrStillRunning means that the process did not end, or did not stop, before the timeout.
var ErrStillRunning = errors.New("process is still running")

// pipeDelay limits the wait for output after a process has ended, in case its own children still
// have its pipes open.
const pipeDelay = 2 * time.Second

// pauseTimeout limits the time in which Pause stops a process. pausePollDelay is the pause between
// two checks of the process' state.
const (
	pauseTimeout   = time.Minute
	pausePollDelay = 2 * time.Millisecond
)

// Process controls a started child. Methods may be called concurrently.
type Process struct {
	cmd  *exec.Cmd
	log  *logBuffer
	done chan struct{} // closed when the process has ended
}

// Start starts the program at path with args. If env is nil, the program gets the environment of
// this process.
func Start(path string, args, env []string) (*Process, error) {
	log := newLogBuffer()
	cmd := exec.Command(path, args...)
	cmd.Env = env
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = childAttributes()
	cmd.WaitDelay = pipeDelay
	p := &Process{cmd: cmd, log: log, done: make(chan struct{})}
	started := make(chan error)
	go p.run(started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", path, err)
	}
	return p, nil
}

// run starts the child and waits for it on one locked thread. The kernel sends the death signal
// when the thread that forked ends, even if the process continues. So this thread must live as long
// as the child.
func (p *Process) run(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := p.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	_ = p.cmd.Wait() // Process.Wait reads the outcome from ProcessState
	close(p.done)
}

// PID returns the process ID. After the process has ended, another process may get the same ID.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Log returns the output of the process to stdout and stderr: the last 2 to 4 MB.
func (p *Process) Log() string { return p.log.String() }

// WaitLine returns the first complete line of the log that match accepts; the line may be older
// than the call. It returns an error if the process ends before such a line comes, or after
// timeout.
func (p *Process) WaitLine(match func(line string) bool, timeout time.Duration) (string, error) {
	return p.log.waitLine(match, p.done, timeout)
}

// Ended reports whether the process has ended.
func (p *Process) Ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// Signal sends sig. The error is os.ErrProcessDone if the process has ended.
func (p *Process) Signal(sig os.Signal) error {
	if err := p.cmd.Process.Signal(sig); err != nil {
		return fmt.Errorf("signal %v to %s: %w", sig, p.cmd.Path, err)
	}
	return nil
}

// Kill ends the process immediately (SIGKILL) and waits until it has ended. It also ends a stopped
// process.
func (p *Process) Kill() error {
	if err := p.Signal(syscall.SIGKILL); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-p.done
	return nil
}

// Pause stops the process (SIGSTOP) and returns when the kernel has stopped it. Without /proc,
// Pause does not wait for the kernel.
func (p *Process) Pause() error {
	if err := p.Signal(stopSignal); err != nil {
		return err
	}
	deadline := time.Now().Add(pauseTimeout)
	for {
		stat, err := readProcStat(p.PID())
		if errors.Is(err, os.ErrNotExist) || stat.state == "T" {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("process %d does not stop: state %s: %w", p.PID(), stat.state, ErrStillRunning)
		}
		time.Sleep(pausePollDelay) // polls
	}
}

// Continue lets a paused process continue (SIGCONT).
func (p *Process) Continue() error { return p.Signal(continueSignal) }

// Wait waits for the end of the process and returns its exit code, or -1 if a signal ended it.
// After timeout the error is ErrStillRunning.
func (p *Process) Wait(timeout time.Duration) (int, error) {
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-p.done:
		return p.cmd.ProcessState.ExitCode(), nil
	case <-timer.C:
		return 0, fmt.Errorf("%s after %v: %w", p.cmd.Path, timeout, ErrStillRunning)
	}
}
