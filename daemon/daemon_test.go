package daemon

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"redlock-proxy/conf"
)

// TestStopTimeout checks that a proxy ends when drain-timeout and the grace time have passed, even
// if parts of it are still running. A proxy that is not stopping has no time limit.
func TestStopTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &daemon{}
		d.currentConfig.Store(&appliedConfig{cfg: conf.Config{DrainDelay: time.Minute, DrainTimeout: time.Hour}})
		ctx, stop := context.WithCancel(t.Context())
		forever := make(chan struct{})
		defer close(forever)
		began := time.Now()
		time.AfterFunc(24*time.Hour, stop)
		err := d.runUntilStopped(ctx, func() error { <-forever; return nil })
		if took := time.Since(began); err != errStopTimeout || took != 25*time.Hour+time.Minute+shutdownGrace {
			t.Errorf("after %v: %v", took, err)
		}
		own := errors.New("its own end")
		if err := d.runUntilStopped(ctx, func() error { return own }); err != own {
			t.Error(err)
		}
	})
}
