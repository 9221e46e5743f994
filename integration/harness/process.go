package harness

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

// pipeDelay bounds the wait for output after the end of a process whose own children still hold its pipes.
const pipeDelay = 2 * time.Second

// process is a started child. Its output goes to log; done is closed when it has been waited for.
type process struct {
	cmd  *exec.Cmd
	log  *logBuffer
	done chan struct{}
}

// startProcess starts path with args; env nil means the environment of this process.
func startProcess(path string, args, env []string) (*process, error) {
	log := newLogBuffer()
	cmd := exec.Command(path, args...)
	cmd.Env = env
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = childAttributes()
	cmd.WaitDelay = pipeDelay
	p := &process{cmd: cmd, log: log, done: make(chan struct{})}
	started := make(chan error)
	go p.run(started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", path, err)
	}
	return p, nil
}

// run starts the child and waits for it on one locked thread: the kernel sends the death signal when the thread that forked
// ends, not the process, so that thread must live as long as the child does.
func (p *process) run(started chan<- error) {
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

// pid is the process id; it means nothing any more once the process has ended.
func (p *process) pid() int { return p.cmd.Process.Pid }

// ended reports whether the process is gone.
func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// signal sends sig; os.ErrProcessDone when the process is gone.
func (p *process) signal(sig os.Signal) error {
	if err := p.cmd.Process.Signal(sig); err != nil {
		return fmt.Errorf("signal %v to %s: %w", sig, p.cmd.Path, err)
	}
	return nil
}

// kill ends the process at once and waits until it is gone. A stopped process dies as well.
func (p *process) kill() error {
	if err := p.signal(syscall.SIGKILL); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-p.done
	return nil
}

// wait returns the exit code (-1: ended by a signal), or ErrStillRunning after timeout.
func (p *process) wait(timeout time.Duration) (int, error) {
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-p.done:
		return p.cmd.ProcessState.ExitCode(), nil
	case <-timer.C:
		return 0, fmt.Errorf("%s after %v: %w", p.cmd.Path, timeout, ErrStillRunning)
	}
}
