package netconn

import "testing"

// TestActivity checks that a session is asked to park once, if it was idle between two checks.
func TestActivity(t *testing.T) {
	var a Activity
	for i, want := range []bool{false, true, false, false} {
		if i == 0 {
			a.Record()
		}
		if got := a.BecameIdle(); got != want {
			t.Errorf("check %d: %v", i, got)
		}
	}
	a.Record()
	a.BecameIdle()
	a.Record()
	if a.BecameIdle() {
		t.Error("the session was not idle between the checks")
	}
}
