package command

import (
	"maps"
	"slices"

	"redlock-proxy/commands/catalog/keys"
	"redlock-proxy/quorum"
)

// maxTouched limits the size of Touched, in bytes. Each key counts for its name and touchedSize.
const maxTouched, touchedSize = 16 << 10, 128

// Touched holds the lock keys that a client's commands may have changed since the last answered
// WAIT. The zero value is empty.
type Touched struct {
	keys     map[quorum.Key]struct{}
	bytes    int
	overflow bool
	// settled is set after a WAIT was answered: the next command starts a new set.
	settled bool
}

// Add records the keys of a command.
func (t *Touched) Add(db int, words [][]byte, places keys.Places) {
	if t.settled {
		*t = Touched{}
	}
	for at := range places.All() {
		size := len(words[at]) + touchedSize
		if t.overflow || t.bytes+size > maxTouched {
			*t = Touched{overflow: true}
			return
		}
		if t.keys == nil {
			t.keys = map[quorum.Key]struct{}{}
		}
		t.keys[quorum.Key{DB: db, Name: string(words[at])}] = struct{}{}
		t.bytes += size
	}
}

// Keys returns the keys. known is false if there were too many to record.
func (t *Touched) Keys() (all []quorum.Key, known bool) {
	return slices.Collect(maps.Keys(t.keys)), !t.overflow
}

// Settle starts a new set at the next Add: WAIT was satisfied, or there were too many keys.
func (t *Touched) Settle() { t.settled = true }
