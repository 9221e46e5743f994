package guard

import (
	"cmp"
	"slices"
	"time"

	"redlock-proxy/quorum/cell"
	"redlock-proxy/quorum/vote"
)

// storedCell holds the cell of a key on one master, and its expiry by this machine's clock (zero:
// never).
type storedCell struct {
	cell.Cell
	Expiry time.Time
}

// expiresAfter reports whether h expires after other. A cell without expiry expires last.
func (h storedCell) expiresAfter(other storedCell) bool {
	if h.Expiry.IsZero() || other.Expiry.IsZero() {
		return h.Expiry.IsZero() && !other.Expiry.IsZero()
	}
	return h.Expiry.After(other.Expiry)
}

// view holds the cells of one master in a database, by key.
type view map[string]storedCell

// copyPolicy decides which cells a master must hold.
type copyPolicy struct {
	// Masters is the number of masters, Sources the number of sources that were read.
	Masters, Sources int
	// FormerMasters is the number of masters of the former set, if it is known and fewer than a
	// majority of this set vote; zero otherwise.
	FormerMasters int
	// Intact is set if the master has lost nothing, but was unreachable during a change of the era.
	// Then a blocking copy does not replace the master's own cell.
	Intact bool
	// BlockUndecided is set if keys with several possible incarnations get undecided copies.
	// Otherwise such keys stay undetermined, and the copier reads them again.
	BlockUndecided bool
}

func incarnationsOf(views []view, key string) map[cell.Attempt]bool {
	found := map[cell.Attempt]bool{}
	for _, v := range views {
		if h, exists := v[key]; exists {
			found[h.Incarnation()] = true
		}
	}
	return found
}

// cellsOf returns the cells of an incarnation, and the blocking copies that may stand for it.
func cellsOf(views []view, key string, inc cell.Attempt) (cells, blockingCopies []storedCell) {
	for _, v := range views {
		switch h, exists := v[key]; {
		case !exists || h.Incarnation() != inc && !h.IsUndecided():
		case h.Form == cell.Blocking:
			blockingCopies = append(blockingCopies, h)
		default:
			cells = append(cells, h)
		}
	}
	return cells, blockingCopies
}

// fullCopyHolders returns how many sources must hold an incarnation so that the master gets a full
// copy. The number is a majority of all masters, or of the former set if that is smaller. If a
// majority of a set holds an incarnation, the set has neither released nor refused it. Even if the
// other set has one master more, the masters without the incarnation are not a majority of that
// set.
func (c copyPolicy) fullCopyHolders() int {
	holders := vote.Majority(c.Masters)
	if c.FormerMasters > 0 {
		holders = min(holders, vote.Majority(c.FormerMasters))
	}
	return holders
}

// blockingCopyHolders returns how many sources must hold an incarnation, so that a majority may
// hold it together with the master itself and all masters that were not read.
func (c copyPolicy) blockingCopyHolders() int {
	unread := c.Masters - 1 - c.Sources
	return max(1, vote.Majority(c.Masters)-unread-1)
}

// possibleUntil returns the expiry of a blocking copy. Once fewer than blockingCopyHolders of the
// found cells remain, too few sources hold the incarnation for a majority, and a copy that began then
// would be none.
func (c copyPolicy) possibleUntil(found []storedCell) time.Time {
	latestFirst := slices.SortedFunc(slices.Values(found), func(a, b storedCell) int {
		switch {
		case a.expiresAfter(b):
			return -1
		case b.expiresAfter(a):
			return 1
		}
		return 0
	})
	return prolonged(latestFirst[c.blockingCopyHolders()-1], latestFirst[0])
}

// prolonged returns the expiry of a copy of a cell. A cell may expire earlier than the lock, by at
// most the time that a ballot takes (REGISTER.md, Expiry). So the copy expires later than the cell,
// by the longest such time, but no later than any cell of the incarnation.
func prolonged(h, latest storedCell) time.Time {
	if later := h.Expiry.Add(vote.RoundLimit); !h.Expiry.IsZero() && latest.expiresAfter(storedCell{Expiry: later}) {
		return later
	}
	return latest.Expiry
}

// majorityIncarnation returns the incarnation that at least fullCopyHolders sources hold, or "".
// There is at most one such incarnation.
func (c copyPolicy) majorityIncarnation(views []view, key string) cell.Attempt {
	needed := c.fullCopyHolders()
	for i, v := range views[:max(0, len(views)-needed+1)] {
		h, exists := v[key]
		if !exists || h.Form == cell.Blocking {
			continue
		}
		candidate, n := h.Incarnation(), 1
		for _, other := range views[i+1:] {
			if o, exists := other[key]; exists && o.Form != cell.Blocking && o.Incarnation() == candidate {
				n++
			}
		}
		if n >= needed {
			return candidate
		}
	}
	return ""
}

// choice is the kind of cell for a master that lost data.
type choice int

const (
	chooseNothing choice = iota
	chooseCopy           // a copy of the value
	chooseBlock          // a blocking copy, so that no other client gets the key
	chooseLater          // not decided yet
)

// choose decides which cell a master that lost data must get for a key. It considers only
// initialIncarnations, the incarnations that existed when the copying began. Only these can have
// been granted with the master's vote. previousMajority is the incarnation that a majority held in
// the previous pass.
//
// GUARD.md (What is copied) has the rules and their reasons. Several possible incarnations are read
// again or, with BlockUndecided, blocked.
func (c copyPolicy) choose(
	views []view, key string, initialIncarnations map[cell.Attempt]bool, previousMajority cell.Attempt,
) (storedCell, choice) {
	if majority := c.majorityIncarnation(views, key); majority != "" && initialIncarnations[majority] {
		if majority != previousMajority {
			return storedCell{}, chooseLater
		}
		cells, _ := cellsOf(views, key, majority)
		return newestCell(cells), chooseCopy
	}
	var possibleCells []storedCell
	for candidate := range initialIncarnations {
		cells, blockingCopies := cellsOf(views, key, candidate)
		if found := append(cells, blockingCopies...); len(found) >= c.blockingCopyHolders() {
			possibleCells = append(possibleCells, blockingCopy(candidate, c.possibleUntil(found)))
		}
	}
	switch {
	case len(possibleCells) == 0:
		return storedCell{}, chooseNothing
	case len(possibleCells) == 1:
		return possibleCells[0], chooseBlock
	case c.BlockUndecided:
		return blockingCopy(cell.UndecidedAttempt, latestExpiring(possibleCells).Expiry), chooseBlock
	default:
		return storedCell{}, chooseLater
	}
}

// newestCell returns the cell with the highest accepted ballot. It gets the latest expiry of all
// cells with the same value, regardless of their ballots, prolonged. The result has no promise beyond the
// accepted ballot.
func newestCell(cells []storedCell) storedCell {
	best := slices.MaxFunc(cells, func(a, b storedCell) int { return cmp.Compare(a.Accepted, b.Accepted) })
	for _, h := range cells {
		if h.Value.LastChange() == best.Value.LastChange() && h.expiresAfter(best) {
			best.Expiry = h.Expiry
		}
	}
	best.Expiry = prolonged(best, latestExpiring(cells))
	switch {
	case best.Form == cell.Foreign:
	case best.Accepted == "":
		best.Cell = cell.Cell{Form: cell.Plain, Attempt: best.Attempt, Value: best.Value}
	default:
		best.Promised = best.Accepted
	}
	return best
}

// latestExpiring returns the cell that expires last.
func latestExpiring(cells []storedCell) storedCell {
	best := cells[0]
	for _, h := range cells[1:] {
		if h.expiresAfter(best) {
			best = h
		}
	}
	return best
}

func blockingCopy(inc cell.Attempt, expiry time.Time) storedCell {
	return storedCell{Cell: cell.Cell{Form: cell.Blocking, Attempt: inc}, Expiry: expiry}
}

// copyAct is the kind of a change on the master that lost data, as script.Fill names it.
type copyAct string

const (
	actPut  copyAct = "put"
	actCopy copyAct = "copy"
	actDrop copyAct = "drop"
	// actRaise raises a fence counter.
	actRaise copyAct = "raise"
)

type copyStep struct {
	Act  copyAct
	Key  string
	Cell storedCell
}

// keysCopy copies some keys of a database to a master that lost data. It does no I/O.
type keysCopy struct {
	policy copyPolicy
	// clockStepped is set if the remaining times on the master itself are wrong because its clock
	// stepped.
	clockStepped bool
	// initial holds the incarnations on the sources when they were first read, by key. ownCells
	// holds the master's cells at that time.
	initial  map[string]map[cell.Attempt]bool
	ownCells view
	// majority holds the incarnations that a majority held in the last pass. passes counts the
	// passes.
	majority map[string]cell.Attempt
	passes   int
	// writtenCells holds the cells that were written so far, and not removed again. uncertainKeys
	// holds the keys whose last step may or may not have taken effect.
	writtenCells  map[string]storedCell
	uncertainKeys map[string]bool
	// openKeys holds the keys that keep the copy from being settled. In the last pass, such a key
	// had several incarnations that may have been granted, or a new majority.
	openKeys []string
	// ownSource is the index of the source that is the master itself, or -1.
	ownSource int
}

// newKeysCopy starts a copy with the present cells of the sources and the master. ownSource is the
// index of the master among the sources, or -1. If the master is a source, it has lost nothing and
// joins another era. Then its cells of an incarnation that may have been granted stay unchanged,
// because the master may be one of only a few holders.
func newKeysCopy(policy copyPolicy, clockStepped bool, ownSource int, ownCells view, sources []view) *keysCopy {
	k := &keysCopy{
		policy: policy, clockStepped: clockStepped, ownCells: ownCells, initial: map[string]map[cell.Attempt]bool{},
		majority: map[string]cell.Attempt{}, writtenCells: map[string]storedCell{}, uncertainKeys: map[string]bool{}, ownSource: ownSource,
	}
	for _, v := range append(sources[:len(sources):len(sources)], ownCells) {
		for key := range v {
			if _, known := k.initial[key]; !known && !isFence(key) {
				k.initial[key] = incarnationsOf(sources, key)
				k.majority[key] = k.policy.majorityIncarnation(sources, key)
			}
		}
	}
	return k
}

// withoutCopied returns the sources' views without the cells that only this copy wrote to the
// master. An undecided copy stays, because it replaces a cell that the master held.
func (k *keysCopy) withoutCopied(sources []view) []view {
	if k.ownSource < 0 {
		return sources
	}
	remaining := view{}
	for key, h := range sources[k.ownSource] {
		if _, copied := k.writtenCells[key]; !copied || k.isInitiallyOwn(key, h) || h.IsUndecided() {
			remaining[key] = h
		}
	}
	views := slices.Clone(sources)
	views[k.ownSource] = remaining
	return views
}

// keepsOwn reports whether a blocking copy must not replace the master's own cell of the same
// incarnation. The reason is that the master has lost nothing, or that no proxy wrote the cell.
func (k *keysCopy) keepsOwn(key string) bool {
	return k.ownSource >= 0 || k.policy.Intact || k.ownCells[key].Form == cell.Foreign
}

// isInitiallyOwn reports whether the master held the incarnation of a cell when the copy began.
func (k *keysCopy) isInitiallyOwn(key string, h storedCell) bool {
	initialCell, exists := k.ownCells[key]
	return exists && initialCell.Incarnation() == h.Incarnation()
}

// RunPass compares the sources and the master once more, and returns the next steps. settled is set
// if every key is done: it was written or removed, or needs neither, and the sources still report
// the same. A change within an incarnation does not reopen a key: proxies send every change to this
// master, too.
func (k *keysCopy) RunPass(ownCells view, sources []view) (steps []copyStep, settled bool) {
	settled, k.openKeys = true, nil
	k.passes++
	sources = k.withoutCopied(sources)
	for key, initial := range k.initial {
		h, choice := k.policy.choose(sources, key, initial, k.majority[key])
		k.majority[key] = k.policy.majorityIncarnation(sources, key)
		var keyDone bool
		switch {
		case choice == chooseLater:
			keyDone, k.openKeys = false, append(k.openKeys, key)
		case choice == chooseNothing:
			steps, keyDone = k.remove(steps, key, ownCells[key], sources)
		case choice == chooseBlock && k.isInitiallyOwn(key, h) && k.keepsOwn(key):
			keyDone = true
		default:
			steps, keyDone = k.write(steps, key, h, ownCells[key])
		}
		settled = settled && keyDone
	}
	return steps, settled
}

// write adds the step that writes the master's cell. It repeats the step with a newer cell if no
// other write has reached the master since.
func (k *keysCopy) write(steps []copyStep, key string, h, currentCell storedCell) ([]copyStep, bool) {
	last, wrote := k.writtenCells[key]
	if currentCell.String() == last.String() && k.ownCells[key].String() != last.String() {
		delete(k.uncertainKeys, key) // the step took effect late
	}
	unchanged := wrote && !k.uncertainKeys[key] && last.Incarnation() == h.Incarnation() &&
		(last.Form == cell.Blocking) == (h.Form == cell.Blocking)
	switch {
	case !unchanged:
		steps = append(steps, copyStep{k.actFor(key, h), key, h})
	case currentCell.String() == last.String() && (h.String() != last.String() || h.outlasts(currentCell)):
		steps = append(steps, copyStep{actPut, key, h})
	default:
		return steps, true
	}
	k.writtenCells[key] = h
	delete(k.uncertainKeys, key)
	return steps, unchanged
}

// RecordFailure records steps that may or may not have taken effect. If the master does not show
// the effect of a step, the next pass repeats it with the sources' cells at that time.
func (k *keysCopy) RecordFailure(steps []copyStep) {
	for _, s := range steps {
		k.writtenCells[s.Key] = s.Cell // removals, too
		k.uncertainKeys[s.Key] = true
	}
}

// actFor returns actCopy, which keeps a longer remaining time, only for a cell that the master
// itself holds with a correct time.
func (k *keysCopy) actFor(key string, h storedCell) copyAct {
	if initialCell, exists := k.ownCells[key]; exists && !k.clockStepped && initialCell.String() == h.String() {
		return actCopy
	}
	return actPut
}

// remove adds the step that removes a copied cell, or a cell that the master held before. Such a
// cell may hold incomplete promises, or exist on no other master. Foreign cells stay. Cells that
// the master and the sources got since the copy began stay, too. The first pass cannot recognize
// such cells, so it removes no cell that the master held before.
func (k *keysCopy) remove(steps []copyStep, key string, current storedCell, sources []view) ([]copyStep, bool) {
	last, wrote := k.writtenCells[key]
	switch {
	case current.Form == cell.Absent:
		return steps, true
	case wrote && last.Incarnation() == current.Incarnation() && !(current.Form == cell.Foreign && k.isInitiallyOwn(key, current)):
		delete(k.writtenCells, key)
		return append(steps, copyStep{actDrop, key, current}), true
	case !k.isInitiallyOwn(key, current), current.Form == cell.Foreign:
		return steps, true
	case k.passes == 1:
		return steps, false
	case current.Form == cell.Plain && !k.initial[key][current.Incarnation()] && incarnationsOf(sources, key)[current.Incarnation()]:
		return steps, true
	}
	return append(steps, copyStep{actDrop, key, current}), true
}

// expiryTolerance limits the difference between two readings of the same expiry.
const expiryTolerance = 10 * time.Millisecond

func (h storedCell) outlasts(other storedCell) bool {
	if !other.Expiry.IsZero() {
		other.Expiry = other.Expiry.Add(expiryTolerance)
	}
	return h.expiresAfter(other)
}

// BlockOpenKeys sets BlockUndecided for all further passes, and returns, sorted, the open keys.
func (k *keysCopy) BlockOpenKeys() []string {
	k.policy.BlockUndecided = true
	return slices.Sorted(slices.Values(k.openKeys))
}
