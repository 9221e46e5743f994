// Package logtest is what tests read that a server has logged.
package logtest

import (
	"strings"
	"sync"
)

// Buffer collects what is logged. It is safe for concurrent use; the zero value is empty.
type Buffer struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write is of io.Writer.
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

// String is all that was logged.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
