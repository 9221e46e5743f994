package queue

import (
	"sync"
	"time"
)

// Queues are the queues of all keys. A key for which nobody has waited for a while has none. The zero value is
// empty, and safe for concurrent use.
type Queues[K comparable] struct {
	// Parks reports whether the queue of a key may be kept for a while when nobody waits in it; nil: all may.
	Parks func(K) bool
	// Alone reports whether no other process is known that may wait; nil: one may.
	Alone func() bool

	mu    sync.Mutex
	byKey map[K]*queue[K]
	// parked are queues in which nobody waits now, the oldest first.
	parked []parked[K]
}

// queue is first in, first out; only its head contends at the masters.
type queue[K comparable] struct {
	places []*Place[K]
	turn   turn
	// open is set where the last try of a head did not tell who holds the lock.
	open bool
	// releases counts those that were told while the queue is kept.
	releases uint64
	// emptied is when it was parked last.
	emptied time.Time
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

// Waits reports whether anything waits for a key; open: although it is not known who holds it.
func (q *Queues[K]) Waits(key K) (waits, open bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	line := q.byKey[key]
	if line == nil || len(line.places) == 0 {
		return false, false
	}
	return true, line.open
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
		p.tell(line.turn.entered())
	}
	return p
}

// Leave gives a place up; the next one may become the head. granted is set where the lock was
// granted to this one.
func (q *Queues[K]) Leave(p *Place[K], granted bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	line := q.byKey[p.key]
	line.open = line.open && !granted
	wasHead := line.remove(p)
	switch {
	case len(line.places) == 0 && granted && (q.Parks == nil || q.Parks(p.key)):
		line.turn.granted(0, time.Now())
		q.park(p.key, line, time.Now())
	case len(line.places) == 0:
		delete(q.byKey, p.key)
	case wasHead && granted:
		line.turn.granted(len(line.places), time.Now())
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
	line.releases++
	if len(line.places) == 0 {
		line.turn.releasedAlone(time.Now())
		q.park(key, line, time.Now())
		return
	}
	if cue, told := line.turn.released(time.Now(), q.Alone); told {
		line.places[0].tell(cue)
	}
}

// releasesOf is how many releases were told to a place's queue.
func (q *Queues[K]) releasesOf(p *Place[K]) uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.byKey[p.key].releases
}

// lost tells that the head found the lock in other hands, after so many releases. Where one more has been told since, these may have been those of
// this process: then it does nothing, and reports so.
func (q *Queues[K]) lost(p *Place[K], releases uint64) (outdated bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	line := q.byKey[p.key]
	if line.releases != releases {
		return true
	}
	line.turn.lost()
	return false
}

// opened notes whether a try of the head did not tell who holds the lock.
func (q *Queues[K]) opened(p *Place[K], open bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.byKey[p.key].open = open
}

// isOpen reports whether it is not known who holds the lock.
func (q *Queues[K]) isOpen(p *Place[K]) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.byKey[p.key].open
}

// isContended reports whether others wait for the lock in other processes, as far as is known.
func (q *Queues[K]) isContended(p *Place[K]) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.byKey[p.key].turn.contended
}
