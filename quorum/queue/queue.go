package queue

import (
	"sync"
	"time"
)

// Queues are the queues of all keys. A key for which nobody has waited for a while has none. The
// zero value is empty, and safe for concurrent use.
type Queues[K comparable] struct {
	// Parks reports whether the queue of a key may be kept for a while when nobody waits in it;
	// nil: all may.
	Parks func(K) bool
	// Others, unless it is nil, is how those who wait in other processes are known of.
	Others Others[K]

	mu    sync.Mutex
	byKey map[K]*queue[K]
	// parked are queues in which nobody waits now, the oldest first.
	parked []parked[K]
}

// Others carries between processes who waits, and whose turn it is. Its methods do not wait for the
// masters.
type Others[K comparable] interface {
	// Alone reports whether no other process is known: then there is nothing to carry.
	Alone() bool
	// Mark is the mark of this process at a key: it waits for a lock that another one has. Unmark
	// removes it; and, unless it is nil, is called once that is queued, in time for what it sends
	// to leave with that, behind it.
	Mark(key K) Mark
	Unmark(key K, and func())
	// Ask calls answered, once, with whether another process has a mark at a key.
	Ask(key K, answered func(wanted bool))
	// Pass leaves a lock to the process that has a mark and comes next after this one, and calls
	// answered with it once it was told, or with an empty ID if none waits.
	Pass(key K, answered func(to string))
	// Left sets an alarm for the mark of a process to which a lock was left: it is Held there until
	// that one tries for the lock, or waits no more.
	Left(key K, to string) Alarm
}

// Mark is a mark on the masters. It is Held there, once it was put, until another process leaves
// the lock to this one.
type Mark interface {
	Alarm
	// Put puts it there, and looks at it.
	Put()
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
	// marked is set while there is a mark of this process, trying from when the head begins a try
	// until that is about to be sent.
	marked, trying bool
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

// others are the other processes, or nil where none is known.
func (q *Queues[K]) others() Others[K] {
	if q.Others == nil || q.Others.Alone() {
		return nil
	}
	return q.Others
}

// Leave gives a place up; the next one may become the head. granted is set where the lock was
// granted to this one.
func (q *Queues[K]) Leave(p *Place[K], granted bool) {
	if q.leave(p, granted) && q.Others != nil {
		q.Others.Unmark(p.key, nil)
	}
}

// leave reports whether others are to be told that nobody waits here.
func (q *Queues[K]) leave(p *Place[K], granted bool) (unmarks bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	line, now := q.byKey[p.key], time.Now()
	line.open = line.open && !granted
	wasHead := line.remove(p)
	if granted {
		line.turn.granted(len(line.places), now)
	}
	if granted || len(line.places) == 0 {
		unmarks, line.marked = line.marked, false
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
	return unmarks
}

// tries notes that the head begins a try, and returns how many releases were told before.
func (q *Queues[K]) tries(p *Place[K]) (releases uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	line := q.byKey[p.key]
	line.trying = true
	return line.releases
}

// Taking is for a take of a key that is about to be sent, by send, which calls what it gets, unless
// that is nil, in time for what that sends to leave with the take. The mark of this process is
// removed before: a take that was answered has removed it, so that it can be put anew. If the lock
// is the last one of the turn, others are asked if they wait.
func (q *Queues[K]) Taking(key K, send func(and func())) {
	unmarks, asks := q.taking(key, time.Now())
	var ask func()
	if asks {
		ask = func() {
			q.Others.Ask(key, func(wanted bool) {
				if wanted {
					q.wanted(key)
				}
			})
		}
	}
	if unmarks {
		q.Others.Unmark(key, func() { send(ask) })
	} else {
		send(ask)
	}
}

func (q *Queues[K]) taking(key K, now time.Time) (unmarks, asks bool) {
	alone := q.others() == nil
	q.mu.Lock()
	defer q.mu.Unlock()
	line := q.byKey[key]
	if line == nil || !line.trying {
		return false, false
	}
	line.trying = false
	unmarks, line.marked = line.marked, false
	return unmarks, !alone && line.turn.asks(len(line.places)-1, now)
}

// wanted notes that another process waits for a key.
func (q *Queues[K]) wanted(key K) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if line := q.byKey[key]; line != nil {
		line.turn.wanted = true
	}
}

// left notes to which process the lock of a key was left, or that none waits.
func (q *Queues[K]) left(key K, to string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	line := q.byKey[key]
	if line == nil {
		return
	}
	if cue, told := line.turn.left(to, time.Now()); told && len(line.places) > 0 {
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

// Released tells the head of a key's queue that the lock may be free, or leaves it to another
// process. It reports whether the head tries for it at once.
func (q *Queues[K]) Released(key K) (tries bool) {
	tries, passes := q.released(key)
	if passes {
		q.Others.Pass(key, func(to string) { q.left(key, to) })
	}
	return tries
}

func (q *Queues[K]) released(key K) (tries, passes bool) {
	alone := q.others() == nil
	q.mu.Lock()
	defer q.mu.Unlock()
	line, now := q.byKey[key], time.Now()
	if line == nil {
		return false, false
	}
	line.releases++
	cue, passes, told := line.turn.released(len(line.places), alone, now)
	switch {
	case len(line.places) == 0:
		q.park(key, line, now)
		return false, passes
	case told:
		line.places[0].tell(cue)
	}
	return told && cue == TryNow, passes
}

// lost tells that the head found the lock in other hands, after so many releases. Where one more
// has been told since, these may have been those of this process: then it does nothing, and reports
// so.
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

// leftTo is to which process the lock of a place's key was left, if that is known, and until when.
func (q *Queues[K]) leftTo(p *Place[K]) (to string, gap time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	t := &q.byKey[p.key].turn
	return t.to, t.gap
}

// marks reports whether others are to be told that it waits: another process has the lock, as far
// as is known.
func (q *Queues[K]) marks(p *Place[K]) bool {
	alone := q.others() == nil
	q.mu.Lock()
	defer q.mu.Unlock()
	line := q.byKey[p.key]
	line.marked = line.marked || !alone && !line.turn.isOurs()
	return line.marked
}

// passed notes that another process has left the lock to this one.
func (q *Queues[K]) passed(p *Place[K]) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.byKey[p.key].turn.returned(time.Now())
}

// gone notes that the process to which the lock was left has had it, or wants it no more.
func (q *Queues[K]) gone(p *Place[K]) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.byKey[p.key].turn.gone()
}
