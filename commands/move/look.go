package move

import (
	"context"
	"fmt"
	"time"

	"redlock-proxy/quorum/place"
)

// lockBytes is what a lock takes beside its name and its value, about.
const lockBytes = 256

// look finds what speaks against a move, at both places, and changes nothing.
func (r *run) look(ctx context.Context) error {
	if err := r.opts.Masters.MayMove(); err != nil {
		return err
	}
	if err := r.checkUpstream(ctx); err != nil {
		return err
	}
	source, target := r.stores()
	tried := []store{target}
	if r.at.Source() == place.Upstream { // from which they are to be removed
		tried = append(tried, source)
	}
	began := time.Now()
	names, err := source.list(ctx)
	if err != nil {
		return err
	}
	size := int64(0)
	for part := range parts(names) {
		locks, err := source.read(ctx, part)
		if err != nil && !passes(err) { // clients are at work still, so a key may be open just now
			return err
		}
		for _, l := range locks {
			size += int64(len(l.key)+len(l.value)) + lockBytes
		}
		for _, s := range tried {
			if err := s.try(ctx, locks); err != nil {
				return err
			}
		}
	}
	if err := target.mayHold(ctx, size); err != nil {
		return fmt.Errorf("%d lock keys take about %d bytes: %w", len(names), size, err)
	}
	takes := r.settle + time.Since(began)
	if takes > r.copyTime {
		return fmt.Errorf("%d lock keys would be moved in about %v, as long as it took to look at them, which is longer than %v", len(names), takes.Round(time.Millisecond), r.copyTime)
	}
	r.say(fmt.Sprintf("looked first: %d lock keys, to be moved in about %v", len(names), takes.Round(10*time.Millisecond)))
	return nil
}
