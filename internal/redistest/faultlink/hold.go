package faultlink

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"time"
)

// errNotHeld means that a rule held too few commands before the timeout of Hold.Wait.
var errNotHeld = errors.New("the rule held too few commands in time")

// Match selects commands by their bytes on the wire. A link calls a Match once for each command or
// reply, and never concurrently, so a Match may count.
type Match func(command []byte) bool

// AnyCommand matches every command.
func AnyCommand([]byte) bool { return true }

// Containing matches the commands that contain the name.
func Containing(name string) Match {
	return func(command []byte) bool { return bytes.Contains(command, []byte(name)) }
}

// SkipFirst returns a Match for all commands that match selects, except the first n of them.
func SkipFirst(n int, match Match) Match {
	return func(command []byte) bool {
		if !match(command) {
			return false
		}
		n--
		return n < 0
	}
}

// OnlyFirst returns a Match for the first n commands that match selects.
func OnlyFirst(n int, match Match) Match {
	return func(command []byte) bool {
		if n == 0 || !match(command) {
			return false
		}
		n--
		return true
	}
}

// Hold represents a rule of a CommandLink, and the commands or replies that the rule holds.
type Hold struct {
	match Match
	delay time.Duration // 0: hold until Release or Discard

	mu        sync.Mutex
	isEnded   bool // the rule matches no more commands
	count     int
	changed   chan struct{} // closed and replaced when count changes
	released  chan struct{}
	discarded chan struct{}
}

func newHold(match Match, delay time.Duration) *Hold {
	return &Hold{
		match: match, delay: delay,
		changed: make(chan struct{}), released: make(chan struct{}), discarded: make(chan struct{}),
	}
}

// Wait waits until the rule has held n commands or replies. Commands and replies that the rule has
// released count, too. Wait returns an error after timeout.
func (h *Hold) Wait(n int, timeout time.Duration) error {
	limit := time.After(timeout)
	for {
		h.mu.Lock()
		count, changed := h.count, h.changed
		h.mu.Unlock()
		if count >= n {
			return nil
		}
		select {
		case <-changed:
		case <-limit:
			return fmt.Errorf("%w: %d of %d within %v", errNotHeld, count, n, timeout)
		}
	}
}

// Stop ends the rule for later commands. Held commands stay held until Release or Discard.
func (h *Hold) Stop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.isEnded = true
}

// Release ends the rule and lets all held commands and replies arrive. After Discard it does
// nothing.
func (h *Hold) Release() { h.end(h.released) }

// Discard ends the rule and resets the connections with held commands or replies, which never
// arrive. After Release it does nothing.
func (h *Hold) Discard() { h.end(h.discarded) }

func (h *Hold) end(signal chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.isEnded = true
	select {
	case <-h.released:
	case <-h.discarded:
	default:
		close(signal)
	}
}

// countMatch reports whether a command matches the rule. If so, it counts the command.
func (h *Hold) countMatch(command []byte) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.isEnded || !h.match(command) {
		return false
	}
	h.count++
	close(h.changed)
	h.changed = make(chan struct{})
	return true
}

// waitPass waits until a held command or reply may continue. It returns false if the rule is
// discarded, or if done is closed.
func (h *Hold) waitPass(done <-chan struct{}) bool {
	var timer <-chan time.Time
	if h.delay > 0 {
		timer = time.After(h.delay)
	}
	select {
	case <-timer:
	case <-h.released:
	case <-h.discarded:
		return false
	case <-done:
		return false
	}
	return true
}
