package wire

import "testing"

// A session is asked to rest when nothing happened between two looks, and once.
func TestActivity(t *testing.T) {
	var a Activity
	for i, want := range []bool{false, true, false, false} {
		if i == 0 {
			a.Happened()
		}
		if got := a.WentQuiet(); got != want {
			t.Errorf("look %d: %v", i, got)
		}
	}
	a.Happened()
	a.WentQuiet()
	a.Happened()
	if a.WentQuiet() {
		t.Error("it was not quiet between these looks")
	}
}
