package move

import (
	"context"
	"fmt"
	"slices"
	"time"

	"redlock-proxy/internal/pacing"
	"redlock-proxy/quorum"
)

// holdPause is that between two looks whether all hold back, retryPause that between two tries at
// anything.
const (
	holdPause  = 20 * time.Millisecond
	retryPause = 100 * time.Millisecond
)

// await waits until all proxies that announce themselves have said that they hold back, and returns
// what they said. One that is not heard of any more was stopped, or is cut off.
func (r *run) await(ctx context.Context) ([]quorum.Held, error) {
	for until := time.Now().Add(r.patience); ; {
		held := r.opts.Masters.Holding(ctx, r.at.Era)
		silent := slices.DeleteFunc(slices.Clone(r.opts.Masters.Proxies()), func(id string) bool {
			return slices.ContainsFunc(held, func(h quorum.Held) bool { return h.Proxy == id })
		})
		switch at, known := r.opts.Masters.Placed(); {
		case known && at.Era != r.at.Era: // it was ended, or taken over
			return nil, &quorum.ElsewhereError{Now: at}
		case len(silent) == 0:
			return held, r.opts.Masters.MayMove() // no other proxy has come meanwhile beside which they cannot be
		case !time.Now().Before(until):
			return nil, fmt.Errorf("%d proxies are at work and do not hold back: %s", len(silent), some(silent))
		}
		if err := pacing.Sleep(ctx, holdPause); err != nil {
			return nil, err
		}
	}
}
