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
	// Others, unless it is nil, is how those who wait in other processes are known of.
	Others Others[K]

	mu    sync.Mutex
	byKey map[K]*queue[K]
	// parked are queues in which nobody waits now, the oldest first.
	parked []parked[K]
}

// Others carries between processes who waits, and whose turn it is. Its methods do not wait for the masters.
type Others[K comparable] interface {
	// Mark leaves a mark of this process on the masters: it waits for a key that another one has. marked is called when a majority has it. Unmark
	// removes it.
	Mark(key K, marked func())
	Unmark(key K)
	// Ask calls answered, once, with the process that waits for a key and comes next after this one, or with an empty ID.
	Ask(key K, answered func(next string))
	// Pass leaves a lock to a process that waits for it. gone is called if that one does not wait any more.
	Pass(key K, to string, gone func())
	// Passed sets an alarm for a key that was marked: it is Held there until another process leaves the lock to this one.
	Passed(key K) Alarm
}

// queue is first in, first out; only its head contends at the masters.
type queue[K comparable] struct {
	places []*Place[K]
	turn   turn
	// open is set where the last try of a head did not tell who holds the lock.
	open bool
	// releases counts those that were told while the queue is kept.
	releases uint64
	// emptied is when it was parked last, marked when others were told that it waits, or zero.
	emptied, marked time.Time
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
		p.tell(line.turn.entered(time.Now()))
	}
	return p
}

// Leave gives a place up; the next one may become the head. granted is set where the lock was
// granted to this one.
func (q *Queues[K]) Leave(p *Place[K], granted bool) {
	asks, unmarks := q.leave(p, granted)
	if q.Others != nil && unmarks {
		q.Others.Unmark(p.key)
	}
	if q.Others != nil && asks {
		q.askOthers(p.key)
	}
}

// askOthers asks whether others wait for a key.
func (q *Queues[K]) askOthers(key K) {
	q.Others.Ask(key, func(next string) {
		if to := q.answered(key, next); to != "" {
			q.pass(key, to)
		}
	})
}

// pass leaves the lock of a key to another process.
func (q *Queues[K]) pass(key K, to string) {
	q.Others.Pass(key, to, func() { q.refused(key) })
}

// leave reports whether it is to be asked for if others wait, and whether they are to be told that nobody does here.
func (q *Queues[K]) leave(p *Place[K], granted bool) (asks, unmarks bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	line, now := q.byKey[p.key], time.Now()
	line.open = line.open && !granted
	wasHead := line.remove(p)
	if granted {
		asks = line.turn.granted(len(line.places), now)
	}
	if granted || len(line.places) == 0 {
		unmarks, line.marked = !line.marked.IsZero(), time.Time{}
	}
	switch {
	case len(line.places) == 0 && granted && (q.Parks == nil || q.Parks(p.key)):
		q.park(p.key, line, now)
	case len(line.places) == 0:
		delete(q.byKey, p.key)
	case wasHead && granted:
		line.places[0].tell(TryLater)
	case wasHead:
		line.places[0].tell(line.turn.entered(now))
	}
	return asks, unmarks
}

// answered notes which other process waits for a key and comes next, if any. It returns the one to which the lock is left now, if any.
func (q *Queues[K]) answered(key K, next string) (to string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	line := q.byKey[key]
	if line == nil {
		return ""
	}
	cue, to, told := line.turn.answered(next, len(line.places), time.Now())
	if told && len(line.places) > 0 {
		line.places[0].tell(cue)
	}
	return to
}

// refused notes that the process to which the lock of a key was left did not wait any more.
func (q *Queues[K]) refused(key K) {
	q.mu.Lock()
	defer q.mu.Unlock()
	line := q.byKey[key]
	if line == nil {
		return
	}
	if cue, told := line.turn.refused(); told && len(line.places) > 0 {
		line.places[0].tell(cue)
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

// Released tells the head of a key's queue that the lock may be free, or leaves it to another process. It reports whether the head tries for it at once.
func (q *Queues[K]) Released(key K) (tries bool) {
	tries, to := q.released(key)
	if to != "" {
		q.pass(key, to)
	}
	return tries
}

func (q *Queues[K]) released(key K) (tries bool, to string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	line, now := q.byKey[key], time.Now()
	if line == nil {
		return false, ""
	}
	line.releases++
	cue, to, told := line.turn.released(now)
	switch {
	case len(line.places) == 0:
		q.park(key, line, now)
		return false, to
	case told:
		line.places[0].tell(cue)
	}
	return told && cue == TryNow, to
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
	line.turn.lost(time.Now())
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

// gapOf is until when the lock of a place's key is left to others.
func (q *Queues[K]) gapOf(p *Place[K]) time.Time {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.byKey[p.key].turn.gap
}

// markPause is the time between two marks of a key: who has the lock does not ask for them more often than that by much.
const markPause = 20 * time.Millisecond

// mark leaves a mark for others, unless one was left just now. marked is called when a majority of the masters has it.
func (q *Queues[K]) mark(p *Place[K], marked func()) {
	if q.Others != nil && q.marks(p, time.Now()) {
		q.Others.Mark(p.key, marked)
	}
}

func (q *Queues[K]) marks(p *Place[K], now time.Time) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	line := q.byKey[p.key]
	if line.turn.isOurs() || now.Sub(line.marked) < markPause {
		return false
	}
	line.marked = now
	return true
}

// passed notes that another process has left the lock to this one: if the try fails it marks again, without a pause.
func (q *Queues[K]) passed(p *Place[K]) {
	q.mu.Lock()
	defer q.mu.Unlock()
	line := q.byKey[p.key]
	line.marked = line.marked.Add(-markPause)
	line.turn.returned(time.Now())
}
