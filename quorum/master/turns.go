package master

import (
	"sync"

	"redlock-proxy/quorum/vote"
)

// Turns lets only a minority of the masters process long operations at the same time. So a majority
// of the masters always answers short operations at once.
type Turns struct {
	mu        sync.Mutex
	freeTurns int
	// onTurnQueue holds, in order, the functions to call when a turn becomes free.
	onTurnQueue []func()
}

// NewTurns returns Turns for a number of masters. At least one master has a turn at a time.
func NewTurns(masters int) *Turns { return &Turns{freeTurns: max(1, masters-vote.Majority(masters))} }

// acquire takes a turn and returns true. If no turn is free, acquire returns false, and release
// calls onTurn when the caller gets a turn.
func (t *Turns) acquire(onTurn func()) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.freeTurns == 0 {
		t.onTurnQueue = append(t.onTurnQueue, onTurn)
		return false
	}
	t.freeTurns--
	return true
}

// release passes the turn to the next waiting lane, if there is one.
func (t *Turns) release() {
	t.mu.Lock()
	if len(t.onTurnQueue) == 0 {
		t.freeTurns++
		t.mu.Unlock()
		return
	}
	onTurn := t.onTurnQueue[0]
	t.onTurnQueue = t.onTurnQueue[1:]
	t.mu.Unlock()
	onTurn()
}

// mayTakeLongOps reports whether the lane may send long ops now. Otherwise startTurn sends them
// when the lane gets a turn.
func (l *lane) mayTakeLongOps() bool {
	if l.turns == nil || l.hasTurn || len(l.longQueue) == 0 {
		return true
	}
	if !l.awaitsTurn {
		l.hasTurn = l.turns.acquire(l.startTurn)
		l.awaitsTurn = !l.hasTurn
	}
	return l.hasTurn
}

// startTurn sends the long ops of the lane, which now has a turn.
func (l *lane) startTurn() {
	l.mu.Lock()
	l.awaitsTurn = false
	l.hasTurn = len(l.longQueue) > 0
	turnUnused, claimed := !l.hasTurn, l.hasTurn && !l.claimed
	l.claimed = l.claimed || claimed
	l.mu.Unlock()
	switch {
	case turnUnused:
		l.turns.release()
	case claimed:
		l.launch()
	}
}

// releaseTurn releases the lane's turn after a batch of long ops.
func (l *lane) releaseTurn() {
	l.mu.Lock()
	turnEnds := l.hasTurn && l.wasLong
	if turnEnds {
		l.hasTurn = false
	}
	l.mu.Unlock()
	if turnEnds {
		l.turns.release()
	}
}
