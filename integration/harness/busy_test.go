package harness

import (
	"testing"
)

func TestBusyLoops(t *testing.T) {
	busy, err := StartBusyLoops(2)
	must(t, err)
	for _, loop := range busy.loops {
		if loop.Ended() {
			t.Errorf("a loop has ended: %s", loop.Log())
		}
	}
	must(t, busy.Close())
	must(t, busy.Close())
	for _, loop := range busy.loops {
		if !loop.Ended() {
			t.Error("a loop does not end")
		}
	}
}
