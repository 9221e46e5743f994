package guard

import (
	"time"

	"redlock-proxy/quorum/guard/marker"
	"redlock-proxy/quorum/guard/reconfig"
	"redlock-proxy/quorum/vote"
)

// eraPosition is the relation of a marker's era to this proxy's era.
type eraPosition int

const (
	positionOwn     eraPosition = iota // the marker's master votes in this proxy's era
	positionEnded                      // this proxy's era has ended, or the marker is of another era
	positionFormer                     // the master, sealed in the previous era, has kept its data
	positionStale                      // the marker is from an earlier era or another cluster, and proves nothing
	positionUnknown                    // too few masters have reported their era
)

// eraClaim holds a master's marker and its promise of a ballot.
type eraClaim struct {
	marker.Marker
	// promiseEra and promiseBallot are the era and the ballot of the promise.
	promiseEra, promiseBallot string
	// firstSeen is the time at which this proxy first saw the marker. lastAsked is the time at
	// which it last asked the master for its marker.
	firstSeen, lastAsked time.Time
	// sameRun is set if the master has neither restarted nor been a replica since it got the
	// marker, so that it has lost nothing since.
	sameRun bool
	// wasMember is set if the master was in the set of the previous era.
	wasMember bool
}

// reconfiguration returns the reconfiguration that the marker claims.
func (s eraClaim) reconfiguration() Reconfiguration {
	if s.Seal.IsNone() {
		return Reconfiguration{Era: s.Era, Begun: true}
	}
	return Reconfiguration{Era: s.Era, Change: s.Seal.Change}
}

// supports reports whether s supports a claim of the same or another master. Either s states the
// same or a later era, or its master promised the claim's ballot or a higher ballot. A majority
// promises a ballot before any master accepts it.
func (s eraClaim) supports(claim eraClaim) bool {
	if claim.Seal.IsNone() {
		return s.Era == claim.Era || s.Era.Number > claim.Era.Number ||
			!s.Seal.IsNone() && (s.Era.Number == claim.Era.Number || s.Seal.NextEra(s.Era) == claim.Era)
	}
	return s.Nonce == claim.Nonce || s.Era.Number > claim.Era.Number ||
		!s.Seal.IsNone() && s.Era == claim.Era && s.Seal.Ballot >= claim.Seal.Ballot ||
		s.promiseEra == claim.Era.String() && s.promiseBallot >= claim.Seal.Ballot
}

// evaluate decides whether a claim is credible: another master must support it, and fewer than a
// majority contradict it. A refuted claim stays refuted.
func (e *eraTracker) evaluate(claim eraClaim) {
	masters := len(e.names)
	if !claim.Seal.IsNone() {
		// The seal ends the era of this set, or of the set before it.
		masters = max(claim.Seal.PreviousMasterCount, masters-1)
	}
	majority := vote.Majority(masters)
	supporters, opponents, recentOpponents := 0, 0, 0
	for _, s := range e.claims {
		switch {
		case s.supports(claim):
			supporters++
		case s.sameRun && e.positionOf(s) == positionOwn:
			opponents++
			if s.lastAsked.After(claim.firstSeen) {
				recentOpponents++
			}
		}
	}
	switch {
	case e.refutedNonces[claim.Nonce]:
	case recentOpponents >= majority || !e.isPlausible(claim):
		e.refutedNonces[claim.Nonce] = true
	case supporters >= min(2, majority) && opponents < majority:
		e.credibleNonces[claim.Nonce] = true
		reconfiguration := claim.reconfiguration()
		if e.reconfiguration == nil || reconfigurationRank(reconfiguration) >= reconfigurationRank(*e.reconfiguration) {
			e.reconfiguration = &reconfiguration
		}
	}
}

// successor returns the known successor of this set of masters, or nil if there is none. The caller
// must hold mu.
func (e *eraTracker) successor() *Reconfiguration {
	if e.reconfiguration == nil || !e.reconfiguration.Begun {
		return e.reconfiguration
	}
	named := *e.reconfiguration
	named.Change.Names = e.namesOf(named.Era)
	return &named
}

// namesOf returns the names of the masters of an era; none if neither these masters nor a seal have
// them. A marker of the era itself has only their hash.
func (e *eraTracker) namesOf(era reconfig.Era) []string {
	if era.HasMasters(e.names) {
		return e.names
	}
	for _, claim := range e.claims {
		if !claim.Seal.IsNone() && claim.Seal.NextEra(claim.Era) == era {
			return claim.Seal.Names
		}
	}
	return nil
}

// isPlausible reports whether a claim's seal describes a possible change. A change adds or removes
// at most one master, and the seal must state the size of the era that it ends.
func (e *eraTracker) isPlausible(claim eraClaim) bool {
	before, names := claim.Seal.PreviousMasterCount, claim.Seal.Names
	switch {
	case claim.Seal.IsNone():
		return true
	case claim.Era.Number > 0 && before != claim.Era.Masters:
		return false
	case e.ownEraKnown && claim.Era == e.ownEra && (before < len(e.names)-1 || before > len(e.names)+1):
		return false
	}
	return before >= len(names)-1 && before <= len(names)+1
}

// positionOf returns the position of a master's claim.
func (e *eraTracker) positionOf(s eraClaim) eraPosition {
	if !e.ownEraKnown {
		switch {
		case !s.Seal.IsNone() || !s.Era.HasMasters(e.names):
			return positionEnded
		default:
			return positionUnknown
		}
	}
	switch {
	case s.Seal.IsNone() && s.Era == e.ownEra:
		return positionOwn
	case !s.Seal.IsNone() && (s.Seal.NextEra(s.Era) == e.ownEra || s.sameRun && s.wasMember && s.Era == e.formerEra):
		// Regardless of the ballot: a sealed master does not vote in its era again.
		return positionFormer
	case s.Era.Number < e.ownEra.Number:
		return positionStale
	case e.refutedNonces[s.Nonce] && !s.sameRun:
		return positionStale
	default:
		return positionEnded
	}
}

// reconfigurationRank returns a number that is higher for a later reconfiguration.
func reconfigurationRank(s Reconfiguration) int {
	if s.Begun {
		return 2 * s.Era.Number
	}
	return 2*s.Era.Number + 1
}
