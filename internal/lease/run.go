package lease

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// Job describes a command that runs while a lock is held.
type Job struct {
	Request
	Proxies *Proxies
	// Command comes from exec.Command, and has its standard input and output set.
	Command *exec.Cmd
	// Environ returns environment variables that tell the command about the lock.
	Environ func(*Lock) []string
	// GracePeriod is the time for which the command may run after SIGTERM when the lock is lost.
	GracePeriod time.Duration
	// Signals holds the signals to pass on to the command. Before the command runs, a signal ends
	// the wait for the lock.
	Signals <-chan os.Signal
	// Report gets each problem from the start of the command to the release of the lock.
	Report func(error)
}

// InterruptedError means that a signal ended the wait for the lock.
type InterruptedError struct{ Signal os.Signal }

// Error returns a text that names the signal.
func (e *InterruptedError) Error() string {
	return fmt.Sprintf("%v while waiting for the lock", e.Signal)
}

// StartError means that the command could not be started.
type StartError struct {
	Command string
	Cause   error
}

// Error returns a text that names the command and the cause.
func (e *StartError) Error() string {
	return fmt.Sprintf("the command %q cannot be run: %v", e.Command, rootOf(e.Cause))
}

// rootOf returns the innermost error, without the layers that os and os/exec add.
func rootOf(err error) error {
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(err) {
		err = inner
	}
	return err
}

// Unwrap returns the cause.
func (e *StartError) Unwrap() error { return e.Cause }

// Run takes the lock, runs the command, and releases the lock. It returns the state in which the
// command ended.
//
// Errors before the command runs: ErrHeld, *InterruptedError, another error of Take, or
// *StartError. Run returns a *LostError if the lock was lost before the command ended, or was no
// longer held at its release.
func (j *Job) Run(ctx context.Context) (state *os.ProcessState, err error) {
	if j.Command.Err != nil {
		return nil, &StartError{j.Command.Args[0], j.Command.Err} // fails before Run takes the lock
	}
	lock, err := j.take(ctx)
	if err != nil {
		return nil, err
	}
	j.Command.Env = append(j.Command.Environ(), j.Environ(lock)...)
	keepCtx, stop := context.WithCancel(ctx)
	lockLost, commandEnded := make(chan error, 1), make(chan error, 1)
	go func() { lockLost <- lock.Keep(keepCtx) }()
	startErr := start(j.Command, commandEnded)
	if startErr == nil {
		err = j.waitCommand(lockLost, commandEnded)
	}
	stop()
	if err == nil {
		err = <-lockLost // the lock may have been lost at the same moment
	}
	if err == nil {
		err = j.release(ctx, lock)
	}
	if startErr != nil {
		return nil, &StartError{j.Command.Args[0], startErr}
	}
	return j.Command.ProcessState, err
}

// take calls Take, and ends the wait when a signal comes.
func (j *Job) take(ctx context.Context) (*Lock, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	takeDone, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		select {
		case s := <-j.Signals:
			cancel(&InterruptedError{s})
		case <-takeDone:
		}
	}()
	lock, err := Take(ctx, j.Proxies, j.Request)
	close(takeDone)
	<-done
	if err == nil && ctx.Err() != nil { // the signal came together with the grant
		_ = lock.Release(context.WithoutCancel(ctx))
		err = context.Cause(ctx)
	}
	cancel(nil)
	return lock, err
}

// waitCommand waits for the command to end. If the lock is lost first, it sends SIGTERM to the
// command, kills it after the grace period, and returns the error of the loss.
func (j *Job) waitCommand(lockLost <-chan error, commandEnded <-chan error) (lostErr error) {
	var graceEnd <-chan time.Time
	for {
		select {
		case <-commandEnded:
			return lostErr
		case s := <-j.Signals:
			_ = j.Command.Process.Signal(s)
		case lostErr = <-lockLost:
			lockLost = nil
			j.Report(errors.New("the lock was lost: sending SIGTERM to the command"))
			_ = j.Command.Process.Signal(syscall.SIGTERM)
			graceEnd = time.After(j.GracePeriod)
		case <-graceEnd:
			j.Report(fmt.Errorf("the command is still running %v after SIGTERM: killing it", j.GracePeriod))
			_ = j.Command.Process.Kill()
		}
	}
}

// release releases the lock. It returns only a *LostError. It reports other errors and returns nil,
// because a lock that cannot be released expires.
func (j *Job) release(ctx context.Context, lock *Lock) error {
	err := lock.Release(ctx)
	var lostErr *LostError
	if err == nil || errors.As(err, &lostErr) {
		return err
	}
	j.Report(fmt.Errorf("cannot release the lock, which will expire: %w", err))
	return nil
}
