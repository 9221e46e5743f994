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
	var all []source
	for j, g := range s.guards {
		if t := g.trusted(); j != i && t.Nonce != "" && !t.eraEnded && !g.IsDown() {
			all = append(all, source{g, t})
		}
	}
	return all
}

// sourceSet holds the sources of a copy, and the size of the set to which they belong.
type sourceSet struct {
	sources []source
	masters int
	// before is set if the sources belong to the former set.
	before bool
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
		return !s.guard.proved.After(t)
	})
}

func (o sourceSet) wake() {
	for _, s := range o.sources {
		s.guard.Wake()
	}
}

// member returns the index of a guard's master among the sources, or -1.
func (o sourceSet) member(g *Guard) int {
	return slices.IndexFunc(o.sources, func(s source) bool { return s.guard == g })
}

// sourcesFor returns the masters to copy from: other masters that vote or, while no majority of
// them does, masters that voted in the former era. These masters hold every lock of that era, by
// its rules; there are no locks of this era yet.
func (s *Set) sourcesFor(g *Guard) sourceSet {
	voters := s.voters(g.index)
	ordinary := sourceSet{sources: voters, masters: len(s.guards)}
	if len(voters) >= vote.Majority(len(s.guards)) {
		return ordinary
	}
	from, waits := sourceSet{masters: s.eras.formerSize(), before: true}, false
	for _, one := range append(s.guards[:len(s.guards):len(s.guards)], s.formerGuards...) {
		t := one.trusted()
		joined := !t.eraEnded && one.set == s && t.Proof == marker.ProofJoined
		if t.Nonce == "" || one.IsDown() || !joined && !(t.eraEnded && s.eras.isFormer(t.Marker)) {
			continue
		}
		waits = waits || t.eraEnded
		from.sources = append(from.sources, source{one, t})
	}
	if !waits {
		return ordinary
	}
	return from
}

// isFormer reports whether this era follows the era in which a master was sealed with this marker,
// by any ballot.
func (e *eraTracker) isFormer(m marker.Marker) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.known && !m.Seal.IsNone() && (m.Seal.After(m.Era) == e.own || e.wasMember != nil && m.Era == e.former)
}
