package quorum

import (
	"context"
	"errors"
	"testing"
	"time"

	"redlock-proxy/internal/redistest"
)

// TestUndecidedChange checks the error of a change of the masters if a majority of the masters
// stops before it has decided: the masters may still be changed.
func TestUndecidedChange(t *testing.T) {
	t.Parallel()
	servers, urls := make([]*redistest.Server, 4), make([]string, 4)
	for i := range servers {
		servers[i] = redistest.New(t, redistest.Options{})
		urls[i] = "redis://" + servers[i].Addr()
	}
	c := runCluster(t, Options{Masters: urls[:3], FreshStart: true})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err := c.ChangeMasters(ctx, urls, func(func(string, string) string) error {
		time.AfterFunc(100*time.Millisecond, cancel)
		return errors.Join(servers[0].Pause(), servers[1].Pause())
	})
	if !errors.Is(err, ErrUndecided) {
		t.Errorf("got %v, want %v", err, ErrUndecided)
	}
	if err := errors.Join(servers[0].Continue(), servers[1].Continue()); err != nil {
		t.Error(err)
	}
}
