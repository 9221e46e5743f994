package daemon

import (
	"io"
	"sync"
	"time"
)

// maxLogQueue limits the waiting log lines, in bytes. The queue drops further lines, and counts
// them.
const maxLogQueue = 1 << 20

// logCloseTimeout limits the wait of Close for the reader of the log.
const logCloseTimeout = time.Second

// logQueue writes lines in a goroutine of its own, so that logging never waits for the reader of
// the log. It is safe for concurrent use.
type logQueue struct {
	out io.Writer
	// droppedLinesNotice returns the log line that reports dropped lines.
	droppedLinesNotice func(lines int64) []byte
	done               chan struct{} // closed when the goroutine has ended

	mu              sync.Mutex
	nonEmpty        *sync.Cond
	lines           [][]byte
	bytes           int
	unreportedDrops int64 // dropped since the last notice
	droppedLines    int64
	closed          bool
}

// newLogQueue returns a queue that writes to out. The caller must close it.
func newLogQueue(out io.Writer, droppedLinesNotice func(lines int64) []byte) *logQueue {
	q := &logQueue{out: out, droppedLinesNotice: droppedLinesNotice, done: make(chan struct{})}
	q.nonEmpty = sync.NewCond(&q.mu)
	go q.run()
	return q
}

// Write queues a copy of the line, or drops the line if the queue is full.
func (q *logQueue) Write(line []byte) (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || q.bytes+len(line) > maxLogQueue {
		q.unreportedDrops++
		q.droppedLines++
		return len(line), nil
	}
	q.lines, q.bytes = append(q.lines, append([]byte(nil), line...)), q.bytes+len(line)
	q.nonEmpty.Signal()
	return len(line), nil
}

// DroppedLines returns how many lines were dropped, or could not be written.
func (q *logQueue) DroppedLines() int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.droppedLines
}

// run writes until the queue is closed and empty.
func (q *logQueue) run() {
	defer close(q.done)
	for {
		lines, unreported, more := q.next()
		if unreported > 0 {
			lines = append(lines, q.droppedLinesNotice(unreported))
		}
		for _, line := range lines {
			if _, err := q.out.Write(line); err != nil {
				q.countDropped()
			}
			q.release(len(line))
		}
		if !more {
			return
		}
	}
}

// next waits for lines, and returns them. unreported counts the lines that were dropped since the
// last call. more is false if the queue is closed.
func (q *logQueue) next() (lines [][]byte, unreported int64, more bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.lines) == 0 && !q.closed {
		q.nonEmpty.Wait()
	}
	lines, unreported = q.lines, q.unreportedDrops
	q.lines, q.unreportedDrops = nil, 0
	return lines, unreported, !q.closed
}

// release subtracts a written line from the size of the queue.
func (q *logQueue) release(size int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.bytes = max(0, q.bytes-size)
}

// countDropped counts a line that could not be written.
func (q *logQueue) countDropped() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.droppedLines++
}

// Close accepts no more lines, and waits a short time until all lines are written.
func (q *logQueue) Close() {
	q.mu.Lock()
	q.closed = true
	q.nonEmpty.Signal()
	q.mu.Unlock()
	select {
	case <-q.done:
	case <-time.After(logCloseTimeout):
	}
}
