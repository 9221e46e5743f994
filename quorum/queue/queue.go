package queue

import (
	"slices"
	"sync"
	"time"
)

// Queues holds the queues of all keys. A key without recent waiters has no queue. The zero value is
// empty. Queues is safe for concurrent use.
type Queues[K comparable] struct {
	// MayPark reports whether the empty queue of a key may be kept for a while. If MayPark is nil,
	// every empty queue may be kept.
	MayPark func(K) bool
	// Peers, unless it is nil, reports waiters in other processes.
	Peers Peers[K]

	mu    sync.Mutex
	byKey map[K]*queue[K]
	// parked holds the empty queues, the oldest first.
	parked []parkedQueue[K]
}

// Peers shows other processes that this process waits, learns which of them wait, and passes locks
// to them. Its methods do not wait for the masters.
type Peers[K comparable] interface {
	// Alone reports whether this process knows no other process. While it returns true, Queues asks
	// no questions, passes no locks, and starts no marks.
	Alone() bool
	// Mark returns the mark of this process at a key, which shows that this process waits for a
	// lock of another process. Unmark removes the mark. Once the removal is queued, Unmark calls
	// the function then, unless it is nil. Commands that this function sends leave in the same
	// batch, behind the removal.
	Mark(key K) Mark
	Unmark(key K, then func())
	// AskIfWanted asks whether another process has a mark at the key, and calls onAnswer once with
	// the answer.
	AskIfWanted(key K, onAnswer func(peerWaits bool))
	// PassLock leaves a lock to the next process with a mark. It calls onAnswer with the ID of that
	// process after notifying it, or with an empty ID if no process waits.
	PassLock(key K, onAnswer func(to string))
	// WatchPeer sets an alarm for the mark of a process to which a lock was left. The View of the
	// alarm is Held until that process tries for the lock or no longer waits.
	WatchPeer(key K, to string) Alarm
}

// Mark is a mark of this process on the masters. After Put, its View is Held until another process
// leaves the lock to this process.
type Mark interface {
	Alarm
	// Put writes the mark, and looks at it.
	Put()
}

// queue holds the waiters for one key, first in, first out. Only its head sends requests to the
// masters.
type queue[K comparable] struct {
	tickets []*Ticket[K]
	turn    turn
	// undecided is set if the holder is unknown after the last try of a head.
	undecided bool
	// releases counts the releases in this process while the queue exists.
	releases uint64
	// parkedAt is the time at which the queue was last parked.
	parkedAt time.Time
	// marked is set while there is a mark of this process. trying is set from the start of a try of
	// the head until its take is about to be sent.
	marked, trying bool
}

// Ticket represents the place of a waiter in a queue.
type Ticket[K comparable] struct {
	key     K
	signals chan Signal // has room for one signal
	// slots is the number of clients that may hold the lock together, negative for any number, or 0
	// for an exclusive lock.
	slots int
	// trying is set while the waiter tries.
	trying bool
}

// Signals returns the channel of signals for the waiter. The first signal means that the waiter has
// become the head. Only the last signal counts.
func (p *Ticket[K]) Signals() <-chan Signal { return p.signals }

// sendSignal replaces a signal that was not received yet. Callers hold Queues.mu, so there is room.
func (p *Ticket[K]) sendSignal(c Signal) {
	select {
	case <-p.signals:
	default:
	}
	p.signals <- c
}

// Waits reports whether any client waits for a key. undecided reports that the holder is unknown.
func (q *Queues[K]) Waits(key K) (waits, undecided bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	keyQueue := q.byKey[key]
	if keyQueue == nil || len(keyQueue.tickets) == 0 {
		return false, false
	}
	return true, keyQueue.undecided
}

// Len returns the number of waiters for all keys.
func (q *Queues[K]) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := 0
	for _, keyQueue := range q.byKey {
		n += len(keyQueue.tickets)
	}
	return n
}

// LenOf returns the number of waiters for this key.
func (q *Queues[K]) LenOf(key K) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	if keyQueue := q.byKey[key]; keyQueue != nil {
		return len(keyQueue.tickets)
	}
	return 0
}

// Enter adds a ticket at the end of a key's queue. slots is the number of clients that may hold the
// lock together, negative for any number, or 0 for an exclusive lock.
func (q *Queues[K]) Enter(key K, slots int) *Ticket[K] {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.byKey == nil {
		q.byKey = map[K]*queue[K]{}
	}
	keyQueue := q.byKey[key]
	if keyQueue == nil {
		keyQueue = &queue[K]{}
		q.byKey[key] = keyQueue
	}
	p := &Ticket[K]{key: key, slots: slots, signals: make(chan Signal, 1)}
	keyQueue.tickets = append(keyQueue.tickets, p)
	if n := len(keyQueue.tickets); n == 1 {
		p.sendSignal(keyQueue.turn.signalOnEntry(time.Now()))
	} else if before := keyQueue.tickets[n-2]; before.trying && before.triesWith(p) {
		p.sendSignal(TryNow)
	}
	return p
}

// triesWith reports whether the waiter behind this one may try at the same time.
func (p *Ticket[K]) triesWith(next *Ticket[K]) bool { return p.slots < 0 && next.slots < 0 }

func (q *Queues[K]) peers() Peers[K] {
	if q.Peers == nil || q.Peers.Alone() {
		return nil
	}
	return q.Peers
}

// Leave removes a ticket; the next ticket may become the head. granted reports whether the lock was
// granted to the waiter with this ticket.
func (q *Queues[K]) Leave(p *Ticket[K], granted bool) {
	if q.leave(p, granted) && q.Peers != nil {
		q.Peers.Unmark(p.key, nil)
	}
}

// leave implements Leave, but does not remove the mark. removeMark is set if no client of this
// process needs the mark any more.
func (q *Queues[K]) leave(p *Ticket[K], granted bool) (removeMark bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	keyQueue, now := q.byKey[p.key], time.Now()
	keyQueue.undecided = keyQueue.undecided && !granted
	wasHead := keyQueue.remove(p)
	if granted {
		keyQueue.turn.granted(len(keyQueue.tickets), now)
	}
	if granted || len(keyQueue.tickets) == 0 {
		removeMark, keyQueue.marked = keyQueue.marked, false
	}
	switch {
	case len(keyQueue.tickets) == 0 && granted && (q.MayPark == nil || q.MayPark(p.key)):
		q.park(p.key, keyQueue, now)
	case len(keyQueue.tickets) == 0:
		delete(q.byKey, p.key)
	case wasHead && granted && p.slots != 0 && keyQueue.tickets[0].slots != 0:
		keyQueue.tickets[0].sendSignal(TryNow)
	case wasHead && granted:
		keyQueue.tickets[0].sendSignal(TryLater)
	case wasHead:
		keyQueue.tickets[0].sendSignal(keyQueue.turn.signalOnEntry(now))
	}
	return removeMark
}

// beginTry records that a waiter begins a try, and returns the number of releases before it. The
// next waiter tries at the same time if any number of clients may hold the lock.
func (q *Queues[K]) beginTry(p *Ticket[K]) (releases uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	keyQueue := q.byKey[p.key]
	keyQueue.trying, p.trying = true, true
	if i := slices.Index(keyQueue.tickets, p) + 1; p.slots < 0 && i < len(keyQueue.tickets) && p.triesWith(keyQueue.tickets[i]) {
		keyQueue.tickets[i].sendSignal(TryNow)
	}
	return keyQueue.releases
}

// endTry records the end of a try that did not take the lock, and whether the holder is unknown. It
// reports whether the waiter is the head; else it waits for a signal.
func (q *Queues[K]) endTry(p *Ticket[K], undecided bool) (isHead bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	keyQueue := q.byKey[p.key]
	p.trying = false
	if isHead = keyQueue.tickets[0] == p; isHead {
		keyQueue.undecided = undecided
	}
	return isHead
}

// SendTake calls send, which sends a take of a key. send must call its argument, unless it is nil,
// so that the commands of that function leave in the same batch as the take. SendTake removes the
// mark of this process ahead of the take, so a reply to the take shows that the mark is gone, and
// the process can put it again. For the last take of the turn, SendTake also asks whether other
// processes wait.
func (q *Queues[K]) SendTake(key K, send func(then func())) {
	removeMark, askPeers := q.prepareTake(key, time.Now())
	var ask func()
	if askPeers {
		ask = func() {
			q.Peers.AskIfWanted(key, func(peerWaits bool) {
				if peerWaits {
					q.setPeerWaits(key)
				}
			})
		}
	}
	if removeMark {
		q.Peers.Unmark(key, func() { send(ask) })
	} else {
		send(ask)
	}
}

func (q *Queues[K]) prepareTake(key K, now time.Time) (removeMark, askPeers bool) {
	alone := q.peers() == nil
	q.mu.Lock()
	defer q.mu.Unlock()
	keyQueue := q.byKey[key]
	if keyQueue == nil || !keyQueue.trying {
		return false, false
	}
	keyQueue.trying = false
	removeMark, keyQueue.marked = keyQueue.marked, false
	return removeMark, !alone && keyQueue.turn.shouldAsk(len(keyQueue.tickets)-1, now)
}

// setPeerWaits records that another process waits for a key.
func (q *Queues[K]) setPeerWaits(key K) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if keyQueue := q.byKey[key]; keyQueue != nil {
		keyQueue.turn.peerWaits = true
	}
}

// setLeftTo records the process to which the lock of a key was left. An empty ID means that no
// process waits.
func (q *Queues[K]) setLeftTo(key K, to string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	keyQueue := q.byKey[key]
	if keyQueue == nil {
		return
	}
	if signal, notify := keyQueue.turn.leaveToPeer(to, time.Now()); notify && len(keyQueue.tickets) > 0 {
		keyQueue.tickets[0].sendSignal(signal)
	}
}

// remove removes a ticket, and reports whether it was the head.
func (l *queue[K]) remove(p *Ticket[K]) bool {
	for i, ticket := range l.tickets {
		if ticket == p {
			l.tickets[i] = nil
			if i == 0 {
				l.tickets = l.tickets[1:]
			} else {
				l.tickets = append(l.tickets[:i], l.tickets[i+1:]...)
			}
			return i == 0
		}
	}
	return false
}

// Released records a release. It notifies the head of the key's queue, or leaves the lock to
// another process. It reports whether the head tries at once.
func (q *Queues[K]) Released(key K) (headTries bool) {
	headTries, passToPeer := q.released(key)
	if passToPeer {
		q.Peers.PassLock(key, func(to string) { q.setLeftTo(key, to) })
	}
	return headTries
}

func (q *Queues[K]) released(key K) (headTries, passToPeer bool) {
	alone := q.peers() == nil
	q.mu.Lock()
	defer q.mu.Unlock()
	keyQueue, now := q.byKey[key], time.Now()
	if keyQueue == nil {
		return false, false
	}
	keyQueue.releases++
	signal, passToPeer, notify := keyQueue.turn.released(len(keyQueue.tickets), alone, now)
	switch {
	case len(keyQueue.tickets) == 0:
		q.park(key, keyQueue, now)
		return false, passToPeer
	case notify:
		keyQueue.tickets[0].sendSignal(signal)
	}
	return notify && signal == TryNow, passToPeer
}

// foundHeld records that the head found the lock held, in a try that began after this number of
// releases. If there was a release since then, a client of this process may have held the lock. In
// that case foundHeld records nothing and returns true.
func (q *Queues[K]) foundHeld(p *Ticket[K], releases uint64) (outdated bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	keyQueue := q.byKey[p.key]
	if keyQueue.releases != releases {
		return true
	}
	keyQueue.turn.foundHeld(time.Now())
	return false
}

func (q *Queues[K]) isUndecided(p *Ticket[K]) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.byKey[p.key].undecided
}

// leftTo returns the process to which the lock of a ticket's key was left, if known, and the time
// until which the lock is left to it.
func (q *Queues[K]) leftTo(p *Ticket[K]) (to string, until time.Time) {
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
	keyQueue := q.byKey[p.key]
	keyQueue.marked = keyQueue.marked || !alone && !keyQueue.turn.isOurs()
	return keyQueue.marked
}

// receivedFromPeer records that another process has left the lock to this process.
func (q *Queues[K]) receivedFromPeer(p *Ticket[K]) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.byKey[p.key].turn.receivedFromPeer(time.Now())
}

// peerDone records that the process to which the lock was left has had the lock, or no longer wants
// it.
func (q *Queues[K]) peerDone(p *Ticket[K]) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.byKey[p.key].turn.peerDone()
}
