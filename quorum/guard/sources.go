package guard

import (
	"slices"
	"time"

	"redlock-proxy/quorum/guard/marker"
	"redlock-proxy/quorum/vote"
)

// source is a master to copy from, and the trust in it when the copying began.
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
	// formerMasters is the number of masters of the former set, if fewer than a majority of this set
	// vote; zero otherwise.
	formerMasters int
}

// hasReadQuorum reports whether every majority includes one of the sources.
func (o sourceSet) hasReadQuorum() bool {
	return o.masters > 0 && len(o.sources) >= vote.ReadQuorum(o.masters)
}

// provedSince reports whether all sources have proved after the moment t that they vote.
func (o sourceSet) provedSince(t time.Time) bool {
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

// sourcesFor returns the masters to copy from: other masters that vote or, if these are no
// majority, masters that voted in the former era. The latter hold every lock of that era, by its
// rules; this era has no locks yet. If all of them that can be reached have joined, they are
// ordinary sources, and what a majority of the former set holds is copied in full.
func (s *Set) sourcesFor(g *Guard) sourceSet {
	voters := s.voters(g.index)
	ordinary := sourceSet{sources: voters, masters: len(s.guards)}
	if len(voters) >= vote.Majority(len(s.guards)) {
		return ordinary
	}
	former, hasFormer := sourceSet{masters: s.eras.formerSize(), isFormer: true}, false
	for _, candidate := range append(s.guards[:len(s.guards):len(s.guards)], s.formerGuards...) {
		t := candidate.currentTrust()
		joined := !t.eraEnded && candidate.set == s && t.Proof == marker.ProofJoined
		if t.Nonce == "" || candidate.IsDown() || !joined && !(t.eraEnded && s.eras.isFormer(t.Marker)) {
			continue
		}
		hasFormer = hasFormer || t.eraEnded
		former.sources = append(former.sources, source{candidate, t})
	}
	if !hasFormer {
		ordinary.formerMasters = former.masters
		return ordinary
	}
	return former
}

// isFormer reports whether this era follows the era in which a master was sealed with this marker,
// by any ballot.
func (e *eraTracker) isFormer(m marker.Marker) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.ownEraKnown && !m.Seal.IsNone() && (m.Seal.After(m.Era) == e.ownEra || e.formerMembers != nil && m.Era == e.formerEra)
}
