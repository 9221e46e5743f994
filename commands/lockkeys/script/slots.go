package script

import (
	"container/list"
	"context"
	"errors"
	"sync"
)

// errFull says that no more may wait for a slot.
var errFull = errors.New("no more may wait for a slot")

// slots are a number of slots, given to those who ask in their order. It is safe for concurrent
// use.
type slots struct {
	room int // how many may wait; negative: any number

	mu      sync.Mutex
	free    int
	waiting list.List // of chan struct{}, closed when a slot is given
}

func newSlots(n, room int) *slots { return &slots{free: n, room: room} }

// tryTake takes a slot if one is free and nobody waits.
func (s *slots) tryTake() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.free == 0 {
		return false
	}
	s.free--
	return true
}

// take waits for a slot. The error is errFull or the cause of the end of ctx.
func (s *slots) take(ctx context.Context) error {
	s.mu.Lock()
	if s.free > 0 {
		s.free--
		s.mu.Unlock()
		return nil
	}
	if s.room >= 0 && s.waiting.Len() >= s.room {
		s.mu.Unlock()
		return errFull
	}
	given := make(chan struct{})
	mine := s.waiting.PushBack(given)
	s.mu.Unlock()
	select {
	case <-given:
		return nil
	case <-ctx.Done():
	}
	s.forgo(mine, given)
	return context.Cause(ctx)
}

// forgo takes a wait back, or gives up the slot that it was given in the meantime.
func (s *slots) forgo(mine *list.Element, given <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-given:
		s.pass()
	default:
		s.waiting.Remove(mine)
	}
}

// giveUp gives a slot to the next one.
func (s *slots) giveUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pass()
}

// pass is called with mu held.
func (s *slots) pass() {
	first := s.waiting.Front()
	if first == nil {
		s.free++
		return
	}
	close(s.waiting.Remove(first).(chan struct{}))
}
