package faultlink

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"time"
)

// errNotHeld is returned by Hold.Wait when too little was held in time.
var errNotHeld = errors.New("not held in time")

// Match chooses commands by their bytes on the wire. A link asks once for each command (once more
// for its answer), and never twice at the same moment, so a Match may count.
type Match func(command []byte) bool

// Everything matches every command.
func Everything([]byte) bool { return true }

// Naming matches the commands in which the name occurs.
func Naming(name string) Match {
	return func(command []byte) bool { return bytes.Contains(command, []byte(name)) }
}

// After matches as match does, but for the first n times.
func After(n int, match Match) Match {
	return func(command []byte) bool {
		if !match(command) {
			return false
		}
		n--
		return n < 0
	}
}

// First matches the first n times that match does.
func First(n int, match Match) Match {
	return func(command []byte) bool {
		if n == 0 || !match(command) {
			return false
		}
		n--
		return true
	}
}

// Hold is what a CommandLink holds by one rule.
type Hold struct {
	match Match
	by    time.Duration // delays by so much; 0: holds

	mu       sync.Mutex
	ended    bool // holds no more
	count    int
	counted  chan struct{} // closed and made anew with each that is held
	released chan struct{}
	dropped  chan struct{}
}

func newHold(match Match, by time.Duration) *Hold {
	return &Hold{match: match, by: by, counted: make(chan struct{}), released: make(chan struct{}), dropped: make(chan struct{})}
}

// Wait returns when n commands or answers have been held since the rule began, those among them
// that were released.
func (h *Hold) Wait(n int, timeout time.Duration) error {
	limit := time.After(timeout)
	for {
		h.mu.Lock()
		count, counted := h.count, h.counted
		h.mu.Unlock()
		if count >= n {
			return nil
		}
		select {
		case <-counted:
		case <-limit:
			return fmt.Errorf("%w: %d of %d within %v", errNotHeld, count, n, timeout)
		}
	}
}

// Stop ends the rule for what comes from now on. What is held stays so until Release or Discard.
func (h *Hold) Stop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ended = true
}

// Release ends the rule and has everything that is held arrive. After Discard it does nothing.
func (h *Hold) Release() { h.end(h.released) }

// Discard ends the rule and resets the connections on which something is held: that never arrives.
// After Release it does nothing.
func (h *Hold) Discard() { h.end(h.dropped) }

func (h *Hold) end(how chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ended = true
	select {
	case <-h.released:
	case <-h.dropped:
	default:
		close(how)
	}
}

// takes reports whether a command falls under the rule, and counts it then.
func (h *Hold) takes(command []byte) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended || !h.match(command) {
		return false
	}
	h.count++
	close(h.counted)
	h.counted = make(chan struct{})
	return true
}

// pass waits until what is held may go on; false when it must not.
func (h *Hold) pass(over <-chan struct{}) bool {
	var due <-chan time.Time
	if h.by > 0 {
		due = time.After(h.by)
	}
	select {
	case <-due:
	case <-h.released:
	case <-h.dropped:
		return false
	case <-over:
		return false
	}
	return true
}
