package model

import (
	"math/bits"
	"slices"

	"redlock-proxy/quorum/cell"
	"redlock-proxy/quorum/register"
	"redlock-proxy/quorum/vote"
)

// Change describes a change of the masters: the first N masters of a scenario are sealed one by
// one, and the masters of NewMasters join the next set. The model assumes that the next set was
// already decided; package reconfig explores the decision.
type Change struct {
	// NewMasters lists the masters of the new set, by their numbers from 0.
	NewMasters []int
	// Proxies lists the proxies that use the new set, by their numbers from 0. All other proxies
	// use the old set.
	Proxies []int
	// RequireAllSealed lets masters join only after all masters of the old set are sealed and read.
	RequireAllSealed bool
	// DataLosses limits the number of times that a master loses its data after the change was
	// decided.
	DataLosses int
	// AllowReturn lets masters of both sets that missed their seal return and join the next set.
	// RequireAllJoined makes the clients of the next set wait until all its masters have joined.
	AllowReturn, RequireAllJoined bool

	// Each of the following fields switches a mechanism off.

	// NoSeal counts votes of the old set forever.
	NoSeal bool
	// NoJoin counts the votes of the new set as soon as the old set is sealed.
	NoJoin bool
	// DecideByNewSet copies according to the majority of the new set instead of the old set.
	DecideByNewSet bool
	// EarlyCatchUp copies as in a catch-up within the new set before a majority of that set votes.
	EarlyCatchUp bool
	// RulesByVotes joins by the rules of the old set whenever no majority of the new set votes,
	// even if a majority has voted before.
	RulesByVotes bool
	// FullCopyByNewSet copies a lock completely only if a majority of the new set holds it, even if
	// fewer masters vote.
	FullCopyByNewSet bool
	// OverwriteOwnCells gives a master that missed its seal blocking copies in place of its own
	// cells.
	OverwriteOwnCells bool
	// FewSources reads one source fewer than a join requires.
	FewSources bool
	// NoBlockingCopies makes complete copies of locks that may or may not have a majority.
	NoBlockingCopies bool
	// OwnDataOnly lets a master join with its own data only.
	OwnDataOnly bool
}

// masterCount returns the number of masters in both sets.
func (s *Scenario) masterCount() int {
	n := s.N
	if s.Change != nil {
		for _, m := range s.Change.NewMasters {
			n = max(n, m+1)
		}
	}
	return n
}

// masterSet returns the masters that a proxy uses.
func (s *Scenario) masterSet(proxy int) []int {
	if s.Change != nil {
		if slices.Contains(s.Change.Proxies, proxy) {
			return s.Change.NewMasters
		}
	}
	masters := make([]int, s.N)
	for m := range masters {
		masters[m] = m
	}
	return masters
}

// usesNewSet reports whether a proxy uses the new set.
func (s *Scenario) usesNewSet(proxy int) bool {
	if s.Change == nil {
		return false
	}
	return slices.Contains(s.Change.Proxies, proxy)
}

// inNewSet reports whether a master is in the new set.
func (s *Scenario) inNewSet(m int) bool {
	if s.Change == nil {
		return false
	}
	return slices.Contains(s.Change.NewMasters, m)
}

// role returns 0 for a master in both sets, 1 for the old set only, 2 for the new set only.
func (s *Scenario) role(m int) byte {
	switch {
	case s.Change == nil || m < s.N && s.inNewSet(m):
		return 0
	case m < s.N:
		return 1
	default:
		return 2
	}
}

type changeState struct {
	// sealedMasters holds the sealed masters of the old set, joinedMasters the voting masters of
	// the new set, as bits.
	sealedMasters, joinedMasters uint8
	// returnedMasters holds the masters that missed their seal and are joining or have joined.
	// mastersWithoutData holds the masters that have lost their data, and have not joined since.
	// usedMasters holds the masters of the new set that may have voted in it.
	returnedMasters, mastersWithoutData, usedMasters uint8
	// dataLosses counts the losses of data; lostAt is the time of the last loss.
	dataLosses uint8
	lostAt     clock
	// join is the state of the joining master. catchesUp is set if that master catches up from
	// masters that have already joined. withoutMajority is set if no majority of the new set voted
	// when the join began.
	join                       catchUpState
	catchesUp, withoutMajority bool
}

func (c changeState) encode(b []byte) []byte {
	flags := byte(0)
	if c.catchesUp {
		flags = 1
	}
	if c.withoutMajority {
		flags |= 2
	}
	return c.join.encode(append(b, c.sealedMasters, c.joinedMasters, c.returnedMasters, c.mastersWithoutData, c.usedMasters, c.dataLosses, byte(c.lostAt), flags))
}

func (c *changeState) decode(b []byte) []byte {
	c.sealedMasters, c.joinedMasters, c.returnedMasters, c.mastersWithoutData, c.usedMasters = b[0], b[1], b[2], b[3], b[4]
	c.dataLosses, c.lostAt = b[5], clock(b[6])
	c.catchesUp, c.withoutMajority = b[7]&1 == 1, b[7]&2 == 2
	return c.join.decode(b[8:])
}

func (c *changeState) renumber(o renumbering) {
	for _, masters := range []*uint8{&c.sealedMasters, &c.joinedMasters, &c.returnedMasters, &c.mastersWithoutData, &c.usedMasters} {
		old := *masters
		*masters = 0
		for m := range maxMasters {
			*masters |= old >> m & 1 << o[m]
		}
	}
	c.join.renumber(o)
}

// signature returns a number that differs for masters with different roles in the change.
func (c *changeState) signature(m int) uint32 {
	number := c.join.signature(m)
	for i, masters := range []uint8{c.sealedMasters, c.joinedMasters, c.returnedMasters, c.mastersWithoutData, c.usedMasters} {
		number ^= uint32(masters>>m&1) << (30 - i)
	}
	return number
}

// hasVoteFor reports whether a proxy counts a master's vote.
func (e *explorer) hasVoteFor(s *state, proxy, m int) bool {
	switch {
	case e.Change == nil:
		return s.hasVote(m)
	case e.usesNewSet(proxy):
		return s.change.joinedMasters>>m&1 == 1
	default:
		return e.Change.NoSeal || (s.change.sealedMasters|s.change.returnedMasters|s.change.mastersWithoutData)>>m&1 == 0
	}
}

// emitChangeSteps calls f with each possible next step of the change.
func (e *explorer) emitChangeSteps(s *state, f func(event, *state)) {
	if e.Change == nil {
		return
	}
	for m := range e.N {
		if (s.change.sealedMasters|s.change.returnedMasters|s.change.mastersWithoutData)>>m&1 == 0 {
			t := s.clone()
			t.change.sealedMasters |= 1 << m
			f(event{name: "seals", proxy: -1, master: m}, t)
		}
	}
	if bits.OnesCount8(s.change.sealedMasters|s.change.returnedMasters) < vote.Majority(e.N) {
		return
	}
	e.emitDataLosses(s, f)
	e.emitLostSeals(s, f)
	if s.change.join.stage != votingStage {
		e.continueJoin(s, f)
		return
	}
	for _, m := range e.Change.NewMasters {
		if s.change.joinedMasters>>m&1 == 1 || m < e.N && (s.change.sealedMasters|s.change.mastersWithoutData)>>m&1 == 0 && !e.Change.AllowReturn {
			continue
		}
		// Requests that the master answered before it lost its data must have reached the sources.
		if s.change.mastersWithoutData>>m&1 == 1 && e.elapsedTime(s.at)-e.elapsedTime(s.change.lostAt) <= register.Limit {
			continue
		}
		if e.Change.NoJoin {
			t := s.clone()
			t.change.joinedMasters |= 1 << m
			t.change.usedMasters |= 1 << m
			f(event{name: "joins at once:", proxy: -1, master: m}, t)
			continue
		}
		byNewRules := e.usesNewRules(s)
		e.beginJoin(s, m, byNewRules, f)
		// If the proxy reaches too few masters of the old set, the master joins by the rules of the new
		// set.
		if !byNewRules && e.Change.AllowReturn && !e.Change.RequireAllSealed && !e.Change.RequireAllJoined {
			e.beginJoin(s, m, true, f)
		}
	}
}

// emitDataLosses lets a master lose its data. A join of that master, or a join that reads it, ends.
func (e *explorer) emitDataLosses(s *state, f func(event, *state)) {
	if int(s.change.dataLosses) >= e.Change.DataLosses {
		return
	}
	for m := range s.masters {
		t := s.clone()
		c := &t.change
		c.dataLosses++
		c.lostAt = s.at
		c.joinedMasters &^= 1 << m
		c.mastersWithoutData |= 1 << m
		if e.inNewSet(m) {
			c.usedMasters |= 1 << m
		}
		if c.join.stage != votingStage && (int(c.join.master) == m || c.join.passes[0][m] != 0) {
			c.join, c.catchesUp, c.withoutMajority = catchUpState{}, false, false
		}
		t.masters[m] = masterState{}
		f(event{name: "loses its data:", proxy: -1, master: m}, t)
	}
}

// emitLostSeals puts a sealed master into quarantine before it joins. A proxy may do so if the
// joined masters suffice as sources. The master loses its seal, and with the seal the proof that it
// has its data.
func (e *explorer) emitLostSeals(s *state, f func(event, *state)) {
	if !e.Change.AllowReturn || e.Change.RequireAllJoined || s.change.join.stage != votingStage {
		return
	}
	for _, m := range e.Change.NewMasters {
		c := s.change
		if (c.joinedMasters|c.mastersWithoutData)>>m&1 == 1 || c.sealedMasters>>m&1 == 0 || bits.OnesCount8(c.joinedMasters) < e.newSourcesNeeded(c, m) {
			continue
		}
		t := s.clone()
		t.change.sealedMasters &^= 1 << m
		t.change.returnedMasters |= 1 << m
		f(event{name: "loses its seal:", proxy: -1, master: m}, t)
	}
}

// newSourcesNeeded returns the minimum number of sources in the new set for a target.
func (e *explorer) newSourcesNeeded(c changeState, target int) int {
	needed := vote.ReadQuorum(len(e.Change.NewMasters))
	if c.usedMasters>>target&1 == 0 {
		needed-- // no majority of the new set includes the target
	}
	return max(1, needed)
}

// usesNewRules reports whether masters join by the rules of the new set, because a majority of the
// new set may have voted.
func (e *explorer) usesNewRules(s *state) bool {
	n := len(e.Change.NewMasters)
	switch {
	case e.Change.EarlyCatchUp:
		return bits.OnesCount8(s.change.joinedMasters) >= vote.ReadQuorum(n)
	case e.Change.RulesByVotes:
		return e.newSetHasMajority(s)
	default:
		return bits.OnesCount8(s.change.usedMasters) >= vote.Majority(n)
	}
}

// beginJoin reads the sources for a joining master, for every set of sources that is large enough.
// If byNewRules is set, the master joins by the rules of the new set. beginJoin reads all sources
// of a pass at the same moment.
func (e *explorer) beginJoin(s *state, target int, byNewRules bool, f func(event, *state)) {
	needed := e.sourcesNeeded()
	if byNewRules {
		needed = e.newSourcesNeeded(s.change, target)
		if e.Change.RequireAllSealed {
			needed = bits.OnesCount8(s.change.joinedMasters)
		}
	}
	for sources := range uint8(1) << e.masterCount() {
		t := s.clone()
		t.change.catchesUp, t.change.withoutMajority = byNewRules, !e.newSetHasMajority(s)
		if target < e.N && (s.change.sealedMasters|s.change.mastersWithoutData)>>target&1 == 0 {
			t.change.returnedMasters |= 1 << target
		}
		t.change.join = catchUpState{stage: firstPass, master: uint8(target), startedAt: s.at}
		valid := bits.OnesCount8(sources) >= needed && (sources>>target&1 == 1) == e.isSource(t, target, target)
		for m := range s.masters {
			valid = valid && (sources>>m&1 == 0 || e.isSource(t, m, target))
			if sources>>m&1 == 1 || m == target {
				t.change.join.passes[0][m] = s.masters[m].cell + 1
			}
			if sources>>m&1 == 1 {
				t.change.join.fence = max(t.change.join.fence, s.masters[m].fence)
			}
		}
		if valid {
			f(event{name: "begins to join, after reading the sources:", proxy: -1, master: target}, t)
		}
	}
}

// sourcesNeeded returns the minimum number of sources in the old set.
func (e *explorer) sourcesNeeded() int {
	n := vote.ReadQuorum(e.N)
	if e.Change.RequireAllSealed {
		return e.N
	}
	if e.Change.FewSources {
		n--
	}
	if e.Change.OwnDataOnly {
		return 0
	}
	return n
}

// isSource reports whether a master is a source for the joining target. By the rules of the new
// set, a source is a master that has joined. By the rules of the old set, a sealed master of the
// old set that still has its data is a source, too.
func (e *explorer) isSource(s *state, m, target int) bool {
	c := s.change
	switch {
	case c.catchesUp:
		return m != target && c.joinedMasters>>m&1 == 1
	case e.Change.OwnDataOnly:
		return m == target && c.sealedMasters>>m&1 == 1
	default:
		return c.joinedMasters>>m&1 == 1 || m < e.N && c.sealedMasters>>m&1 == 1 && c.mastersWithoutData>>m&1 == 0
	}
}

// keepsOwnCell reports whether the joining master keeps a cell of its own that may have been
// granted: it voted in the old set, has not lost its data, and has not voted in the new set.
func (e *explorer) keepsOwnCell(s *state, target int) bool {
	if e.Change.OverwriteOwnCells && s.change.returnedMasters>>target&1 == 1 {
		return false
	}
	return target < e.N && s.change.mastersWithoutData>>target&1 == 0 && s.change.usedMasters>>target&1 == 0
}

// decidingSetSize returns the size of the set whose majority selects the incarnation to copy.
func (e *explorer) decidingSetSize(c changeState) int {
	if c.catchesUp || e.Change.DecideByNewSet {
		return len(e.Change.NewMasters)
	}
	return e.N
}

// fullCopyHolders returns the number of sources that must hold an incarnation for a complete copy.
// As long as no majority of the new set votes, a majority of the old set suffices.
func (e *explorer) fullCopyHolders(c changeState) int {
	holders := vote.Majority(e.decidingSetSize(c))
	if c.catchesUp && c.withoutMajority && !e.Change.FullCopyByNewSet {
		holders = min(holders, vote.Majority(e.N))
	}
	return holders
}

// continueJoin takes the next step of a master that is joining.
func (e *explorer) continueJoin(s *state, f func(event, *state)) {
	t := s.clone()
	c := &t.change.join
	target := int(c.master)
	if c.stage == firstPass {
		e.copyToJoining(t)
		f(event{name: "fills", proxy: -1, master: target}, t)
		return
	}
	for m := range s.masters {
		if c.passes[0][m] != 0 {
			c.passes[1][m] = s.masters[m].cell + 1
		}
	}
	e.admitJoined(t)
	f(event{name: "joins, after reading the sources again:", proxy: -1, master: target}, t)
}

// newSetHasMajority reports whether a majority of the new set votes. Before that, the proxies of
// the new set send no operations.
func (e *explorer) newSetHasMajority(s *state) bool {
	return bits.OnesCount8(s.change.joinedMasters) >= vote.Majority(len(e.Change.NewMasters))
}

// newSetServes reports whether clients of the new set may begin.
func (e *explorer) newSetServes(s *state) bool {
	return e.newSetHasMajority(s) && (!e.Change.RequireAllJoined || bits.OnesCount8(s.change.joinedMasters) == len(e.Change.NewMasters))
}

// joinIncarnations returns the incarnations that a pass read from the sources, and the number of
// masters of the deciding set that the pass did not read.
func (e *explorer) joinIncarnations(s *state, pass int) (incs []incarnation, unreadCount int) {
	c := s.change.join
	target := int(c.master)
	passes := c
	if !e.isSource(s, target, target) {
		passes.passes[pass][target] = 0
	} else if pass == 1 && passes.passes[0][target] != 0 {
		first, second := e.cells.values[passes.passes[0][target]-1], e.cells.values[passes.passes[1][target]-1]
		if first.Attempt != second.Attempt && !second.IsUndecided() {
			passes.passes[1][target] = 1 // the target's cell is the copy, and counts as empty
		}
	}
	incs, unreadByAll := e.incarnations(passes, pass)
	read := e.masterCount() - 1 - unreadByAll
	return incs, e.decidingSetSize(s.change) - read
}

// copyToJoining copies the result of the first pass to a master.
func (e *explorer) copyToJoining(s *state) {
	c := &s.change.join
	target := int(c.master)
	q, full := vote.Majority(e.decidingSetSize(s.change)), e.fullCopyHolders(s.change)
	incs, unread := e.joinIncarnations(s, 0)
	var candidates []incarnation
	for _, inc := range incs {
		if inc.holders >= full {
			candidates = []incarnation{inc}
			break
		}
		if inc.mayHave(q, unread) {
			inc.blockExpiry = inc.blockedUntil(q, unread)
			candidates = append(candidates, inc)
		}
	}
	if len(candidates) > 1 {
		candidates = []incarnation{undecidedCopy(candidates)}
	}
	s.masters[target].fence = max(s.masters[target].fence, c.fence)
	ownBefore := c.passes[0][target] - 1
	c.stage = secondPass
	if len(candidates) == 0 {
		if s.masters[target].cell == ownBefore {
			s.masters[target].cell = 0
		}
		return
	}
	inc := candidates[0]
	copied := inc.content
	if inc.holders < full && !e.Change.NoBlockingCopies || inc.Form == cell.Blocking {
		if ownContent := e.cells.values[ownBefore]; e.keepsOwnCell(s, target) && ownContent.Attempt == inc.Attempt {
			return // the target itself is one of the holders
		}
		copied = content{Cell: cell.Cell{Form: cell.Blocking, Attempt: inc.Attempt}, expiry: inc.blockExpiry}
	}
	if copied.Form == cell.Register {
		copied.Promised = copied.Accepted
	}
	s.masters[target].cell = e.cellID(copied)
}

// admitJoined checks the copy against the second pass, and counts the master's votes from then on.
func (e *explorer) admitJoined(s *state) {
	c := s.change.join
	target := int(c.master)
	firstRead, _ := e.joinIncarnations(s, 0)
	secondRead, unread := e.joinIncarnations(s, 1)
	q, full := vote.Majority(e.decidingSetSize(s.change)), e.fullCopyHolders(s.change)
	currentContent := e.cells.values[s.masters[target].cell]
	contentBefore := e.cells.values[c.passes[0][target]-1]
	wasOwn := e.keepsOwnCell(s, target) && contentBefore.Attempt == currentContent.Attempt
	s.change.joinedMasters |= 1 << target
	s.change.usedMasters |= 1 << target
	s.change.mastersWithoutData &^= 1 << target
	s.change.join, s.change.catchesUp, s.change.withoutMajority = catchUpState{}, false, false
	copied := false
	for _, inc := range firstRead {
		copied = copied || currentContent.Form != cell.Absent && inc.Attempt == currentContent.Attempt
	}
	if !copied || wasOwn {
		return
	}
	s.masters[target].cell = e.secondCopy(currentContent, secondRead, q, full, unread, e.Change.NoBlockingCopies)
}
