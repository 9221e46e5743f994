package proxy

import (
	"log/slog"
	"redlock-proxy/proxy/track"
	"testing"
)

// TestPanicInARelayIsContained: a panic while replies are handled ends the connection of that
// client only. Its relay is not left locked, and the process continues.
func TestPanicInARelayIsContained(t *testing.T) {
	r := &relay{shared: &shared{opts: Options{Logger: slog.New(slog.DiscardHandler)}}, client: &session{},
		line: &line{}, tracker: &track.Tracker{}}
	r.line.init(nil, nil, nil, nil)
	r.line.limited = true // the bug: there is no connection to set a deadline on
	if err := r.deliver([]byte("+OK\r\n")); err == nil {
		t.Error("nothing happened")
	}
	if !r.line.mu.TryLock() {
		t.Error("it is locked")
	}
}
