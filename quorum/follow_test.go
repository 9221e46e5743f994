package quorum

import "testing"

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
