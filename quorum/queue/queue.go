package queue

import (
	"sync"
	"time"
)

// Queues holds the queues of all keys. A key without recent waiters has no queue. The zero value is
// empty. Queues is safe for concurrent use.
type Queues[K comparable] struct {
	// Parks reports whether the empty queue of a key may be kept for a while. If Parks is nil,
	// every empty queue may be kept.
	Parks func(K) bool
	// Peers, unless it is nil, reports waiters in other processes.
	Peers Peers[K]

	mu    sync.Mutex
	byKey map[K]*queue[K]
	// parked holds the empty queues, the oldest first.
	parked []parked[K]
}

// Peers exchanges with other processes which of them wait, and whose turn it is. Its methods do not
// wait for the masters.
type Peers[K comparable] interface {
	// Alone reports whether no other process is known. Then there is nothing to exchange.
	Alone() bool
	// Mark returns the mark of this process at a key, which shows that it waits for a lock of
	// another process. Unmark removes the mark. Once the removal is queued it calls and, unless
	// that is nil, so that commands that and sends leave in the same batch, behind the removal.
	Mark(key K) Mark
	Unmark(key K, and func())
	// Ask calls answered once. wanted reports whether another process has a mark at the key.
	Ask(key K, answered func(wanted bool))
	// Pass leaves a lock to the next process with a mark, and calls answered with its ID after it
	// was notified, or with an empty ID if no process waits.
	Pass(key K, answered func(to string))
	// WatchPeer sets an alarm for the mark of a process to which a lock was left. It is Held until
	// that process tries for the lock or no longer waits.
	WatchPeer(key K, to string) Alarm
}

// Mark is a mark on the masters. After Put it is Held until another process leaves the lock to this
// process.
type Mark interface {
	Alarm
	// Put writes the mark, and looks at it.
	Put()
}

// queue holds the waiters for one key, first in, first out. Only its head sends requests to the
// masters.
type queue[K comparable] struct {
	places []*Ticket[K]
	turn   turn
	// undecided is set if the last try of a head left it unknown who holds the lock.
	undecided bool
	// releases counts the releases in this process while the queue exists.
	releases uint64
	// emptied is when the queue was last parked.
	emptied time.Time
	// marked is set while there is a mark of this process. trying is set from the start of a try of
	// the head until its take is about to be sent.
	marked, trying bool
}

// Ticket is the place of a waiter in a queue.
type Ticket[K comparable] struct {
	key  K
	turn chan Signal // holds at most one signal
}

// Turn returns the channel of signals for this place. After the first signal it is the head. Only
// the last signal counts.
func (p *Ticket[K]) Turn() <-chan Signal { return p.turn }

// sendSignal replaces a signal that was not received yet. Callers hold Queues.mu, so there is room.
func (p *Ticket[K]) sendSignal(c Signal) {
	select {
	case <-p.turn:
	default:
	}
	p.turn <- c
}

// Waits reports whether any client waits for a key. undecided reports that the holder is unknown.
func (q *Queues[K]) Waits(key K) (waits, undecided bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	line := q.byKey[key]
	if line == nil || len(line.places) == 0 {
		return false, false
	}
	return true, line.undecided
}

// Len returns the number of waiters for all keys.
func (q *Queues[K]) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := 0
	for _, line := range q.byKey {
		n += len(line.places)
	}
	return n
}

// LenOf returns the number of waiters for this key.
func (q *Queues[K]) LenOf(key K) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	if line := q.byKey[key]; line != nil {
		return len(line.places)
	}
	return 0
}

// Enter adds a place at the end of a key's queue.
func (q *Queues[K]) Enter(key K) *Ticket[K] {
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
	p := &Ticket[K]{key: key, turn: make(chan Signal, 1)}
	line.places = append(line.places, p)
	if len(line.places) == 1 {
		p.sendSignal(line.turn.signalOnEntry(time.Now()))
	}
	return p
}

func (q *Queues[K]) peers() Peers[K] {
	if q.Peers == nil || q.Peers.Alone() {
		return nil
	}
	return q.Peers
}

// Leave removes a place; the next place may become the head. granted reports whether the lock was
// granted to this place.
func (q *Queues[K]) Leave(p *Ticket[K], granted bool) {
	if q.leave(p, granted) && q.Peers != nil {
		q.Peers.Unmark(p.key, nil)
	}
}

// leave reports whether to remove the mark, because no client of this process needs it.
func (q *Queues[K]) leave(p *Ticket[K], granted bool) (unmarks bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	line, now := q.byKey[p.key], time.Now()
	line.undecided = line.undecided && !granted
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
		line.places[0].sendSignal(TryLater)
	case wasHead:
		line.places[0].sendSignal(line.turn.signalOnEntry(now))
	}
	return unmarks
}

// beginTry records that the head begins a try, and returns the number of releases before it.
func (q *Queues[K]) beginTry(p *Ticket[K]) (releases uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	line := q.byKey[p.key]
	line.trying = true
	return line.releases
}

// Taking is called when a take of a key is about to be sent by send. send must call its argument,
// unless that is nil, so that its commands leave in the same batch as the take. Taking removes the
// mark of this process ahead of the take, so a reply to the take shows that the mark is gone and
// can be put again. For the last take of the turn, Taking also asks whether other processes wait.
func (q *Queues[K]) Taking(key K, send func(and func())) {
	unmarks, asks := q.prepareTake(key, time.Now())
	var ask func()
	if asks {
		ask = func() {
			q.Peers.Ask(key, func(wanted bool) {
				if wanted {
					q.setWanted(key)
				}
			})
		}
	}
	if unmarks {
		q.Peers.Unmark(key, func() { send(ask) })
	} else {
		send(ask)
	}
}

func (q *Queues[K]) prepareTake(key K, now time.Time) (unmarks, asks bool) {
	alone := q.peers() == nil
	q.mu.Lock()
	defer q.mu.Unlock()
	line := q.byKey[key]
	if line == nil || !line.trying {
		return false, false
	}
	line.trying = false
	unmarks, line.marked = line.marked, false
	return unmarks, !alone && line.turn.shouldAsk(len(line.places)-1, now)
}

// setWanted records that another process waits for a key.
func (q *Queues[K]) setWanted(key K) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if line := q.byKey[key]; line != nil {
		line.turn.wanted = true
	}
}

// setLeftTo records to which process the lock of a key was left, or that no process waits.
func (q *Queues[K]) setLeftTo(key K, to string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	line := q.byKey[key]
	if line == nil {
		return
	}
	if cue, told := line.turn.leaveToPeer(to, time.Now()); told && len(line.places) > 0 {
		line.places[0].sendSignal(cue)
	}
}

// remove removes a place, and reports whether it was the head.
func (l *queue[K]) remove(p *Ticket[K]) bool {
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

// Released records a release. It notifies the head of the key's queue, or leaves the lock to
// another process. It reports whether the head tries at once.
func (q *Queues[K]) Released(key K) (tries bool) {
	tries, passes := q.released(key)
	if passes {
		q.Peers.Pass(key, func(to string) { q.setLeftTo(key, to) })
	}
	return tries
}

func (q *Queues[K]) released(key K) (tries, passes bool) {
	alone := q.peers() == nil
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
		line.places[0].sendSignal(cue)
	}
	return told && cue == TryNow, passes
}

// foundHeld records that the head found the lock held, in a try that began after this number of
// releases. If there was a release since, a client of this process may have held the lock: then
// foundHeld only returns true.
func (q *Queues[K]) foundHeld(p *Ticket[K], releases uint64) (outdated bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	line := q.byKey[p.key]
	if line.releases != releases {
		return true
	}
	line.turn.foundHeld(time.Now())
	return false
}

// setUndecided records whether a try of the head left it unknown who holds the lock.
func (q *Queues[K]) setUndecided(p *Ticket[K], undecided bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.byKey[p.key].undecided = undecided
}

func (q *Queues[K]) isUndecided(p *Ticket[K]) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.byKey[p.key].undecided
}

// leftTo returns the process to which the lock of a place's key was left, if known, and until when.
func (q *Queues[K]) leftTo(p *Ticket[K]) (to string, gap time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	t := &q.byKey[p.key].turn
	return t.leftTo, t.leftUntil
}

// needsMark reports whether the head needs a mark, because another process seems to have the lock.
func (q *Queues[K]) needsMark(p *Ticket[K]) bool {
	alone := q.peers() == nil
	q.mu.Lock()
	defer q.mu.Unlock()
	line := q.byKey[p.key]
	line.marked = line.marked || !alone && !line.turn.isOurs()
	return line.marked
}

// receivedFromPeer records that another process has left the lock to this process.
func (q *Queues[K]) receivedFromPeer(p *Ticket[K]) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.byKey[p.key].turn.receivedFromPeer(time.Now())
}

// peerDone records that the process to which the lock was left has had it, or no longer wants it.
func (q *Queues[K]) peerDone(p *Ticket[K]) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.byKey[p.key].turn.peerDone()
}
