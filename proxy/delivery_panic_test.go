package proxy

import (
	"log/slog"
	"redlock-proxy/proxy/track"
	"testing"
)

// A mistake that shows while replies are looked at ends the connection of that client; its
// relay is not left locked, and the process goes on.
func TestPanicInARelayIsContained(t *testing.T) {
	r := &relay{shared: &shared{opts: Options{Logger: slog.New(slog.DiscardHandler)}}, client: &session{}, line: &line{}, tracker: &track.Tracker{}}
	r.line.init(nil, nil, nil, nil)
	r.line.bounded = true // the mistake: there is no connection whose deadline can be set
	if err := r.deliver([]byte("+OK\r\n")); err == nil {
		t.Error("nothing happened")
	}
	if !r.line.mu.TryLock() {
		t.Error("it is locked")
	}
}
