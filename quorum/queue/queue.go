package queue

import (
	"slices"
	"sync"
	"time"
)

// Queues holds the queues of all keys. A key without recent waiters has no queue. The zero value is
// empty. Queues is safe for concurrent use.
type Queues[K comparable] struct {
	// MayKeepEmpty reports whether the empty queue of a key may be kept for a while. If
	// MayKeepEmpty is nil, every empty queue may be kept.
	MayKeepEmpty func(K) bool
	// Peers, unless it is nil, reports waiters in other processes.
	Peers Peers[K]

	mu    sync.Mutex
	byKey map[K]*queue[K]
	// emptyQueues lists the empty queues that are kept, in the order of keepEmpty. A queue may be
	// listed several times, or have waiters again.
	emptyQueues []emptyQueue[K]
}

// Peers shows other processes that this process waits, learns which of them wait, and passes locks
// to them. Its methods do not wait for the masters.
type Peers[K comparable] interface {
	// IsAlone reports whether this process knows no other process. While it returns true, Queues
	// asks no questions, passes no locks, and puts no marks.
	IsAlone() bool
	// WaiterMark returns the mark of this process at a key, which shows that this process waits for
	// a lock of another process. RemoveWaiterMark removes the mark. Once the removal is queued,
	// RemoveWaiterMark calls sendNext, unless it is nil. Commands that sendNext sends leave in the
	// same batch, behind the removal.
	WaiterMark(key K) WaiterMark
	RemoveWaiterMark(key K, sendNext func())
	// AskForWaiters asks whether another process has a mark at the key, and calls onAnswer once
	// with the answer.
	AskForWaiters(key K, onAnswer func(peerWaits bool))
	// PassLock leaves a lock to the next process with a mark. It calls onAnswer with the ID of that
	// process after notifying it, or with an empty ID if no process waits.
	PassLock(key K, onAnswer func(to string))
	// WatchPeer sets an alarm for the mark of a process to which a lock was left. The View of the
	// alarm is Held until that process tries for the lock or no longer waits.
	WatchPeer(key K, to string) Alarm
}

// WaiterMark is a mark on the masters, which shows that this process waits for a lock. After Put,
// its View is Held until another process leaves the lock to this process.
type WaiterMark interface {
	Alarm
	// Put writes the mark, and reads it.
	Put()
}

// queue holds the waiters for one key, first in, first out. Only its head, and the waiters that may
// get the lock together with the head, send requests to the masters.
type queue[K comparable] struct {
	tickets []*Ticket[K]
	turn    turn
	// undecided is set if the holder is unknown after the last try of a head.
	undecided bool
	// releases counts the releases in this process while the queue exists.
	releases uint64
	// freeSlots is the number of waiters that may get the lock together, as far as this process
	// knows, or negative if it knows no limit.
	freeSlots int
	// keptSince is the time at which keepEmpty was last called for the queue.
	keptSince time.Time
	// marked is set while there is a mark of this process. trying is set from the start of a try of
	// the head until its take is about to be sent.
	marked, trying bool
}

// Ticket represents the place of a waiter in a queue. A waiter for several keys has one for each
// key.
type Ticket[K comparable] struct {
	key     K
	signals chan Signal // has room for one signal
	// slots is the number of clients that may hold the lock together, negative for any number, or 0
	// for an exclusive lock.
	slots int
	// isFirst is set for the first ticket of a waiter.
	isFirst bool
	// idle is set while the waiter does not act on this ticket, because it waits for another of its
	// keys.
	idle bool
	// trying is set while the waiter tries.
	trying bool
	// releases is the number of releases of the key before the waiter's last try. freeSlots is the
	// number of clients that may join after that try, negative for any number.
	releases  uint64
	freeSlots int
}

// Signals returns the channel of signals for the waiter. The first signal means that the waiter has
// become the head, or may try together with the head. Only the last signal counts.
func (p *Ticket[K]) Signals() <-chan Signal { return p.signals }

// sendSignal replaces a signal that was not received yet. Callers hold Queues.mu, so there is room.
func (p *Ticket[K]) sendSignal(c Signal) {
	select {
	case <-p.signals:
	default:
	}
	p.signals <- c
}

// HasWaiter reports whether any client waits for a key, and whether its holder is unknown. Both are
// false if the head of the key's queue is idle, because then no client is known to hold the key.
func (q *Queues[K]) HasWaiter(key K) (waits, undecided bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	keyQueue := q.byKey[key]
	if keyQueue == nil || len(keyQueue.tickets) == 0 || keyQueue.tickets[0].idle {
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
		for _, ticket := range keyQueue.tickets {
			if ticket.isFirst {
				n++
			}
		}
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
func (q *Queues[K]) Enter(key K, slots int) *Ticket[K] { return q.EnterAll([]K{key}, slots)[0] }

// EnterAll adds a waiter at the end of the queues of distinct keys, in one step. So of two waiters
// that share keys, the same one is ahead in each of their queues. slots is 0 for several keys.
func (q *Queues[K]) EnterAll(keys []K, slots int) []*Ticket[K] {
	tickets := make([]*Ticket[K], len(keys))
	q.mu.Lock()
	defer q.mu.Unlock()
	for i, key := range keys {
		tickets[i] = q.enter(key, slots)
		tickets[i].isFirst, tickets[i].idle = i == 0, len(keys) > 1
	}
	return tickets
}

// enter adds a ticket at the end of a key's queue. The caller holds mu.
func (q *Queues[K]) enter(key K, slots int) *Ticket[K] {
	if q.byKey == nil {
		q.byKey = map[K]*queue[K]{}
	}
	keyQueue := q.byKey[key]
	if keyQueue == nil {
		keyQueue = &queue[K]{freeSlots: -1}
		q.byKey[key] = keyQueue
	}
	p := &Ticket[K]{key: key, slots: slots, signals: make(chan Signal, 1)}
	keyQueue.tickets = append(keyQueue.tickets, p)
	if n := len(keyQueue.tickets); n == 1 {
		p.sendSignal(keyQueue.turn.signalOnEntry(time.Now()))
	} else if keyQueue.tickets[n-2].trying && keyQueue.triesWithPrevious(n-1) {
		p.sendSignal(TryNow)
	}
	return p
}

// triesWithPrevious reports whether the waiter with index i, which is not the head, may try at the
// same time as the waiter ahead of it: as many waiters try as may get the lock together.
func (l *queue[K]) triesWithPrevious(i int) bool {
	slots := l.tickets[i].slots
	return slots != 0 && slots == l.tickets[i-1].slots && (slots < 0 || i < slots && (l.freeSlots < 0 || i < l.freeSlots))
}

// recordGrant records a grant to a waiter that has left the queue. It reports whether the new head
// may get the lock, too.
func (l *queue[K]) recordGrant(p *Ticket[K], now time.Time) (nextMayJoin bool) {
	l.turn.recordGrant(len(l.tickets), now)
	if l.releases == p.releases { // else the last release has told the number
		l.freeSlots = p.freeSlots
	}
	return p.slots < 0 || p.slots > 0 && l.freeSlots != 0
}

func (q *Queues[K]) peers() Peers[K] {
	if q.Peers == nil || q.Peers.IsAlone() {
		return nil
	}
	return q.Peers
}

// LeaveAll removes the tickets of a waiter, as Leave does.
func (q *Queues[K]) LeaveAll(tickets []*Ticket[K], granted bool) {
	for _, ticket := range tickets {
		q.Leave(ticket, granted)
	}
}

// Leave removes a ticket; the next ticket may become the head. granted reports whether the lock was
// granted to the waiter with this ticket.
func (q *Queues[K]) Leave(p *Ticket[K], granted bool) {
	if q.leave(p, granted) && q.Peers != nil {
		q.Peers.RemoveWaiterMark(p.key, nil)
	}
}

// leave implements Leave, except for the removal of the mark. removeMark is set if no client of
// this process needs the mark any more.
func (q *Queues[K]) leave(p *Ticket[K], granted bool) (removeMark bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	keyQueue, now := q.byKey[p.key], time.Now()
	keyQueue.undecided = keyQueue.undecided && !granted
	wasHead, nextMayJoin := keyQueue.remove(p), false
	if granted {
		nextMayJoin = keyQueue.recordGrant(p, now)
	}
	if granted || len(keyQueue.tickets) == 0 {
		removeMark, keyQueue.marked = keyQueue.marked, false
	}
	switch {
	case len(keyQueue.tickets) == 0 && granted && (q.MayKeepEmpty == nil || q.MayKeepEmpty(p.key)):
		q.keepEmpty(p.key, keyQueue, now)
	case len(keyQueue.tickets) == 0:
		delete(q.byKey, p.key)
	case wasHead && nextMayJoin && keyQueue.tickets[0].slots != 0:
		keyQueue.tickets[0].sendSignal(TryNow)
	case wasHead && granted:
		keyQueue.tickets[0].sendSignal(TryLater)
	case wasHead:
		keyQueue.tickets[0].sendSignal(keyQueue.turn.signalOnEntry(now))
	}
	return removeMark
}

// beginTry records that a waiter begins a try. The next waiter tries at the same time if both may
// get the lock together.
func (q *Queues[K]) beginTry(tickets ...*Ticket[K]) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, p := range tickets {
		keyQueue := q.byKey[p.key]
		keyQueue.trying, p.trying, p.releases = true, true, keyQueue.releases
		if i := slices.Index(keyQueue.tickets, p) + 1; i < len(keyQueue.tickets) && keyQueue.triesWithPrevious(i) {
			keyQueue.tickets[i].sendSignal(TryNow)
		}
	}
}

// endTry records the end of a try that did not take the lock, and whether a holder is unknown. It
// reports whether the waiter is the head of its queues; else it waits for a signal.
func (q *Queues[K]) endTry(tickets []*Ticket[K], undecided bool) (isHead bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	isHead = true
	for _, p := range tickets {
		p.trying = false
		if keyQueue := q.byKey[p.key]; keyQueue.tickets[0] == p {
			keyQueue.undecided = undecided
		} else {
			isHead = false
		}
	}
	return isHead
}

// SendTake calls send, which sends a take of a key. send must call its argument, unless it is nil,
// so that the commands of that function leave in the same batch as the take. SendTake removes the
// mark of this process ahead of the take, so a reply to the take shows that the mark is gone, and
// the process can put it again. With the last take of the turn, SendTake also asks whether other
// processes wait, if a question is due.
func (q *Queues[K]) SendTake(key K, send func(sendNext func())) {
	removeMark, askPeers := q.prepareTake(key, time.Now())
	var sendQuestion func()
	if askPeers {
		sendQuestion = func() {
			q.Peers.AskForWaiters(key, func(peerWaits bool) {
				if peerWaits {
					q.setPeerWaits(key)
				}
			})
		}
	}
	if removeMark {
		q.Peers.RemoveWaiterMark(key, func() { send(sendQuestion) })
	} else {
		send(sendQuestion)
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

// setLeaveTarget records the process to which the lock of a key was left. An empty ID means that no
// process waits.
func (q *Queues[K]) setLeaveTarget(key K, to string) {
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

// RecordRelease records a release after which a number of waiters may get the lock together,
// negative for any number. It notifies the head of the key's queue, or leaves the lock to another
// process. It reports whether the head tries at once.
func (q *Queues[K]) RecordRelease(key K, freeSlots int) (headTries bool) {
	headTries, passToPeer := q.recordRelease(key, freeSlots)
	if passToPeer {
		q.Peers.PassLock(key, func(to string) { q.setLeaveTarget(key, to) })
	}
	return headTries
}

func (q *Queues[K]) recordRelease(key K, freeSlots int) (headTries, passToPeer bool) {
	alone := q.peers() == nil
	q.mu.Lock()
	defer q.mu.Unlock()
	keyQueue, now := q.byKey[key], time.Now()
	if keyQueue == nil {
		return false, false
	}
	keyQueue.releases++
	keyQueue.freeSlots = freeSlots
	signal, passToPeer, notify := keyQueue.turn.recordRelease(len(keyQueue.tickets), alone, now)
	switch {
	case len(keyQueue.tickets) == 0:
		q.keepEmpty(key, keyQueue, now)
		return false, passToPeer
	case notify:
		keyQueue.tickets[0].sendSignal(signal)
	}
	return notify && signal == TryNow && !keyQueue.tickets[0].idle, passToPeer
}

// recordHeld records that the head found the lock held in its last try. If there was a release
// since the try began, a client of this process may have held the lock. In that case recordHeld
// records nothing and returns true.
func (q *Queues[K]) recordHeld(p *Ticket[K]) (outdated bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	keyQueue := q.byKey[p.key]
	if keyQueue.releases != p.releases {
		return true
	}
	keyQueue.freeSlots = 0
	keyQueue.turn.recordHeld(time.Now())
	return false
}

// isUndecided reports whether the holder of any of a waiter's keys is unknown.
func (q *Queues[K]) isUndecided(tickets []*Ticket[K]) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.ContainsFunc(tickets, func(p *Ticket[K]) bool { return q.byKey[p.key].undecided })
}

// actOn makes a waiter act on one of its tickets only.
func (q *Queues[K]) actOn(active *Ticket[K], tickets []*Ticket[K]) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, p := range tickets {
		p.idle = p != active
	}
}

// mayBeFree reports whether no other waiter is known to wait until a client releases one of a
// waiter's keys: the head of each queue is idle, or is this waiter.
func (q *Queues[K]) mayBeFree(tickets []*Ticket[K]) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return !slices.ContainsFunc(tickets, func(p *Ticket[K]) bool {
		head := q.byKey[p.key].tickets[0]
		return head != p && !head.idle
	})
}

// dropMark removes the mark of this process at the key of a ticket that becomes idle.
func (q *Queues[K]) dropMark(p *Ticket[K]) {
	q.mu.Lock()
	keyQueue := q.byKey[p.key]
	wasMarked := keyQueue.marked
	keyQueue.marked = false
	q.mu.Unlock()
	if wasMarked {
		q.Peers.RemoveWaiterMark(p.key, nil)
	}
}

// leaveTarget returns the process to which the lock of a ticket's key was left, if known, and the
// time until which the lock is left to it.
func (q *Queues[K]) leaveTarget(p *Ticket[K]) (to string, end time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	t := &q.byKey[p.key].turn
	return t.leaveTarget, t.leaveEnd
}

// needsMark reports whether the head needs a mark, because another process seems to have the lock.
// If so, needsMark records that the caller puts the mark.
func (q *Queues[K]) needsMark(p *Ticket[K]) bool {
	alone := q.peers() == nil
	q.mu.Lock()
	defer q.mu.Unlock()
	keyQueue := q.byKey[p.key]
	keyQueue.marked = keyQueue.marked || !alone && !keyQueue.turn.isHeldByOwnClient()
	return keyQueue.marked
}

// recordLockFromPeer records that another process has left the lock to this process.
func (q *Queues[K]) recordLockFromPeer(p *Ticket[K]) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.byKey[p.key].turn.recordLockFromPeer(time.Now())
}

// recordPeerDone records that the process to which the lock was left has had the lock, or no longer
// wants it.
func (q *Queues[K]) recordPeerDone(p *Ticket[K]) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.byKey[p.key].turn.recordPeerDone()
}
