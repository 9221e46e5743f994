package program

import (
	"cmp"
	"slices"

	"redlock-proxy/commands/lockkeys/keyspace"
)

// cell returns the name of the cell that holds a key.
func (r *run) cell(key string) string { return r.Engine.cell(r.DB, key) }

func (e *Engine) cell(db int, key string) string {
	keyOnMasters := e.KeyOnMasters(db, key)
	return cmp.Or(keyOnMasters.Tag, keyOnMasters.Name)
}

// SameCell reports whether one cell holds both keys, so that one vote covers both.
func (e *Engine) SameCell(db int, key, otherKey string) bool {
	return e.cell(db, key) == e.cell(db, otherKey)
}

// sameCell returns the cell that holds all keys that a run changes or depends on, if one cell holds
// them. One vote then covers all of these keys. sameCell returns false if the run knows of only one
// key in the cell, because the commit can then be cheaper than a ballot.
func (r *run) sameCell(a Outcome) (cell string, is bool) {
	if len(r.removedKeys) > 0 {
		return "", false // a ballot would write the removed keys again
	}
	hasSeveral := false
	for i, e := range a.Edits {
		editCell := r.cell(e.Key)
		if i > 0 && editCell != cell {
			return "", false
		}
		cell, hasSeveral = editCell, hasSeveral || i > 0 || r.sharesCell(e.Key)
	}
	for key := range r.WatchedVersions {
		if r.cell(key) != cell {
			return "", false
		}
		hasSeveral = hasSeveral || len(a.Edits) == 1 && a.Edits[0].Key != key
	}
	return cell, hasSeveral && len(a.Edits) > 0
}

// sharesCell reports whether a key has a tag, or whether the last read found the key in a cell with
// tagged keys.
func (r *run) sharesCell(key string) bool {
	return r.KeyOnMasters(r.DB, key).Tag != "" || r.lastRead[key].Shared
}

// needsBallot reports whether a run takes several keys, of which at least one may share its cell.
// Only a ballot can take such keys, not Register.Take.
func (r *run) needsBallot(changes []keyspace.Edit) bool {
	return len(changes) > 1 &&
		slices.ContainsFunc(changes, func(e keyspace.Edit) bool { return r.sharesCell(e.Key) })
}

// keysInCell returns the keys of the program that a cell holds.
func (r *run) keysInCell(cell string) (keys []string) {
	for _, key := range r.Keys {
		if r.cell(key) == cell {
			keys = append(keys, key)
		}
	}
	return keys
}

// addKeys adds keys that the next try must read. It returns a refusal if the program uses too many
// undeclared keys.
func (r *run) addKeys(keys []string) (refusalOutcome *Outcome) {
	for _, key := range keys {
		refusalOutcome = cmp.Or(refusalOutcome, r.addKey(key))
	}
	return refusalOutcome
}
