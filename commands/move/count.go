package move

import "context"

// maxCounted limits how many buckets of the hash table CountAt scans. A Redis has up to twice as
// many buckets as keys, so CountAt scans at least 100,000 keys.
const maxCounted = 200_000

// CountAt returns the number of lock keys at an upstream, and an example. more is set if the
// upstream has more keys than CountAt scans. It changes nothing.
func CountAt(ctx context.Context, conn Connection, lockKeys []string) (n int, example string, more bool, err error) {
	s := &upstreamStore{Mover: New(Options{LockKeys: lockKeys}), conn: limitedConnection{conn}}
	found, more, err := s.scan(ctx, maxCounted)
	if len(found) > 0 {
		example = found[0].key
	}
	return len(found), example, more, err
}
