package quorum

import "time"

// maxOwed bounds the cleanups remembered for a master that is down. Beyond it the
// TTL of the keys has to do; what has none is remembered without a bound.
const maxOwed = 1 << 16

// owed are cleanups for a master that is down, one for each key and token.
type owed map[owedKey]owedUndo

type owedKey struct {
	key   Key
	token string
}

// owedUndo is a cleanup, and when it began to be owed: by that much the time that it
// speaks of has shrunk when it is sent.
type owedUndo struct {
	change Change
	since  time.Time
}

// add remembers a cleanup, and reports whether there was room.
func (w owed) add(c Change) bool {
	id := owedKey{c.key, c.token}
	if c.kind == kindEdit {
		id = owedKey{c.edits[0].Key, c.edits[0].Was.Value}
	}
	old, known := w[id]
	switch {
	case known && old.change.kind == kindRelease:
		return true // covers an undo
	case !known && len(w) >= maxOwed && !c.isEndless():
		return false
	}
	w[id] = owedUndo{change: c, since: time.Now()}
	return true
}

// isEndless reports whether what the cleanup is to end would not end by itself.
func (c Change) isEndless() bool {
	return c.ttl < 0 || c.kind == kindEdit && c.edits[0].Now.Left < 0
}

// take removes up to n of them, as ops.
func (w owed) take(n int) []*op {
	var ops []*op
	for id, undo := range w {
		if len(ops) == n {
			break
		}
		delete(w, id)
		ops = append(ops, &op{change: undo.now()})
	}
	return ops
}

// now is the cleanup as it is to be sent at this moment.
func (u owedUndo) now() Change {
	c, owedFor := u.change, time.Since(u.since)
	switch {
	case c.kind == kindUndo && c.minLeft > 0:
		c.minLeft = max(0, c.minLeft-owedFor)
	case c.kind == kindEdit && c.edits[0].Now.Left > 0:
		e := c.edits[0]
		if e.Now.Left -= owedFor; e.Now.Left < time.Millisecond {
			e.Now = Entry{}
		}
		c.edits = []Edit{e}
	}
	return c
}
