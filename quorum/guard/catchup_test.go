package guard

import (
	"context"
	"errors"
	"testing"

	"redlock-proxy/internal/contained"
	"redlock-proxy/internal/luascript"
	"redlock-proxy/quorum/guard/script"
)

// brokenConn panics at every request.
type brokenConn struct{ Conn }

func (brokenConn) Run(context.Context, luascript.Script, ...any) (any, error) {
	panic("no answer is like this")
}

// TestPanicEndsCatchUp checks that a panic at a source's reply ends the catch-up, but not the
// process.
func TestPanicEndsCatchUp(t *testing.T) {
	g := newGuard(NewSet(Options{}, nil), 0, Master{Conn: brokenConn{}})
	c := &copier{Guard: g, sources: sourceSet{sources: []source{{guard: g}}}}
	err := contained.Run(func() error { _, _, err := c.readViews(t.Context(), 0, nil); return err })
	if panicked := new(contained.PanicError); !errors.As(err, &panicked) {
		t.Errorf("got %v, want the panic as an error", err)
	}
}

// slowConn lists its keys only after a proxy has reserved the catch-up twice.
type slowConn struct {
	Conn
	reservations chan struct{}
}

func (c slowConn) Run(ctx context.Context, s luascript.Script, _ ...any) (any, error) {
	switch s {
	case script.ReserveCatchUp:
		c.reservations <- struct{}{}
		return int64(1), nil
	case script.ReadNames:
		for range 2 {
			select {
			case <-c.reservations:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		return []any{"0"}, nil
	}
	return nil, errors.New("not expected")
}

// TestReservationIsKeptDuringListing checks that a proxy keeps the reservation of its catch-up
// while a master takes long to list its keys.
func TestReservationIsKeptDuringListing(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*reservationTime)
	defer cancel()
	g := newGuard(NewSet(Options{}, nil), 0, Master{Conn: slowConn{reservations: make(chan struct{})}})
	if keys, err := g.copyFrom(ctx, Report{}, sourceSet{}, []int{0}); keys != 0 || err != nil {
		t.Errorf("%d keys, %v", keys, err)
	}
}
