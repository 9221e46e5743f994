package harness

import (
	"testing"
)

func TestBusy(t *testing.T) {
	busy, err := StartBusy(2)
	check(t, err)
	for _, loop := range busy.loops {
		if loop.Ended() {
			t.Errorf("a loop has ended: %s", loop.Log())
		}
	}
	check(t, busy.Close())
	check(t, busy.Close())
	for _, loop := range busy.loops {
		if !loop.Ended() {
			t.Error("a loop does not end")
		}
	}
}
