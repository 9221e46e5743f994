package register

import (
	"context"
	"errors"
	"time"

	"redlock-proxy/quorum/cell"
)

// watchedFor is how long a key that was absent when it was watched can be told from one
// that came and went since. After that it counts as changed.
const watchedFor = 30 * time.Second

// Watch is Read for keys whose versions are to be compared later. Where there is no cell, a
// vacant one is put, because nothing tells one absence from another.
//
// Errors: those of Read.
func (r *Register) Watch(ctx context.Context, keys []string) ([]Look, error) {
	for failures := 1; ; failures++ {
		looks, err := r.Read(ctx, keys)
		if err != nil {
			return nil, err
		}
		again := false
		for i, key := range keys {
			if looks[i].Version != "" {
				continue
			}
			version, err := r.vacate(ctx, key)
			switch {
			case errors.As(err, new(*splitError)), errors.Is(err, ErrHeld):
				again = true
			case err != nil:
				return nil, err
			default:
				looks[i].Version = version
			}
		}
		if !again {
			return looks, nil
		}
		if err := r.masters.Pause(ctx, failures); err != nil {
			return nil, err
		}
	}
}

// vacate puts a vacant cell under a key that has none, and returns the version.
func (r *Register) vacate(ctx context.Context, key string) (string, error) {
	got, err := r.take(ctx, Taking{Keys: []string{key}, Tokens: []string{""}, TTL: watchedFor, vacant: true})
	if err != nil {
		return "", err
	}
	return finding{standing: Held, attempt: got.Attempt}.look().Version, nil
}

// isVacated reports whether a cell holds no value.
func isVacated(f cell.Found) bool { return f.Form == cell.Register && !f.Value.Present }
