package script

import (
	"container/list"
	"context"
	"errors"
	"sync"
)

// errFull says that no more may wait for a place.
var errFull = errors.New("no more may wait for a place")

// places are a number of places, given to those who ask in their order. It is safe for concurrent use.
type places struct {
	room int // how many may wait; negative: any number

	mu      sync.Mutex
	free    int
	waiting list.List // of chan struct{}, closed when a place is given
}

func newPlaces(n, room int) *places { return &places{free: n, room: room} }

// tryTake takes a place if one is free and nobody waits.
func (p *places) tryTake() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.free == 0 {
		return false
	}
	p.free--
	return true
}

// take waits for a place. The error is errFull or the cause of the end of ctx.
func (p *places) take(ctx context.Context) error {
	p.mu.Lock()
	if p.free > 0 {
		p.free--
		p.mu.Unlock()
		return nil
	}
	if p.room >= 0 && p.waiting.Len() >= p.room {
		p.mu.Unlock()
		return errFull
	}
	given := make(chan struct{})
	mine := p.waiting.PushBack(given)
	p.mu.Unlock()
	select {
	case <-given:
		return nil
	case <-ctx.Done():
	}
	p.forgo(mine, given)
	return context.Cause(ctx)
}

// forgo takes a wait back, or gives up the place that it was given in the meantime.
func (p *places) forgo(mine *list.Element, given <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-given:
		p.pass()
	default:
		p.waiting.Remove(mine)
	}
}

// giveUp gives a place to the next one.
func (p *places) giveUp() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pass()
}

// pass is called with mu held.
func (p *places) pass() {
	first := p.waiting.Front()
	if first == nil {
		p.free++
		return
	}
	close(p.waiting.Remove(first).(chan struct{}))
}
