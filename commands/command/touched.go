package command

import (
	"maps"
	"slices"

	"redlock-proxy/commands/catalog/keys"
	"redlock-proxy/quorum"
)

// maxTouched bounds the bytes that are remembered, where each key counts for its name and
// touchedSize.
const maxTouched, touchedSize = 16 << 10, 128

// Touched are the lock keys that a client's commands named since a WAIT was answered. The zero
// value is none.
type Touched struct {
	keys  map[quorum.Key]struct{}
	bytes int
	many  bool
	// settled is set once a WAIT was answered: what comes next is looked at by itself.
	settled bool
}

// Add notes the keys of a command.
func (t *Touched) Add(db int, words [][]byte, places keys.Places) {
	if t.settled {
		*t = Touched{}
	}
	for at := range places.All() {
		size := len(words[at]) + touchedSize
		if t.many || t.bytes+size > maxTouched {
			*t = Touched{many: true}
			return
		}
		if t.keys == nil {
			t.keys = map[quorum.Key]struct{}{}
		}
		t.keys[quorum.Key{DB: db, Name: string(words[at])}] = struct{}{}
		t.bytes += size
	}
}

// Keys are their databases and names; known is false where there were too many.
func (t *Touched) Keys() (all []quorum.Key, known bool) {
	return slices.Collect(maps.Keys(t.keys)), !t.many
}

// Settle is for a WAIT that is satisfied, or of which too many keys were touched.
func (t *Touched) Settle() { t.settled = true }
