package guard

import (
	"slices"
	"time"

	"redlock-proxy/quorum/guard/marker"
	"redlock-proxy/quorum/vote"
)

// source holds a master to copy from, and the trust in it when the copying began.
type source struct {
	guard *Guard
	trust trust
}

// voters returns the masters that vote, except master i.
func (s *Set) voters(i int) []source {
	var voters []source
	for j, g := range s.guards {
		if t := g.currentTrust(); j != i && t.Nonce != "" && !t.eraEnded && !g.IsDown() {
			voters = append(voters, source{g, t})
		}
	}
	return voters
}

// sourceSet holds the sources of a copy, and the size of the set to which they belong.
type sourceSet struct {
	sources []source
	masters int
	// isFormer is set if the sources belong to the former set.
	isFormer bool
	// formerMasters is the number of masters of the former set, if it is known and fewer than a
	// majority of this set vote; zero otherwise.
	formerMasters int
	// targetUnused is set if the master to copy to has never voted in this era.
	targetUnused bool
}

// hasReadQuorum reports whether every majority that may have granted a lock includes one of the
// sources. No majority includes a master that never voted.
func (o sourceSet) hasReadQuorum() bool {
	needed := vote.ReadQuorum(o.masters)
	if o.targetUnused && !o.isFormer {
		needed--
	}
	return o.masters > 0 && len(o.sources) >= max(1, needed)
}

// hasProofSince reports whether all sources have proved after the moment t that they vote.
func (o sourceSet) hasProofSince(t time.Time) bool {
	return !slices.ContainsFunc(o.sources, func(s source) bool {
		s.guard.mu.Lock()
		defer s.guard.mu.Unlock()
		return !s.guard.lastProof.After(t)
	})
}

func (o sourceSet) wake() {
	for _, s := range o.sources {
		s.guard.Wake()
	}
}

// indexOf returns the index of a guard's master among the sources, or -1.
func (o sourceSet) indexOf(g *Guard) int {
	return slices.IndexFunc(o.sources, func(s source) bool { return s.guard == g })
}

// noteVotes records it if a majority of the masters votes in this era.
func (s *Set) noteVotes() {
	const noExcludedMaster = -1 // all masters count
	if len(s.voters(noExcludedMaster)) >= vote.Majority(len(s.guards)) {
		s.eras.noteMajority()
	}
}

// sourcesFor returns the masters to copy from: other masters that vote. An era has no locks of its
// own until a majority can have voted in it. Until then, the sources are the masters that voted in
// the former era, if they form a read quorum of the former set. Then fewer keys need blocking
// copies than with sources from this era.
func (s *Set) sourcesFor(g *Guard) sourceSet {
	ordinary, formerSize := sourceSet{sources: s.voters(g.index), masters: len(s.guards)}, s.eras.formerSize()
	if formerSize == 0 || len(ordinary.sources) >= vote.Majority(ordinary.masters) {
		return ordinary
	}
	ordinary.formerMasters = formerSize
	isUnknown := func(i int, checked bool) bool {
		return (!checked || s.guards[i].IsDown()) && !g.isLongInQuarantine()
	}
	if s.eras.mayHaveHadMajority(isUnknown) {
		return ordinary
	}
	former := sourceSet{masters: formerSize, isFormer: true}
	for _, candidate := range append(s.guards[:len(s.guards):len(s.guards)], s.formerGuards...) {
		t := candidate.currentTrust()
		joined := !t.eraEnded && candidate.set == s && t.Proof == marker.ProofJoined
		if t.Nonce == "" || candidate.IsDown() || !joined && !(t.eraEnded && s.eras.isFormerEra(t.Marker)) {
			continue
		}
		former.sources = append(former.sources, source{candidate, t})
	}
	if !former.hasReadQuorum() {
		return ordinary
	}
	return former
}

// awaitsReports reports whether, by the reports so far, no majority has voted in this era, even if
// all masters that are down have voted.
func (s *Set) awaitsReports() bool {
	isDown := func(i int, _ bool) bool { return s.guards[i].IsDown() }
	return s.eras.formerSize() > 0 && !s.eras.mayHaveHadMajority(isDown)
}

// isLongInQuarantine reports whether every running proxy for which the master voted in this era has
// had time to see the record. Such a proxy would have replaced a record that calls the master new.
func (g *Guard) isLongInQuarantine() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return !g.watchedSince.IsZero() && time.Since(g.watchedSince) > 2*Heartbeat
}

// isFormerEra reports whether this era follows the era in which a master was sealed with this
// marker, regardless of the ballot.
func (e *eraTracker) isFormerEra(m marker.Marker) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.ownEraKnown && !m.Seal.IsNone() && (m.Seal.NextEra(m.Era) == e.ownEra || e.formerMembers != nil && m.Era == e.formerEra)
}
