package command

import (
	"redlock-proxy/commands/keys"
	"redlock-proxy/quorum"
)

// maxTouched bounds the keys that are remembered.
const maxTouched = 64

// Touched are the lock keys that a client's commands named before a WAIT, since one before that was satisfied. The zero value is none.
type Touched struct {
	keys map[quorum.Key]struct{}
	many bool
	// settled is set once a WAIT was satisfied: what comes next is looked at by itself.
	settled bool
}

// Add notes the keys of a command.
func (t *Touched) Add(db int, words [][]byte, places keys.Places) {
	if t.settled {
		*t = Touched{}
	}
	for at := range places.All() {
		switch key := (quorum.Key{DB: db, Name: string(words[at])}); {
		case len(t.keys) >= maxTouched:
			t.many = true
			return
		case t.keys == nil:
			t.keys = map[quorum.Key]struct{}{key: {}}
		default:
			t.keys[key] = struct{}{}
		}
	}
}

// Keys are their databases and names; known is false where there were too many.
func (t *Touched) Keys() (all []quorum.Key, known bool) {
	for key := range t.keys {
		all = append(all, key)
	}
	return all, !t.many
}

// Settle is for a WAIT that is satisfied.
func (t *Touched) Settle() { t.settled = true }
