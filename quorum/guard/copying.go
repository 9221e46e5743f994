package guard

import (
	"cmp"
	"slices"
	"time"

	"redlock-proxy/quorum/cell"
	"redlock-proxy/quorum/vote"
)

// heldCell is the cell of a key on one master, and when it expires by our clock (zero: never).
type heldCell struct {
	cell.Cell
	Ends time.Time
}

// incarnation distinguishes cells by the attempts that created them, and foreign cells by their
// value.
type incarnation string

func (h heldCell) incarnation() incarnation { return incarnation(h.Incarnation()) }

// endsAfter reports whether h expires after other. A cell without expiry expires last.
func (h heldCell) endsAfter(other heldCell) bool {
	if h.Ends.IsZero() || other.Ends.IsZero() {
		return h.Ends.IsZero() && !other.Ends.IsZero()
	}
	return h.Ends.After(other.Ends)
}

// view holds the cells of one master in a database, by key.
type view map[string]heldCell

// copyPolicy decides which cells a master must hold. Masters is the number of masters, Sources how
// many were read.
type copyPolicy struct {
	Masters, Sources int
	// Blocks gives keys with several possible incarnations undecided copies. Otherwise such keys
	// stay open.
	Blocks bool
}

func incarnationsOf(views []view, key string) map[incarnation]bool {
	all := map[incarnation]bool{}
	for _, v := range views {
		if h, there := v[key]; there {
			all[h.incarnation()] = true
		}
	}
	return all
}

// holders returns the cells of an incarnation, and the blocking copies that may stand for it.
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

// majorityOf returns the incarnation that the sources hold on a majority of all masters, if any.
// There is at most one.
func (c copyPolicy) majorityOf(views []view, key string) incarnation {
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

// choice is the kind of cell that a master that lost data must get.
type choice int

const (
	chooseNothing choice = iota
	chooseCopy           // the value
	chooseBlock          // a blocking copy, so that no other client gets the key
	chooseLater          // not decided yet
)

// choose decides which cell a master that lost data must get for a key. It considers the
// incarnations that existed when the copying began: only these can have been granted with the
// master's vote. before is the incarnation that a majority held in the previous pass.
//
// An incarnation that a majority holds twice in a row is copied. An incarnation that may have been
// granted with the votes of the master itself and of the masters that were not read is blocked: no
// rule can distinguish such a lock from the rest of a released one. An incarnation on fewer masters
// is a leftover, and must not grow. If several incarnations are possible, the key is read again;
// with Blocks, it is blocked until the last of them would expire.
func (c copyPolicy) choose(
	views []view, key string, first map[incarnation]bool, before incarnation,
) (heldCell, choice) {
	if now := c.majorityOf(views, key); now != "" && first[now] {
		if now != before {
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
	case c.Blocks:
		return blocking(incarnation(cell.Undecided), latest(possible)), chooseBlock
	default:
		return heldCell{}, chooseLater
	}
}

// newest returns the cell with the highest accepted ballot. It gets the latest expiry of all cells
// with the same value, by any ballot. Promises are not copied.
func newest(cells []heldCell) heldCell {
	best := slices.MaxFunc(cells, func(a, b heldCell) int { return cmp.Compare(a.Accepted, b.Accepted) })
	for _, h := range cells {
		if h.Value.Last() == best.Value.Last() && h.endsAfter(best) {
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

// latest returns the cell that expires last.
func latest(cells []heldCell) heldCell {
	best := cells[0]
	for _, h := range cells[1:] {
		if h.endsAfter(best) {
			best = h
		}
	}
	return best
}

// blocking returns a blocking copy that expires when until does.
func blocking(of incarnation, expiresWith heldCell) heldCell {
	return heldCell{Cell: cell.Cell{Form: cell.Blocking, Attempt: cell.Attempt(of)}, Ends: expiresWith.Ends}
}

// copyAct is the kind of a change on the master that lost data, as script.Fill names it.
type copyAct string

const (
	actPut  copyAct = "put"
	actCopy copyAct = "copy"
	actDrop copyAct = "drop"
	// for fence counters
	actRaise copyAct = "raise"
)

type copyStep struct {
	Act  copyAct
	Key  string
	Held heldCell
}

// keysCopy copies some keys of a database to a master that lost data. It does no I/O.
type keysCopy struct {
	policy copyPolicy
	// stepped is set if the remaining times on the master itself are wrong.
	stepped bool
	// first holds the incarnations on the sources when they were first read, by key. own holds the
	// master's cells at that time.
	first map[string]map[incarnation]bool
	own   view
	// majority holds the incarnations that a majority held in the last pass. passes counts the
	// passes.
	majority map[string]incarnation
	passes   int
	// written holds the written cells. unsure holds the keys whose last step may or may not have
	// been done.
	written map[string]heldCell
	unsure  map[string]bool
	// open holds the keys whose incarnation the last pass could not decide.
	open []string
	// member is the index of the source that is the master itself, or -1.
	member int
}

// newCopy starts a copy with the present cells of the sources and the master. member is the index
// of the master among the sources, or -1. If the master is a source, it has lost nothing and joins
// another era. Then its cells of an incarnation that may have been granted stay unchanged, because
// it is one of the few holders.
func newCopy(c copyPolicy, stepped bool, member int, own view, sources []view) *keysCopy {
	k := &keysCopy{
		policy: c, stepped: stepped, own: own, first: map[string]map[incarnation]bool{},
		majority: map[string]incarnation{}, written: map[string]heldCell{}, unsure: map[string]bool{}, member: member,
	}
	for _, v := range append(sources[:len(sources):len(sources)], own) {
		for key := range v {
			if _, known := k.first[key]; !known && !isFence(key) {
				k.first[key] = incarnationsOf(sources, key)
				k.majority[key] = k.policy.majorityOf(sources, key)
			}
		}
	}
	return k
}

// withoutCopied returns the sources' views without the cells that only this copy wrote to the
// master. An undecided copy stays, because it replaces a cell that the master held.
func (k *keysCopy) withoutCopied(sources []view) []view {
	if k.member < 0 {
		return sources
	}
	own := view{}
	for key, h := range sources[k.member] {
		if _, copied := k.written[key]; !copied || k.heldBefore(key, h) || h.IsUndecided() {
			own[key] = h
		}
	}
	views := slices.Clone(sources)
	views[k.member] = own
	return views
}

// heldBefore reports whether the master held an incarnation when the copy began.
func (k *keysCopy) heldBefore(key string, h heldCell) bool {
	own, there := k.own[key]
	return there && own.incarnation() == h.incarnation()
}

// Pass compares the sources and the master once more, and returns the next steps. settled is set if
// every key is done: it was written or removed, or needs neither, and the sources still report the
// same. A change within an incarnation keeps no key open: the master gets every change as the
// sources do.
func (k *keysCopy) Pass(now view, sources []view) (steps []copyStep, settled bool) {
	settled, k.open = true, nil
	k.passes++
	sources = k.withoutCopied(sources)
	for key, first := range k.first {
		h, choice := k.policy.choose(sources, key, first, k.majority[key])
		k.majority[key] = k.policy.majorityOf(sources, key)
		var done bool
		switch {
		case choice == chooseLater:
			done, k.open = false, append(k.open, key)
		case choice == chooseNothing:
			steps, done = k.remove(steps, key, now[key], sources)
		case choice == chooseBlock && k.heldBefore(key, h) && (k.member >= 0 || k.own[key].Form == cell.Foreign):
			done = true
		default:
			steps, done = k.write(steps, key, h, now[key])
		}
		settled = settled && done
	}
	return steps, settled
}

// write adds the step that writes the master's cell. It repeats the step with a newer cell if no
// other write has reached the master since.
func (k *keysCopy) write(steps []copyStep, key string, h, now heldCell) ([]copyStep, bool) {
	was, wrote := k.written[key]
	if now.String() == was.String() && k.own[key].String() != was.String() {
		delete(k.unsure, key) // it was done late
	}
	done := wrote && !k.unsure[key] && was.incarnation() == h.incarnation() &&
		(was.Form == cell.Blocking) == (h.Form == cell.Blocking)
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

// Failed records steps that may or may not have been done. If the master does not show the effect
// of a step, the next pass repeats it with the sources' cells at that time.
func (k *keysCopy) Failed(steps []copyStep) {
	for _, s := range steps {
		k.written[s.Key] = s.Held // removals, too
		k.unsure[s.Key] = true
	}
}

// actFor returns actCopy, which keeps a longer remaining time, only for a cell that the master
// itself holds with a correct time.
func (k *keysCopy) actFor(key string, h heldCell) copyAct {
	if own, there := k.own[key]; there && !k.stepped && own.String() == h.String() {
		return actCopy
	}
	return actPut
}

// remove adds the step that removes a copied cell, or a cell that the master held before: it may
// hold incomplete promises, or exist on no other master. Foreign cells stay, and so do cells that
// are new on the master and the sources, as the second pass shows.
func (k *keysCopy) remove(steps []copyStep, key string, now heldCell, sources []view) ([]copyStep, bool) {
	was, wrote := k.written[key]
	switch {
	case now.Form == cell.Absent:
		return steps, true
	case wrote && was.incarnation() == now.incarnation() && !(now.Form == cell.Foreign && k.heldBefore(key, now)):
		delete(k.written, key)
		return append(steps, copyStep{actDrop, key, now}), true
	case !k.heldBefore(key, now), now.Form == cell.Foreign:
		return steps, true
	case k.passes == 1:
		return steps, false
	case now.Form == cell.Plain && !k.first[key][now.incarnation()] && incarnationsOf(sources, key)[now.incarnation()]:
		return steps, true
	}
	return append(steps, copyStep{actDrop, key, now}), true
}

// endTolerance is how far two readings of the same expiry may differ.
const endTolerance = 10 * time.Millisecond

func (h heldCell) isLonger(old heldCell) bool {
	if !old.Ends.IsZero() {
		old.Ends = old.Ends.Add(endTolerance)
	}
	return h.endsAfter(old)
}

// Open returns the keys, sorted, that keep the copy open. In the last pass such a key had two
// incarnations that may both have been granted, or a new majority.
func (k *keysCopy) Open() []string { return slices.Sorted(slices.Values(k.open)) }

// Block gives keys with several possible incarnations undecided copies from now on, and returns the
// open keys.
func (k *keysCopy) Block() []string {
	k.policy.Blocks = true
	return k.Open()
}

// Keys returns the number of keys that were written so far, and not removed again.
func (k *keysCopy) Keys() int { return len(k.written) }
