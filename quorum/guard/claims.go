package guard

import (
	"time"

	"redlock-proxy/quorum/guard/marker"
	"redlock-proxy/quorum/vote"
)

// position is which of the sets of masters a marker is of, as a proxy sees it.
type position int

const (
	positionOwn       position = iota // its master votes in this proxy's set
	positionOver                      // that set is over, or the master is of another one
	positionBefore                    // it voted in the set before this proxy's, and holds what it held then
	positionStale                     // it is from a set before, or another cluster's, and proves nothing
	positionUnsettled                 // too few masters reported which set they are
)

// statement is the marker of a master and its promise of a ballot.
type statement struct {
	marker.Marker
	// era and ballot are of the promise.
	era, ballot string
	// first is when this marker was first seen, last when it was asked for last.
	first, last time.Time
	// alive is set where the marker is of the master's present life, so that it forgot nothing
	// since.
	alive bool
	// former is set where the master was one of the set before.
	former bool
}

// follows is what the master claims to follow.
func (s statement) follows() Succession {
	if s.Seal.IsNone() {
		return Succession{Era: s.Era, Begun: true}
	}
	return Succession{Era: s.Era, Change: s.Seal.Change}
}

// next is the number of the first set that it does not contradict.
func (s statement) next() int {
	if s.Seal.IsNone() {
		return s.Era.Number
	}
	return s.Era.Number + 1
}

// supports reports whether a master bears out the claim of another one, or its own: it claims the
// same or what comes after it, or it promised the ballot, as a majority did before any master
// accepted it.
func (s statement) supports(claim statement) bool {
	if claim.Seal.IsNone() {
		return s.Era == claim.Era || s.next() > claim.Era.Number || !s.Seal.IsNone() && s.Seal.After(s.Era) == claim.Era
	}
	return s.Nonce == claim.Nonce || s.Era.Number > claim.Era.Number ||
		!s.Seal.IsNone() && s.Era == claim.Era && s.Seal.Ballot >= claim.Seal.Ballot ||
		s.era == claim.Era.String() && s.ballot >= claim.Seal.Ballot
}

// weigh decides whether a claim is believed: where another master supports it, and no majority
// contradicts. What is refuted once stays so.
func (e *eras) weigh(claim statement) {
	masters := len(e.names)
	if !claim.Seal.IsNone() {
		masters = max(claim.Seal.Before, masters-1) // this set is the one that is over, or the one that follows
	}
	most := vote.Majority(masters)
	supporters, others, since := 0, 0, 0
	for _, s := range e.statements {
		switch {
		case s.supports(claim):
			supporters++
		case s.alive && e.positionOf(s) == positionOwn:
			others++
			if s.last.After(claim.first) {
				since++
			}
		}
	}
	switch {
	case e.refuted[claim.Nonce]:
	case since >= most || !e.isPlausible(claim):
		e.refuted[claim.Nonce] = true
	case supporters >= min(2, most) && others < most:
		e.believed[claim.Nonce] = true
		next := claim.follows()
		if next.Begun && claim.Era.Is(e.names) {
			next.Change.Names = e.names
		}
		if e.over == nil || rank(next) >= rank(*e.over) {
			e.over = &next
		}
	}
}

// isPlausible reports whether the masters of a seal may follow this set, or this set them, and so
// many were before as the era itself says.
func (e *eras) isPlausible(claim statement) bool {
	before, names := claim.Seal.Before, claim.Seal.Names
	switch {
	case claim.Seal.IsNone():
		return true
	case claim.Era.Number > 0 && before != claim.Era.Masters:
		return false
	case e.known && claim.Era == e.own && (before < len(e.names)-1 || before > len(e.names)+1):
		return false
	}
	return before >= len(names)-1 && before <= len(names)+1
}

func (e *eras) positionOf(s statement) position {
	if !e.known {
		switch {
		case !s.Seal.IsNone() || !s.Era.Is(e.names):
			return positionOver
		default:
			return positionUnsettled
		}
	}
	switch {
	case s.Seal.IsNone() && s.Era == e.own:
		return positionOwn
	case !s.Seal.IsNone() && (s.Seal.After(s.Era) == e.own || s.alive && s.former && s.Era == e.former):
		return positionBefore // by whichever ballot it was sealed: since then it has not voted in that set
	case s.Era.Number < e.own.Number:
		return positionStale
	case e.refuted[s.Nonce] && !s.alive:
		return positionStale
	default:
		return positionOver
	}
}

func rank(s Succession) int {
	if s.Begun {
		return 2 * s.Era.Number
	}
	return 2*s.Era.Number + 1
}
