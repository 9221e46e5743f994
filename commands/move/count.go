package move

import "context"

// maxCounted limits how many buckets of hash tables CountLockKeys scans. A Redis usually has up to
// twice as many buckets as keys, so CountLockKeys usually scans at least 100,000 keys.
const maxCounted = 200_000

// CountLockKeys returns the number of lock keys at an upstream, and an example. more is set if the
// upstream has more keys than CountLockKeys scans. It changes nothing.
func CountLockKeys(ctx context.Context, conn Connection, lockKeys []string) (n int, example string, more bool, err error) {
	s := &upstreamStore{Mover: New(Options{LockKeys: lockKeys}), conn: conn}
	found, more, err := s.scan(ctx, maxCounted)
	if len(found) > 0 {
		example = found[0].key
	}
	return len(found), example, more, err
}
