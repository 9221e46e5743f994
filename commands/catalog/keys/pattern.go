package keys

import (
	"errors"
	"strings"
	"unsafe"

	"redlock-proxy/internal/lua/clib"
)

// ErrTooComplex reports that a pattern needs too many comparisons. Error replies show its text.
var ErrTooComplex = errors.New(
	"pattern too complex: too many ? or [] after a * for a name of this length; use a simpler pattern")

// Pattern holds a compiled glob. It matches the names that Match matches, but in linear time.
type Pattern struct {
	parts []part // separated by *
	sets  []set
}

// part holds a piece of a pattern without *. The piece is a text or, if it contains ? or [], a list
// with one matcher for each character.
type part struct {
	text     string
	matchers []uint32 // a character, anyCharacter, or firstSet plus the index of a set
}

const (
	anyCharacter = 256
	firstSet     = 257
	// maxComparisonsPerByte limits the average number of comparisons for each character of a name.
	// A pattern with at most this many matchers after each * cannot exceed the limit.
	maxComparisonsPerByte = 64
)

// set is a set of characters.
type set [4]uint64

// Compile compiles a glob.
func Compile(pattern string) *Pattern {
	p := &Pattern{}
	sets := map[string]uint32{}
	var text []byte
	var matchers []uint32
	endPart := func() {
		p.parts = append(p.parts, part{string(text), matchers})
		text, matchers = nil, nil
	}
	addMatcher := func(n uint32) {
		if matchers == nil {
			for _, c := range text {
				matchers = append(matchers, uint32(c))
			}
			text = nil
		}
		matchers = append(matchers, n)
	}
	for i := 0; i < len(pattern); {
		size := 1
		c := pattern[i]
		switch {
		case c == '*' && i > 0 && pattern[i-1] == '*' && text == nil && matchers == nil:
			// A repeated * has no effect.
		case c == '*':
			endPart()
		case c == '?':
			addMatcher(anyCharacter)
		case c == '[':
			size = setLength(pattern[i:])
			n, known := sets[pattern[i:i+size]]
			if !known {
				n = firstSet + uint32(len(p.sets))
				p.sets = append(p.sets, newSet(pattern[i:i+size]))
				sets[pattern[i:i+size]] = n
			}
			addMatcher(n)
		default:
			if c == '\\' && i+1 < len(pattern) {
				size, c = 2, pattern[i+1]
			}
			if matchers != nil {
				addMatcher(uint32(c))
			} else {
				text = append(text, c)
			}
		}
		i += size
	}
	endPart()
	return p
}

// Size returns the memory of the pattern, in bytes.
func (p *Pattern) Size() int {
	size := int(unsafe.Sizeof(*p)) + cap(p.parts)*int(unsafe.Sizeof(part{})) + cap(p.sets)*int(unsafe.Sizeof(set{}))
	for _, part := range p.parts {
		size += len(part.text) + 4*cap(part.matchers)
	}
	return size
}

// Match reports whether the pattern matches a name. Its only error is ErrTooComplex.
func (p *Pattern) Match(name string) (bool, error) {
	first, last := p.parts[0], p.parts[len(p.parts)-1]
	if !p.hasPrefix(first, name) {
		return false, nil
	}
	name = name[first.size():]
	if len(p.parts) == 1 {
		return name == "", nil
	}
	if last.size() > len(name) || !p.hasPrefix(last, name[len(name)-last.size():]) {
		return false, nil
	}
	name = name[:len(name)-last.size()]
	budget := maxComparisonsPerByte * len(name)
	for _, middle := range p.parts[1 : len(p.parts)-1] {
		at := p.index(middle, name, &budget)
		switch {
		case budget < 0:
			return false, ErrTooComplex
		case at < 0:
			return false, nil
		}
		name = name[at+middle.size():]
	}
	return true, nil
}

func (p part) size() int { return len(p.text) + len(p.matchers) }

// index returns the first index of a part in a name, or -1. For a part with matchers, it subtracts
// the number of comparisons from budget, and stops when budget is negative.
func (p *Pattern) index(needle part, name string, budget *int) int {
	if needle.matchers == nil {
		return clib.Index(name, needle.text)
	}
	for at := 0; at+len(needle.matchers) <= len(name); at++ {
		n := p.countMatching(needle.matchers, name[at:])
		if n == len(needle.matchers) {
			return at
		}
		if *budget -= n + 1; *budget < 0 {
			return -1
		}
	}
	return -1
}

// hasPrefix reports whether a name begins with a part.
func (p *Pattern) hasPrefix(prefix part, name string) bool {
	if prefix.size() > len(name) {
		return false
	}
	return strings.HasPrefix(name, prefix.text) && p.countMatching(prefix.matchers, name) == len(prefix.matchers)
}

// countMatching returns how many of the first matchers match the beginning of a name.
func (p *Pattern) countMatching(matchers []uint32, name string) int {
	for i, matcher := range matchers {
		c := name[i]
		switch {
		case matcher == anyCharacter:
		case matcher < anyCharacter && byte(matcher) == c:
		case matcher >= firstSet && p.sets[matcher-firstSet].has(c):
		default:
			return i
		}
	}
	return len(matchers)
}

func (s set) has(c byte) bool { return s[c>>6]>>(c&63)&1 != 0 }

// setLength returns the length of the set at the start of a pattern, up to its ] or the end.
func setLength(pattern string) int {
	i := 1
	if strings.HasPrefix(pattern[i:], "^") {
		i++
	}
	for i < len(pattern) && pattern[i] != ']' {
		i += memberLength(pattern[i:])
	}
	return min(i+1, len(pattern))
}

// memberLength returns the length of the next member of a set: a character, an escaped character,
// or a range.
func memberLength(rest string) int {
	switch {
	case rest[0] == '\\' && len(rest) > 1:
		return 2
	case len(rest) > 2 && rest[1] == '-':
		return 3
	}
	return 1
}

// newSet parses a set.
func newSet(pattern string) (s set) {
	i := 1
	inverted := strings.HasPrefix(pattern[i:], "^")
	if inverted {
		i++
	}
	for i < len(pattern) && pattern[i] != ']' {
		rest := pattern[i:]
		n := memberLength(rest)
		low, high := rest[0], rest[0]
		switch n {
		case 2:
			low, high = rest[1], rest[1]
		case 3:
			low, high = min(rest[0], rest[2]), max(rest[0], rest[2])
		}
		for c := int(low); c <= int(high); c++ {
			s[c>>6] |= 1 << (c & 63)
		}
		i += n
	}
	for i := range s {
		if inverted {
			s[i] = ^s[i]
		}
	}
	return s
}
