package process

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"time"
)

// logLimit limits the output of a child that logBuffer keeps, in bytes. When the output exceeds
// logLimit, logBuffer keeps only the last logLimit/2 bytes.
const logLimit = 4 << 20

// logBuffer keeps the output of a child.
type logBuffer struct {
	mu      sync.Mutex
	data    []byte
	changed chan struct{} // closed and replaced at each write
}

func newLogBuffer() *logBuffer { return &logBuffer{changed: make(chan struct{})} }

// Write appends p; it never fails.
func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.data = append(b.data, p...)
	if len(b.data) > logLimit {
		b.data = bytes.Clone(b.data[len(b.data)-logLimit/2:])
	}
	close(b.changed)
	b.changed = make(chan struct{})
	return len(p), nil
}

// String returns the kept text.
func (b *logBuffer) String() string {
	text, _ := b.snapshot()
	return text
}

// snapshot returns the text, and a channel that the next Write closes.
func (b *logBuffer) snapshot() (string, <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return string(b.data), b.changed
}

// waitLine returns the first complete line that match accepts. It returns an error if stop is
// closed before such a line comes, or after timeout.
func (b *logBuffer) waitLine(
	match func(line string) bool, stop <-chan struct{}, timeout time.Duration,
) (string, error) {
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	for {
		text, changed := b.snapshot()
		if line, ok := findLine(text, match); ok {
			return line, nil
		}
		select {
		case <-changed:
		case <-stop:
			return b.lastLine(match)
		case <-timer.C:
			return "", fmt.Errorf("no such line within %v in the log:\n%s", timeout, b)
		}
	}
}

// lastLine searches the log of an ended process once more, because the process may have written the
// line just before it ended.
func (b *logBuffer) lastLine(match func(line string) bool) (string, error) {
	if line, ok := findLine(b.String(), match); ok {
		return line, nil
	}
	return "", fmt.Errorf("the process ended without such a line in the log:\n%s", b)
}

// findLine returns the first complete line that match accepts.
func findLine(text string, match func(line string) bool) (string, bool) {
	for {
		line, rest, complete := strings.Cut(text, "\n")
		if !complete {
			return "", false
		}
		if match(line) {
			return line, true
		}
		text = rest
	}
}
