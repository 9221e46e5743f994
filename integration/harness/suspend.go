package harness

import (
	"errors"
	"time"
)

// ErrNoSuspend means that this system cannot stop the clock of a process.
var ErrNoSuspend = errors.New("suspending a process with its clock needs Linux on amd64")

// errClockBusy means that a thread stopped while it was reading the clock. errNotStopped means that
// a thread has not stopped yet.
var (
	errClockBusy  = errors.New("the proxy stopped while reading the clock")
	errNotStopped = errors.New("a thread of the proxy does not stop")
)

// Suspend stops a proxy up to suspendTries times, until no thread is reading the clock.
// suspendDelay is the pause between two tries. In each try, the threads get stopLimit to stop,
// because a thread may wait for a processor.
const (
	suspendTries = 20
	suspendDelay = 2 * time.Millisecond
	stopLimit    = time.Minute
)

// Suspension describes a suspended proxy; Resume ends it.
type Suspension struct {
	proxy     *Proxy
	stoppedAt time.Time
}

// Suspend stops the proxy as the suspension of its machine would. Unlike Pause, it makes the
// proxy's monotonic clock (CLOCK_MONOTONIC) omit the time in which the proxy was stopped.
// CLOCK_BOOTTIME, read by a system call, and the time of day of time.Now continue. A proxy can be
// suspended repeatedly.
func (p *Proxy) Suspend() (*Suspension, error) {
	for range suspendTries {
		err := p.stopOutsideClockCode()
		if err == nil {
			return &Suspension{proxy: p, stoppedAt: time.Now()}, nil
		}
		if err = errors.Join(err, p.Continue()); !errors.Is(err, errClockBusy) {
			return nil, err
		}
		time.Sleep(suspendDelay) // polls
	}
	return nil, errClockBusy
}

// stopOutsideClockCode stops the proxy. It returns errClockBusy if a thread is reading the clock.
// In this case, the code that reads the clock must not be changed.
func (p *Proxy) stopOutsideClockCode() error {
	if err := p.Pause(); err != nil {
		return err
	}
	if p.clock == nil {
		clock, err := findClock(p.PID())
		if err != nil {
			return err
		}
		p.clock = clock
	}
	err := p.clock.checkUnused()
	for end := time.Now().Add(stopLimit); errors.Is(err, errNotStopped) && time.Now().Before(end); {
		time.Sleep(suspendDelay) // polls
		err = p.clock.checkUnused()
	}
	return err
}

// Resume continues the proxy. The proxy's monotonic clock does not count the whole seconds since
// Suspend.
func (s *Suspension) Resume() error {
	err := s.proxy.clock.setBack(time.Since(s.stoppedAt).Truncate(time.Second))
	return errors.Join(err, s.proxy.Continue())
}

// Pause stops the proxy (SIGSTOP): its connections stay open, and it does not answer. Pause returns
// when the proxy has stopped.
func (p *Proxy) Pause() error { return p.process.Pause() }

// Continue lets a paused proxy continue (SIGCONT), with the commands that it has received.
func (p *Proxy) Continue() error { return p.process.Continue() }
