package register

import (
	"cmp"
	"slices"
	"time"

	"redlock-proxy/quorum/cell"
	"redlock-proxy/quorum/vote"
)

// TallyStatus says whether a majority of the masters holds a value under a key.
type TallyStatus int

const (
	// Undetermined: masters that did not answer, or blocking copies, may complete a majority.
	Undetermined TallyStatus = iota
	// Absent: no value can have a majority.
	Absent
	// Held: an incarnation has a majority. Its value may be that the key is absent.
	Held
	// Foreign: a majority holds the same value, which no proxy wrote.
	Foreign
)

// tally evaluates the replies of some masters about one key.
type tally struct {
	standing TallyStatus
	// attempt is the incarnation that is held. accepted is its highest ballot, and value the value
	// that this ballot chose.
	attempt  cell.Attempt
	accepted cell.Ballot
	value    cell.Value
	// left is the remaining time that a majority grants: the quorum-th longest among the masters
	// that hold the value, by any ballot, or the shortest if fewer masters hold it.
	left time.Duration
	// longest and shortest are the longest and the shortest remaining time on the masters that hold
	// the value.
	longest, shortest time.Duration
	// chosen is set if a majority holds this very value. mixed is set if some holders have another
	// ballot.
	chosen, mixed bool
}

// candidate is one incarnation, or one foreign value.
type candidate struct {
	attempt  cell.Attempt
	holders  []cell.Found
	blocking int
}

// resolve determines the state of key number i (REGISTER.md, Reading). A master that did not answer
// may hold any value, and so may one with an undecided copy.
func resolve(replies []Reply, i int) tally {
	var all []*candidate
	n, silent := len(replies), len(replies)
	for _, r := range replies {
		if r.State != Counted || i >= len(r.Found) {
			continue
		}
		f := r.Found[i]
		if f.IsUndecided() {
			continue
		}
		silent--
		switch c := candidateFor(&all, f); {
		case c == nil:
		case f.Form == cell.Blocking:
			c.blocking++
		default:
			c.holders = append(c.holders, f)
		}
	}
	open := vote.Count(n, 0, silent) == vote.Pending
	for _, c := range all {
		switch vote.Count(n, len(c.holders), c.blocking+silent) {
		case vote.Won:
			return c.tally(vote.Majority(n))
		case vote.Pending:
			open = true
		}
	}
	if open {
		return tally{standing: Undetermined}
	}
	return tally{standing: Absent}
}

// allExpireSoon reports whether a majority answered, or may still answer, and all their cells
// expire no later than a removal. Such cells expire at slightly different moments. Until then the
// state of the key is undetermined if some masters give no vote.
func allExpireSoon(replies []Reply) bool {
	for _, r := range replies {
		if r.State == Counted && !expireWithin(r.Found, removalTTL) {
			return false
		}
	}
	return countVotes(replies, (*Reply).answered) != vote.Lost
}

// expireWithin reports whether every cell expires within a time. A cell without a known remaining
// time does not.
func expireWithin(found []cell.Found, after time.Duration) bool {
	return !slices.ContainsFunc(found, func(f cell.Found) bool {
		return f.Form != cell.Absent && (f.Left < 0 || f.Left > after)
	})
}

// candidateFor returns the candidate that a cell belongs to, or nil for an absent cell or a mark.
func candidateFor(all *[]*candidate, f cell.Found) *candidate {
	if f.Form == cell.Absent || f.Form == cell.Mark {
		return nil
	}
	c := &candidate{attempt: f.Incarnation()}
	for _, other := range *all {
		if other.attempt == c.attempt {
			return other
		}
	}
	*all = append(*all, c)
	return c
}

// tally returns the tally of a candidate that has a majority.
func (c *candidate) tally(quorum int) tally {
	highest := c.holders[0]
	for _, h := range c.holders {
		if h.Accepted > highest.Accepted {
			highest = h
		}
	}
	var lefts []time.Duration
	accepted := 0
	for _, h := range c.holders {
		if h.Value.Last() == highest.Value.Last() {
			lefts = append(lefts, h.Left)
		}
		if h.Accepted == highest.Accepted {
			accepted++
		}
	}
	slices.SortFunc(lefts, func(a, b time.Duration) int { return compareLeft(b, a) })
	t := tally{
		standing: Held, attempt: c.attempt, accepted: highest.Accepted, value: highest.Value,
		left: lefts[min(quorum, len(lefts))-1], longest: lefts[0], shortest: lefts[len(lefts)-1],
		chosen: accepted >= quorum, mixed: accepted < len(c.holders),
	}
	if highest.Form == cell.Foreign {
		t.standing, t.attempt = Foreign, ""
	}
	return t
}

// isTaken reports whether a majority holds this very value, and the key is not absent. If holders
// differ, the newest value may never have been chosen. An older one may have been replaced by a
// value that none of the masters that answered holds.
func (t tally) isTaken() bool {
	return t.standing == Foreign || t.standing == Held && t.chosen && t.value.Present
}

// isUnchosen reports whether an incarnation is held, and a ballot still has to choose its value.
func (t tally) isUnchosen() bool { return t.standing == Held && !t.chosen }

// leasesDiffer reports whether some holder grants much more time than a majority of the masters
// that answered. Then masters that have not answered may do so, too.
func (t tally) leasesDiffer() bool {
	return t.standing == Held && isMuchLonger(t.longest, t.left)
}

// isMuchLonger reports whether two remaining times differ by more than masters that were told the
// same time do.
func isMuchLonger(left, than time.Duration) bool {
	return (left < 0) != (than < 0) || left-than > time.Second
}

// isTTLUnclear reports whether a majority may grant much more time for key number i than the tally
// says. The majority may include masters whose cell is unknown.
func (t tally) isTTLUnclear(replies []Reply, i int) bool {
	if !t.leasesDiffer() {
		return false
	}
	lefts := make([]time.Duration, 0, len(replies))
	for _, r := range replies {
		switch {
		case r.State != Counted || i >= len(r.Found):
			lefts = append(lefts, cell.Endless)
		case r.Found[i].Holds(t.attempt) && r.Found[i].Value.Last() == t.value.Last():
			lefts = append(lefts, r.Found[i].Left)
		}
	}
	slices.SortFunc(lefts, func(a, b time.Duration) int { return compareLeft(b, a) })
	return isMuchLonger(lefts[min(vote.Majority(len(replies)), len(lefts))-1], t.left)
}

// compareLeft orders remaining times. Endless is the longest.
func compareLeft(a, b time.Duration) int {
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
