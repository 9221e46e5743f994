package upstream

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestTrialDoesNotWaitForProbe checks that a trial write shows that the upstream stopped replying,
// while a probe of it still waits.
func TestTrialDoesNotWaitForProbe(t *testing.T) {
	var tried, frozen atomic.Bool
	ended := make(chan struct{})
	s := startScripted(t, func(command string) string {
		if frozen.Load() {
			<-ended
		}
		switch strings.ToUpper(strings.Fields(command)[0]) {
		case "SET":
			tried.Store(true)
			return "$-1\r\n"
		case "PING":
			return "+PONG\r\n"
		}
		return "-ERR unknown command\r\n"
	})
	up, err := New("redis://"+s.ln.Addr().String(), testTimeout, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(up.Close)
	up.EnableTrialWrites("k", func() bool { return true })
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	defer close(ended)
	running.Go(func() { _ = up.Run(ctx) })
	eventually := func(event string, condition func() bool) {
		t.Helper()
		for until := time.Now().Add(testTimeout / 2); !condition(); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(until) {
				t.Fatal(event)
			}
		}
	}
	up.Probe(t.Context())
	eventually("no trial write", tried.Load)
	frozen.Store(true)
	eventually("the trial write waits for the probe", func() bool { return up.WriteRefusal() != nil })
	if up.IsDown() {
		t.Error("the probe did not wait longer than the trial write")
	}
}
