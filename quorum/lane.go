package quorum

import (
	"context"
	"runtime"
	"slices"
	"sync"
)

const (
	// maxLanes is how many batches may be in flight to one master.
	maxLanes = 4
	// maxBatch bounds a batch, so that one can never take a master's timeout.
	maxBatch = 1024
	// maxQueued bounds the ops that wait in one lane.
	maxQueued = 1 << 16
)

// lane is a queue to a master with one batch in flight: what arrives meanwhile
// leaves together in the next. Its ops reach the master in the order of the
// queue.
type lane struct {
	master *master
	ready  chan struct{} // holds one signal: the queue is not empty

	mu    sync.Mutex
	queue []*op
	// down refuses new ops, for this reason.
	down error
}

func newLane(m *master) *lane {
	return &lane{master: m, ready: make(chan struct{}, 1), down: errNotConnected}
}

// push queues an op, or says why not.
func (l *lane) push(o *op) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.down != nil {
		return l.down
	}
	if len(l.queue) >= maxQueued && !o.isCleanup() {
		return ErrQueueFull
	}
	l.queue = append(l.queue, o)
	l.signal()
	return nil
}

func (l *lane) signal() {
	select {
	case l.ready <- struct{}{}:
	default:
	}
}

// again puts ops in front of the queue, in their order, or says why not.
func (l *lane) again(ops []*op) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.down != nil {
		return l.down
	}
	l.queue = append(append(l.queue[:0:0], ops...), l.queue...)
	l.signal()
	return nil
}

// take removes a batch from the queue, which is sent now.
func (l *lane) take(batch []*op) []*op {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for n < len(l.queue) && len(batch) < maxBatch {
		if o := l.queue[n]; o.eval || o.send() {
			batch = append(batch, o)
		}
		n++
	}
	if n < len(l.queue) {
		l.queue = append(l.queue[:0:0], l.queue[n:]...)
		l.signal()
	} else {
		clear(l.queue)
		l.queue = l.queue[:0]
	}
	return batch
}

// shut refuses new ops and gives back those that wait.
func (l *lane) shut(reason error) []*op {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = reason
	waiting := l.queue
	l.queue = nil
	return waiting
}

func (l *lane) open() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = nil
}

// run sends batches until ctx ends, then what is queued already.
func (l *lane) run(ctx context.Context) {
	var f flight
	for {
		select {
		case <-ctx.Done():
			for f.fly(l) {
			}
			return
		case <-l.ready:
			runtime.Gosched() // whoever can run now may have more for this batch
			f.fly(l)
		}
	}
}

// flight is one batch on its way; its memory is used again for the next.
type flight struct {
	ops     []*op
	replies []reply
}

// fly sends what is queued and hands out the replies. It reports whether there
// was anything.
func (f *flight) fly(l *lane) bool {
	f.ops = l.take(f.ops[:0])
	if len(f.ops) == 0 {
		return false
	}
	f.replies = slices.Grow(f.replies[:0], len(f.ops))[:len(f.ops)]
	l.master.send(f.ops, f.replies)
	f.deliver(l)
	clear(f.ops)
	clear(f.replies)
	return true
}

// deliver finishes the ops, but for those whose script the master did not know:
// they were not run, and go again as EVAL in front of all that came later.
func (f *flight) deliver(l *lane) {
	var unscripted []*op
	for i, o := range f.ops {
		if !o.eval && isNoScript(f.replies[i].err) {
			o.eval = true
			unscripted = append(unscripted, o)
		}
	}
	if len(unscripted) > 0 {
		if err := l.again(unscripted); err != nil {
			l.master.refuse(unscripted, err)
		}
	}
	for i, o := range f.ops {
		if !o.eval || !isNoScript(f.replies[i].err) {
			l.master.finish(o, f.replies[i])
		}
	}
}
