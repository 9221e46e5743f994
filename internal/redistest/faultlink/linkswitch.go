package faultlink

import (
	"time"
)

// Retarget forwards new connections to another target (host:port), as when another server gets the
// address of the old server. Existing connections stay at the old target; Reset ends them.
func (l *Link) Retarget(target string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.target = target
}

// Delay delays all replies of the target, as a long network path does.
func (l *Link) Delay(delay time.Duration) { l.delay.Store(int64(delay)) }

// AcceptedCount returns the number of connections that the link has accepted so far.
func (l *Link) AcceptedCount() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.acceptedCount
}
