package contents

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// ScoredMember holds a member of a sorted set, and its score.
type ScoredMember struct {
	Member string
	Score  float64
}

// SortedSet is a set of texts with scores.
type SortedSet struct {
	scores map[string]float64
	order  orderedList[ScoredMember]
	size   int
}

// NewSortedSet returns an empty sorted set.
func NewSortedSet() *SortedSet {
	return &SortedSet{scores: map[string]float64{}, order: orderedList[ScoredMember]{compare: compareScoredMembers}}
}

func compareScoredMembers(a, b ScoredMember) int {
	return cmp.Or(cmp.Compare(a.Score, b.Score), strings.Compare(a.Member, b.Member))
}

func decodeSortedSet(encoded string) (Content, error) {
	n := countParts(encoded, scoreSize)
	s := &SortedSet{
		scores: make(map[string]float64, n),
		order:  orderedList[ScoredMember]{compare: compareScoredMembers, elems: make([]ScoredMember, 0, n)},
	}
	for encoded != "" {
		score, rest, ok1 := cutScore(encoded)
		member, rest, ok2 := cutPart(rest)
		next := ScoredMember{member, score}
		if last := len(s.order.elems) - 1; !ok1 || !ok2 || last >= 0 && compareScoredMembers(s.order.elems[last], next) >= 0 {
			return nil, ErrUnreadable
		}
		s.order.elems = append(s.order.elems, next) // already in order
		s.scores[member] = score
		s.size += scoreSize + partSize(member)
		encoded = rest
	}
	if s.Len() == 0 || s.Len() < len(s.order.elems) { // a member occurs twice
		return nil, ErrUnreadable
	}
	return s, nil
}

// Kind implements Content.
func (s *SortedSet) Kind() Kind { return SortedSetKind }

// Len returns the number of members.
func (s *SortedSet) Len() int {
	if s == nil {
		return 0
	}
	return len(s.scores)
}

// Size implements Content.
func (s *SortedSet) Size() int { return markSize + s.size }

// Encoding implements Content: listpack or skiplist.
func (s *SortedSet) Encoding() string {
	if s.Len() > compactSortedEntries {
		return "skiplist"
	}
	for member := range s.scores {
		if len(member) > compactBytes {
			return "skiplist"
		}
	}
	return "listpack"
}

func (s *SortedSet) appendTo(b []byte) []byte {
	for _, m := range s.Members() {
		b = appendPart(appendScore(b, m.Score+0), m.Member) // adding 0 turns -0 into 0
	}
	return b
}

// Members returns the members in the order of their scores, and members of the same score in the
// order of their bytes. The result is valid until the set changes. The caller must not change it.
func (s *SortedSet) Members() []ScoredMember {
	if s == nil {
		return nil
	}
	return s.order.sorted(func() []ScoredMember {
		members := make([]ScoredMember, 0, len(s.scores))
		for member, score := range s.scores {
			members = append(members, ScoredMember{member, score})
		}
		return members
	})
}

// Score returns the score of a member.
func (s *SortedSet) Score(member string) (score float64, ok bool) {
	if s == nil {
		return 0, false
	}
	score, ok = s.scores[member]
	return score, ok
}

// Set sets the score of a member, and reports whether the member is new. score must not be NaN.
func (s *SortedSet) Set(member string, score float64) (isNew bool) {
	before, ok := s.scores[member]
	switch {
	case ok && math.Float64bits(before) == math.Float64bits(score):
		return false
	case ok:
		s.order.remove(ScoredMember{member, before})
	default:
		s.size += scoreSize + partSize(member)
	}
	s.scores[member] = score
	s.order.add(ScoredMember{member, score})
	return !ok
}

// Delete removes a member, and reports whether it existed.
func (s *SortedSet) Delete(member string) bool {
	score, ok := s.scores[member]
	if !ok {
		return false
	}
	delete(s.scores, member)
	s.order.remove(ScoredMember{member, score})
	s.size -= scoreSize + partSize(member)
	return true
}

// Rank returns the index of a member.
func (s *SortedSet) Rank(member string) (rank int, ok bool) {
	score, ok := s.Score(member)
	if !ok {
		return 0, false
	}
	return slices.BinarySearchFunc(s.Members(), ScoredMember{member, score}, compareScoredMembers)
}
