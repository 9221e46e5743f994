package register

import (
	"cmp"
	"slices"
	"time"

	"redlock-proxy/quorum/cell"
	"redlock-proxy/quorum/vote"
)

// Standing is what a majority of the masters holds under a key.
type Standing int

const (
	// Open: the masters that did not answer, or the blocking copies, may make a majority
	// of something.
	Open Standing = iota
	// Absent: nothing can have a majority.
	Absent
	// Held: an incarnation has a majority. Its value may be that the key is absent.
	Held
	// Foreign: a majority holds the same value, which no proxy wrote.
	Foreign
)

// finding is what the answers of some masters say of one key.
type finding struct {
	standing Standing
	// attempt is the incarnation that is held; value is that of its highest ballot, which
	// is accepted.
	attempt  cell.Attempt
	accepted cell.Ballot
	value    cell.Value
	// left is the remaining time that a majority grants: the quorum-th largest of those
	// that hold the value, by whichever ballot, or the least of fewer.
	left time.Duration
	// longest and shortest are the longest and the shortest remaining time of those that hold the
	// value.
	longest, shortest time.Duration
	// chosen: a majority holds this very value. mixed: some holders have another ballot.
	chosen, mixed bool
}

// candidate is one incarnation, or one foreign value.
type candidate struct {
	attempt  cell.Attempt
	holders  []cell.Found
	blocking int
}

// resolve decides what the masters hold under key number i (REGISTER.md, Reading). Those of which
// found has nothing may hold anything, and so may one with an undecided copy.
func resolve(replies []Reply, i int) finding {
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
			return c.finding(vote.Majority(n))
		case vote.Pending:
			open = true
		}
	}
	if open {
		return finding{standing: Open}
	}
	return finding{standing: Absent}
}

// endsSoon reports whether a majority answered, or may, and all that they hold is over as soon as a
// removal: such cells do not end everywhere at the same moment, and leave open what the key holds
// where some masters give no vote.
func endsSoon(replies []Reply) bool {
	for _, r := range replies {
		if r.State == Counted && !areOver(r.Found, removedFor) {
			return false
		}
	}
	return tally(replies, (*Reply).answered) != vote.Lost
}

// areOver reports whether no cell stays for longer than a time, or for an unknown one.
func areOver(found []cell.Found, after time.Duration) bool {
	return !slices.ContainsFunc(found, func(f cell.Found) bool { return f.Form != cell.Absent && (f.Left < 0 || f.Left > after) })
}

// candidateFor is the one that a cell belongs to; an absent one, or a mark, has none.
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

// finding is that of a candidate with a majority.
func (c *candidate) finding(quorum int) finding {
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
	f := finding{
		standing: Held, attempt: c.attempt, accepted: highest.Accepted, value: highest.Value,
		left: lefts[min(quorum, len(lefts))-1], longest: lefts[0], shortest: lefts[len(lefts)-1],
		chosen: accepted >= quorum, mixed: accepted < len(c.holders),
	}
	if highest.Form == cell.Foreign {
		f.standing, f.attempt = Foreign, ""
	}
	return f
}

// taken reports whether a majority holds this very value, and not that the key is absent. Where
// holders differ the newest value may never be chosen, and an older one among those that
// answered may be over: what was chosen between them may be on none of these.
func (f finding) taken() bool {
	return f.standing == Foreign || f.standing == Held && f.chosen && f.value.Present
}

// unsettled reports whether an incarnation is held, and what it holds is still to be decided.
func (f finding) unsettled() bool { return f.standing == Held && !f.chosen }

// uneven reports whether some holder grants much more time than a majority of those that
// answered: others that are still to answer may, too.
func (f finding) uneven() bool {
	return f.standing == Held && isMuchLonger(f.longest, f.left)
}

// isMuchLonger reports whether a remaining time is longer than another by more than masters differ
// that were told the same.
func isMuchLonger(left, than time.Duration) bool {
	return (left < 0) != (than < 0) || left-than > time.Second
}

// isUnsure reports whether a majority may grant much more time for key number i than was found:
// with masters of which it is not known what they hold, or with others that answered.
func (f finding) isUnsure(replies []Reply, i int) bool {
	if !f.uneven() {
		return false
	}
	lefts := make([]time.Duration, 0, len(replies))
	for _, r := range replies {
		switch {
		case r.State != Counted || i >= len(r.Found):
			lefts = append(lefts, cell.Endless)
		case r.Found[i].Holds(f.attempt) && r.Found[i].Value.Last() == f.value.Last():
			lefts = append(lefts, r.Found[i].Left)
		}
	}
	slices.SortFunc(lefts, func(a, b time.Duration) int { return compareLeft(b, a) })
	return isMuchLonger(lefts[min(vote.Majority(len(replies)), len(lefts))-1], f.left)
}

// compareLeft orders remaining times; Endless is the longest.
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
