package model

import (
	"math/bits"
	"slices"

	"redlock-proxy/quorum/cell"
	"redlock-proxy/quorum/vote"
)

// Change is a change of the masters: the first N masters of a scenario are sealed one by one, and
// the masters of New join the next set. The model assumes that the next set was already decided;
// package reconfig explores the decision.
type Change struct {
	// New lists the masters of the new set, by their numbers from 0.
	New []int
	// Proxies lists the proxies that use the new set, by their numbers from 0. All other proxies
	// use the old set.
	Proxies []int
	// AllAnswer lets masters join only after all masters of the old set are sealed and read.
	AllAnswer bool

	// Each of the following fields switches a mechanism off.

	// NoSeal counts votes of the old set forever.
	NoSeal bool
	// NoJoin counts the votes of the new set as soon as the old set is sealed.
	NoJoin bool
	// DecideByNewSet copies according to the majority of the new set instead of the old set.
	DecideByNewSet bool
	// EarlyCatchUp copies as in a catch-up within the new set before a majority of that set votes.
	EarlyCatchUp bool
	// FewSources reads one source fewer than a join requires.
	FewSources bool
	// NoBlocking makes complete copies of locks that may or may not have a majority.
	NoBlocking bool
	// OwnDataOnly lets a master join with its own data only.
	OwnDataOnly bool
}

// total returns the number of masters in both sets.
func (s *Scenario) total() int {
	n := s.N
	if s.Change != nil {
		for _, m := range s.Change.New {
			n = max(n, m+1)
		}
	}
	return n
}

// set returns the masters that a proxy uses.
func (s *Scenario) set(proxy int) []int {
	if s.Change != nil {
		if slices.Contains(s.Change.Proxies, proxy) {
			return s.Change.New
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
	return slices.Contains(s.Change.New, m)
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
	// sealed holds the sealed masters of the old set, joined the voting masters of the new set, as
	// bits.
	sealed, joined uint8
	// join is the state of the master that is joining. ordinary is set if it catches up from
	// masters that have already joined.
	join      catchUpState
	catchesUp bool
}

func (c changeState) encode(b []byte) []byte {
	ordinary := byte(0)
	if c.catchesUp {
		ordinary = 1
	}
	return c.join.encode(append(b, c.sealed, c.joined, ordinary))
}

func (c *changeState) decode(b []byte) []byte {
	c.sealed, c.joined, c.catchesUp = b[0], b[1], b[2] == 1
	return c.join.decode(b[3:])
}

func (c *changeState) renumber(o renumbering) {
	old := *c
	c.sealed, c.joined = 0, 0
	for m := range maxMasters {
		c.sealed |= old.sealed >> m & 1 << o[m]
		c.joined |= old.joined >> m & 1 << o[m]
	}
	c.join.renumber(o)
}

// signature returns a number that differs for masters with different roles in the change.
func (c *changeState) signature(m int) uint32 {
	return c.join.signature(m) ^ uint32(c.sealed>>m&1)<<30 ^ uint32(c.joined>>m&1)<<29
}

// countedFor reports whether a proxy counts a master's vote.
func (e *explorer) countedFor(s *state, proxy, m int) bool {
	switch {
	case e.Change == nil:
		return s.counted(m)
	case e.usesNewSet(proxy):
		return s.change.joined>>m&1 == 1
	default:
		return e.Change.NoSeal || s.change.sealed>>m&1 == 0
	}
}

// emitChangeSteps takes the next step of the change.
func (e *explorer) emitChangeSteps(s *state, f func(event, *state)) {
	if e.Change == nil {
		return
	}
	for m := range e.N {
		if s.change.sealed>>m&1 == 0 {
			t := s.clone()
			t.change.sealed |= 1 << m
			f(event{name: "seals", proxy: -1, master: m}, t)
		}
	}
	if bits.OnesCount8(s.change.sealed) < vote.Majority(e.N) {
		return
	}
	if s.change.join.stage != voting {
		e.continueJoin(s, f)
		return
	}
	for _, m := range e.Change.New {
		if s.change.joined>>m&1 == 1 || m < e.N && s.change.sealed>>m&1 == 0 {
			continue
		}
		if e.Change.NoJoin {
			t := s.clone()
			t.change.joined |= 1 << m
			f(event{name: "joins at once:", proxy: -1, master: m}, t)
			continue
		}
		e.beginJoin(s, m, f)
	}
}

// beginJoin reads the sources for a joining master, for every set of sources that is large enough.
// It reads all sources of a pass at the same moment.
func (e *explorer) beginJoin(s *state, target int, f func(event, *state)) {
	n := len(e.Change.New)
	ordinary := e.newSetVotes(s) && !e.Change.EarlyCatchUp ||
		e.Change.EarlyCatchUp && bits.OnesCount8(s.change.joined) >= n-vote.Majority(n)+1
	needed := e.sourcesNeeded()
	if ordinary {
		needed = n - vote.Majority(n) + 1
		if e.Change.AllAnswer {
			needed = bits.OnesCount8(s.change.joined)
		}
	}
	for sources := range uint8(1) << e.total() {
		t := s.clone()
		t.change.catchesUp = ordinary
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
	n := e.N - vote.Majority(e.N) + 1
	if e.Change.AllAnswer {
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

// isSource reports whether a master is a source for the joining target. By default, a source is a
// sealed master of the old set, which still has its data.
func (e *explorer) isSource(s *state, m, target int) bool {
	c := s.change
	switch {
	case c.catchesUp:
		return m != target && c.joined>>m&1 == 1
	case e.Change.OwnDataOnly:
		return m == target && c.sealed>>m&1 == 1
	default:
		return m < e.N && c.sealed>>m&1 == 1
	}
}

// decidingSetSize returns the size of the set whose majority decides which incarnation is copied.
func (e *explorer) decidingSetSize(c changeState) int {
	if c.catchesUp || e.Change.DecideByNewSet {
		return len(e.Change.New)
	}
	return e.N
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

// newSetVotes reports whether a majority of the new set votes. Before that, the proxies of the new
// set send no operations.
func (e *explorer) newSetVotes(s *state) bool {
	return bits.OnesCount8(s.change.joined) >= vote.Majority(len(e.Change.New))
}

// joinIncarnations returns the incarnations that a pass read from the sources, and the number of
// masters of the deciding set that were not read.
func (e *explorer) joinIncarnations(s *state, pass int) (incs []incarnation, unread int) {
	c := s.change.join
	target := int(c.master)
	passes := c
	if !e.isSource(s, target, target) {
		passes.passes[pass][target] = 0
	} else if pass == 1 && passes.passes[0][target] != 0 {
		first, second := e.cells.values[passes.passes[0][target]-1], e.cells.values[passes.passes[1][target]-1]
		if first.Attempt != second.Attempt && !second.IsUndecided() {
			passes.passes[1][target] = 1 // the cell is the copy; it counts as empty
		}
	}
	incs, unreadByAll := e.incarnations(passes, pass)
	read := e.total() - 1 - unreadByAll
	return incs, e.decidingSetSize(s.change) - read
}

// copyToJoining copies the result of the first pass to a master.
func (e *explorer) copyToJoining(s *state) {
	c := &s.change.join
	target := int(c.master)
	q := vote.Majority(e.decidingSetSize(s.change))
	incs, unread := e.joinIncarnations(s, 0)
	var possible []incarnation
	for _, inc := range incs {
		if inc.holders >= q {
			possible = []incarnation{inc}
			break
		}
		if inc.holders+inc.blockingCopies+unread >= q {
			possible = append(possible, inc)
		}
	}
	if len(possible) > 1 {
		possible = []incarnation{undecided(possible)}
	}
	s.masters[target].fence = max(s.masters[target].fence, c.fence)
	ownBefore := c.passes[0][target] - 1
	c.stage = secondPass
	if len(possible) == 0 {
		if s.masters[target].cell == ownBefore {
			s.masters[target].cell = 0
		}
		return
	}
	inc := possible[0]
	copied := inc.content
	if inc.holders < q && !e.Change.NoBlocking || inc.Form == cell.Blocking {
		if ownContent := e.cells.values[ownBefore]; e.isSource(s, target, target) && ownContent.Attempt == inc.Attempt {
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
	secondRead, _ := e.joinIncarnations(s, 1)
	q := vote.Majority(e.decidingSetSize(s.change))
	currentContent := e.cells.values[s.masters[target].cell]
	contentBefore := e.cells.values[c.passes[0][target]-1]
	s.change.joined |= 1 << target
	s.change.join, s.change.catchesUp = catchUpState{}, false
	wasOwn := target < e.N && contentBefore.Attempt == currentContent.Attempt
	copied := false
	for _, inc := range firstRead {
		copied = copied || currentContent.Form != cell.Absent && inc.Attempt == currentContent.Attempt
	}
	if !copied || wasOwn {
		return
	}
	for _, inc := range secondRead {
		if inc.Attempt == currentContent.Attempt {
			if inc.holders < q && !e.Change.NoBlocking {
				currentContent.Cell = cell.Cell{Form: cell.Blocking, Attempt: currentContent.Attempt}
				s.masters[target].cell = e.cellID(currentContent)
			}
			return
		}
	}
	s.masters[target].cell = 0
}
