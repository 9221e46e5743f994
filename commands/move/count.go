package move

import "context"

// maxCounted is at how much of an upstream CountAt looks: a hash table has up to twice as much room
// as keys, so that it is at 100,000 of these at least.
const maxCounted = 200_000

// CountAt returns how many lock keys an upstream holds, and one of them. more is set where it has
// more keys than are looked at. It changes nothing.
func CountAt(ctx context.Context, conn Connection, lockKeys []string) (n int, one string, more bool, err error) {
	s := &atUpstream{Mover: New(Options{LockKeys: lockKeys}), conn: conn}
	found, more, err := s.scan(ctx, maxCounted)
	if len(found) > 0 {
		one = found[0].key
	}
	return len(found), one, more, err
}
