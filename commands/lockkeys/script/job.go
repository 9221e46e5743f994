package script

import (
	"errors"
	"time"

	"redlock-proxy/internal/lua/meter"
)

// job holds one run, from its beginning to its end, and its slots: a small slot, or a large slot
// with or without the turn. It implements meter.Pace.
type job struct {
	Share
	watch                               meter.Watch
	hasSmallSlot, hasLargeSlot, hasTurn bool
	large                               bool      // the run has become large, or tried to
	refusedLarge                        bool      // too many runs wait for a large slot
	sliceStart                          time.Time // the beginning of the slice
}

// await waits for a slot. It returns an error if the run must end before.
func (s *job) await(p *slots) error {
	if p.tryTake() {
		return nil
	}
	ctx, stop := s.watch.WaitContext()
	defer stop()
	defer s.watch.BeginSlice() // the wait is not part of the slice
	return p.take(ctx)
}

// slotError converts the error of a run that got no slot. If too many runs waited, or if the wait
// took too long, the result is ErrBusy.
func slotError(err error) error {
	if err == errFull || errors.Is(err, meter.ErrTime) {
		return ErrBusy
	}
	return err
}

// takeSmallSlot waits for a small slot.
func (s *job) takeSmallSlot() error {
	if err := s.watch.Err(); err != nil {
		return err
	}
	if s.Scheduler == nil {
		return nil
	}
	if err := s.await(s.Scheduler.smallSlots); err != nil {
		return slotError(err)
	}
	s.hasSmallSlot = true
	return nil
}

// Grow implements meter.Pace. It turns the run into a large run.
func (s *job) Grow() error {
	if s.Short {
		return ErrTooLarge
	}
	s.large = true
	s.Scheduler.setLarge(s, true)
	if s.ClientDisconnected != nil {
		s.watch.EndAfter(s.ClientDisconnected, disconnectGrace, errClientDisconnected)
	}
	s.releaseSmallSlot()
	if err := s.await(s.Scheduler.largeSlots); err != nil {
		s.refusedLarge = err == errFull
		return slotError(err)
	}
	s.hasLargeSlot = true
	return s.takeTurn()
}

// Pause implements meter.Pace. It lets other large runs execute.
func (s *job) Pause() error {
	s.releaseTurn()
	return s.takeTurn()
}

// takeTurn begins a slice, after the idle time. If the time of a large run ends while the run waits
// for its turn, takeTurn returns the error of the time limit, not ErrBusy.
func (s *job) takeTurn() error {
	if err := s.await(s.Scheduler.turn); err != nil {
		return err
	}
	s.hasTurn = true
	defer func() { s.sliceStart = s.Scheduler.now() }()
	return s.sleep(s.Scheduler.remainingIdleTime())
}

// sleep waits for d. It returns an error if the run must end before.
func (s *job) sleep(d time.Duration) error {
	if d <= 0 {
		return nil
	}
	ctx, stop := s.watch.WaitContext()
	defer stop()
	return s.Scheduler.sleep(ctx, d)
}

// releaseTurn ends a slice.
func (s *job) releaseTurn() {
	if s.hasTurn {
		s.Scheduler.setIdleTime(s.Scheduler.now().Sub(s.sliceStart))
		s.Scheduler.turn.release()
	}
	s.hasTurn = false
}

func (s *job) releaseSmallSlot() {
	if s.hasSmallSlot {
		s.Scheduler.smallSlots.release()
	}
	s.hasSmallSlot = false
}

// end releases the slots of the run, and charges its time to the allowance.
func (s *job) end() {
	s.releaseSmallSlot()
	s.releaseTurn()
	if s.hasLargeSlot {
		s.Scheduler.largeSlots.release()
	}
	s.hasLargeSlot = false
	s.delayRefusal()
	if s.large {
		s.Scheduler.setLarge(s, false)
	}
	s.Allowance.spentTime = s.watch.Stop()
}

// delayRefusal waits until the time limit of the run, if too many runs waited for a large slot.
// Otherwise the client would send the script again immediately, and such runs would take all small
// slots.
func (s *job) delayRefusal() {
	if !s.refusedLarge {
		return
	}
	if left, ok := s.watch.Remaining(); ok {
		_ = s.sleep(left)
	}
}
