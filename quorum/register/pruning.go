package register

import "time"

type expiring interface {
	expired(now time.Time) bool
	bytes() int
}

// pruning schedules the removal of expired entries from a map: once as many entries, or bytes, were
// added as the last search left, plus a minimum. So the map takes at most about twice the memory in
// use, and a search costs little for each entry.
type pruning struct {
	entries, bytes int // left after the last search
	added          int // bytes added since
}

const (
	pruneEntries = 1 << 10
	pruneBytes   = 1 << 20
)

func putAndPrune[V expiring](s *pruning, all map[string]V, key string, entry V, now time.Time) {
	all[key] = entry
	s.added += len(key) + entry.bytes()
	if len(all) < 2*s.entries+pruneEntries && s.added < s.bytes+pruneBytes {
		return
	}
	left := 0
	for key, entry := range all {
		if entry.expired(now) {
			delete(all, key)
		} else {
			left += len(key) + entry.bytes()
		}
	}
	*s = pruning{entries: len(all), bytes: left}
}
