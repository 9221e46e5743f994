package daemon

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"redlock-proxy/conf"
)

// A proxy ends when drain-timeout is over, whatever still runs; before it is asked to stop it runs
// on.
func TestEndsWhenDrainTimeoutIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &daemon{}
		d.applied.Store(&applied{cfg: conf.Config{DrainDelay: time.Minute, DrainTimeout: time.Hour}})
		ctx, stop := context.WithCancel(t.Context())
		forever := make(chan struct{})
		defer close(forever)
		began := time.Now()
		time.AfterFunc(24*time.Hour, stop)
		err := d.untilOverdue(ctx, func() error { <-forever; return nil })
		if took := time.Since(began); err != errOverdue || took != 25*time.Hour+time.Minute+lastWork {
			t.Errorf("after %v: %v", took, err)
		}
		own := errors.New("its own end")
		if err := d.untilOverdue(ctx, func() error { return own }); err != own {
			t.Error(err)
		}
	})
}
