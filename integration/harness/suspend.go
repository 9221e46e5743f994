package harness

import (
	"errors"
	"time"
)

// ErrNoSuspend is returned where the clock of a process cannot be kept from going on.
var ErrNoSuspend = errors.New("suspending a process as its machine would be needs Linux on amd64")

// errClockBusy means that a thread stopped while it was reading the clock, or has not stopped yet.
var errClockBusy = errors.New("it stopped while reading the clock")

// suspendTries is how often a proxy is stopped until it is not reading its clock, and suspendDelay
// the time between two tries.
const (
	suspendTries = 20
	suspendDelay = 2 * time.Millisecond
)

// Suspension is a proxy that stands still as with its machine. Resume ends it.
type Suspension struct {
	proxy   *Proxy
	stopped time.Time
}

// Suspend stops the proxy as the suspension of its machine would: other than after Pause, it does
// not learn by its monotonic clock (CLOCK_MONOTONIC) how long it was stopped. CLOCK_BOOTTIME and
// the time of day go on, for those who ask for them by a system call and by time.Now. A proxy can
// be suspended again and again.
func (p *Proxy) Suspend() (*Suspension, error) {
	for range suspendTries {
		err := p.stopBesideClock()
		if err == nil {
			return &Suspension{proxy: p, stopped: time.Now()}, nil
		}
		if err = errors.Join(err, p.Continue()); !errors.Is(err, errClockBusy) {
			return nil, err
		}
		time.Sleep(suspendDelay) // polls
	}
	return nil, errClockBusy
}

// stopBesideClock stops the proxy where it is not about to look at its clock, which then can be
// changed.
func (p *Proxy) stopBesideClock() error {
	if err := p.Pause(); err != nil {
		return err
	}
	if p.clock == nil {
		clock, err := takeClock(p.PID())
		if err != nil {
			return err
		}
		p.clock = clock
	}
	return p.clock.idle()
}

// Resume lets the proxy go on. Of the time since Suspend, its monotonic clock has missed the whole
// seconds.
func (s *Suspension) Resume() error {
	err := s.proxy.clock.miss(time.Since(s.stopped).Truncate(time.Second))
	return errors.Join(err, s.proxy.Continue())
}

// Pause stops the proxy (SIGSTOP): its connections stand, and nothing answers. It returns when the
// proxy has stopped.
func (p *Proxy) Pause() error { return p.process.Pause() }

// Continue lets a paused proxy go on with what it had received (SIGCONT).
func (p *Proxy) Continue() error { return p.process.Continue() }
