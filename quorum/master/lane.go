package master

import (
	"sync"
)

const (
	// maxBatch bounds the ops of a batch that are not long.
	maxBatch = 1024
	// maxQueued bounds the ops that wait in one lane.
	maxQueued = 1 << 16
)

// lane is a queue to a database of a master with one batch in flight: what arrives meanwhile leaves
// together in the next. Its ops reach the master in the order of the queue, but for those that are
// long, or whose answers are known to be: they are queued by themselves, and have batches of their
// own, a few in each, in turn with the others.
//
// Nothing wakes up to send: an op that finds an idle lane claims it, and the caller that pushed the
// op sends it, with what others have pushed by then. The goroutine of the lane's link waits for the
// answers, hands them out, and sends what has collected meanwhile; it waits also while nothing is
// in flight, so that a link that ends is noticed before it is used.
type lane struct {
	master *Master
	db     int

	mu sync.Mutex
	// idle is signalled when claimed becomes false.
	idle  sync.Cond
	queue []*op
	// long are the ops of the queue that were found to be long; sizes tells which are. wasLong is
	// whether the last batch was of these.
	long    []*op
	sizes   sizes
	wasLong bool
	// turns are those of all masters for what is long; nil: it may always go. hasTurn is set while
	// this lane has one, awaits while it waits for one.
	turns           *Turns
	hasTurn, awaits bool
	// claimed is set from when a caller is about to send until the answers were handed out
	// and nothing is left to send. Who sets it, or finds it so as the link's goroutine, has
	// the flight.
	claimed bool
	// held is set where whoever claimed the lane leaves the sending to the next op, for a moment:
	// who sets it back sends.
	held bool
	link Link
	// down refuses new ops, for this reason.
	down error

	flight Flight
}

func newLane(m *Master, db int, down error) *lane {
	l := &lane{master: m, db: db, sizes: newSizes(), down: down, flight: Flight{db: db}}
	if m != nil {
		l.turns = m.turns
	}
	l.idle.L = &l.mu
	return l
}

// push queues an op, or returns why not. Where claimed is true the caller has to launch; with hold,
// the next one to push may do it before.
func (l *lane) push(o *op, hold bool) (claimed bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.down != nil {
		return false, l.down
	}
	switch {
	case o.round == nil: // nobody would say it again
	case len(l.queue)+len(l.long) >= maxQueued:
		return false, ErrQueueFull
	case l.sizes.around(o) > longest && len(o.do.Keys()) > 1:
		return false, ErrTooLong
	}
	l.queue = append(l.queue, o)
	claimed = !l.claimed || l.held
	l.claimed, l.held = true, claimed && hold
	return claimed, nil
}

// unhold reports whether nobody has sent what was held: then the caller has to launch.
func (l *lane) unhold() (claimed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	claimed, l.held = l.held, false
	return claimed
}

// again puts ops in front of the queue, in their order, or returns why not. Only the holder of the
// flight calls it.
func (l *lane) again(ops []*op) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.down != nil {
		return l.down
	}
	l.queue = append(append(l.queue[:0:0], ops...), l.queue...)
	return nil
}

// take loads the flight with a batch of the queue, which is sent now, and returns the link.
// Where nothing is left the claim is given up, and more is false.
func (l *lane) take() (over Link, more bool) {
	over, more, leaves := l.takeNext()
	if leaves {
		l.turns.leave()
	}
	return over, more
}

// takeNext is take. It leaves a turn for which there was nothing any more.
func (l *lane) takeNext() (over Link, more, leaves bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	batch := l.flight.ops[:0]
	if !l.wasLong {
		batch = l.takeLong(batch)
	}
	if l.wasLong = len(batch) > 0; !l.wasLong {
		batch = l.takeShort(batch)
	}
	if len(batch) == 0 {
		batch = l.takeLong(batch)
		l.wasLong = true
	}
	l.flight.load(batch)
	if len(batch) == 0 {
		l.claimed = false
		l.idle.Broadcast()
	}
	if leaves = l.hasTurn && !(l.wasLong && len(batch) > 0) && len(l.long) == 0; leaves {
		l.hasTurn = false
	}
	return l.link, len(batch) > 0, leaves
}

// takeShort adds what is next to a batch. What is long is put aside.
func (l *lane) takeShort(batch []*op) []*op {
	n := 0
	for n < len(l.queue) && len(batch) < maxBatch {
		if o := l.queue[n]; l.sizes.around(o) > longOp {
			l.long = append(l.long, o)
		} else {
			batch = appendSent(batch, o)
		}
		n++
	}
	if l.queue = shift(l.queue, n); len(l.queue) == 0 && cap(l.queue) > maxBatch {
		l.queue = nil
	}
	return batch
}

// takeLong adds the next of the long ops to a batch.
func (l *lane) takeLong(batch []*op) []*op {
	n, size := 0, 0
	for n < len(l.long) && l.mayTakeLong() {
		if size += l.sizes.around(l.long[n]); size > longBatch && len(batch) > 0 {
			break
		}
		batch = appendSent(batch, l.long[n])
		n++
	}
	if l.long = shift(l.long, n); len(l.long) == 0 {
		l.long = nil
	}
	return batch
}

// appendSent adds an op to a batch that is sent now, unless it was dropped.
func appendSent(batch []*op, o *op) []*op {
	if o.whole || o.send() {
		return append(batch, o)
	}
	o.letGo()
	return batch
}

// shift takes the first n off a queue.
func shift(queue []*op, n int) []*op {
	left := copy(queue, queue[n:])
	clear(queue[left:])
	return queue[:left]
}

// learn takes what the answers to the flight say of what is long. Nothing is forgotten while any
// such op waits: what follows on its key must not pass it.
func (l *lane) learn() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, o := range l.flight.ops {
		l.sizes.learn(o, &l.flight.replies[i], len(l.long) == 0)
	}
}

// shut refuses new ops and gives back those that wait.
func (l *lane) shut(reason error) []*op {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = reason
	waiting := append(l.queue, l.long...)
	l.queue, l.long = nil, nil
	l.idle.Broadcast()
	return waiting
}

// because replaces the reason of a lane that refuses ops.
func (l *lane) because(reason error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.down != nil {
		l.down = reason
	}
}

// open lets ops be queued again, after those of some removals that are for it. Where claimed is
// true the caller has to launch.
func (l *lane) open(owed []*op) (claimed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = nil
	for _, o := range owed {
		if o.db == l.db {
			l.queue = append(l.queue, o)
		}
	}
	claimed = len(l.queue) > 0 && !l.claimed
	l.claimed = l.claimed || claimed
	return claimed
}

// waitIdle waits until nothing is in flight, and nothing waits.
func (l *lane) waitIdle() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.claimed || len(l.long) > 0 {
		l.idle.Wait()
	}
}

// hold has batches go over a link.
func (l *lane) hold(k Link) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.link = k
}

// letGo has batches go over no link.
func (l *lane) letGo(k Link) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.link == k {
		l.link = nil
	}
}

// hangUp closes the link, if there is one.
func (l *lane) hangUp() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.link != nil {
		l.link.Close()
	}
}
