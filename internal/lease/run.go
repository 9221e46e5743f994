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

// Job is a command that runs while a lock is held.
type Job struct {
	Request
	Proxies *Proxies
	// Command is made by exec.Command, with what it reads and writes.
	Command *exec.Cmd
	// Grace is for how long the command may go on after it was told that the lock is lost.
	Grace time.Duration
	// Signals are passed on to the command. Before it runs, one ends the wait for the lock.
	Signals <-chan os.Signal
	// Tell is told what goes wrong while the command runs.
	Tell func(error)
}

// InterruptedError says that a signal ended the wait for the lock.
type InterruptedError struct{ Signal os.Signal }

// Error names the signal.
func (e *InterruptedError) Error() string {
	return fmt.Sprintf("%v while waiting for the lock", e.Signal)
}

// StartError says that a command could not be run.
type StartError struct {
	Command string
	Cause   error
}

// Error says why.
func (e *StartError) Error() string {
	return fmt.Sprintf("the command %q cannot be run: %v", e.Command, rootOf(e.Cause))
}

// rootOf is an error without what os and os/exec put around it.
func rootOf(err error) error {
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(err) {
		err = inner
	}
	return err
}

// Unwrap is the cause.
func (e *StartError) Unwrap() error { return e.Cause }

// Run takes the lock, runs the command, and gives the lock back.
//
// Errors: ErrHeld, *InterruptedError or those of Take, where the command did not run; *StartError;
// *LostError, where the lock was lost before the command ended, or as it did. Else state is how the
// command ended.
func (j *Job) Run(ctx context.Context) (state *os.ProcessState, err error) {
	if j.Command.Err != nil {
		return nil, &StartError{j.Command.Args[0], j.Command.Err} // no lock is taken for it
	}
	lock, err := j.take(ctx)
	if err != nil {
		return nil, err
	}
	keeping, stop := context.WithCancel(ctx)
	lost, ended := make(chan error, 1), make(chan error, 1)
	go func() { lost <- lock.Keep(keeping) }()
	started := start(j.Command, ended)
	if started == nil {
		err = j.attend(lost, ended)
	}
	stop()
	if err == nil {
		err = <-lost // it may have been lost at the same moment
	}
	if err == nil {
		err = j.release(ctx, lock)
	}
	if started != nil {
		return nil, &StartError{j.Command.Args[0], started}
	}
	return j.Command.ProcessState, err
}

// take is Take, until a signal comes.
func (j *Job) take(ctx context.Context) (*Lock, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	taken, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		select {
		case s := <-j.Signals:
			cancel(&InterruptedError{s})
		case <-taken:
		}
	}()
	lock, err := Take(ctx, j.Proxies, j.Request)
	close(taken)
	<-done
	if err == nil && ctx.Err() != nil { // it came with the grant
		_ = lock.Release(context.WithoutCancel(ctx))
		err = context.Cause(ctx)
	}
	cancel(nil)
	return lock, err
}

// attend waits for the command to end. Should the lock be lost before, it is told, and then killed;
// the error says so.
func (j *Job) attend(lost <-chan error, ended <-chan error) (failed error) {
	var over <-chan time.Time
	for {
		select {
		case <-ended:
			return failed
		case s := <-j.Signals:
			_ = j.Command.Process.Signal(s)
		case failed = <-lost:
			lost = nil
			j.Tell(errors.New("the command gets SIGTERM, since the lock is lost"))
			_ = j.Command.Process.Signal(syscall.SIGTERM)
			over = time.After(j.Grace)
		case <-over:
			j.Tell(fmt.Errorf("the command goes on %v after that: it is killed", j.Grace))
			_ = j.Command.Process.Kill()
		}
	}
}

// release gives the lock back. One that cannot be given back ends by itself.
func (j *Job) release(ctx context.Context, lock *Lock) error {
	err := lock.Release(ctx)
	var lost *LostError
	if err == nil || errors.As(err, &lost) {
		return err
	}
	j.Tell(fmt.Errorf("the lock was not given back, and ends by itself: %w", err))
	return nil
}
