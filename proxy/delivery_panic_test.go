package proxy

import (
	"log/slog"
	"redlock-proxy/proxy/track"
	"testing"
)

// TestPanicInARelayIsContained checks that a panic while a client's replies are handled ends the
// connection of that client only. Its relay is not locked afterwards, and the process continues.
func TestPanicInARelayIsContained(t *testing.T) {
	r := &relay{serverState: &serverState{opts: Options{Logger: slog.New(slog.DiscardHandler)}}, client: &session{},
		writer: &clientWriter{}, tracker: &track.Tracker{}}
	r.writer.init(nil, nil, nil, nil)
	r.writer.hasDeadline = true // causes the panic, because there is no connection
	if err := r.deliver([]byte("+OK\r\n")); err == nil {
		t.Error("nothing happened")
	}
	if !r.writer.mu.TryLock() {
		t.Error("it is locked")
	}
}
