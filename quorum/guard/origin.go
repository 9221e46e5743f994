package guard

import (
	"slices"
	"time"

	"redlock-proxy/quorum/guard/marker"
	"redlock-proxy/quorum/vote"
)

// source is a master that is copied from, and what it votes under when that begins.
type source struct {
	guard *Guard
	trust trust
}

// voters are the masters that vote, but for number i.
func (s *Set) voters(i int) []source {
	var all []source
	for j, g := range s.guards {
		if t := g.trusted(); j != i && t.Nonce != "" && !t.over && !g.IsDown() {
			all = append(all, source{g, t})
		}
	}
	return all
}

// origin is what a master is copied from: sources, and of how many masters they are some.
type origin struct {
	sources []source
	masters int
	// before is set where these are masters of the set before.
	before bool
}

// enough reports whether one of the sources is in every majority.
func (o origin) enough() bool {
	return o.masters > 0 && len(o.sources) >= vote.ReadQuorum(o.masters)
}

// provedSince reports whether all sources proved that they vote, after a moment.
func (o origin) provedSince(t time.Time) bool {
	return !slices.ContainsFunc(o.sources, func(s source) bool {
		s.guard.mu.Lock()
		defer s.guard.mu.Unlock()
		return !s.guard.proved.After(t)
	})
}

// wake has all sources looked at.
func (o origin) wake() {
	for _, s := range o.sources {
		s.guard.Wake()
	}
}

// member is the source that a guard's master itself is, by its number, or -1.
func (o origin) member(g *Guard) int {
	return slices.IndexFunc(o.sources, func(s source) bool { return s.guard == g })
}

// originFor is what a master is to be copied from: others that vote, or, as long as no majority of
// them does, masters that voted in the set before. These hold every lock of that set, by its rules;
// there is none of this set yet.
func (s *Set) originFor(g *Guard) origin {
	voters := s.voters(g.index)
	ordinary := origin{sources: voters, masters: len(s.guards)}
	if len(voters) >= vote.Majority(len(s.guards)) {
		return ordinary
	}
	from, waits := origin{masters: s.eras.previous(), before: true}, false
	for _, one := range append(s.guards[:len(s.guards):len(s.guards)], s.before...) {
		t := one.trusted()
		joined := !t.over && one.set == s && t.Proof == marker.ProofJoined
		if t.Nonce == "" || one.IsDown() || !joined && !(t.over && s.eras.follows(t.Marker)) {
			continue
		}
		waits = waits || t.over
		from.sources = append(from.sources, source{one, t})
	}
	if !waits {
		return ordinary
	}
	return from
}

// follows reports whether the set follows the one in which a master was sealed with this marker, by
// whichever ballot.
func (e *eras) follows(m marker.Marker) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.known && !m.Seal.IsNone() && (m.Seal.After(m.Era) == e.own || e.formers != nil && m.Era == e.former)
}
