package master

import (
	"sync"

	"redlock-proxy/quorum/vote"
)

// Turns let no more than a minority of the masters be busy with what is long at the same time: so a
// majority of them answers at once what is short, however long the others take.
type Turns struct {
	mu   sync.Mutex
	free int
	// waiting are those to be called when they have got a turn, in their order.
	waiting []func()
}

// NewTurns makes the turns of so many masters; one of them may always have one.
func NewTurns(masters int) *Turns { return &Turns{free: max(1, masters-vote.Majority(masters))} }

// take takes a turn, or has got called once there is one. It returns whether it is there now.
func (t *Turns) take(got func()) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.free == 0 {
		t.waiting = append(t.waiting, got)
		return false
	}
	t.free--
	return true
}

// leave gives a turn to the next one who waits.
func (t *Turns) leave() {
	t.mu.Lock()
	if len(t.waiting) == 0 {
		t.free++
		t.mu.Unlock()
		return
	}
	next := t.waiting[0]
	t.waiting = t.waiting[1:]
	t.mu.Unlock()
	next()
}

// mayTakeLong reports whether what is long may go now; else the lane goes on when it is its turn.
func (l *lane) mayTakeLong() bool {
	if l.turns == nil || l.hasTurn || len(l.long) == 0 {
		return true
	}
	if !l.awaits {
		l.hasTurn = l.turns.take(l.itsTurn)
		l.awaits = !l.hasTurn
	}
	return l.hasTurn
}

// itsTurn has what is long go.
func (l *lane) itsTurn() {
	l.mu.Lock()
	l.awaits = false
	l.hasTurn = len(l.long) > 0
	leaves, claimed := !l.hasTurn, l.hasTurn && !l.claimed
	l.claimed = l.claimed || claimed
	l.mu.Unlock()
	switch {
	case leaves:
		l.turns.leave()
	case claimed:
		l.launch()
	}
}

// leaveTurn is for when a batch of what is long is over.
func (l *lane) leaveTurn() {
	l.mu.Lock()
	leaves := l.hasTurn && l.wasLong
	if leaves {
		l.hasTurn = false
	}
	l.mu.Unlock()
	if leaves {
		l.turns.leave()
	}
}
