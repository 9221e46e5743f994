package quorum

import "time"

// undoAfter is what takes back from a master what this change did there, age after
// it was begun: got is the master's answer, and over tells of each edit whether what it
// was to change is nobody's any more. Where that says that it did, the undo
// is sure of it; where the master never answered, what it holds must look as only
// this change can have left it.
func (c Change) undoAfter(age time.Duration, got reply, over func(i int) bool) []Change {
	sure := got.vote == voteYes
	switch c.kind {
	case kindAcquire:
		return []Change{undoSet(c.key, c.token, c.ttl, age, sure)}
	case kindEdit:
		return undoEdits(c, age, got, over)
	default:
		return nil
	}
}

// undoSet removes what a SET of an absent key put there. Unless it is sure, what
// the key holds must have the remaining time of a SET that was sent age ago.
func undoSet(key Key, token string, ttl, age time.Duration, sure bool) Change {
	if sure {
		return Change{kind: kindRelease, key: key, token: token, ttl: min(ttl, 0)}
	}
	undo := Change{kind: kindUndo, key: key, token: token, ttl: ttl, minLeft: Endless}
	if ttl >= 0 {
		undo.minLeft = max(0, Validity(ttl, age))
	}
	return undo
}

// undoEdits puts back each key by itself: one that was changed again meanwhile
// must not keep the others from it.
func undoEdits(c Change, age time.Duration, got reply, over func(i int) bool) []Change {
	var undos []Change
	for i, e := range c.edits {
		sure := got.vote == voteYes
		switch {
		case !e.changes():
		case !e.Was.Present:
			undos = append(undos, undoSet(e.Key, e.Now.Value, e.Now.Left, age, sure))
		case over(i):
			undos = append(undos, Change{kind: kindEdit, key: e.Key, edits: []Edit{{Key: e.Key, Was: e.Now}}})
		default:
			before := e.Was
			if sure {
				before.Left = got.entries[i].Left
			}
			if undo, ok := e.restoring(before, age); ok {
				undos = append(undos, undo)
			}
		}
	}
	for i := range undos {
		undos[i].behind = c.key
	}
	return undos
}

// restoring gives a key its former value back if it still holds the new one. ok is
// false where it is not known how long that value may stay.
func (e Edit) restoring(before Entry, age time.Duration) (undo Change, ok bool) {
	back := Edit{Key: e.Key, Was: e.Now, Now: before}
	switch {
	case before.Left == 0:
		return Change{}, false
	case before.Left > 0:
		back.Now.Left = before.Left - age
		if back.Now.Left < time.Millisecond {
			back.Now = Entry{}
		}
	}
	return Change{kind: kindEdit, key: e.Key, edits: []Edit{back}}, true
}
