package quorum

import (
	"strings"
	"testing"
)

// TestForgetChange checks that commands continue if the guards no longer know a noticed change,
// unless another function continues the change.
func TestForgetChange(t *testing.T) {
	c, err := NewCluster(Options{Masters: []string{"redis://127.0.0.1:1"}})
	if err != nil {
		t.Fatal(err)
	}
	noticed := c.beginChange([]string{"a"})
	c.forgetChange(noticed)
	select {
	case <-noticed.done:
	default:
		t.Error("commands still wait")
	}
	if c.currentChange.Load() != nil {
		t.Error("the change is still in progress")
	}
	noticed = c.beginChange([]string{"a"})
	taken := c.beginChange([]string{"a", "b"})
	c.forgetChange(noticed)
	if c.currentChange.Load() != taken {
		t.Error("a change that another function continues was forgotten")
	}
	c.changeMu.Lock()
	defer c.changeMu.Unlock()
	c.forgetChange(taken)
	if c.currentChange.Load() != taken {
		t.Error("a change was forgotten while this proxy changes the masters")
	}
}

// TestNoQuorumDuringChange checks that NOQUORUM says whether the masters change or the locks move.
func TestNoQuorumDuringChange(t *testing.T) {
	c, err := NewCluster(Options{Masters: []string{"redis://127.0.0.1:1"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		newMasters []string
		want       string
	}{
		{nil, "the masters are being changed, or another proxy has changed them; "},
		{[]string{"b:1", "c:1"}, "the masters are being changed to b:1, c:1: "},
		{c.masterSet().names(), "the locks are being moved, "},
	} {
		u := c.beginChange(test.newMasters)
		if got := c.noQuorum().Error(); !strings.HasPrefix(got, test.want) {
			t.Errorf("%v: got %q, want %q", test.newMasters, got, test.want)
		}
		c.endChange(u)
	}
}
