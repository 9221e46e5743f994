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
	noticed := c.beginChange(c.masterSet(), []string{"a"})
	c.forgetChange(noticed)
	select {
	case <-noticed.done:
	default:
		t.Error("commands still wait")
	}
	if c.currentChange.Load() != nil {
		t.Error("the change is still in progress")
	}
	noticed = c.beginChange(c.masterSet(), []string{"a"})
	taken := c.beginChange(c.masterSet(), []string{"a", "b"})
	c.forgetChange(noticed)
	if c.currentChange.Load() != taken {
		t.Error("a change that another function continues was forgotten")
	}
	_, release, err := c.acquireChange(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	c.forgetChange(taken)
	if c.currentChange.Load() != taken {
		t.Error("a change was forgotten while this proxy changes the masters")
	}
}

// TestNoQuorumDuringChange checks that NOQUORUM names the new masters, unless this proxy uses them
// already.
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
		{c.masterSet().names(), "the masters are being changed, or the locks moved, "},
	} {
		u := c.beginChange(c.masterSet(), test.newMasters)
		if got := c.noQuorum().Error(); !strings.HasPrefix(got, test.want) {
			t.Errorf("%v: got %q, want %q", test.newMasters, got, test.want)
		}
		c.endChange(u)
	}
	other, err := NewCluster(Options{Masters: []string{"redis://b:1", "redis://c:1"}})
	if err != nil {
		t.Fatal(err)
	}
	c.beginChange(c.masterSet(), other.masterSet().names())
	c.activeSet.Store(other.masterSet()) // decided, and a majority of the new masters does not vote yet
	if got, want := c.noQuorum().Error(), "the masters are being changed to b:1, c:1: "; !strings.HasPrefix(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
