package move

import (
	"context"
	"fmt"
	"time"

	"redlock-proxy/internal/pacing"
	"redlock-proxy/quorum"
)

// pauseCheckInterval is the time between two checks whether all proxies have paused. retryInterval
// is the time between two attempts at any other operation.
const (
	pauseCheckInterval = 20 * time.Millisecond
	retryInterval      = 100 * time.Millisecond
)

// awaitPauses waits until all running proxies have reported that they paused the commands on lock
// keys, and returns the reports. It returns at once if they already have. It does not wait for a
// proxy that no longer announces itself, because that proxy has stopped or is disconnected.
func (r *run) awaitPauses(ctx context.Context) ([]quorum.PauseReport, error) {
	for deadline := time.Now().Add(r.pauseTimeout); ; {
		reports, missing := r.opts.Masters.PauseReports(ctx, r.at.Era)
		for _, h := range reports {
			if h.Server != "" && h.Server != r.upstreamRunID {
				return nil, fmt.Errorf("proxy %s has a different upstream (run_id %s) than this proxy (run_id %s): "+
					"locks would be in two places; give all proxies the same upstream", h.Proxy, h.Server, r.upstreamRunID)
			}
		}
		switch at, known := r.opts.Masters.CurrentLocation(); {
		case known && at.Era != r.at.Era: // another run has ended the move or taken it over
			return nil, &quorum.WrongLocationError{Current: at}
		case len(missing) == 0:
			// A proxy that cannot take part may have started meanwhile.
			return reports, r.opts.Masters.CheckMove()
		case !time.Now().Before(deadline):
			return nil, fmt.Errorf("proxies did not pause commands on lock keys in time: %s", summarize(missing))
		}
		if err := pacing.Sleep(ctx, pauseCheckInterval); err != nil {
			return nil, err
		}
	}
}
