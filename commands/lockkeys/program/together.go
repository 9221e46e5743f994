package program

import (
	"cmp"
	"slices"

	"redlock-proxy/commands/lockkeys/keyspace"
)

// cell names the place in which a key stands, with others of its tag.
func (r *run) cell(key string) string { return r.Engine.cell(r.DB, key) }

func (e *Engine) cell(db int, key string) string {
	place := e.Place(db, key)
	return cmp.Or(place.Tag, place.Name)
}

// Together reports whether two keys stand in one cell, so that one vote is about both.
func (e *Engine) Together(db int, one, other string) bool {
	return e.cell(db, one) == e.cell(db, other)
}

// together reports whether all that a run changes, and all on which that depends, stands in one
// cell with other keys, so that one vote is about it. What is alone in its cell, as far as is
// known, is committed in cheaper ways.
func (r *run) together(a Outcome) (cell string, is bool) {
	if len(r.removed) > 0 {
		return "", false // what was removed already is not to be put again
	}
	several := false
	for i, e := range a.Edits {
		at := r.cell(e.Key)
		if i > 0 && at != cell {
			return "", false
		}
		cell, several = at, several || i > 0 || r.standsWithOthers(e.Key)
	}
	for key := range r.Watched {
		if r.cell(key) != cell {
			return "", false
		}
		several = several || len(a.Edits) == 1 && a.Edits[0].Key != key
	}
	return cell, several && len(a.Edits) > 0
}

// standsWithOthers reports whether a key has a tag, or was seen beside others that have.
func (r *run) standsWithOthers(key string) bool {
	return r.Place(r.DB, key).Tag != "" || r.seen[key].Shared
}

// needsBallot reports whether keys that are to be taken, of several cells, cannot be taken by one
// script on each master.
func (r *run) needsBallot(changing []keyspace.Edit) bool {
	return len(changing) > 1 && slices.ContainsFunc(changing, func(e keyspace.Edit) bool { return r.standsWithOthers(e.Key) })
}

// keysOf are the keys of the program that stand in a cell.
func (r *run) keysOf(cell string) (keys []string) {
	for _, key := range r.Keys {
		if r.cell(key) == cell {
			keys = append(keys, key)
		}
	}
	return keys
}

// addAll has keys be read, too. It is done where they would be too many.
func (r *run) addAll(keys []string) (done *Outcome) {
	for _, key := range keys {
		done = cmp.Or(done, r.add(key))
	}
	return done
}
