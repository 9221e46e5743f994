package move

import (
	"context"
	"fmt"
	"slices"
	"time"

	"redlock-proxy/internal/pacing"
	"redlock-proxy/quorum"
)

// holdPause is the time between two checks whether all proxies have paused. retryPause is the time
// between two attempts at any other operation.
const (
	holdPause  = 20 * time.Millisecond
	retryPause = 100 * time.Millisecond
)

// awaitHolding waits until all running proxies have reported that they paused the commands on lock
// keys, and returns the reports. A proxy that no longer announces itself was stopped, or is
// disconnected.
func (r *run) awaitHolding(ctx context.Context) ([]quorum.PauseReport, error) {
	for until := time.Now().Add(r.patience); ; {
		held := r.opts.Masters.PauseReports(ctx, r.at.Era)
		silent := slices.DeleteFunc(slices.Clone(r.opts.Masters.Proxies()), func(id string) bool {
			return slices.ContainsFunc(held, func(h quorum.PauseReport) bool { return h.Proxy == id })
		})
		switch at, known := r.opts.Masters.CurrentLocation(); {
		case known && at.Era != r.at.Era: // another run has ended the move or taken it over
			return nil, &quorum.WrongLocationError{Now: at}
		case len(silent) == 0:
			return held, r.opts.Masters.MayMove() // a proxy that cannot take part may have started meanwhile
		case !time.Now().Before(until):
			return nil, fmt.Errorf("proxies did not pause commands on lock keys in time: %s", summarize(silent))
		}
		if err := pacing.Sleep(ctx, holdPause); err != nil {
			return nil, err
		}
	}
}
