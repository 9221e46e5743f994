package keys

import (
	"iter"
	"slices"
	"strconv"

	"redlock-proxy/commands/catalog/syntax"
)

// Rule defines which words of a command are keys. It is immutable.
type Rule struct {
	Span           // as in COMMAND; if countIndex is set, First is a key before the counted keys
	countIndex int // the index of the word with the number of keys that follow it; 0 if none
	// subcommands holds the subcommands with a key; nil if the key does not depend on a subcommand.
	subcommands []string
	// find returns the places of the keys, given all words. It is nil if a simpler rule describes
	// them.
	find func(words [][]byte) Places
}

// Span covers the words from First to Last, in steps of Step. A negative Last counts from the end.
// The zero value is empty.
type Span struct{ First, Last, Step int }

// Places holds the indexes of a command's keys among its words.
type Places [3]Span

// InSpan returns the rule of a command with keys at fixed places.
func InSpan(first, last, step int) *Rule { return &Rule{Span: Span{first, last, step}} }

// OfSubcommands returns the rule of a command whose key is the word after the subcommand. Only
// these subcommands have a key. Their names are in lower case.
func OfSubcommands(names ...string) *Rule { return &Rule{Span: SpanOfOne(2), subcommands: names} }

// CountedKeys returns the rule of a command whose word at index is the number of its keys. The keys
// follow that word, each step words after the previous one.
func CountedKeys(index, step int) *Rule { return &Rule{countIndex: index, Span: Span{Step: step}} }

// CountedKeysAfterFirst is like CountedKeys, for a command whose first argument is also a key.
func CountedKeysAfterFirst(index int) *Rule {
	return &Rule{countIndex: index, Span: Span{First: 1, Step: 1}}
}

// AnyWord treats every word of an unknown command as a key. The proxy forwards such a command to
// the upstream, unless one of its words is a lock key.
var AnyWord = InSpan(1, -1, 1)

// FixedSpan returns the places of the keys. ok is false if the places depend on the words.
func (r *Rule) FixedSpan() (at Span, ok bool) {
	return r.Span, r.find == nil && r.countIndex == 0 && r.subcommands == nil
}

// DeterminesKeys reports whether the word with this index is the number of keys, or the subcommand,
// and so determines the places of the keys.
func (r *Rule) DeterminesKeys(index int) bool {
	return r.countIndex > 0 && index == r.countIndex || r.subcommands != nil && index == 1
}

// IsFirstOnly reports whether the first argument is the only key.
func (r *Rule) IsFirstOnly() bool { return r.Span == Span{1, 1, 1} }

// Places returns the places of the keys of a command with total words. words holds all of them,
// or only the first. known is false if the given words do not determine the places.
func (r *Rule) Places(words [][]byte, total int) (places Places, known bool) {
	switch {
	case r.find != nil:
		if len(words) < total {
			return Places{}, false
		}
		return r.find(words), true
	case r.countIndex > 0:
		return r.countedPlaces(words, total)
	case r.subcommands != nil && len(words) < 2:
		return Places{}, total < 2
	case r.subcommands != nil && !slices.Contains(r.subcommands, syntax.LowerCString(words[1])):
		return Places{}, true
	}
	return Places{r.LimitTo(total)}, true
}

// LimitTo returns the span with Last counted from the beginning, limited to the words.
func (s Span) LimitTo(total int) Span {
	if s.Last < 0 {
		s.Last += total
	}
	s.Last = min(s.Last, total-1)
	return s
}

// countedPlaces returns the places of counted keys. It limits the count to the number of words. A
// command with a larger count fails in any case.
func (r *Rule) countedPlaces(words [][]byte, total int) (Places, bool) {
	if len(words) <= r.countIndex {
		return Places{}, len(words) == total
	}
	var places Places
	if r.Span.First > 0 {
		places[1] = Span{r.Span.First, r.Span.First, 1}
	}
	// Old versions of Redis accept +1 and 01.
	n, err := strconv.ParseInt(string(words[r.countIndex]), 10, 64)
	if err == nil && n > 0 {
		first := r.countIndex + 1
		last := first + int(min(n-1, int64(total)))*r.Span.Step
		places[0] = Span{first, min(last, total-1), r.Span.Step}
	}
	return places, true
}

// IsDetermined reports whether the known words determine the keys. Unknown words are nil.
func (r *Rule) IsDetermined(words [][]byte) bool {
	switch {
	case r.find != nil:
		return false
	case r.countIndex > 0:
		return len(words) > r.countIndex && words[r.countIndex] != nil
	case r.subcommands != nil:
		return len(words) > 1 && words[1] != nil
	}
	return true
}

// All returns the indexes of the keys.
func (p Places) All() iter.Seq[int] {
	return func(yield func(int) bool) {
		for _, s := range p {
			for i := s.First; s.Step > 0 && i <= s.Last; i += s.Step {
				if !yield(i) {
					return
				}
			}
		}
	}
}

// Has reports whether the word with this index is a key.
func (p Places) Has(index int) bool {
	for _, s := range p {
		if s.Step > 0 && index >= s.First && index <= s.Last && (index-s.First)%s.Step == 0 {
			return true
		}
	}
	return false
}

// Last returns the greatest index of a key, or -1.
func (p Places) Last() int {
	last := -1
	for _, s := range p {
		if s.Step > 0 && s.Last >= s.First {
			last = max(last, s.Last-(s.Last-s.First)%s.Step)
		}
	}
	return last
}

// SpanOfOne returns the place of a single key.
func SpanOfOne(index int) Span { return Span{index, index, 1} }
