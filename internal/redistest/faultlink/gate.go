package faultlink

import (
	"sync"
)

// gate allows writes while it is open. After shut has returned, no write is running, and no write
// begins until open.
type gate struct {
	writers sync.RWMutex // held for reading during a write

	mu         sync.Mutex
	isOpen     bool
	openSignal chan struct{} // closed while the gate is open
}

// newGate returns an open gate.
func newGate() *gate {
	g := &gate{isOpen: true, openSignal: make(chan struct{})}
	close(g.openSignal)
	return g
}

// wait waits until the gate is open. It returns false if done is closed.
func (g *gate) wait(done <-chan struct{}) bool {
	g.mu.Lock()
	openSignal := g.openSignal
	g.mu.Unlock()
	select {
	case <-done:
		return false
	case <-openSignal:
		return true
	}
}

// enter waits until the gate is open. From then on, shut does not return before leave. enter
// returns false if done is closed.
func (g *gate) enter(done <-chan struct{}) bool {
	for g.wait(done) {
		g.writers.RLock()
		if g.isPassable() {
			return true
		}
		g.writers.RUnlock()
	}
	return false
}

// leave undoes enter.
func (g *gate) leave() { g.writers.RUnlock() }

// shut closes the gate and returns when all writers have left. interrupt must end running writes.
func (g *gate) shut(interrupt func()) {
	g.mu.Lock()
	if g.isOpen {
		g.isOpen = false
		g.openSignal = make(chan struct{})
	}
	g.mu.Unlock()
	interrupt()
	g.writers.Lock()
	defer g.writers.Unlock() // no writer is between enter and leave now
}

// open allows writes again.
func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.isOpen {
		g.isOpen = true
		close(g.openSignal)
	}
}

func (g *gate) isPassable() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.isOpen
}
