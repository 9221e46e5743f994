package master

import (
	"sync"
)

const (
	// maxBatch limits the number of ops in a batch of short ops. shortBatchBytes limits their
	// weight in bytes, as longBatchBytes does for long ops.
	maxBatch, shortBatchBytes = 1024, 1 << 20
	// maxQueued limits the number of ops queued in one lane.
	maxQueued = 1 << 16
)

// lane queues the ops for one database of a master, and has one batch in flight. Ops that arrive
// meanwhile go into the next batch. Ops reach the master in the order of the queue. Only ops that
// are long, or have long replies, have a separate queue and separate batches, in turn with the
// other batches.
//
// No goroutine wakes only to send. A caller that pushes an op to an idle lane claims the lane. It
// sends the op, together with ops that other callers have pushed by then. The goroutine of the link
// waits for the replies, delivers them, and sends the ops that have collected meanwhile. It also
// waits while nothing is in flight, so it notices a closed link before a caller uses the link.
type lane struct {
	master *Master
	db     int

	mu sync.Mutex
	// idleCond is signalled when claimed becomes false, and when shutDown empties the queues.
	idleCond sync.Cond
	queue    []*op
	// longQueue holds the ops that are long according to sizes. wasLong is set if the last batch
	// consisted of such ops.
	longQueue []*op
	sizes     sizes
	wasLong   bool
	// turns limits the masters that process long ops at the same time; nil: no limit. hasTurn is
	// set while this lane has a turn, awaitsTurn while it waits for one.
	turns               *Turns
	hasTurn, awaitsTurn bool
	// claimed is set while a batch is in flight, or the lane has ops that it may send. The caller
	// that sets it owns inFlight until it has sent the batch. Then the goroutine of the link owns
	// inFlight.
	claimed bool
	// sendDelayed is set while the caller that claimed the lane leaves the sending to the next
	// caller of push. The caller that clears sendDelayed must send.
	sendDelayed bool
	link        Link
	// downCause is the error with which push refuses new ops, or nil.
	downCause error

	// inFlight is the batch in flight. It has no ops while the lane is idle.
	inFlight Batch
}

func newLane(m *Master, db int, downCause error) *lane {
	l := &lane{master: m, db: db, sizes: newSizes(), downCause: downCause, inFlight: Batch{db: db}}
	if m != nil {
		l.turns = m.turns
	}
	l.idleCond.L = &l.mu
	return l
}

// push queues an op, or returns the reason why it does not. If claimed is true the caller must
// launch the lane. With delay, the next caller of push may launch the lane first.
func (l *lane) push(o *op, delay bool) (claimed bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.downCause != nil {
		return false, l.downCause
	}
	switch {
	case o.round == nil: // An op without a round has no limit, because no caller would repeat it.
	case len(l.queue)+len(l.longQueue) >= maxQueued:
		return false, ErrQueueFull
	case l.sizes.totalSize(o) > maxKnownSize && len(o.cellOp.Keys()) > 1:
		return false, ErrTooLong
	}
	l.queue = append(l.queue, o)
	claimed = !l.claimed || l.sendDelayed
	l.claimed, l.sendDelayed = true, claimed && delay
	return claimed, nil
}

// claimDelayed ends a delay of sending. It returns true if no other caller has ended the delay.
// Then the caller must launch the lane.
func (l *lane) claimDelayed() (claimed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	claimed, l.sendDelayed = l.sendDelayed, false
	return claimed
}

// requeue puts ops at the front of the queue, in their order, or returns the reason why it does
// not. Only the owner of inFlight calls it.
func (l *lane) requeue(ops []*op) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.downCause != nil {
		return l.downCause
	}
	l.queue = append(append(l.queue[:0:0], ops...), l.queue...)
	return nil
}

// take loads inFlight with the next batch, which the caller must send, and returns the link. If no
// op can be sent, take releases the claim, and more is false.
func (l *lane) take() (link Link, more bool) {
	link, more, turnEnded := l.takeNext()
	if turnEnded {
		l.turns.release()
	}
	return link, more
}

// takeNext implements take. turnEnded reports that the lane's turn for long ops has ended, because
// no long op is left.
func (l *lane) takeNext() (link Link, more, turnEnded bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	batch := l.inFlight.ops[:0]
	if !l.wasLong {
		batch = l.takeLongOps(batch)
	}
	if l.wasLong = len(batch) > 0; !l.wasLong {
		batch = l.takeShortOps(batch)
	}
	if len(batch) == 0 {
		batch = l.takeLongOps(batch)
		l.wasLong = true
	}
	l.inFlight.load(batch)
	if len(batch) == 0 {
		l.claimed = false
		l.idleCond.Broadcast()
	}
	if turnEnded = l.hasTurn && !(l.wasLong && len(batch) > 0) && len(l.longQueue) == 0; turnEnded {
		l.hasTurn = false
	}
	return l.link, len(batch) > 0, turnEnded
}

// takeShortOps adds the next ops to a batch. It moves long ops to their own queue.
func (l *lane) takeShortOps(batch []*op) []*op {
	n, weight := 0, 0
	for n < len(l.queue) && len(batch) < maxBatch {
		o := l.queue[n]
		size := l.sizes.totalSize(o)
		if l.sizes.isLong(o, size) {
			l.sizes.noteQueued(o, size, len(l.longQueue) == 0)
			l.longQueue = append(l.longQueue, o)
			n++
			continue
		}
		if weight += size + keysWeight(o); weight > shortBatchBytes && len(batch) > 0 {
			break
		}
		batch = markSentAndAppend(batch, o)
		n++
	}
	if l.queue = shift(l.queue, n); len(l.queue) == 0 && cap(l.queue) > maxBatch {
		l.queue = nil
	}
	return batch
}

// takeLongOps adds the next long ops to a batch.
func (l *lane) takeLongOps(batch []*op) []*op {
	n, weight := 0, 0
	for n < len(l.longQueue) && l.mayTakeLongOps() {
		if weight += l.sizes.totalSize(l.longQueue[n]) + keysWeight(l.longQueue[n]); weight > longBatchBytes && len(batch) > 0 {
			break
		}
		batch = markSentAndAppend(batch, l.longQueue[n])
		n++
	}
	if l.longQueue = shift(l.longQueue, n); len(l.longQueue) == 0 {
		l.longQueue = nil
	}
	return batch
}

// markSentAndAppend marks an op as sent and adds it to a batch, unless the op was dropped.
func markSentAndAppend(batch []*op, o *op) []*op {
	if o.fullScript || o.markSent() {
		return append(batch, o)
	}
	o.unref()
	return batch
}

// shift removes the first n ops of a queue.
func shift(queue []*op, n int) []*op {
	remaining := copy(queue, queue[n:])
	clear(queue[remaining:])
	return queue[:remaining]
}

// learnSizes updates the known sizes from the replies to inFlight. While long ops are queued it
// forgets no size, so that later ops on their keys do not overtake them.
func (l *lane) learnSizes() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, o := range l.inFlight.ops {
		l.sizes.learn(o, &l.inFlight.replies[i], len(l.longQueue) == 0)
	}
}

// shutDown refuses new ops for a reason, and returns the queued ops.
func (l *lane) shutDown(reason error) []*op {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.downCause = reason
	queued := append(l.queue, l.longQueue...)
	l.queue, l.longQueue = nil, nil
	l.idleCond.Broadcast()
	return queued
}

// setCause replaces the cause of a lane that refuses ops.
func (l *lane) setCause(reason error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.downCause != nil {
		l.downCause = reason
	}
}

// open accepts ops again, behind the pending removals of this database. If claimed is true the
// caller must launch the lane.
func (l *lane) open(pendingOps []*op) (claimed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.downCause = nil
	for _, o := range pendingOps {
		if o.db == l.db {
			l.queue = append(l.queue, o)
		}
	}
	claimed = len(l.queue) > 0 && !l.claimed
	l.claimed = l.claimed || claimed
	return claimed
}

// waitIdle waits until nothing is in flight or queued.
func (l *lane) waitIdle() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.claimed || len(l.longQueue) > 0 {
		l.idleCond.Wait()
	}
}

func (l *lane) setLink(k Link) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.link = k
}

// clearLink removes the link, if it is still k.
func (l *lane) clearLink(k Link) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.link == k {
		l.link = nil
	}
}

func (l *lane) closeLink() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.link != nil {
		l.link.Close()
	}
}
