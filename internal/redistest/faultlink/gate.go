package faultlink

import (
	"sync"
)

// blocker allows writes while it is open. After shut has returned, no write is running, and no
// write begins until open.
type blocker struct {
	writeMutex sync.RWMutex // held for reading during a write

	mu            sync.Mutex
	allowsWrites  bool
	unblockSignal chan struct{} // closed while the gate is open
}

// newWriteBlocker returns an open gate.
func newWriteBlocker() *blocker {
	g := &blocker{allowsWrites: true, unblockSignal: make(chan struct{})}
	close(g.unblockSignal)
	return g
}

// waitUnblocked waits until the gate is open. It returns false if done is closed.
func (g *blocker) waitUnblocked(done <-chan struct{}) bool {
	g.mu.Lock()
	openSignal := g.unblockSignal
	g.mu.Unlock()
	select {
	case <-done:
		return false
	case <-openSignal:
		return true
	}
}

// beginWrite waits until the gate is open. From then on, shut does not return before leave. enter
// returns false if done is closed.
func (g *blocker) beginWrite(done <-chan struct{}) bool {
	for g.waitUnblocked(done) {
		g.writeMutex.RLock()
		if g.isUnblocked() {
			return true
		}
		g.writeMutex.RUnlock()
	}
	return false
}

// endWrite undoes enter.
func (g *blocker) endWrite() { g.writeMutex.RUnlock() }

// block closes the gate and returns when all writers have left. interrupt must end running writes.
func (g *blocker) block(interrupt func()) {
	g.mu.Lock()
	if g.allowsWrites {
		g.allowsWrites = false
		g.unblockSignal = make(chan struct{})
	}
	g.mu.Unlock()
	interrupt()
	g.writeMutex.Lock()
	defer g.writeMutex.Unlock() // no writer is between enter and leave now
}

// unblock allows writes again.
func (g *blocker) unblock() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.allowsWrites {
		g.allowsWrites = true
		close(g.unblockSignal)
	}
}

func (g *blocker) isUnblocked() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.allowsWrites
}
