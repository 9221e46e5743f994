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
	// Proxies lists the proxies that use the new set, by their numbers from 0. All others use the
	// old set.
	Proxies []int
	// AllAnswer lets masters join only after all masters of the old set are sealed and read.
	AllAnswer bool

	// Each of the following fields switches a mechanism off.

	// NoSeal counts votes of the old set forever.
	NoSeal bool
	// NoJoin counts the votes of the new set as soon as the old set is sealed.
	NoJoin bool
	// NewRules copies according to the majority of the new set instead of the old set.
	NewRules bool
	// EarlyRules copies as in a catch-up within the new set before a majority of that set votes.
	EarlyRules bool
	// FewOrigins reads one source fewer than a join requires.
	FewOrigins bool
	// NoBlocking makes complete copies of locks that may or may not have a majority.
	NoBlocking bool
	// OwnOnly lets a master join with its own data only.
	OwnOnly bool
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
	all := make([]int, s.N)
	for m := range all {
		all[m] = m
	}
	return all
}

// hasNew reports whether a proxy uses the new set.
func (s *Scenario) hasNew(proxy int) bool {
	if s.Change == nil {
		return false
	}
	return slices.Contains(s.Change.Proxies, proxy)
}

// isNew reports whether a master is in the new set.
func (s *Scenario) isNew(m int) bool {
	if s.Change == nil {
		return false
	}
	return slices.Contains(s.Change.New, m)
}

// role returns 0 for a master in both sets, 1 for the old set only, 2 for the new set only.
func (s *Scenario) role(m int) byte {
	switch {
	case s.Change == nil || m < s.N && s.isNew(m):
		return 0
	case m < s.N:
		return 1
	default:
		return 2
	}
}

type changeState struct {
	// sealed holds the sealed masters of the old set, joined the voting ones of the new, as bits.
	sealed, joined uint8
	// join is the state of the master that is joining. ordinary is set if it catches up from
	// masters that have already joined.
	join     catchUpState
	ordinary bool
}

func (c changeState) encode(b []byte) []byte {
	ordinary := byte(0)
	if c.ordinary {
		ordinary = 1
	}
	return c.join.encode(append(b, c.sealed, c.joined, ordinary))
}

func (c *changeState) decode(b []byte) []byte {
	c.sealed, c.joined, c.ordinary = b[0], b[1], b[2] == 1
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
	case e.hasNew(proxy):
		return s.change.joined>>m&1 == 1
	default:
		return e.Change.NoSeal || s.change.sealed>>m&1 == 0
	}
}

// changes takes the next step of the change.
func (e *explorer) changes(s *state, f func(event, *state)) {
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
	ordinary := e.isOpen(s) && !e.Change.EarlyRules ||
		e.Change.EarlyRules && bits.OnesCount8(s.change.joined) >= n-vote.Majority(n)+1
	needed := e.originsNeeded()
	if ordinary {
		needed = n - vote.Majority(n) + 1
		if e.Change.AllAnswer {
			needed = bits.OnesCount8(s.change.joined)
		}
	}
	for some := range uint8(1) << e.total() {
		t := s.clone()
		t.change.ordinary = ordinary
		t.change.join = catchUpState{stage: firstPass, master: uint8(target), since: s.at}
		right := bits.OnesCount8(some) >= needed && (some>>target&1 == 1) == e.isOrigin(t, target, target)
		for m := range s.masters {
			right = right && (some>>m&1 == 0 || e.isOrigin(t, m, target))
			if some>>m&1 == 1 || m == target {
				t.change.join.passes[0][m] = s.masters[m].cell + 1
			}
			if some>>m&1 == 1 {
				t.change.join.fence = max(t.change.join.fence, s.masters[m].fence)
			}
		}
		if right {
			f(event{name: "begins to join, after a look at the others:", proxy: -1, master: target}, t)
		}
	}
}

// originsNeeded returns the minimum number of sources in the old set.
func (e *explorer) originsNeeded() int {
	n := e.N - vote.Majority(e.N) + 1
	if e.Change.AllAnswer {
		return e.N
	}
	if e.Change.FewOrigins {
		n--
	}
	if e.Change.OwnOnly {
		return 0
	}
	return n
}

// isOrigin reports whether a master is a source for the joining target. By default, a source is a
// sealed master of the old set, which still has its data.
func (e *explorer) isOrigin(s *state, m, target int) bool {
	c := s.change
	switch {
	case c.ordinary:
		return m != target && c.joined>>m&1 == 1
	case e.Change.OwnOnly:
		return m == target && c.sealed>>m&1 == 1
	default:
		return m < e.N && c.sealed>>m&1 == 1
	}
}

// rules returns the size of the set whose majority decides what is copied.
func (e *explorer) rules(c changeState) int {
	if c.ordinary || e.Change.NewRules {
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
		e.fill(t)
		f(event{name: "fills", proxy: -1, master: target}, t)
		return
	}
	for m := range s.masters {
		if c.passes[0][m] != 0 {
			c.passes[1][m] = s.masters[m].cell + 1
		}
	}
	e.admitJoined(t)
	f(event{name: "joins, after another look:", proxy: -1, master: target}, t)
}

// isOpen reports whether a majority of the new set votes. Before that, the proxies of the new set
// send no operations.
func (e *explorer) isOpen(s *state) bool {
	return bits.OnesCount8(s.change.joined) >= vote.Majority(len(e.Change.New))
}

// sharesFor returns the incarnations that a pass read from the sources, and the number of masters
// of the deciding set that were not read.
func (e *explorer) sharesFor(s *state, pass int) (all []share, unread int) {
	c := s.change.join
	target := int(c.master)
	seen := c
	if !e.isOrigin(s, target, target) {
		seen.passes[pass][target] = 0
	} else if pass == 1 && seen.passes[0][target] != 0 {
		first, second := e.cells.all[seen.passes[0][target]-1], e.cells.all[seen.passes[1][target]-1]
		if first.Attempt != second.Attempt && !second.IsUndecided() {
			seen.passes[1][target] = 1 // the cell is the copy; it counts as empty
		}
	}
	all, unseen := e.shares(seen, pass)
	read := e.total() - 1 - unseen
	return all, e.rules(s.change) - read
}

// fill copies the result of the first pass to a master.
func (e *explorer) fill(s *state) {
	c := &s.change.join
	target := int(c.master)
	q := vote.Majority(e.rules(s.change))
	all, unread := e.sharesFor(s, 0)
	var possible []share
	for _, one := range all {
		if one.holders >= q {
			possible = []share{one}
			break
		}
		if one.holders+one.blocking+unread >= q {
			possible = append(possible, one)
		}
	}
	if len(possible) > 1 {
		possible = []share{undecided(possible)}
	}
	s.masters[target].fence = max(s.masters[target].fence, c.fence)
	own := c.passes[0][target] - 1
	c.stage = secondPass
	if len(possible) == 0 {
		if s.masters[target].cell == own {
			s.masters[target].cell = 0
		}
		return
	}
	one := possible[0]
	copied := one.content
	if one.holders < q && !e.Change.NoBlocking || one.Form == cell.Blocking {
		if held := e.cells.all[own]; e.isOrigin(s, target, target) && held.Attempt == one.Attempt {
			return // the target itself is one of the holders
		}
		copied = content{Cell: cell.Cell{Form: cell.Blocking, Attempt: one.Attempt}, ends: one.until}
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
	before, _ := e.sharesFor(s, 0)
	now, _ := e.sharesFor(s, 1)
	q := vote.Majority(e.rules(s.change))
	own := e.cells.all[s.masters[target].cell]
	held := e.cells.all[c.passes[0][target]-1]
	s.change.joined |= 1 << target
	s.change.join, s.change.ordinary = catchUpState{}, false
	wasOwn := target < e.N && held.Attempt == own.Attempt
	copied := false
	for _, one := range before {
		copied = copied || own.Form != cell.Absent && one.Attempt == own.Attempt
	}
	if !copied || wasOwn {
		return
	}
	for _, one := range now {
		if one.Attempt == own.Attempt {
			if one.holders < q && !e.Change.NoBlocking {
				own.Cell = cell.Cell{Form: cell.Blocking, Attempt: own.Attempt}
				s.masters[target].cell = e.cellID(own)
			}
			return
		}
	}
	s.masters[target].cell = 0
}
