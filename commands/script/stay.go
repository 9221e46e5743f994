package script

import (
	"context"
	"errors"
	"fmt"
	"time"

	"redlock-proxy/commands/script/lua/meter"
)

// stay is what one run holds of a Pace: a small slot, or a seat, with or without the lane. It is the meter.Pace of its run.
type stay struct {
	pace                  *Pace
	ctx                   context.Context
	limit                 time.Duration // for messages
	until                 time.Time     // zero: for ever
	small, seated, onLane bool
	grew                  bool      // it is, or was to be, a large run
	full                  bool      // it was refused a seat at once
	since                 time.Time // of the slice
}

// stay is for a run with these limits.
func (p *Pace) stay(ctx context.Context, limits meter.Limits) *stay {
	s := &stay{pace: p, ctx: ctx, limit: limits.Time}
	if limits.Time > 0 {
		s.until = limits.Started.Add(limits.Time)
	}
	return s
}

// errTimeOver is the cause of the end of a wait whose run has no time left.
var errTimeOver = errors.New("the time of the script is over")

// await waits for a slot, as long as the run has time.
func (s *stay) await(p *slots) error {
	if p.tryTake() {
		return nil
	}
	ctx, cancel := s.bounded()
	defer cancel()
	return p.take(ctx)
}

// waitSlice is in how large pieces a wait is counted.
const waitSlice = 50 * time.Millisecond

// bounded ends when the run's time does. Of a standstill of the whole process it counts one slice at the most: whoever had the slot that is
// waited for could not give it up meanwhile.
func (s *stay) bounded() (context.Context, context.CancelFunc) {
	if s.until.IsZero() {
		return s.ctx, func() {}
	}
	ctx, end := context.WithCancelCause(s.ctx)
	left := s.until.Sub(s.pace.now())
	slice := func() time.Duration {
		next := min(left, waitSlice)
		left -= next
		return next
	}
	var timer *time.Timer
	timer = time.AfterFunc(time.Hour, func() {
		switch {
		case ctx.Err() != nil:
		case left <= 0:
			end(errTimeOver)
		default:
			timer.Reset(slice())
		}
	})
	timer.Reset(slice()) // not before timer is set
	return ctx, func() { timer.Stop(); end(nil) }
}

// busy is the error of a run that found no slot.
func busy(err error) error {
	if err == errFull || err == errTimeOver {
		return ErrBusy
	}
	return err
}

// overtime is the error of a seated run whose time ended while others had their turn: it had its share.
func (s *stay) overtime(err error) error {
	if err == errTimeOver {
		return fmt.Errorf("%w %v", meter.ErrTime, s.limit)
	}
	return err
}

// enter waits for a slot of a small run.
func (s *stay) enter() error {
	if err := s.await(s.pace.small); err != nil {
		return busy(err)
	}
	s.small = true
	return nil
}

// Grow has the run be a large one.
func (s *stay) Grow() error {
	s.grew = true
	s.leaveSmall()
	if err := s.await(s.pace.seated); err != nil {
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

// takeLane begins a slice, when the lane has rested.
func (s *stay) takeLane() error {
	if err := s.await(s.pace.lane); err != nil {
		return s.overtime(err)
	}
	s.onLane = true
	defer func() { s.since = s.pace.now() }()
	rest := s.pace.restLeft()
	if rest <= 0 {
		return nil
	}
	ctx, cancel := s.bounded()
	defer cancel()
	return s.overtime(s.pace.sleep(ctx, rest))
}

// leaveLane ends a slice.
func (s *stay) leaveLane() {
	if s.onLane {
		s.pace.restAfter(s.pace.now().Sub(s.since))
		s.pace.lane.giveUp()
	}
	s.onLane = false
}

func (s *stay) leaveSmall() {
	if s.small {
		s.pace.small.giveUp()
	}
	s.small = false
}

// waitOut keeps a run that was refused a seat for as long as those that may wait for one: else its client would be back at once, and those
// who are refused would take all slots of small runs.
func (s *stay) waitOut() {
	if !s.full || s.until.IsZero() {
		return
	}
	_ = s.pace.sleep(s.ctx, s.until.Sub(s.pace.now()))
}

// leave gives up all that the run holds.
func (s *stay) leave() {
	s.leaveSmall()
	s.leaveLane()
	if s.seated {
		s.pace.seated.giveUp()
	}
	s.seated = false
}
