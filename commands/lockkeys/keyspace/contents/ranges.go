package contents

import (
	"math"
	"strings"

	"redlock-proxy/internal/lua/clib"
)

// ScoreRange is a range of scores.
type ScoreRange struct {
	min, max                   float64
	minExclusive, maxExclusive bool // the range excludes the end itself
}

// ParseScoreRange parses the ends of a range of scores.
func ParseScoreRange(minWord, maxWord string) (r ScoreRange, ok bool) {
	var ok1, ok2 bool
	r.min, r.minExclusive, ok1 = parseEnd(minWord)
	r.max, r.maxExclusive, ok2 = parseEnd(maxWord)
	return r, ok1 && ok2
}

// parseEnd parses one end, as C's strtod does, up to a zero byte.
func parseEnd(word string) (end float64, exclusive, ok bool) {
	word, _, _ = strings.Cut(word, "\x00")
	word, exclusive = strings.CutPrefix(word, "(")
	end, rest := clib.ParsePrefix(word)
	return end, exclusive, rest == "" && !math.IsNaN(end)
}

func (r ScoreRange) aboveMin(m ScoredMember) bool {
	return m.Score > r.min || !r.minExclusive && m.Score == r.min
}

func (r ScoreRange) belowMax(m ScoredMember) bool {
	return m.Score < r.max || !r.maxExclusive && m.Score == r.max
}

// LexRange is a range of members.
type LexRange struct{ min, max lexEnd }

// lexEnd is one end of a range: a text, or a point before or after all texts.
type lexEnd struct {
	infinitySign int // -1, 0 or 1
	text         string
	exclusive    bool
}

// ParseLexRange parses the ends of a range of members.
func ParseLexRange(lowest, highest string) (r LexRange, ok bool) {
	var ok1, ok2 bool
	r.min, ok1 = parseLexEnd(lowest)
	r.max, ok2 = parseLexEnd(highest)
	return r, ok1 && ok2
}

func parseLexEnd(word string) (lexEnd, bool) {
	if word == "" {
		return lexEnd{}, false
	}
	isWhole := len(word) == 1 || word[1] == 0
	switch word[0] {
	case '-':
		return lexEnd{infinitySign: -1, exclusive: true}, isWhole
	case '+':
		return lexEnd{infinitySign: 1, exclusive: true}, isWhole
	case '(':
		return lexEnd{text: word[1:], exclusive: true}, true
	case '[':
		return lexEnd{text: word[1:]}, true
	}
	return lexEnd{}, false
}

// compare returns a negative number if the text is before the end, 0 if the text equals the end,
// and a positive number if the text is after the end.
func (e lexEnd) compare(text string) int {
	if e.infinitySign != 0 {
		return -e.infinitySign
	}
	return strings.Compare(text, e.text)
}

func (r LexRange) aboveMin(m ScoredMember) bool {
	order := r.min.compare(m.Member)
	return order > 0 || order == 0 && !r.min.exclusive
}

func (r LexRange) belowMax(m ScoredMember) bool {
	order := r.max.compare(m.Member)
	return order < 0 || order == 0 && !r.max.exclusive
}

// Range is a range of scores or of members.
type Range interface {
	aboveMin(m ScoredMember) bool
	belowMax(m ScoredMember) bool
}

// overlaps reports whether a range may contain members: the last member is not before the range,
// and the first member is not after it.
func overlaps(members []ScoredMember, r Range) bool {
	return len(members) > 0 && r.aboveMin(members[len(members)-1]) && r.belowMax(members[0])
}

// IndexRange returns the indices of the members in a range: from is the first index, and to is the
// index after the last member. If scores differ, members are not in lexicographic order. A range of
// members then begins with the first member that is not before the range. It ends at the next
// member that is after the range. Redis does the same.
func (s *SortedSet) IndexRange(r Range) (from, to int) {
	members := s.Members()
	if !overlaps(members, r) {
		return 0, 0
	}
	for from < len(members) && !r.aboveMin(members[from]) {
		from++
	}
	for to = from; to < len(members) && r.belowMax(members[to]); to++ {
	}
	return from, to
}

// IndexRangeFromEnd does the same as IndexRange, but searches from the end.
func (s *SortedSet) IndexRangeFromEnd(r Range) (from, to int) {
	members := s.Members()
	if !overlaps(members, r) {
		return 0, 0
	}
	to = len(members)
	for to > 0 && !r.belowMax(members[to-1]) {
		to--
	}
	for from = to; from > 0 && r.aboveMin(members[from-1]); from-- {
	}
	return from, to
}
