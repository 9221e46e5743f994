package faultlink

import (
	"sync"
)

// gate lets writes through while it is open. When shut has returned, no write is under way and none
// begins until open.
type gate struct {
	flow sync.RWMutex // held for reading during a write

	mu     sync.Mutex
	isOpen bool
	opened chan struct{} // closed while the gate is open
}

// newGate returns an open gate.
func newGate() *gate {
	g := &gate{isOpen: true, opened: make(chan struct{})}
	close(g.opened)
	return g
}

// wait blocks until the gate is open; false when done was closed instead.
func (g *gate) wait(done <-chan struct{}) bool {
	g.mu.Lock()
	opened := g.opened
	g.mu.Unlock()
	select {
	case <-done:
		return false
	case <-opened:
		return true
	}
}

// enter waits for the open gate and keeps it from being shut until leave; false when done was
// closed instead.
func (g *gate) enter(done <-chan struct{}) bool {
	for g.wait(done) {
		g.flow.RLock()
		if g.passable() {
			return true
		}
		g.flow.RUnlock()
	}
	return false
}

// leave ends what enter began.
func (g *gate) leave() { g.flow.RUnlock() }

// shut closes the gate; interrupt must end the writes that are under way, and shut returns when
// they have left.
func (g *gate) shut(interrupt func()) {
	g.mu.Lock()
	if g.isOpen {
		g.isOpen = false
		g.opened = make(chan struct{})
	}
	g.mu.Unlock()
	interrupt()
	g.flow.Lock()
	defer g.flow.Unlock() // nobody is inside at this moment
}

// open lets writes through again.
func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.isOpen {
		g.isOpen = true
		close(g.opened)
	}
}

func (g *gate) passable() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.isOpen
}
