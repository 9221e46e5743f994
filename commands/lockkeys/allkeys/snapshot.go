package allkeys

import (
	"cmp"
	"hash/fnv"
	"slices"
	"sync"
)

// orderedKey is a lock key in the order of SCAN. SCAN orders keys by a hash of the key. So the
// order is the same for all proxies, and new or removed keys do not change it.
type orderedKey struct {
	position uint32
	key      string
}

func positionOf(key string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(key)) // never fails
	return h.Sum32()
}

// sortInScanOrder sorts keys in the order of SCAN.
func sortInScanOrder(keys []string) []orderedKey {
	ordered := make([]orderedKey, len(keys))
	for i, key := range keys {
		ordered[i] = orderedKey{positionOf(key), key}
	}
	slices.SortFunc(ordered, func(a, b orderedKey) int {
		return cmp.Or(cmp.Compare(a.position, b.position), cmp.Compare(a.key, b.key))
	})
	return ordered
}

// selectPage returns about count matching keys, beginning at a position, and the position of the
// next page. more is false if this is the last page.
func selectPage(
	orderedKeys []orderedKey, from uint32, count int, matches func(key string) bool,
) (pageKeys []string, next uint32, more bool) {
	start, _ := slices.BinarySearchFunc(orderedKeys, from, func(k orderedKey, at uint32) int {
		return cmp.Compare(k.position, at)
	})
	for i := start; i < len(orderedKeys); i++ {
		// A page ends between two positions.
		if len(pageKeys) >= count && orderedKeys[i].position != orderedKeys[i-1].position {
			return pageKeys, orderedKeys[i].position, true
		}
		if matches(orderedKeys[i].key) {
			pageKeys = append(pageKeys, orderedKeys[i].key)
		}
	}
	return pageKeys, 0, false
}

const (
	// maxSnapshots and maxSnapshotBytes limit the snapshots of unfinished SCANs.
	maxSnapshots     = 8
	maxSnapshotBytes = 16 << 20
	// keyOverhead is the memory that a key takes in addition to its name.
	keyOverhead = 32
)

// snapshots holds the lock keys that unfinished SCANs have listed. The newest snapshot is the first
// element of list. A SCAN without a snapshot lists the keys again. The type is safe for concurrent
// use.
type snapshots struct {
	mu   sync.Mutex
	list []snapshot
}

type snapshot struct {
	snapshotID uint32
	db         int
	ordered    []orderedKey
	bytes      int
}

func (s *snapshots) find(snapshotID uint32, db int) ([]orderedKey, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.list {
		if k.snapshotID == snapshotID && k.db == db {
			return k.ordered, true
		}
	}
	return nil, false
}

// add adds a snapshot, and drops the oldest snapshots if there are too many, or if they are too
// large.
func (s *snapshots) add(snapshotID uint32, db int, ordered []orderedKey) {
	newest := snapshot{snapshotID: snapshotID, db: db, ordered: ordered}
	for _, p := range ordered {
		newest.bytes += keyOverhead + len(p.key)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = slices.Insert(s.list, 0, newest)
	total := 0
	for i, k := range s.list {
		if total += k.bytes; total > maxSnapshotBytes || i == maxSnapshots {
			clear(s.list[i:])
			s.list = s.list[:i]
			return
		}
	}
}

// drop removes the snapshot of a finished SCAN.
func (s *snapshots) drop(snapshotID uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = slices.DeleteFunc(s.list, func(k snapshot) bool { return k.snapshotID == snapshotID })
}
