package command

import (
	"maps"
	"slices"

	"redlock-proxy/commands/catalog/keys"
	"redlock-proxy/quorum"
)

// maxChangedKeysSize limits the size of ChangedKeys, in bytes. Each key counts as the length of its
// name plus changedKeyOverhead.
const maxChangedKeysSize, changedKeyOverhead = 16 << 10, 128

// ChangedKeys holds the lock keys that a client's commands may have changed since the last
// satisfied WAIT. The zero value is empty.
type ChangedKeys struct {
	keys     map[quorum.Key]struct{}
	bytes    int
	overflow bool
	// startsNewSet is set after StartNewSet: the next command starts a new set.
	startsNewSet bool
}

// Add records the keys of a command.
func (t *ChangedKeys) Add(db int, words [][]byte, places keys.Places) {
	if t.startsNewSet {
		*t = ChangedKeys{}
	}
	for at := range places.All() {
		key := quorum.Key{DB: db, Name: string(words[at])}
		if _, known := t.keys[key]; known {
			continue
		}
		size := len(words[at]) + changedKeyOverhead
		if t.overflow || t.bytes+size > maxChangedKeysSize {
			*t = ChangedKeys{overflow: true}
			return
		}
		if t.keys == nil {
			t.keys = map[quorum.Key]struct{}{}
		}
		t.keys[key] = struct{}{}
		t.bytes += size
	}
}

// Keys returns the keys. complete is false if there were too many to record.
func (t *ChangedKeys) Keys() (changedKeys []quorum.Key, complete bool) {
	return slices.Collect(maps.Keys(t.keys)), !t.overflow
}

// StartNewSet makes the next Add start a new set. WAIT calls it when it is satisfied, or when the
// set has lost keys.
func (t *ChangedKeys) StartNewSet() { t.startsNewSet = true }
