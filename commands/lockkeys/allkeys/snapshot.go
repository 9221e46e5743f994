package allkeys

import (
	"cmp"
	"hash/fnv"
	"slices"
	"sync"
)

// place is a lock key in the order in which SCAN returns them: by a hash of the name, which is the
// same for all proxies, so that keys that come and go change nothing in the order of the others.
type place struct {
	position uint32
	key      string
}

func positionOf(key string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(key)) // never fails
	return h.Sum32()
}

// inOrder are keys in that order.
func inOrder(all []string) []place {
	places := make([]place, len(all))
	for i, key := range all {
		places[i] = place{positionOf(key), key}
	}
	slices.SortFunc(places, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.position, b.position), cmp.Compare(a.key, b.key))
	})
	return places
}

// page are the keys from a position on that fit, about so many, and the position of the rest; more
// is false where there is none.
func page(all []place, from uint32, count int, fits func(key string) bool) (found []string, next uint32, more bool) {
	start, _ := slices.BinarySearchFunc(all, from, func(p place, at uint32) int { return cmp.Compare(p.position, at) })
	for i := start; i < len(all); i++ {
		if len(found) >= count && all[i].position != all[i-1].position { // those of one position are returned together
			return found, all[i].position, true
		}
		if fits(all[i].key) {
			found = append(found, all[i].key)
		}
	}
	return found, 0, false
}

const (
	// maxSnapshots and maxSnapshotBytes bound what is kept of SCANs that are under way.
	maxSnapshots     = 8
	maxSnapshotBytes = 16 << 20
	// placeBytes is what a place costs beside its key.
	placeBytes = 32
)

// snapshots are the lock keys as SCANs found them that are not at their end, the newest first. A
// SCAN whose snapshot has gone looks again. It is safe for concurrent use.
type snapshots struct {
	mu   sync.Mutex
	kept []snapshot
}

type snapshot struct {
	generation uint32
	db         int
	places     []place
	bytes      int
}

// find finds one.
func (s *snapshots) find(generation uint32, db int) ([]place, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.kept {
		if k.generation == generation && k.db == db {
			return k.places, true
		}
	}
	return nil, false
}

// keep keeps one, and drops the oldest where there are too many.
func (s *snapshots) keep(generation uint32, db int, places []place) {
	added := snapshot{generation: generation, db: db, places: places}
	for _, p := range places {
		added.bytes += placeBytes + len(p.key)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept = slices.Insert(s.kept, 0, added)
	total := 0
	for i, k := range s.kept {
		if total += k.bytes; total > maxSnapshotBytes || i == maxSnapshots {
			clear(s.kept[i:])
			s.kept = s.kept[:i]
			return
		}
	}
}

// drop forgets one that is not needed any more.
func (s *snapshots) drop(generation uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept = slices.DeleteFunc(s.kept, func(k snapshot) bool { return k.generation == generation })
}
