package model

import (
	"slices"
	"time"

	"redlock-proxy/quorum/cell"
	"redlock-proxy/quorum/register"
	"redlock-proxy/quorum/vote"
)

// CatchUp selects the rules of the catch-up (R7 and R8) that a variant leaves out.
type CatchUp struct {
	// NoBarrier reads the sources immediately.
	NoBarrier bool
	// NoBlocking makes complete copies of locks that may or may not have a majority.
	NoBlocking bool
	// OnePass omits the second pass.
	OnePass bool
	// NoQuarantine counts the master's votes immediately.
	NoQuarantine bool
	// NoFences does not copy the fence counters.
	NoFences bool
	// FewSources reads one source fewer than a catch-up requires.
	FewSources bool
	// HighestEnd copies the expiry of the cell with the highest ballot, not the latest expiry.
	HighestEnd bool
}

// catchUpState is the state of the catch-up of a restarted master.
type catchUpState struct {
	stage  stage
	master uint8
	since  clock
	// passes holds, by pass and source, the source's cell plus 1; zero means not read.
	passes [2][maxMasters]cellID
	// fence is the highest fence counter of the sources.
	fence uint8
}

type stage uint8

const (
	voting stage = iota
	firstPass
	secondPass
)

// encode appends the catch-up to b as bytes.
func (c catchUpState) encode(b []byte) []byte {
	b = append(b, byte(c.stage))
	if c.stage == voting {
		return b
	}
	b = append(b, c.master, byte(c.since), c.fence)
	for _, pass := range c.passes {
		for _, id := range pass {
			b = append(b, byte(id), byte(id>>8), byte(id>>16))
		}
	}
	return b
}

// decode decodes the bytes that encode appended, and returns the rest of b.
func (c *catchUpState) decode(b []byte) []byte {
	if c.stage = stage(b[0]); c.stage == voting {
		return b[1:]
	}
	c.master, c.since, c.fence = b[1], clock(b[2]), b[3]
	b = b[4:]
	for i := range c.passes {
		for m := range c.passes[i] {
			c.passes[i][m] = cellID(b[0]) | cellID(b[1])<<8 | cellID(b[2])<<16
			b = b[3:]
		}
	}
	return b
}

func (c *catchUpState) renumber(o renumbering) {
	old := *c
	if c.stage == voting {
		return
	}
	c.master = o[old.master]
	for i := range c.passes {
		for m, id := range old.passes[i] {
			c.passes[i][o[m]] = id
		}
	}
}

// signature returns a number that differs for masters with different roles in the catch-up.
func (c *catchUpState) signature(m int) uint32 {
	if c.stage == voting {
		return 0
	}
	if int(c.master) == m {
		return 1 << 31
	}
	return uint32(c.passes[0][m])<<15 ^ uint32(c.passes[1][m])
}

// counted reports whether a master's vote counts.
func (s *state) counted(m int) bool {
	return s.target.stage == voting || int(s.target.master) != m
}

// catchUp restarts masters, or takes the next step of a catch-up.
func (e *explorer) catchUp(s *state, f func(event, *state)) {
	quiet := event{proxy: -1, master: -1}
	if s.target.stage == voting {
		for m := range s.masters {
			if int(s.restarts) < e.Restarts {
				t := s.clone()
				t.restarts++
				t.masters[m] = masterState{cell: e.older(s, m)}
				if !e.CatchUp.NoQuarantine {
					t.target = catchUpState{stage: firstPass, master: uint8(m), since: s.at}
				}
				ev := quiet
				ev.name, ev.master = "restart of", m
				f(ev, t)
			}
		}
		return
	}
	c := s.target
	if c.stage == firstPass && !e.CatchUp.NoBarrier && e.passed(s.at)-e.passed(c.since) <= register.Limit {
		return
	}
	pass, read, due := int(c.stage-firstPass), 0, false
	for m := range s.masters {
		if c.passes[pass][m] != 0 {
			read++
		}
		// The second pass reads the same sources as the first.
		if m == int(c.master) || c.passes[pass][m] != 0 || pass == 1 && c.passes[0][m] == 0 {
			continue
		}
		due = true
		t := s.clone()
		t.target.passes[pass][m] = s.masters[m].cell + 1
		if pass == 0 && !e.CatchUp.NoFences {
			t.target.fence = max(t.target.fence, s.masters[m].fence)
		}
		ev := quiet
		ev.name, ev.master = [...]string{"first pass reads", "second pass reads"}[pass], m
		f(ev, t)
	}
	switch {
	case pass == 0 && read >= e.sources():
		t := s.clone()
		e.copy(t)
		ev := quiet
		ev.name, ev.master = "copies to", int(c.master)
		f(ev, t)
	case pass == 1 && !due:
		t := s.clone()
		e.admit(t)
		ev := quiet
		ev.name, ev.master = "admits", int(c.master)
		f(ev, t)
	}
}

// sources returns the minimum number of sources to read.
func (e *explorer) sources() int {
	if e.CatchUp.FewSources {
		return e.N - vote.Majority(e.N)
	}
	return e.N - vote.Majority(e.N) + 1
}

// older returns the cell that a master has after a restart.
func (e *explorer) older(s *state, m int) cellID {
	if !e.Older {
		return 0
	}
	id := e.first[m]
	if ends := e.cells.all[id].ends; ends != 0 && ends <= epoch+e.passed(s.at) {
		return 0
	}
	return id
}

// share is an incarnation in the cells of the sources.
type share struct {
	content // content of the highest ballot, with the latest expiry
	// holders is the number of full cells, and blocking the number of blocking copies.
	holders, blocking int
	// until is the expiry of a blocking copy. It may be later than that of the content, because an
	// undecided copy may be of this incarnation.
	until time.Duration
}

// shares returns the incarnations that a pass read, and the number of masters that it did not read
// or that have an undecided copy.
func (e *explorer) shares(c catchUpState, pass int) (all []share, unseen int) {
	unseen = e.total() - 1
	for m := range e.total() {
		if c.passes[pass][m] == 0 {
			continue
		}
		seen := e.cells.all[c.passes[pass][m]-1]
		if !seen.IsUndecided() {
			unseen--
		}
		if seen.Form == cell.Absent || seen.Form == cell.Mark {
			continue
		}
		at := -1
		for i := range all {
			if all[i].Attempt == seen.Attempt {
				at = i
			}
		}
		if at < 0 {
			at = len(all)
			all = append(all, share{content: seen})
		}
		one := &all[at]
		one.ends = laterEnd(one.ends, seen.ends)
		if seen.Form == cell.Blocking {
			if !seen.IsUndecided() { // unseen counts undecided copies
				one.blocking++
			}
			continue
		}
		if one.holders == 0 || seen.Accepted > one.Accepted {
			one.Cell = seen.Cell
			if e.CatchUp.HighestEnd {
				one.ends = seen.ends
			}
		}
		one.holders++
	}
	u := slices.IndexFunc(all, func(one share) bool { return one.IsUndecided() })
	for i := range all {
		if all[i].until = all[i].ends; u >= 0 {
			all[i].until = laterEnd(all[i].ends, all[u].ends)
		}
	}
	return all, unseen
}

// laterEnd returns the later of two expiry times; zero means never.
func laterEnd(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return 0
	}
	return max(a, b)
}

// undecided returns an undecided copy that expires with the last of the possible incarnations.
func undecided(possible []share) share {
	block := share{until: possible[0].until}
	for _, one := range possible {
		block.until = laterEnd(block.until, one.until)
	}
	block.Cell = cell.Cell{Form: cell.Blocking, Attempt: cell.Undecided}
	return block
}

// copy copies the result of the first pass to the master.
func (e *explorer) copy(s *state) {
	c := &s.target
	all, unseen := e.shares(*c, 0)
	var possible []share
	for _, one := range all {
		if one.holders >= vote.Majority(e.N) {
			possible = []share{one}
			break
		}
		if one.holders+one.blocking+unseen+1 >= vote.Majority(e.N) {
			possible = append(possible, one)
		}
	}
	if len(possible) > 1 {
		possible = []share{undecided(possible)}
	}
	if e.Older {
		s.masters[c.master].cell = 0 // discards its own data from before the restart
	}
	s.masters[c.master].fence = max(s.masters[c.master].fence, c.fence)
	if len(possible) == 1 {
		one := possible[0]
		copied := one.content
		if one.holders < vote.Majority(e.N) && !e.CatchUp.NoBlocking || one.Form == cell.Blocking {
			copied = content{Cell: cell.Cell{Form: cell.Blocking, Attempt: one.Attempt}, ends: one.until}
		}
		if copied.Form == cell.Register {
			copied.Promised = copied.Accepted
		}
		s.masters[c.master].cell = e.cellID(copied)
	}
	c.stage = secondPass
	if e.CatchUp.OnePass {
		s.target = catchUpState{}
	}
}

// admit checks the copy against the second pass, and lets the master vote.
func (e *explorer) admit(s *state) {
	c := s.target
	s.target = catchUpState{}
	own := e.cells.all[s.masters[c.master].cell]
	before, _ := e.shares(c, 0)
	copied := false
	for _, one := range before {
		copied = copied || own.Form != cell.Absent && one.Attempt == own.Attempt
	}
	if !copied || own.Form == cell.Mark {
		return
	}
	now, _ := e.shares(c, 1)
	for _, one := range now {
		if one.Attempt == own.Attempt {
			if one.holders < vote.Majority(e.N) && !e.CatchUp.NoBlocking {
				own.Cell = cell.Cell{Form: cell.Blocking, Attempt: own.Attempt}
				s.masters[c.master].cell = e.cellID(own)
			}
			return
		}
	}
	s.masters[c.master].cell = 0
}
