package moving

import (
	"context"
	"slices"
	"time"

	"redlock-proxy/internal/pacing"
	"redlock-proxy/quorum"
)

// holdPause is that between two looks whether all hold back, retryPause that between two tries at anything.
const (
	holdPause  = 20 * time.Millisecond
	retryPause = 100 * time.Millisecond
)

// await waits until all proxies have said that they hold back, but not for long: who says nothing was stopped, or is cut off. It returns what was said, and the
// IDs of those who are silent.
func (r *run) await(ctx context.Context) (held []quorum.Held, silent []string, err error) {
	for until := time.Now().Add(r.patience); ; {
		held = r.opts.Masters.Holding(ctx, r.at.Era)
		silent = slices.DeleteFunc(slices.Clone(r.opts.Masters.Proxies()), func(id string) bool {
			return slices.ContainsFunc(held, func(h quorum.Held) bool { return h.Proxy == id })
		})
		if at, known := r.opts.Masters.Placed(); known && at.Era != r.at.Era { // it was ended, or taken over
			return nil, nil, &quorum.ElsewhereError{Now: at}
		}
		if len(silent) == 0 || !time.Now().Before(until) {
			return held, silent, nil
		}
		if err := pacing.Sleep(ctx, holdPause); err != nil {
			return nil, nil, err
		}
	}
}
