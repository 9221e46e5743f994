// Package queue keeps those who wait for locks in queues, one for each key, first come, first
// served. It does no I/O: it tells the head of a queue when to try.
package queue

import (
	"sync"
	"time"

	"redlock-proxy/quorum/pacing"
)

const (
	// shortestPoll and longestPoll bound the pause between two tries of a head
	// that waits for a lock which another proxy, or a dead client, holds.
	shortestPoll = 2 * time.Millisecond
	longestPoll  = 32 * time.Millisecond
	// longestStreak is how long the waiters of one process may hand a lock on to
	// each other without a gap; then others get the gap, longer than a poll.
	longestStreak = 300 * time.Millisecond
	streakGap     = longestPoll + longestPoll/4
)

// Polls are the pauses between the tries of a head that nothing is told; rand gives numbers in
// [0, 1).
func Polls(rand func() float64) *pacing.Pauses {
	return &pacing.Pauses{Shortest: shortestPoll, Longest: longestPoll, Rand: rand}
}

// Cue tells the head of a queue what to do.
type Cue int

const (
	// TryNow: the lock may be free.
	TryNow Cue = iota
	// TryLater: it was just granted to the one before.
	TryLater
	// Yield: it may be free, but let other processes have a chance.
	Yield
)

// Delay is how long the head waits before it tries; rand gives numbers in [0, 1).
func (c Cue) Delay(rand func() float64) time.Duration {
	switch c {
	case TryLater:
		return pacing.Jittered(longestPoll, rand)
	case Yield:
		return streakGap
	default:
		return 0
	}
}

// Queues are the queues of all keys. A key without waiters has none. The zero value is empty,
// and safe for concurrent use.
type Queues[K comparable] struct {
	mu    sync.Mutex
	byKey map[K]*queue[K]
}

// queue is first in, first out; only its head contends at the masters.
type queue[K comparable] struct {
	places []*Place[K]
	// streak is when the waiters began to hand the lock on without a gap; zero:
	// they do not.
	streak time.Time
}

// Place is a waiter's place in a queue.
type Place[K comparable] struct {
	key  K
	turn chan Cue // holds one cue
}

// Turn has the cues for this place; it is the head once there was one. Only the last cue
// counts.
func (p *Place[K]) Turn() <-chan Cue { return p.turn }

// tell replaces a cue that was not heeded yet. Only the holder of Queues.mu
// calls it, so there is room.
func (p *Place[K]) tell(c Cue) {
	select {
	case <-p.turn:
	default:
	}
	p.turn <- c
}

// Waits reports whether anything waits for a key.
func (q *Queues[K]) Waits(key K) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.byKey[key] != nil
}

// Len is how many wait, for whatever key.
func (q *Queues[K]) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := 0
	for _, line := range q.byKey {
		n += len(line.places)
	}
	return n
}

// LenOf is how many wait for this key.
func (q *Queues[K]) LenOf(key K) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	if line := q.byKey[key]; line != nil {
		return len(line.places)
	}
	return 0
}

// Enter takes the last place of a key's queue.
func (q *Queues[K]) Enter(key K) *Place[K] {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.byKey == nil {
		q.byKey = map[K]*queue[K]{}
	}
	line := q.byKey[key]
	if line == nil {
		line = &queue[K]{}
		q.byKey[key] = line
	}
	p := &Place[K]{key: key, turn: make(chan Cue, 1)}
	line.places = append(line.places, p)
	if len(line.places) == 1 {
		p.tell(TryNow)
	}
	return p
}

// Leave gives a place up; the next one may become the head. granted is set where the lock was
// granted to this one.
func (q *Queues[K]) Leave(p *Place[K], granted bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	line := q.byKey[p.key]
	wasHead := line.remove(p)
	switch {
	case len(line.places) == 0:
		delete(q.byKey, p.key)
	case wasHead && granted:
		if line.streak.IsZero() {
			line.streak = time.Now()
		}
		line.places[0].tell(TryLater)
	case wasHead:
		line.places[0].tell(TryNow)
	}
}

// remove takes a place out, and reports whether it was the head.
func (l *queue[K]) remove(p *Place[K]) bool {
	for i, other := range l.places {
		if other == p {
			l.places[i] = nil
			if i == 0 {
				l.places = l.places[1:]
			} else {
				l.places = append(l.places[:i], l.places[i+1:]...)
			}
			return i == 0
		}
	}
	return false
}

// Released tells the head of a key's queue that the lock may be free.
func (q *Queues[K]) Released(key K) {
	q.mu.Lock()
	defer q.mu.Unlock()
	line := q.byKey[key]
	if line == nil {
		return
	}
	if !line.streak.IsZero() && time.Since(line.streak) > longestStreak {
		line.streak = time.Time{}
		line.places[0].tell(Yield)
		return
	}
	line.places[0].tell(TryNow)
}
