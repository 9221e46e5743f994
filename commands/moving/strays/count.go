package strays

import (
	"context"
	"maps"
	"slices"

	"redlock-proxy/quorum/feed"
)

// maxCounted is at how many keys of a Redis CountAt looks.
const maxCounted = 100_000

// CountAt returns, by a look through its keys, how many lock keys an upstream holds, and the first of them. more is set where it has more keys than are
// looked at. It changes nothing there.
func CountAt(ctx context.Context, upstream feed.Server, lockKeys []string) (n int, first string, more bool, err error) {
	l, end, err := New(Options{Upstream: upstream, LockKeys: lockKeys}).connect(ctx)
	if err != nil {
		return 0, "", false, err
	}
	defer end()
	databases, many, err := l.databases()
	if err != nil {
		return 0, "", false, err
	}
	found, err := l.scan(databases, maxCounted)
	if len(found) > 0 {
		first = slices.Min(slices.Collect(maps.Keys(found)))
	}
	return len(found), first, many > maxCounted, err
}
