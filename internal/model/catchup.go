package model

import (
	"slices"
	"time"

	"redlock-proxy/quorum/cell"
	"redlock-proxy/quorum/register"
	"redlock-proxy/quorum/vote"
)

// CatchUp selects the rules of the catch-up (Catch-up in GUARD.md) that a variant leaves out.
type CatchUp struct {
	// NoBarrier reads the sources immediately, instead of after the time limit of a round.
	NoBarrier bool
	// NoBlockingCopies makes complete copies of locks that may or may not have a majority.
	NoBlockingCopies bool
	// OnePass omits the second pass.
	OnePass bool
	// NoQuarantine counts the master's votes immediately.
	NoQuarantine bool
	// NoFences omits the copies of the fence counters.
	NoFences bool
	// FewSources reads one source fewer than a catch-up requires.
	FewSources bool
	// ExpiryOfHighestBallot copies the expiry of the cell with the highest ballot, not the latest
	// expiry.
	ExpiryOfHighestBallot bool
}

// catchUpState holds the state of the catch-up of a restarted master, or of the join of a master.
type catchUpState struct {
	stage     stage
	master    uint8
	startedAt clock
	// passes holds, by pass and source, the source's cell plus 1; zero means not read.
	passes [2][maxMasters]cellID
	// fence is the highest fence counter of the sources.
	fence uint8
}

type stage uint8

const (
	votingStage stage = iota
	firstPass
	secondPass
)

// encode appends the catch-up to b as bytes.
func (c catchUpState) encode(b []byte) []byte {
	b = append(b, byte(c.stage))
	if c.stage == votingStage {
		return b
	}
	b = append(b, c.master, byte(c.startedAt), c.fence)
	for _, pass := range c.passes {
		for _, id := range pass {
			b = append(b, byte(id), byte(id>>8), byte(id>>16))
		}
	}
	return b
}

// decode decodes the bytes that encode appended, and returns the rest of b.
func (c *catchUpState) decode(b []byte) []byte {
	if c.stage = stage(b[0]); c.stage == votingStage {
		return b[1:]
	}
	c.master, c.startedAt, c.fence = b[1], clock(b[2]), b[3]
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
	if c.stage == votingStage {
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
	if c.stage == votingStage {
		return 0
	}
	if int(c.master) == m {
		return 1 << 31
	}
	return uint32(c.passes[0][m])<<15 ^ uint32(c.passes[1][m])
}

// hasVote reports whether a master's vote counts.
func (s *state) hasVote(m int) bool {
	return s.catchUp.stage == votingStage || int(s.catchUp.master) != m
}

// emitCatchUpSteps calls f with each possible restart of a master, or with the next steps of a
// catch-up.
func (e *explorer) emitCatchUpSteps(s *state, f func(event, *state)) {
	template := event{proxy: -1, master: -1}
	if s.catchUp.stage == votingStage {
		for m := range s.masters {
			if int(s.restarts) < e.Restarts {
				t := s.clone()
				t.restarts++
				t.masters[m] = masterState{cell: e.cellAfterRestart(s, m)}
				if !e.CatchUp.NoQuarantine {
					t.catchUp = catchUpState{stage: firstPass, master: uint8(m), startedAt: s.at}
				}
				ev := template
				ev.name, ev.master = "restart of", m
				f(ev, t)
			}
		}
		return
	}
	c := s.catchUp
	if c.stage == firstPass && !e.CatchUp.NoBarrier && e.elapsedTime(s.at)-e.elapsedTime(c.startedAt) <= register.Limit {
		return
	}
	pass, read, unreadSource := int(c.stage-firstPass), 0, false
	for m := range s.masters {
		if c.passes[pass][m] != 0 {
			read++
		}
		// The second pass reads the same sources as the first.
		if m == int(c.master) || c.passes[pass][m] != 0 || pass == 1 && c.passes[0][m] == 0 {
			continue
		}
		unreadSource = true
		t := s.clone()
		t.catchUp.passes[pass][m] = s.masters[m].cell + 1
		if pass == 0 && !e.CatchUp.NoFences {
			t.catchUp.fence = max(t.catchUp.fence, s.masters[m].fence)
		}
		ev := template
		ev.name, ev.master = [...]string{"first pass reads", "second pass reads"}[pass], m
		f(ev, t)
	}
	switch {
	case pass == 0 && read >= e.minSources():
		t := s.clone()
		e.copyCells(t)
		ev := template
		ev.name, ev.master = "copies to", int(c.master)
		f(ev, t)
	case pass == 1 && !unreadSource:
		t := s.clone()
		e.admit(t)
		ev := template
		ev.name, ev.master = "admits", int(c.master)
		f(ev, t)
	}
}

// minSources returns the minimum number of sources to read.
func (e *explorer) minSources() int {
	if e.CatchUp.FewSources {
		return e.N - vote.Majority(e.N)
	}
	return e.N - vote.Majority(e.N) + 1
}

// cellAfterRestart returns the cell that a master has after a restart.
func (e *explorer) cellAfterRestart(s *state, m int) cellID {
	if !e.RestartWithOlderCells {
		return 0
	}
	id := e.initialCells[m]
	if expiry := e.cells.values[id].expiry; expiry != 0 && expiry <= scenarioStart+e.elapsedTime(s.at) {
		return 0
	}
	return id
}

// incarnation describes an incarnation that a pass found in the cells of the sources.
type incarnation struct {
	content // content of the highest ballot, with the latest expiry
	// holders is the number of full cells, and blockingCopies the number of blocking copies.
	holders, blockingCopies int
	// expiries are those of all cells and copies that may be of this incarnation, the latest first.
	// undecidedCopies of them are undecided copies.
	expiries        []time.Duration
	undecidedCopies int
	// blockExpiry is the expiry of a blocking copy.
	blockExpiry time.Duration
}

// mayHave reports whether so many masters may hold the incarnation, with the unread ones.
func (inc incarnation) mayHave(majority, unreadCount int) bool {
	return inc.holders+inc.blockingCopies+unreadCount >= majority
}

// blockedUntil returns when a blocking copy of the incarnation expires: when too few of the masters
// that were read hold it for a majority, even with the unread masters, and the time of a ballot
// later if one of them holds it for so long. As in incarnations, the unread masters include those
// with undecided copies.
func (inc incarnation) blockedUntil(majority, unreadCount int) time.Duration {
	needed := max(1, majority-(unreadCount-inc.undecidedCopies))
	return prolonged(inc.expiries[needed-1], inc.expiries[0])
}

// prolonged returns the expiry of a copy of a cell: cells may expire too early by the time of a
// ballot, but a copy expires no later than any cell of the incarnation.
func prolonged(expiry, latest time.Duration) time.Duration {
	if expiry == 0 || latestFirst(expiry+vote.RoundLimit, latest) < 0 {
		return latest
	}
	return expiry + vote.RoundLimit
}

// incarnations returns the incarnations that a pass read, and the number of other masters that it
// did not read or that have an undecided copy.
func (e *explorer) incarnations(c catchUpState, pass int) (incs []incarnation, unreadCount int) {
	unreadCount = e.masterCount() - 1
	for m := range e.masterCount() {
		if c.passes[pass][m] == 0 {
			continue
		}
		read := e.cells.values[c.passes[pass][m]-1]
		if !read.IsUndecided() {
			unreadCount--
		}
		if read.Form == cell.Absent || read.Form == cell.Mark {
			continue
		}
		at := -1
		for i := range incs {
			if incs[i].Attempt == read.Attempt {
				at = i
			}
		}
		if at < 0 {
			at = len(incs)
			incs = append(incs, incarnation{content: read})
		}
		inc := &incs[at]
		inc.expiry = laterExpiry(inc.expiry, read.expiry)
		inc.expiries = append(inc.expiries, read.expiry)
		if read.Form == cell.Blocking {
			if !read.IsUndecided() { // unreadCount counts undecided copies
				inc.blockingCopies++
			}
			continue
		}
		if inc.holders == 0 || read.Accepted > inc.Accepted {
			inc.Cell = read.Cell
			if e.CatchUp.ExpiryOfHighestBallot {
				inc.expiry = read.expiry
			}
		}
		inc.holders++
	}
	var undecided []time.Duration
	if i := slices.IndexFunc(incs, func(inc incarnation) bool { return inc.IsUndecided() }); i >= 0 {
		undecided = slices.Clone(incs[i].expiries)
	}
	for i := range incs {
		inc := &incs[i]
		inc.undecidedCopies = len(undecided)
		if !inc.IsUndecided() {
			inc.expiries = append(inc.expiries, undecided...)
		}
		slices.SortFunc(inc.expiries, latestFirst)
	}
	return incs, unreadCount
}

// latestFirst compares two expiry times, so that the later one is sorted first; zero means never.
func latestFirst(a, b time.Duration) int {
	switch {
	case a == b:
		return 0
	case laterExpiry(a, b) == a:
		return -1
	}
	return 1
}

// laterExpiry returns the later of two expiry times; zero means never.
func laterExpiry(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return 0
	}
	return max(a, b)
}

// undecidedCopy returns an undecided copy that expires with the last of the possible incarnations.
func undecidedCopy(candidates []incarnation) incarnation {
	copied := incarnation{blockExpiry: candidates[0].blockExpiry}
	for _, inc := range candidates {
		copied.blockExpiry = laterExpiry(copied.blockExpiry, inc.blockExpiry)
	}
	copied.Cell = cell.Cell{Form: cell.Blocking, Attempt: cell.UndecidedAttempt}
	return copied
}

// copyCells copies the result of the first pass to the master.
func (e *explorer) copyCells(s *state) {
	c := &s.catchUp
	incs, unread := e.incarnations(*c, 0)
	var candidates []incarnation
	for _, inc := range incs {
		if inc.holders >= vote.Majority(e.N) {
			candidates = []incarnation{inc}
			break
		}
		if inc.mayHave(vote.Majority(e.N), unread+1) {
			inc.blockExpiry = inc.blockedUntil(vote.Majority(e.N), unread+1)
			candidates = append(candidates, inc)
		}
	}
	if len(candidates) > 1 {
		candidates = []incarnation{undecidedCopy(candidates)}
	}
	if e.RestartWithOlderCells {
		s.masters[c.master].cell = 0 // discards its own data from before the restart
	}
	s.masters[c.master].fence = max(s.masters[c.master].fence, c.fence)
	if len(candidates) == 1 {
		inc := candidates[0]
		copied := inc.content
		if inc.holders < vote.Majority(e.N) && !e.CatchUp.NoBlockingCopies || inc.Form == cell.Blocking {
			copied = content{Cell: cell.Cell{Form: cell.Blocking, Attempt: inc.Attempt}, expiry: inc.blockExpiry}
		}
		if copied.Form == cell.Register {
			copied.Promised = copied.Accepted
		}
		s.masters[c.master].cell = e.cellID(copied)
	}
	c.stage = secondPass
	if e.CatchUp.OnePass {
		s.catchUp = catchUpState{}
	}
}

// admit checks the copy against the second pass, and lets the master vote.
func (e *explorer) admit(s *state) {
	c := s.catchUp
	s.catchUp = catchUpState{}
	ownCell := e.cells.values[s.masters[c.master].cell]
	firstRead, _ := e.incarnations(c, 0)
	copied := false
	for _, inc := range firstRead {
		copied = copied || ownCell.Form != cell.Absent && inc.Attempt == ownCell.Attempt
	}
	if !copied || ownCell.Form == cell.Mark {
		return
	}
	secondRead, unread := e.incarnations(c, 1)
	q := vote.Majority(e.N)
	s.masters[c.master].cell = e.secondCopy(ownCell, secondRead, q, q, unread+1, e.CatchUp.NoBlockingCopies)
}

// secondCopy returns the cell of a master that got a copy, after the second pass. full is the
// number of holders for a full copy, and unread the number of masters that may hold anything.
func (e *explorer) secondCopy(
	copied content, secondRead []incarnation, majority, full, unread int, noBlockingCopies bool,
) cellID {
	for _, inc := range secondRead {
		switch {
		case inc.Attempt != copied.Attempt:
		case inc.holders >= full || noBlockingCopies:
			return e.cellID(copied)
		case copied.Form == cell.Blocking && (copied.IsUndecided() || inc.mayHave(majority, unread)):
			return e.cellID(copied)
		case !inc.mayHave(majority, unread):
			return 0
		default:
			return e.cellID(content{
				Cell:   cell.Cell{Form: cell.Blocking, Attempt: inc.Attempt},
				expiry: inc.blockedUntil(majority, unread),
			})
		}
	}
	return 0
}
