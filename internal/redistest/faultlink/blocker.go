package faultlink

import (
	"sync"
)

// blocker allows writes unless it is blocked. After block has returned, no write is running, and no
// write begins until unblock.
type blocker struct {
	writeMutex sync.RWMutex // held for reading during a write

	mu            sync.Mutex
	allowsWrites  bool
	unblockSignal chan struct{} // closed while writes are allowed
}

// newBlocker returns a blocker that allows writes.
func newBlocker() *blocker {
	g := &blocker{allowsWrites: true, unblockSignal: make(chan struct{})}
	close(g.unblockSignal)
	return g
}

// waitUnblocked waits until writes are allowed. It returns false if done is closed.
func (g *blocker) waitUnblocked(done <-chan struct{}) bool {
	g.mu.Lock()
	unblockSignal := g.unblockSignal
	g.mu.Unlock()
	select {
	case <-done:
		return false
	case <-unblockSignal:
		return true
	}
}

// beginWrite waits until writes are allowed. From then on, block does not return before endWrite.
// beginWrite returns false if done is closed.
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

// endWrite undoes beginWrite.
func (g *blocker) endWrite() { g.writeMutex.RUnlock() }

// block forbids writes, and returns when no write is running. interrupt must end running writes.
func (g *blocker) block(interrupt func()) {
	g.mu.Lock()
	if g.allowsWrites {
		g.allowsWrites = false
		g.unblockSignal = make(chan struct{})
	}
	g.mu.Unlock()
	interrupt()
	g.writeMutex.Lock()
	defer g.writeMutex.Unlock() // no writer is between beginWrite and endWrite now
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
