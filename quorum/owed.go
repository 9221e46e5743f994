package quorum

import "time"

// maxOwed bounds the cleanups remembered for a master that is down. Beyond it
// the TTL of the keys has to do.
const maxOwed = 1 << 16

// owed are cleanups for a master that is down, one for each key and token.
type owed map[owedKey]owedUndo

type owedKey struct {
	key   Key
	token string
}

// owedUndo keeps what an undo of an unknown SET needs: how much time that SET
// can have left shrinks until it is sent. A release has ttl 0.
type owedUndo struct {
	ttl      time.Duration
	deadline time.Time // when minLeft will be 0
}

// add remembers a cleanup, and reports whether there was room.
func (w owed) add(c Change) bool {
	id := owedKey{c.key, c.token}
	old, known := w[id]
	if !known && len(w) >= maxOwed {
		return false
	}
	undo := owedUndo{}
	if c.kind == kindUndo {
		undo = owedUndo{ttl: c.ttl, deadline: time.Now().Add(c.minLeft)}
	}
	if known && old.ttl == 0 {
		return true // a release covers an undo
	}
	w[id] = undo
	return true
}

// take removes up to n of them, as ops.
func (w owed) take(n int) []*op {
	var ops []*op
	for id, undo := range w {
		if len(ops) == n {
			break
		}
		delete(w, id)
		ops = append(ops, &op{change: undo.change(id)})
	}
	return ops
}

func (u owedUndo) change(id owedKey) Change {
	c := Release(id.key, id.token)
	if u.ttl > 0 {
		c.kind, c.ttl = kindUndo, u.ttl
		c.minLeft = max(0, time.Until(u.deadline))
	}
	return c
}
