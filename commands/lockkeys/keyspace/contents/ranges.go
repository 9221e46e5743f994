package contents

import (
	"math"
	"strings"

	"redlock-proxy/internal/lua/clib"
)

// ScoreRange is a range of scores.
type ScoreRange struct {
	min, max     float64
	minEx, maxEx bool // the ends themselves are excluded
}

// ParseScoreRange parses the ends of a range of scores.
func ParseScoreRange(least, greatest string) (r ScoreRange, ok bool) {
	var ok1, ok2 bool
	r.min, r.minEx, ok1 = parseEnd(least)
	r.max, r.maxEx, ok2 = parseEnd(greatest)
	return r, ok1 && ok2
}

// parseEnd parses one end, as C's strtod does, up to a zero byte.
func parseEnd(word string) (end float64, exclusive, ok bool) {
	word, _, _ = strings.Cut(word, "\x00")
	word, exclusive = strings.CutPrefix(word, "(")
	end, rest := clib.ParsePrefix(word)
	return end, exclusive, rest == "" && !math.IsNaN(end)
}

func (r ScoreRange) aboveMin(m Scored) bool {
	return m.Score > r.min || !r.minEx && m.Score == r.min
}

func (r ScoreRange) belowMax(m Scored) bool {
	return m.Score < r.max || !r.maxEx && m.Score == r.max
}

// LexRange is a range of members.
type LexRange struct{ min, max lexEnd }

// lexEnd is one end of a range: a text, or before or after all texts.
type lexEnd struct {
	infinite  int // -1, 0 or 1
	text      string
	exclusive bool
}

// ParseLexRange parses the ends of a range of members.
func ParseLexRange(least, greatest string) (r LexRange, ok bool) {
	var ok1, ok2 bool
	r.min, ok1 = parseLexEnd(least)
	r.max, ok2 = parseLexEnd(greatest)
	return r, ok1 && ok2
}

func parseLexEnd(word string) (lexEnd, bool) {
	if word == "" {
		return lexEnd{}, false
	}
	isWhole := len(word) == 1 || word[1] == 0
	switch word[0] {
	case '-':
		return lexEnd{infinite: -1, exclusive: true}, isWhole
	case '+':
		return lexEnd{infinite: 1, exclusive: true}, isWhole
	case '(':
		return lexEnd{text: word[1:], exclusive: true}, true
	case '[':
		return lexEnd{text: word[1:]}, true
	}
	return lexEnd{}, false
}

// compare returns a negative number if a text is before the end, 0 if equal, else a positive one.
func (e lexEnd) compare(text string) int {
	if e.infinite != 0 {
		return -e.infinite
	}
	return strings.Compare(text, e.text)
}

func (r LexRange) aboveMin(m Scored) bool {
	at := r.min.compare(m.Member)
	return at > 0 || at == 0 && !r.min.exclusive
}

func (r LexRange) belowMax(m Scored) bool {
	at := r.max.compare(m.Member)
	return at < 0 || at == 0 && !r.max.exclusive
}

// Range is a range of scores or of members.
type Range interface {
	aboveMin(m Scored) bool
	belowMax(m Scored) bool
}

// reaches reports whether the last member is not before a range, and the first member not after it.
func reaches(all []Scored, r Range) bool {
	return len(all) > 0 && r.aboveMin(all[len(all)-1]) && r.belowMax(all[0])
}

// In returns the members in a range: the members with indices from to to-1. If scores differ,
// members are not in lexicographic order. For a range of members In then returns the first member
// that is not before the range, and all members after it up to the next one that is after the
// range. Redis does the same.
func (s *SortedSet) In(r Range) (from, to int) {
	all := s.Members()
	if !reaches(all, r) {
		return 0, 0
	}
	for from < len(all) && !r.aboveMin(all[from]) {
		from++
	}
	for to = from; to < len(all) && r.belowMax(all[to]); to++ {
	}
	return from, to
}

// InReverse does the same as In, but searches from the end.
func (s *SortedSet) InReverse(r Range) (from, to int) {
	all := s.Members()
	if !reaches(all, r) {
		return 0, 0
	}
	to = len(all)
	for to > 0 && !r.belowMax(all[to-1]) {
		to--
	}
	for from = to; from > 0 && r.aboveMin(all[from-1]); from-- {
	}
	return from, to
}
