package move

import "context"

// maxCounted limits how many keys CountAt scans. The hash table of a Redis has up to twice as many
// buckets as keys, so that at least 100,000 keys are scanned.
const maxCounted = 200_000

// CountAt returns how many lock keys an upstream holds, and one of them. more is set if the
// upstream has more keys than CountAt scans. It changes nothing.
func CountAt(ctx context.Context, conn Connection, lockKeys []string) (n int, one string, more bool, err error) {
	s := &atUpstream{Mover: New(Options{LockKeys: lockKeys}), conn: conn}
	found, more, err := s.scan(ctx, maxCounted)
	if len(found) > 0 {
		one = found[0].key
	}
	return len(found), one, more, err
}
