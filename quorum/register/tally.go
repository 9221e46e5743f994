package register

import (
	"cmp"
	"slices"
	"time"

	"redlock-proxy/quorum/cell"
	"redlock-proxy/quorum/vote"
)

// TallyStatus states whether a majority holds a value.
type TallyStatus int

const (
	// TallyUndetermined means that masters without a reply, or blocking copies, may complete a
	// majority.
	TallyUndetermined TallyStatus = iota
	// TallyAbsent means that no value can have a majority.
	TallyAbsent
	// TallyHeld means that an incarnation has a majority. Its value may be a removal.
	TallyHeld
	// TallyForeign means that a majority holds the same value, which no proxy wrote.
	TallyForeign
)

// tally evaluates the replies about one key.
type tally struct {
	status TallyStatus
	// attempt is the incarnation that is held. acceptedBallot is its highest ballot, which put
	// value.
	attempt        cell.Attempt
	acceptedBallot cell.Ballot
	value          cell.Value
	// timeLeft is the quorum-th longest remaining time on the masters that hold the value, by any
	// ballot, or the shortest if fewer masters hold it.
	timeLeft time.Duration
	// possibleTimeLeft is the same, with the blocking copies of the incarnation.
	possibleTimeLeft time.Duration
	// longestTimeLeft and shortestTimeLeft are the extremes of the remaining times on these
	// masters.
	longestTimeLeft, shortestTimeLeft time.Duration
	// chosen is set if a majority holds this very value, ballotsDiffer if masters that hold the
	// incarnation accepted different ballots.
	chosen, ballotsDiffer bool
}

// candidate is one incarnation, or one foreign value.
type candidate struct {
	attempt        cell.Attempt
	holders        []cell.KeyState
	blockingCopies []cell.KeyState
}

// resolve determines the state of key number i (REGISTER.md, Reading). A master without a reply, or
// with an undecided copy, may hold any value.
func resolve(replies []Reply, i int) tally {
	candidates, unanswered := candidatesIn(replies, i)
	n := len(replies)
	undetermined := vote.Count(n, 0, unanswered) == vote.Pending
	for _, c := range candidates {
		switch vote.Count(n, len(c.holders), len(c.blockingCopies)+unanswered) {
		case vote.Won:
			return c.tally(vote.Majority(n))
		case vote.Pending:
			undetermined = true
		}
	}
	if undetermined {
		return tally{status: TallyUndetermined}
	}
	return tally{status: TallyAbsent}
}

// candidatesIn returns the incarnations that masters hold under key number i, and the number of
// masters that may hold any incarnation.
func candidatesIn(replies []Reply, i int) (candidates []*candidate, unanswered int) {
	unanswered = len(replies)
	for _, r := range replies {
		if r.State != Counted || i >= len(r.KeyStates) {
			continue
		}
		f := r.KeyStates[i]
		if f.IsUndecided() {
			continue
		}
		unanswered--
		switch c := candidateFor(&candidates, f); {
		case c == nil:
		case f.Form == cell.Blocking:
			c.blockingCopies = append(c.blockingCopies, f)
		default:
			c.holders = append(c.holders, f)
		}
	}
	return candidates, unanswered
}

// possibleHolders returns the incarnations of key number i that may have a majority, if the state
// of the key is undetermined. cell.UndecidedAttempt stands for an incarnation that no master
// reported.
func possibleHolders(replies []Reply, i int) (holders []cell.Attempt) {
	if resolve(replies, i).status != TallyUndetermined {
		return nil
	}
	candidates, unanswered := candidatesIn(replies, i)
	if vote.Count(len(replies), 0, unanswered) == vote.Pending {
		holders = append(holders, cell.UndecidedAttempt)
	}
	for _, c := range candidates {
		if vote.Count(len(replies), len(c.holders), len(c.blockingCopies)+unanswered) == vote.Pending {
			holders = append(holders, c.attempt)
		}
	}
	return holders
}

// allExpireSoon reports whether a majority may reply, and no known cell outlasts a removal. Such
// cells expire at slightly different moments. Until then a missing vote leaves the key
// undetermined.
func allExpireSoon(replies []Reply) bool {
	for _, r := range replies {
		if r.State == Counted && !expireWithin(r.KeyStates, removalTTL) {
			return false
		}
	}
	return countVotes(replies, (*Reply).answered) != vote.Lost
}

// expireWithin reports whether every cell expires within a time.
func expireWithin(states []cell.KeyState, limit time.Duration) bool {
	return !slices.ContainsFunc(states, func(f cell.KeyState) bool {
		return f.Form != cell.Absent && (f.TimeLeft < 0 || f.TimeLeft > limit)
	})
}

// candidateFor returns the candidate of a cell, or nil for an absent cell or a mark.
func candidateFor(candidates *[]*candidate, f cell.KeyState) *candidate {
	if f.Form == cell.Absent || f.Form == cell.Mark {
		return nil
	}
	c := &candidate{attempt: f.Incarnation()}
	for _, other := range *candidates {
		if other.attempt == c.attempt {
			return other
		}
	}
	*candidates = append(*candidates, c)
	return c
}

func (c *candidate) tally(quorum int) tally {
	highest := c.holders[0]
	for _, h := range c.holders {
		if h.Accepted > highest.Accepted {
			highest = h
		}
	}
	var remainingTimes []time.Duration
	accepted := 0
	for _, h := range c.holders {
		if h.Value.LastChange() == highest.Value.LastChange() {
			remainingTimes = append(remainingTimes, h.TimeLeft)
		}
		if h.Accepted == highest.Accepted {
			accepted++
		}
	}
	longestFirst := func(a, b time.Duration) int { return CompareTimeLeft(b, a) }
	slices.SortFunc(remainingTimes, longestFirst)
	t := tally{
		status: TallyHeld, attempt: c.attempt, acceptedBallot: highest.Accepted, value: highest.Value,
		timeLeft: remainingTimes[min(quorum, len(remainingTimes))-1], longestTimeLeft: remainingTimes[0], shortestTimeLeft: remainingTimes[len(remainingTimes)-1],
		chosen: accepted >= quorum, ballotsDiffer: accepted < len(c.holders),
	}
	if t.possibleTimeLeft = t.timeLeft; len(c.blockingCopies) > 0 {
		for _, b := range c.blockingCopies {
			remainingTimes = append(remainingTimes, b.TimeLeft)
		}
		slices.SortFunc(remainingTimes, longestFirst)
		t.possibleTimeLeft = remainingTimes[min(quorum, len(remainingTimes))-1]
	}
	if highest.Form == cell.Foreign {
		t.status, t.attempt = TallyForeign, ""
	}
	return t
}

// isTaken reports whether a majority holds this very value, and the key is not absent. If masters
// hold different values, the newest value may never have been chosen. An older value may have been
// replaced by a value on masters that have not replied.
func (t tally) isTaken() bool {
	return t.status == TallyForeign || t.status == TallyHeld && t.chosen && t.value.Present
}

// isUnchosen reports whether a ballot has to choose the value of the held incarnation.
func (t tally) isUnchosen() bool { return t.status == TallyHeld && !t.chosen }

// leasesDiffer reports whether a master grants much more time than a majority of the masters that
// replied. Then masters without a reply may also grant more.
func (t tally) leasesDiffer() bool {
	return t.status == TallyHeld && isMuchLonger(t.longestTimeLeft, t.timeLeft)
}

// isMuchLonger reports whether timeLeft exceeds other by more than masters with the same TTL can
// differ.
func isMuchLonger(timeLeft, other time.Duration) bool {
	return (timeLeft < 0) != (other < 0) || timeLeft-other > time.Second
}

// expiresLongBefore reports whether a cell with timeLeft expires earlier than one with other, by more
// than masters with the same TTL can differ.
func expiresLongBefore(timeLeft, other time.Duration) bool {
	return timeLeft >= 0 && CompareTimeLeft(timeLeft+time.Second, other) < 0
}

// isTTLUnclear reports whether a majority may grant much more time for key number i than the tally.
// Masters whose cell is unknown count towards this majority.
func (t tally) isTTLUnclear(replies []Reply, i int) bool {
	if !t.leasesDiffer() {
		return false
	}
	lefts := make([]time.Duration, 0, len(replies))
	for _, r := range replies {
		switch {
		case r.State != Counted || i >= len(r.KeyStates):
			lefts = append(lefts, cell.NoExpiry)
		case r.KeyStates[i].Holds(t.attempt) && r.KeyStates[i].Value.LastChange() == t.value.LastChange():
			lefts = append(lefts, r.KeyStates[i].TimeLeft)
		}
	}
	slices.SortFunc(lefts, func(a, b time.Duration) int { return CompareTimeLeft(b, a) })
	return isMuchLonger(lefts[min(vote.Majority(len(replies)), len(lefts))-1], t.timeLeft)
}

// CompareTimeLeft orders remaining times, cell.NoExpiry last.
func CompareTimeLeft(a, b time.Duration) int {
	switch {
	case a < 0 && b < 0:
		return 0
	case a < 0:
		return 1
	case b < 0:
		return -1
	default:
		return cmp.Compare(a, b)
	}
}
