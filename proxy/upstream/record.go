package upstream

import (
	"context"
	"fmt"
	"slices"

	"github.com/redis/go-redis/v9"

	"redlock-proxy/commands/catalog/keys"
	"redlock-proxy/quorum/location"
)

// Record implements location.Record.
type Record struct {
	*Upstream
	lockKeys []string
}

// Record returns the record of the location of the locks; lockKeys holds the globs of these locks'
// keys.
func (u *Upstream) Record(lockKeys []string) *Record { return &Record{u, lockKeys} }

// Read implements location.Record.
func (r *Record) Read(ctx context.Context) (location.EraPlace, error) {
	at, _, err := r.read(ctx)
	return at, err
}

func (r *Record) read(ctx context.Context) (at location.EraPlace, olderEntries []string, err error) {
	client, err := r.pool.client()
	if err != nil {
		return at, nil, err
	}
	fields, err := client.HGetAll(ctx, location.RecordKey).Result()
	isRefused := redis.HasErrorPrefix(err, "NOAUTH") || redis.HasErrorPrefix(err, "NOPERM")
	switch {
	case isRefused && r.LoginCommand() == nil: // the proxy has no rights of its own: it cannot move locks
		return at, nil, nil
	case err != nil:
		return at, nil, r.Failure(err)
	}
	at, olderEntries = location.ParseRecord(fields, r.overlaps)
	return at, olderEntries, nil
}

// overlaps reports whether other globs may match some of this record's lock keys.
func (r *Record) overlaps(lockKeys []string) bool {
	ownPatterns, otherPatterns := keys.NewPatterns(r.lockKeys...), keys.NewPatterns(lockKeys...)
	return slices.ContainsFunc(lockKeys, ownPatterns.Covers) || slices.ContainsFunc(r.lockKeys, otherPatterns.Covers)
}

// Write implements location.Record. It also removes older entries.
func (r *Record) Write(ctx context.Context, at location.EraPlace) error {
	client, err := r.pool.client()
	if err != nil {
		return err
	}
	field := location.RecordField(at.Era, r.lockKeys)
	if err := client.HSetNX(ctx, location.RecordKey, field, at.Place.String()).Err(); err != nil {
		return r.Failure(err)
	}
	if _, older, err := r.read(ctx); err == nil && len(older) > 0 {
		err = client.HDel(ctx, location.RecordKey, older...).Err()
		if err != nil {
			return fmt.Errorf("cannot remove old entries: %w", err)
		}
	}
	return nil
}
