package guard

import (
	"cmp"
	"slices"
	"time"

	"redlock-proxy/quorum/cell"
	"redlock-proxy/quorum/vote"
)

// heldCell is what one master holds under a key, and when that ends by our clock (zero:
// never).
type heldCell struct {
	cell.Cell
	Ends time.Time
}

// incarnation distinguishes cells by the attempt that created them, and those of others by
// their value.
type incarnation string

func (h heldCell) incarnation() incarnation { return incarnation(h.Incarnation()) }

// laterThan orders ends: never is last.
func (h heldCell) laterThan(other heldCell) bool {
	if h.Ends.IsZero() || other.Ends.IsZero() {
		return h.Ends.IsZero() && !other.Ends.IsZero()
	}
	return h.Ends.After(other.Ends)
}

// view is what one master holds in a database.
type view map[string]heldCell

// census counts which of n masters, of which so many were read as sources, hold what.
type census struct {
	Masters, Sources int
	// Closes has a key of which several incarnations may have been granted get an undecided copy.
	// Else it is left open.
	Closes bool
}

// incarnationsOf are those that any of the views has under a key.
func incarnationsOf(views []view, key string) map[incarnation]bool {
	all := map[incarnation]bool{}
	for _, v := range views {
		if h, there := v[key]; there {
			all[h.incarnation()] = true
		}
	}
	return all
}

// holders are the cells of an incarnation; blocks are the blocking copies that may stand for it.
func holders(views []view, key string, of incarnation) (cells, blocks []heldCell) {
	for _, v := range views {
		switch h, there := v[key]; {
		case !there || h.incarnation() != of && !h.IsUndecided():
		case h.Form == cell.Blocking:
			blocks = append(blocks, h)
		default:
			cells = append(cells, h)
		}
	}
	return cells, blocks
}

// wholeOf is the incarnation that a majority of all masters, among the sources, holds; at
// most one does. Empty: none.
func (c census) wholeOf(views []view, key string) incarnation {
	for i, v := range views[:max(0, len(views)-vote.Majority(c.Masters)+1)] {
		h, there := v[key]
		if !there || h.Form == cell.Blocking {
			continue
		}
		of, n := h.incarnation(), 1
		for _, other := range views[i+1:] {
			if o, there := other[key]; there && o.Form != cell.Blocking && o.incarnation() == of {
				n++
			}
		}
		if n >= vote.Majority(c.Masters) {
			return of
		}
	}
	return ""
}

// choice is what a master that forgot is to hold under a key.
type choice int

const (
	chooseNothing choice = iota
	chooseCopy           // the value
	chooseBlock          // that nobody else may have the key
	chooseLater          // it is not known yet
)

// choose decides what a master that forgot is to hold under a key, of the incarnations that were
// there when the copying began: only these can have been granted with its vote. whole is the
// incarnation that a majority held in the pass before.
//
// An incarnation that a majority holds, twice, is copied. One that a majority may have been granted
// with the votes of the master itself and of those that are not read is blocked: no rule can
// distinguish a lock granted on just these masters from the rest of a released one. What fewer hold
// is nobody's, and does not grow. Where it may be one of several it is looked at again, or, with
// Closes, blocked for as long as any of them would be.
func (c census) choose(views []view, key string, first map[incarnation]bool, whole incarnation) (heldCell, choice) {
	if now := c.wholeOf(views, key); now != "" && first[now] {
		if now != whole {
			return heldCell{}, chooseLater
		}
		cells, _ := holders(views, key, now)
		return newest(cells), chooseCopy
	}
	var possible []heldCell
	for of := range first {
		cells, blocks := holders(views, key, of)
		found := len(cells) + len(blocks)
		if unread := c.Masters - 1 - c.Sources; found > 0 && found+unread+1 >= vote.Majority(c.Masters) {
			possible = append(possible, blocking(of, latest(append(cells, blocks...))))
		}
	}
	switch {
	case len(possible) == 0:
		return heldCell{}, chooseNothing
	case len(possible) == 1:
		return possible[0], chooseBlock
	case c.Closes:
		return blocking(incarnation(cell.Undecided), latest(possible)), chooseBlock
	default:
		return heldCell{}, chooseLater
	}
}

// newest is the cell with the highest accepted ballot, for as long as any that holds its value, by
// whichever ballot. What was promised is not copied.
func newest(cells []heldCell) heldCell {
	best := slices.MaxFunc(cells, func(a, b heldCell) int { return cmp.Compare(a.Accepted, b.Accepted) })
	for _, h := range cells {
		if h.Value.Last() == best.Value.Last() && h.laterThan(best) {
			best.Ends = h.Ends
		}
	}
	switch {
	case best.Form == cell.Foreign:
	case best.Accepted == "":
		best.Cell = cell.Cell{Form: cell.Plain, Attempt: best.Attempt, Value: best.Value}
	default:
		best.Promised = best.Accepted
	}
	return best
}

// latest is the one that ends last.
func latest(cells []heldCell) heldCell {
	best := cells[0]
	for _, h := range cells[1:] {
		if h.laterThan(best) {
			best = h
		}
	}
	return best
}

// blocking is a blocking copy that ends with a cell.
func blocking(of incarnation, until heldCell) heldCell {
	return heldCell{Cell: cell.Cell{Form: cell.Blocking, Attempt: cell.Attempt(of)}, Ends: until.Ends}
}

// copyAct is what is done to a key of the master that forgot, as script.Fill has it.
type copyAct string

const (
	actPut  copyAct = "put"
	actCopy copyAct = "copy"
	actDrop copyAct = "drop"
	// actRaise is for fence counters.
	actRaise copyAct = "raise"
)

// copyStep is one such act.
type copyStep struct {
	Act  copyAct
	Key  string
	Held heldCell
}

// keysCopy is the copy of some keys of a database into a master that forgot. It does no I/O.
type keysCopy struct {
	census census
	// stepped is set where the master's own remaining times are wrong.
	stepped bool
	// first are the incarnations that the sources held when they were first looked at, by key; own
	// is what the master itself held then.
	first map[string]map[incarnation]bool
	own   view
	// whole are the incarnations that a majority held in the last pass, of which this is the
	// number.
	whole  map[string]incarnation
	passes int
	// written is what was written; unsure are the keys of which it is not known whether the last
	// step was done.
	written map[string]heldCell
	unsure  map[string]bool
	// open are the keys of which the last pass could not decide which incarnation it is.
	open []string
	// member is the source that the master itself is, by its number, or -1.
	member int
}

// newCopy begins a copy by what the sources, and the master itself, hold now. It is itself source
// number member, or none (-1): as one it forgot nothing, and joins another set of masters. What it
// holds of an incarnation that may have been granted stays as it is then, since it is one of the
// few that hold it.
func newCopy(c census, stepped bool, member int, own view, sources []view) *keysCopy {
	k := &keysCopy{
		census: c, stepped: stepped, own: own, first: map[string]map[incarnation]bool{},
		whole: map[string]incarnation{}, written: map[string]heldCell{}, unsure: map[string]bool{}, member: member,
	}
	for _, v := range append(sources[:len(sources):len(sources)], own) {
		for key := range v {
			if _, known := k.first[key]; !known && !isFence(key) {
				k.first[key] = incarnationsOf(sources, key)
				k.whole[key] = k.census.wholeOf(sources, key)
			}
		}
	}
	return k
}

// others are the views of the sources without what was only written to the master by the copy. An
// undecided one counts: it is in the place of what the master held.
func (k *keysCopy) others(sources []view) []view {
	if k.member < 0 {
		return sources
	}
	own := view{}
	for key, h := range sources[k.member] {
		if _, copied := k.written[key]; !copied || k.held(key, h) || h.IsUndecided() {
			own[key] = h
		}
	}
	views := slices.Clone(sources)
	views[k.member] = own
	return views
}

// held reports whether the master held an incarnation when the copy began.
func (k *keysCopy) held(key string, h heldCell) bool {
	own, there := k.own[key]
	return there && own.incarnation() == h.incarnation()
}

// Pass compares the sources once more, and the master itself, and returns what is to be done.
// settled is set where every key is: it was written, or removed, or needs neither, and the sources
// say the same still. What is changed meanwhile within an incarnation keeps nothing open: the
// master gets every change as they do.
func (k *keysCopy) Pass(now view, sources []view) (steps []copyStep, settled bool) {
	settled, k.open = true, nil
	k.passes++
	sources = k.others(sources)
	for key, first := range k.first {
		h, choice := k.census.choose(sources, key, first, k.whole[key])
		k.whole[key] = k.census.wholeOf(sources, key)
		var done bool
		switch {
		case choice == chooseLater:
			done, k.open = false, append(k.open, key)
		case choice == chooseNothing:
			steps, done = k.remove(steps, key, now[key], sources)
		case choice == chooseBlock && k.held(key, h) && (k.member >= 0 || k.own[key].Form == cell.Foreign):
			done = true
		default:
			steps, done = k.write(steps, key, h, now[key])
		}
		settled = settled && done
	}
	return steps, settled
}

// write writes what the master is to hold, and again what is newer by now where nothing else has
// reached it since.
func (k *keysCopy) write(steps []copyStep, key string, h, now heldCell) ([]copyStep, bool) {
	was, wrote := k.written[key]
	if now.String() == was.String() && k.own[key].String() != was.String() {
		delete(k.unsure, key) // it was done, though late
	}
	done := wrote && !k.unsure[key] && was.incarnation() == h.incarnation() && (was.Form == cell.Blocking) == (h.Form == cell.Blocking)
	switch {
	case !done:
		steps = append(steps, copyStep{k.actFor(key, h), key, h})
	case now.String() == was.String() && (h.String() != was.String() || h.isLonger(now)):
		steps = append(steps, copyStep{actPut, key, h})
	default:
		return steps, true
	}
	k.written[key] = h
	delete(k.unsure, key)
	return steps, done
}

// Failed notes steps of which it is not known whether they were done: the next pass does again what
// the master shows no sign of, as the sources have it then.
func (k *keysCopy) Failed(steps []copyStep) {
	for _, s := range steps {
		k.written[s.Key] = s.Held // also what was to be removed
		k.unsure[s.Key] = true
	}
}

// actFor leaves a longer time only to what the master has itself, and rightly.
func (k *keysCopy) actFor(key string, h heldCell) copyAct {
	if own, there := k.own[key]; there && !k.stepped && own.String() == h.String() {
		return actCopy
	}
	return actPut
}

// remove takes away what was copied, and what the master held before: its promises, which it may
// have forgotten, and what no other knows. What others than proxies wrote stays, and so does what
// has come since, here and elsewhere: the second pass shows that.
func (k *keysCopy) remove(steps []copyStep, key string, now heldCell, sources []view) ([]copyStep, bool) {
	was, wrote := k.written[key]
	switch {
	case now.Form == cell.Absent:
		return steps, true
	case wrote && was.incarnation() == now.incarnation() && !(now.Form == cell.Foreign && k.held(key, now)):
		delete(k.written, key)
		return append(steps, copyStep{actDrop, key, now}), true
	case !k.held(key, now), now.Form == cell.Foreign:
		return steps, true
	case k.passes == 1:
		return steps, false
	case now.Form == cell.Plain && !k.first[key][now.incarnation()] && incarnationsOf(sources, key)[now.incarnation()]:
		return steps, true
	}
	return append(steps, copyStep{actDrop, key, now}), true
}

// sameEnd is by how much two looks at the same end may differ.
const sameEnd = 10 * time.Millisecond

func (h heldCell) isLonger(old heldCell) bool {
	if !old.Ends.IsZero() {
		old.Ends = old.Ends.Add(sameEnd)
	}
	return h.laterThan(old)
}

// Open are the keys, sorted, that keep the copy from its end: the last pass saw two incarnations of
// which each may have been granted, or a majority that the pass before had not seen.
func (k *keysCopy) Open() []string { return slices.Sorted(slices.Values(k.open)) }

// Close has keys of which several incarnations may have been granted get undecided copies from now
// on, and returns those that are open.
func (k *keysCopy) Close() []string {
	k.census.Closes = true
	return k.Open()
}

// Keys is how many were written so far, and not removed again.
func (k *keysCopy) Keys() int { return len(k.written) }
