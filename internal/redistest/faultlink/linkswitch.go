package faultlink

import (
	"time"
)

// Lead has the connections of the future end at another target (host:port), as where a server takes
// the address of another. Those of now stay where they are; Reset ends them.
func (l *Link) Lead(target string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.target = target
}

// Delay has all answers come so much later: a long way, on which what happens between two answers
// can be seen.
func (l *Link) Delay(delay time.Duration) { l.delay.Store(int64(delay)) }

// Taken is how many connections the link has taken so far.
func (l *Link) Taken() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.taken
}
