package proxy

import (
	"log/slog"
	"testing"
)

// A mistake that shows while replies are looked at ends the connection of that client; its
// relay is not left locked, and the process goes on.
func TestPanicInARelayIsContained(t *testing.T) {
	r := &relay{session: &session{log: slog.New(slog.DiscardHandler)}, line: &line{}}
	r.line.init(nil, nil, nil, nil)
	r.bounded = true // the mistake: there is no connection whose deadline can be set
	if err := r.deliver([]byte("+OK\r\n")); err == nil {
		t.Error("nothing happened")
	}
	if !r.mu.TryLock() {
		t.Error("it is locked")
	}
}
