package register

import "time"

type expirable interface {
	isExpired(now time.Time) bool
	bytes() int
}

// pruning schedules the removal of expired entries from a map. The next search runs when the
// entries, or bytes, have doubled since the last search, and grown by a minimum. So a map uses at
// most about twice the memory that it needs.
type pruning struct {
	entries, bytes int // left after the last search
	addedBytes     int // bytes added since
}

const (
	pruneEntries = 1 << 10
	pruneBytes   = 1 << 20
)

// putAndPrune puts an entry into a map, and reports whether it has searched the map for expired
// entries.
func putAndPrune[V expirable](s *pruning, entries map[string]V, key string, entry V, now time.Time) (pruned bool) {
	entries[key] = entry
	s.addedBytes += len(key) + entry.bytes()
	if len(entries) < 2*s.entries+pruneEntries && s.addedBytes < s.bytes+pruneBytes {
		return false
	}
	remaining := 0
	for key, entry := range entries {
		if entry.isExpired(now) {
			delete(entries, key)
		} else {
			remaining += len(key) + entry.bytes()
		}
	}
	*s = pruning{entries: len(entries), bytes: remaining}
	return true
}
