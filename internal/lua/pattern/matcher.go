package pattern

import (
	"redlock-proxy/internal/lua/clib"
	"redlock-proxy/internal/lua/meter"
)

// Matcher matches a Lua pattern, by backtracking as C Lua does.
type Matcher struct {
	meter  *meter.Meter
	failer Failer
	// Text is the searched text.
	Text    string
	pattern string
	depth   int
	spans   []span
}

// span is the part of the text that a capture matched. length may also be openSpan or positionSpan.
type span struct{ start, length int }

const (
	openSpan     = -1
	positionSpan = -2
)

// The limits of a pattern. C Lua does not limit the depth, except by its stack.
const (
	maxSpans        = 32
	maxPatternDepth = 20000
)

// Failer raises Lua errors.
type Failer interface {
	// Fail raises an error. It does not return.
	Fail(format string, args ...any) []any
}

// New returns a matcher of a pattern in a text. An invalid pattern raises an error when matching
// reaches the invalid part.
func New(m *meter.Meter, f Failer, text, pattern string) *Matcher {
	m.ChargeWork(len(pattern))
	return &Matcher{meter: m, failer: f, Text: text, pattern: clib.CutAtZero(pattern)}
}

// TrimAnchor removes a ^ from the start of the pattern, and reports whether there was one.
func (m *Matcher) TrimAnchor() bool {
	if m.pattern == "" || m.pattern[0] != '^' {
		return false
	}
	m.pattern = m.pattern[1:]
	return true
}

// matchWork is the cost of starting a match at an index, in bytes processed.
const matchWork = 8

// Match matches the whole pattern at index s of the text, and returns the end of the match.
func (m *Matcher) Match(s int) (end int, ok bool) {
	m.meter.ChargeWork(matchWork) // the only charge for an empty pattern
	m.spans = m.spans[:0]
	end = m.match(s, 0)
	return end, end >= 0
}

// match matches the pattern from index p at index s of the text, and returns the end or -1.
func (m *Matcher) match(s, p int) int {
	if m.depth++; m.depth > maxPatternDepth {
		m.failer.Fail("pattern too complex")
	}
	defer func() { m.depth-- }()
	for s >= 0 && p < len(m.pattern) {
		m.meter.ChargeWork(meter.Step)
		switch c := m.pattern[p]; {
		case c == '(':
			if p+1 < len(m.pattern) && m.pattern[p+1] == ')' {
				return m.openCapture(s, p+2, positionSpan)
			}
			return m.openCapture(s, p+1, openSpan)
		case c == ')':
			return m.closeCapture(s, p+1)
		case c == '$' && p+1 == len(m.pattern):
			if s < len(m.Text) {
				return -1
			}
			return s
		}
		if after, next, ok := m.matchSpecial(s, p); ok {
			s, p = after, next
			continue
		}
		end := m.classEnd(p)
		if end < len(m.pattern) {
			switch m.pattern[end] {
			case '?':
				if m.matchSingle(s, p, end) {
					if matchEnd := m.match(s+1, end+1); matchEnd >= 0 {
						return matchEnd
					}
				}
				p = end + 1
				continue
			case '*':
				return m.matchLongest(s, p, end)
			case '+':
				if !m.matchSingle(s, p, end) {
					return -1
				}
				return m.matchLongest(s+1, p, end)
			case '-':
				return m.matchShortest(s, p, end)
			}
		}
		if !m.matchSingle(s, p, end) {
			return -1
		}
		s, p = s+1, end
	}
	return s
}

// matchSpecial matches %b, %f and %1 to %9. It returns the next index in the text, or -1 if the
// item does not match, and the next index in the pattern. ok is false for other items.
func (m *Matcher) matchSpecial(s, p int) (textIndex, patternIndex int, ok bool) {
	if m.pattern[p] != '%' || p+1 == len(m.pattern) {
		return 0, 0, false
	}
	switch c := m.pattern[p+1]; {
	case c == 'b':
		return m.matchBalanced(s, p+2), p + 4, true
	case c == 'f':
		if patternIndex = m.matchFrontier(s, p+2); patternIndex < 0 {
			return -1, 0, true
		}
		return s, patternIndex, true
	case clib.IsDigit(c):
		return m.matchBackReference(s, c), p + 2, true
	}
	return 0, 0, false
}

// openCapture begins a capture.
func (m *Matcher) openCapture(s, p, kind int) int {
	if len(m.spans) >= maxSpans {
		m.failer.Fail("too many captures")
	}
	n := len(m.spans)
	m.spans = append(m.spans, span{s, kind})
	matchEnd := m.match(s, p)
	if matchEnd < 0 {
		m.spans = m.spans[:n]
	}
	return matchEnd
}

// closeCapture ends the innermost open capture.
func (m *Matcher) closeCapture(s, p int) int {
	n := len(m.spans) - 1
	for n >= 0 && m.spans[n].length != openSpan {
		n--
	}
	if n < 0 {
		m.failer.Fail("invalid pattern capture")
	}
	m.spans[n].length = s - m.spans[n].start
	matchEnd := m.match(s, p)
	if matchEnd < 0 {
		m.spans[n].length = openSpan
	}
	return matchEnd
}

// matchBackReference matches the same text as an earlier capture.
func (m *Matcher) matchBackReference(s int, digit byte) int {
	n := int(digit) - '1'
	if n < 0 || n >= len(m.spans) || m.spans[n].length == openSpan {
		m.failer.Fail("invalid capture index")
	}
	c := m.spans[n]
	length := c.length
	if length < 0 { // a position capture; C Lua treats its length as huge
		return -1
	}
	m.meter.ChargeWork(length)
	if len(m.Text)-s >= length && m.Text[c.start:c.start+length] == m.Text[s:s+length] {
		return s + length
	}
	return -1
}

// matchBalanced matches from an opening character to its closing character.
func (m *Matcher) matchBalanced(s, p int) int {
	if p+1 >= len(m.pattern) {
		m.failer.Fail("unbalanced pattern")
	}
	if s >= len(m.Text) || m.Text[s] != m.pattern[p] {
		return -1
	}
	m.meter.ChargeWork(len(m.Text) - s)
	for level, i := 1, s+1; i < len(m.Text); i++ {
		switch m.Text[i] {
		case m.pattern[p+1]:
			if level--; level == 0 {
				return i + 1
			}
		case m.pattern[p]:
			level++
		}
	}
	return -1
}

// matchFrontier matches between a character outside a set and a character in it. It returns the
// next index in the pattern, or -1.
func (m *Matcher) matchFrontier(s, p int) int {
	if p >= len(m.pattern) || m.pattern[p] != '[' {
		m.failer.Fail("missing '[' after '%%f' in pattern")
	}
	end := m.classEnd(p)
	var previous, current byte
	if s > 0 {
		previous = m.Text[s-1]
	}
	if s < len(m.Text) {
		current = m.Text[s]
	}
	if m.inSet(previous, p, end-1) || !m.inSet(current, p, end-1) {
		return -1
	}
	return end
}

// matchLongest matches a class as often as possible, and then the rest of the pattern.
func (m *Matcher) matchLongest(s, p, end int) int {
	n := 0
	for m.matchSingle(s+n, p, end) {
		m.meter.ChargeWork(1)
		n++
	}
	for ; n >= 0; n-- {
		if matchEnd := m.match(s+n, end+1); matchEnd >= 0 {
			return matchEnd
		}
	}
	return -1
}

// matchShortest matches a class as few times as possible, and then the rest of the pattern.
func (m *Matcher) matchShortest(s, p, end int) int {
	for {
		if matchEnd := m.match(s, end+1); matchEnd >= 0 {
			return matchEnd
		}
		if !m.matchSingle(s, p, end) {
			return -1
		}
		s++
	}
}

// classEnd returns the end of the class at p.
func (m *Matcher) classEnd(p int) int {
	c := m.pattern[p]
	begin := p
	p++
	switch c {
	case '%':
		if p == len(m.pattern) {
			m.failer.Fail("malformed pattern (ends with '%%')")
		}
		return p + 1
	case '[':
		if p < len(m.pattern) && m.pattern[p] == '^' {
			p++
		}
		for first := true; first || p >= len(m.pattern) || m.pattern[p] != ']'; first = false {
			if p >= len(m.pattern) {
				m.failer.Fail("malformed pattern (missing ']')")
			}
			if m.pattern[p] == '%' && p+1 < len(m.pattern) {
				p++
			}
			p++
		}
		m.meter.ChargeWork(p - begin)
		return p + 1
	}
	return p
}

// matchSingle matches one character with the class from p to end.
func (m *Matcher) matchSingle(s, p, end int) bool {
	if s >= len(m.Text) {
		return false
	}
	c := m.Text[s]
	switch m.pattern[p] {
	case '.':
		return true
	case '%':
		return inClass(c, m.pattern[p+1])
	case '[':
		return m.inSet(c, p, end-1)
	}
	return m.pattern[p] == c
}

// inSet reports whether c is in the set from the [ at p to the ] at end.
func (m *Matcher) inSet(c byte, p, end int) bool {
	m.meter.ChargeWork(end - p)
	in := true
	if m.pattern[p+1] == '^' {
		in = false
		p++
	}
	for p++; p < end; p++ {
		switch {
		case m.pattern[p] == '%':
			p++
			if inClass(c, m.pattern[p]) {
				return in
			}
		case p+2 < end && m.pattern[p+1] == '-':
			if m.pattern[p] <= c && c <= m.pattern[p+2] {
				return in
			}
			p += 2
		case m.pattern[p] == c:
			return in
		}
	}
	return !in
}

// inClass reports whether c is in the class of a letter. An upper-case letter means the complement.
// Any other character matches itself.
func inClass(c, class byte) bool {
	var in bool
	switch clib.ToLower(class) {
	case 'a':
		in = clib.IsLetter(c)
	case 'c':
		in = c < 32 || c == 127
	case 'd':
		in = clib.IsDigit(c)
	case 'l':
		in = c >= 'a' && c <= 'z'
	case 'p':
		in = c > 32 && c < 127 && !clib.IsAlnum(c)
	case 's':
		in = clib.IsSpace(c)
	case 'u':
		in = c >= 'A' && c <= 'Z'
	case 'w':
		in = clib.IsAlnum(c)
	case 'x':
		in = clib.IsHexDigit(c)
	case 'z':
		in = c == 0
	default:
		return class == c
	}
	return in == (class == clib.ToLower(class))
}

// Capture returns the text or position of the n-th capture, counted from 0, or the whole match if
// the pattern has no captures.
func (m *Matcher) Capture(n, from, to int) any {
	if n >= len(m.spans) {
		if n > 0 {
			m.failer.Fail("invalid capture index")
		}
		return m.meter.ChargeText(m.Text[from:to])
	}
	switch c := m.spans[n]; c.length {
	case openSpan:
		m.failer.Fail("unfinished capture")
	case positionSpan:
		return float64(c.start + 1)
	default:
		return m.meter.ChargeText(m.Text[c.start : c.start+c.length])
	}
	return nil
}

// Captures returns all captures. If the pattern has none and whole is set, it returns the whole
// match.
func (m *Matcher) Captures(from, to int, whole bool) []any {
	n := len(m.spans)
	if n == 0 && whole {
		n = 1
	}
	values := make([]any, n)
	for i := range values {
		values[i] = m.Capture(i, from, to)
	}
	return values
}
