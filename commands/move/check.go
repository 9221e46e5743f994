package move

import (
	"context"
	"fmt"
	"time"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/quorum/location"
)

// lockBytes is the approximate size of a lock without its name and value, in bytes.
const lockBytes = 256

// checkStores examines both stores for obstacles to a move. It changes nothing.
func (r *run) checkStores(ctx context.Context) error {
	if err := r.opts.Masters.CheckMove(); err != nil {
		return err
	}
	if err := r.checkUpstream(ctx); err != nil {
		return err
	}
	source, target := r.stores()
	checked := []store{target}
	if r.at.Source() == location.Upstream { // the move removes the locks from the upstream
		checked = append(checked, source)
	}
	start := time.Now()
	names, err := source.list(ctx)
	if err != nil {
		return err
	}
	size := int64(0)
	for part := range partsByDatabase(names) {
		locks, err := source.read(ctx, part)
		// Clients still run commands, so a key may be undecided.
		if err != nil && !isTemporary(err) {
			return err
		}
		for _, l := range locks {
			size += int64(len(l.key)+len(l.value)) + lockBytes
		}
		for _, s := range checked {
			if err := s.checkWrites(ctx, locks); err != nil {
				return err
			}
		}
	}
	if err := target.checkRoom(ctx, size); err != nil {
		return fmt.Errorf("no room for %s of about %d bytes: %w", syntax.Count(len(names), "lock key"), size, err)
	}
	duration := r.eraDelay + time.Since(start)
	if duration > r.copyTimeout {
		return fmt.Errorf("moving %s would take too long: about %v, the limit is %v",
			syntax.Count(len(names), "lock key"), duration.Round(time.Millisecond), r.copyTimeout)
	}
	duration = duration.Round(10 * time.Millisecond)
	r.logStep("checked %s: moving them takes about %v", syntax.Count(len(names), "lock key"), duration)
	return nil
}
