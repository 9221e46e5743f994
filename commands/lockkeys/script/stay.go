package script

import (
	"errors"
	"time"

	"redlock-proxy/internal/lua/meter"
)

// stay is one run from its beginning to its end, and what it holds of its Pace: a small slot, or a
// seat, with or without the lane. It is the meter.Pace of its run.
type stay struct {
	Share
	watch                 meter.Watch
	small, seated, onLane bool
	grew                  bool      // it is, or was to be, a large run
	full                  bool      // it was refused a seat at once
	since                 time.Time // of the slice
}

// await waits for a slot, as long as the run goes on.
func (s *stay) await(p *slots) error {
	if p.tryTake() {
		return nil
	}
	ctx, done := s.watch.Wait()
	defer done()
	defer s.watch.Renew() // what it waited is no part of its slice
	return p.take(ctx)
}

// busy is the error of a run that found no slot.
func busy(err error) error {
	if err == errFull || errors.Is(err, meter.ErrTime) {
		return ErrBusy
	}
	return err
}

// enter waits for a slot of a small run.
func (s *stay) enter() error {
	if err := s.watch.Err(); err != nil {
		return err
	}
	if s.Pace == nil {
		return nil
	}
	if err := s.await(s.Pace.small); err != nil {
		return busy(err)
	}
	s.small = true
	return nil
}

// Grow has the run be a large one.
func (s *stay) Grow() error {
	if s.Short {
		return ErrLong
	}
	s.grew = true
	s.Pace.list(s, true)
	s.leaveSmall()
	if err := s.await(s.Pace.seated); err != nil {
		s.full = err == errFull
		return busy(err)
	}
	s.seated = true
	return s.takeLane()
}

// Pause lets others run.
func (s *stay) Pause() error {
	s.leaveLane()
	return s.takeLane()
}

// takeLane begins a slice, when the lane has rested. A seated run whose time ends while others have
// their turn had its share.
func (s *stay) takeLane() error {
	if err := s.await(s.Pace.lane); err != nil {
		return err
	}
	s.onLane = true
	defer func() { s.since = s.Pace.now() }()
	return s.sleep(s.Pace.restLeft())
}

// sleep waits, as long as the run goes on.
func (s *stay) sleep(d time.Duration) error {
	if d <= 0 {
		return nil
	}
	ctx, done := s.watch.Wait()
	defer done()
	return s.Pace.sleep(ctx, d)
}

// leaveLane ends a slice.
func (s *stay) leaveLane() {
	if s.onLane {
		s.Pace.restAfter(s.Pace.now().Sub(s.since))
		s.Pace.lane.giveUp()
	}
	s.onLane = false
}

func (s *stay) leaveSmall() {
	if s.small {
		s.Pace.small.giveUp()
	}
	s.small = false
}

// end gives up all that the run holds, and takes off its allowance what it spent.
func (s *stay) end() {
	s.leaveSmall()
	s.leaveLane()
	if s.seated {
		s.Pace.seated.giveUp()
	}
	s.seated = false
	s.waitOut()
	if s.grew {
		s.Pace.list(s, false)
	}
	s.Allowance.spent = s.watch.Stop()
}

// waitOut keeps a run that was refused a seat for as long as those that may wait for one: else its
// client would be back at once, and those who are refused would take all slots of small runs.
func (s *stay) waitOut() {
	if !s.full {
		return
	}
	if left, ok := s.watch.Left(); ok {
		_ = s.sleep(left)
	}
}
