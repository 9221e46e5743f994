package quorum

import (
	"sync"
	"time"
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

// cue tells the head of a queue what to do.
type cue int

const (
	tryNow   cue = iota // the lock may be free
	tryLater            // it was just granted to the one before
	yield               // it may be free, but let other processes have a chance
)

// delay is how long the head waits before it tries.
func (c cue) delay(rand func() float64) time.Duration {
	switch c {
	case tryLater:
		return jittered(longestPoll, rand)
	case yield:
		return streakGap
	default:
		return 0
	}
}

// queues holds those who wait, one queue per key. A key without waiters has
// none.
type queues struct {
	mu    sync.Mutex
	byKey map[Key]*queue
}

// queue is first in, first out; only its head contends at the masters.
type queue struct {
	places []*place
	// streak is when the waiters began to hand the lock on without a gap; zero:
	// they do not.
	streak time.Time
}

// place is a waiter's place in a queue.
type place struct {
	key  Key
	turn chan cue // holds one cue; the place is the head once there was one
}

// tell replaces a cue that was not heeded yet. Only the holder of queues.mu
// calls it, so there is room.
func (p *place) tell(c cue) {
	select {
	case <-p.turn:
	default:
	}
	p.turn <- c
}

func (q *queues) waiting(key Key) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.byKey[key] != nil
}

// enter takes the last place.
func (q *queues) enter(key Key) *place {
	q.mu.Lock()
	defer q.mu.Unlock()
	line := q.byKey[key]
	if line == nil {
		line = &queue{}
		q.byKey[key] = line
	}
	p := &place{key: key, turn: make(chan cue, 1)}
	line.places = append(line.places, p)
	if len(line.places) == 1 {
		p.tell(tryNow)
	}
	return p
}

// leave gives the place up; the next one may become the head.
func (q *queues) leave(p *place, granted bool) {
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
		line.places[0].tell(tryLater)
	case wasHead:
		line.places[0].tell(tryNow)
	}
}

// remove takes a place out, and reports whether it was the head.
func (l *queue) remove(p *place) bool {
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

// released cues the head that the lock may be free.
func (q *queues) released(key Key) {
	q.mu.Lock()
	defer q.mu.Unlock()
	line := q.byKey[key]
	if line == nil {
		return
	}
	if !line.streak.IsZero() && time.Since(line.streak) > longestStreak {
		line.streak = time.Time{}
		line.places[0].tell(yield)
		return
	}
	line.places[0].tell(tryNow)
}

// pacing spaces the tries of a head: longer each time, and never in step with
// the head of another process.
type pacing struct {
	rand  func() float64
	pause time.Duration
}

func (p *pacing) reset() { p.pause = 0 }

func (p *pacing) next() time.Duration {
	p.pause = min(max(2*p.pause, shortestPoll), longestPoll)
	return jittered(p.pause, p.rand)
}

// jittered is between a half of d and d.
func jittered(d time.Duration, rand func() float64) time.Duration {
	return d/2 + time.Duration(rand()*float64(d)/2)
}
