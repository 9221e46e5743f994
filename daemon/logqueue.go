package daemon

import (
	"io"
	"sync"
	"time"
)

// maxLogQueue is how many bytes of the log wait for its reader. Further lines are dropped, and
// counted.
const maxLogQueue = 1 << 20

// logFarewell is how long the end of the process waits for the log's reader.
const logFarewell = time.Second

// logQueue writes lines in a goroutine of its own, so that nothing that logs waits for whoever
// reads the log. It is safe for concurrent use.
type logQueue struct {
	out io.Writer
	// lost makes the line that says how many were dropped.
	lost func(lines int64) []byte
	done chan struct{} // closed when the goroutine has ended

	mu      sync.Mutex
	some    *sync.Cond
	lines   [][]byte
	bytes   int
	missing int64 // dropped since the last line that said so
	dropped int64
	closed  bool
}

// newLogQueue begins to write. It is to be closed.
func newLogQueue(out io.Writer, lost func(lines int64) []byte) *logQueue {
	q := &logQueue{out: out, lost: lost, done: make(chan struct{})}
	q.some = sync.NewCond(&q.mu)
	go q.run()
	return q
}

// Write takes a line, or drops it; the line is copied.
func (q *logQueue) Write(line []byte) (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || q.bytes+len(line) > maxLogQueue {
		q.missing++
		q.dropped++
		return len(line), nil
	}
	q.lines, q.bytes = append(q.lines, append([]byte(nil), line...)), q.bytes+len(line)
	q.some.Signal()
	return len(line), nil
}

// Dropped is how many lines were.
func (q *logQueue) Dropped() int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.dropped
}

// run writes until the queue is closed and empty.
func (q *logQueue) run() {
	defer close(q.done)
	for {
		lines, missing, more := q.next()
		if missing > 0 {
			lines = append(lines, q.lost(missing))
		}
		for _, line := range lines {
			if _, err := q.out.Write(line); err != nil {
				q.drop()
			}
			q.written(len(line))
		}
		if !more {
			return
		}
	}
}

// next waits for lines. With them it gives how many are missing behind them; without more the
// goroutine ends.
func (q *logQueue) next() (lines [][]byte, missing int64, more bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.lines) == 0 && !q.closed {
		q.some.Wait()
	}
	lines, missing = q.lines, q.missing
	q.lines, q.missing = nil, 0
	return lines, missing, !q.closed
}

// written notes that a line is not held any more.
func (q *logQueue) written(size int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.bytes = max(0, q.bytes-size)
}

// drop counts a line that could not be written.
func (q *logQueue) drop() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.dropped++
}

// Close takes no more lines, and waits a while until all are written.
func (q *logQueue) Close() {
	q.mu.Lock()
	q.closed = true
	q.some.Signal()
	q.mu.Unlock()
	select {
	case <-q.done:
	case <-time.After(logFarewell):
	}
}
