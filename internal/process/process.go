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

// ErrStillRunning is returned by a wait whose time ran out before the process ended.
var ErrStillRunning = errors.New("process is still running")

// pipeDelay bounds the wait for output after the end of a process whose own children still hold its
// pipes.
const pipeDelay = 2 * time.Second

// How long a process may take to stop, and how often it is looked at meanwhile.
const (
	pauseTimeout   = time.Second
	pausePollDelay = 2 * time.Millisecond
)

// Process is a started child. Methods may be called concurrently.
type Process struct {
	cmd  *exec.Cmd
	log  *logBuffer
	done chan struct{} // closed when it has been waited for
}

// Start starts the program at path with args; env nil means the environment of this process.
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

// run starts the child and waits for it on one locked thread: the kernel sends the death signal
// when the thread that forked ends, not the process, so that thread must live as long as the child
// does.
func (p *Process) run(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := p.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	_ = p.cmd.Wait() // the outcome is read from ProcessState
	close(p.done)
}

// PID is the process id; it means nothing any more once the process has ended.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Log returns what the process has written to stdout and stderr (the last megabytes of it).
func (p *Process) Log() string { return p.log.String() }

// WaitLine returns the first whole line of the log that match accepts, also one from before the
// call; an error when the process has ended without one, or after timeout.
func (p *Process) WaitLine(match func(line string) bool, timeout time.Duration) (string, error) {
	return p.log.waitLine(match, p.done, timeout)
}

// Ended reports whether the process is gone.
func (p *Process) Ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// Signal sends sig; os.ErrProcessDone when the process is gone.
func (p *Process) Signal(sig os.Signal) error {
	if err := p.cmd.Process.Signal(sig); err != nil {
		return fmt.Errorf("signal %v to %s: %w", sig, p.cmd.Path, err)
	}
	return nil
}

// Kill ends the process at once and waits until it is gone. A stopped process dies as well.
func (p *Process) Kill() error {
	if err := p.Signal(syscall.SIGKILL); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-p.done
	return nil
}

// Pause stops the process (SIGSTOP) and returns when the kernel has really stopped it; without
// /proc it returns at once.
func (p *Process) Pause() error {
	if err := p.Signal(syscall.SIGSTOP); err != nil {
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

// Continue lets a paused process go on (SIGCONT).
func (p *Process) Continue() error { return p.Signal(syscall.SIGCONT) }

// Wait returns the exit code (-1: ended by a signal), or ErrStillRunning after timeout.
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
