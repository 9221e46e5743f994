package guard

import (
	"context"
	"errors"
	"testing"

	"redlock-proxy/quorum/contained"
	"redlock-proxy/quorum/guard/script"
)

// brokenConn panics over whatever is asked.
type brokenConn struct{ Conn }

func (brokenConn) Run(context.Context, script.Script, ...any) (any, error) {
	panic("no answer is like this")
}

// TestPanicEndsACatchUp: a panic over what one of the sources says costs that catch-up, and not the
// process.
func TestPanicEndsACatchUp(t *testing.T) {
	g := newGuard(NewSet(Options{}, nil), 0, Master{Conn: brokenConn{}})
	c := &copier{Guard: g, from: origin{sources: []source{{guard: g}}}}
	err := contained.Run(func() error { _, _, err := c.views(t.Context(), 0, nil); return err })
	if panicked := new(contained.PanicError); !errors.As(err, &panicked) {
		t.Errorf("got %v, want the panic as an error", err)
	}
}
