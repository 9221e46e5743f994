package contained

import (
	"errors"
	"testing"
)

// TestRun: a panic becomes an error, and an error stays what it is.
func TestRun(t *testing.T) {
	own := errors.New("own")
	if err := Run(func() error { return own }); err != own {
		t.Errorf("got %v", err)
	}
	err := Run(func() error { panic("boom") })
	if panicked := new(PanicError); !errors.As(err, &panicked) || err.Error() != "panic: boom" {
		t.Errorf("got %v", err)
	}
}
