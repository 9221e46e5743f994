package script

import (
	"container/list"
	"context"
	"errors"
	"sync"
)

// errFull is the error of a run that would have to wait for a slot while too many runs wait.
var errFull = errors.New("too many runs are waiting for a slot")

// slots grants a number of slots in the order of the requests. It is safe for concurrent use.
type slots struct {
	maxWaiters int // limit on the runs that wait; a negative number means no limit

	mu        sync.Mutex
	freeCount int
	queue     list.List // of chan struct{}, closed when a slot is granted
}

func newSlots(n, maxWaiters int) *slots { return &slots{freeCount: n, maxWaiters: maxWaiters} }

// tryTake takes a slot if one is free.
func (s *slots) tryTake() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.freeCount == 0 {
		return false
	}
	s.freeCount--
	return true
}

// take waits for a slot. The error is errFull or the cause of the end of ctx.
func (s *slots) take(ctx context.Context) error {
	s.mu.Lock()
	if s.freeCount > 0 {
		s.freeCount--
		s.mu.Unlock()
		return nil
	}
	if s.maxWaiters >= 0 && s.queue.Len() >= s.maxWaiters {
		s.mu.Unlock()
		return errFull
	}
	granted := make(chan struct{})
	waiter := s.queue.PushBack(granted)
	s.mu.Unlock()
	select {
	case <-granted:
		return nil
	case <-ctx.Done():
	}
	s.cancelWait(waiter, granted)
	return context.Cause(ctx)
}

// cancelWait ends a wait, or releases the slot that the waiter got in the meantime.
func (s *slots) cancelWait(waiter *list.Element, granted <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-granted:
		s.grantNext()
	default:
		s.queue.Remove(waiter)
	}
}

func (s *slots) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.grantNext()
}

// grantNext gives a slot to the first waiter, or makes the slot free if no run waits. The caller
// holds mu.
func (s *slots) grantNext() {
	first := s.queue.Front()
	if first == nil {
		s.freeCount++
		return
	}
	close(s.queue.Remove(first).(chan struct{}))
}
