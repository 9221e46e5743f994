package lua

// matcher matches a pattern of Lua, by backtracking as C Lua does.
type matcher struct {
	call     *Call
	text     string
	pattern  string
	depth    int
	captures []span
}

// span is what a capture matched: a length, or one of the two below.
type span struct{ start, length int }

const (
	openSpan     = -1
	positionSpan = -2
)

// What a pattern may have. C Lua does not bound the depth, but its stack does.
const (
	maxSpans        = 32
	maxPatternDepth = 20000
)

func newMatcher(c *Call, text, pattern string) *matcher {
	return &matcher{call: c, text: text, pattern: cString(pattern)}
}

// anchor takes a ^ from the pattern's start.
func (m *matcher) anchor() bool {
	if m.pattern == "" || m.pattern[0] != '^' {
		return false
	}
	m.pattern = m.pattern[1:]
	return true
}

// matchFrom matches the whole pattern at a place, and returns the end.
func (m *matcher) matchFrom(s int) (end int, ok bool) {
	m.captures = m.captures[:0]
	end = m.match(s, 0)
	return end, end >= 0
}

// match matches the pattern from p on at s, and returns the end or -1.
func (m *matcher) match(s, p int) int {
	if m.depth++; m.depth > maxPatternDepth {
		m.call.Fail("pattern too complex")
	}
	defer func() { m.depth-- }()
	for s >= 0 && p < len(m.pattern) {
		m.call.thread.state.meter.step()
		switch c := m.pattern[p]; {
		case c == '(':
			if p+1 < len(m.pattern) && m.pattern[p+1] == ')' {
				return m.open(s, p+2, positionSpan)
			}
			return m.open(s, p+1, openSpan)
		case c == ')':
			return m.close(s, p+1)
		case c == '$' && p+1 == len(m.pattern):
			if s < len(m.text) {
				return -1
			}
			return s
		}
		if after, next, ok := m.special(s, p); ok {
			s, p = after, next
			continue
		}
		end := m.classEnd(p)
		if end < len(m.pattern) {
			switch m.pattern[end] {
			case '?':
				if m.single(s, p, end) {
					if found := m.match(s+1, end+1); found >= 0 {
						return found
					}
				}
				p = end + 1
				continue
			case '*':
				return m.longest(s, p, end)
			case '+':
				if !m.single(s, p, end) {
					return -1
				}
				return m.longest(s+1, p, end)
			case '-':
				return m.shortest(s, p, end)
			}
		}
		if !m.single(s, p, end) {
			return -1
		}
		s, p = s+1, end
	}
	return s
}

// special matches %b, %f and %1 to %9, and returns the places in the text, -1 if it does not match, and in the pattern behind it.
func (m *matcher) special(s, p int) (after, next int, ok bool) {
	if m.pattern[p] != '%' || p+1 == len(m.pattern) {
		return 0, 0, false
	}
	switch c := m.pattern[p+1]; {
	case c == 'b':
		return m.balanced(s, p+2), p + 4, true
	case c == 'f':
		if next = m.frontier(s, p+2); next < 0 {
			return -1, 0, true
		}
		return s, next, true
	case isDigit(c):
		return m.back(s, c), p + 2, true
	}
	return 0, 0, false
}

func (m *matcher) open(s, p, kind int) int {
	if len(m.captures) >= maxSpans {
		m.call.Fail("too many captures")
	}
	n := len(m.captures)
	m.captures = append(m.captures, span{s, kind})
	found := m.match(s, p)
	if found < 0 {
		m.captures = m.captures[:n]
	}
	return found
}

func (m *matcher) close(s, p int) int {
	n := len(m.captures) - 1
	for n >= 0 && m.captures[n].length != openSpan {
		n--
	}
	if n < 0 {
		m.call.Fail("invalid pattern capture")
	}
	m.captures[n].length = s - m.captures[n].start
	found := m.match(s, p)
	if found < 0 {
		m.captures[n].length = openSpan
	}
	return found
}

// back matches what a capture matched.
func (m *matcher) back(s int, digit byte) int {
	n := int(digit) - '1'
	if n < 0 || n >= len(m.captures) || m.captures[n].length == openSpan {
		m.call.Fail("invalid capture index")
	}
	c := m.captures[n]
	length := c.length
	if length < 0 { // of a position; C Lua compares it as a huge length
		return -1
	}
	m.call.thread.state.meter.work(length)
	if len(m.text)-s >= length && m.text[c.start:c.start+length] == m.text[s:s+length] {
		return s + length
	}
	return -1
}

// balanced matches from an opening to its closing character.
func (m *matcher) balanced(s, p int) int {
	if p+1 >= len(m.pattern) {
		m.call.Fail("unbalanced pattern")
	}
	if s >= len(m.text) || m.text[s] != m.pattern[p] {
		return -1
	}
	m.call.thread.state.meter.work(len(m.text) - s)
	for level, i := 1, s+1; i < len(m.text); i++ {
		switch m.text[i] {
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

// frontier matches between a character that is not of a set and one that is, and returns where the pattern goes on.
func (m *matcher) frontier(s, p int) int {
	if p >= len(m.pattern) || m.pattern[p] != '[' {
		m.call.Fail("missing '[' after '%%f' in pattern")
	}
	end := m.classEnd(p)
	var before, here byte
	if s > 0 {
		before = m.text[s-1]
	}
	if s < len(m.text) {
		here = m.text[s]
	}
	if m.inSet(before, p, end-1) || !m.inSet(here, p, end-1) {
		return -1
	}
	return end
}

func (m *matcher) longest(s, p, end int) int {
	n := 0
	for m.single(s+n, p, end) {
		n++
	}
	m.call.thread.state.meter.work(n)
	for ; n >= 0; n-- {
		if found := m.match(s+n, end+1); found >= 0 {
			return found
		}
	}
	return -1
}

func (m *matcher) shortest(s, p, end int) int {
	for {
		if found := m.match(s, end+1); found >= 0 {
			return found
		}
		if !m.single(s, p, end) {
			return -1
		}
		s++
	}
}

// classEnd is where the class at p ends.
func (m *matcher) classEnd(p int) int {
	c := m.pattern[p]
	p++
	switch c {
	case '%':
		if p == len(m.pattern) {
			m.call.Fail("malformed pattern (ends with '%%')")
		}
		return p + 1
	case '[':
		if p < len(m.pattern) && m.pattern[p] == '^' {
			p++
		}
		for first := true; first || p >= len(m.pattern) || m.pattern[p] != ']'; first = false {
			if p >= len(m.pattern) {
				m.call.Fail("malformed pattern (missing ']')")
			}
			if m.pattern[p] == '%' && p+1 < len(m.pattern) {
				p++
			}
			p++
		}
		return p + 1
	}
	return p
}

// single matches one character with the class from p to end.
func (m *matcher) single(s, p, end int) bool {
	if s >= len(m.text) {
		return false
	}
	c := m.text[s]
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

// inSet tells whether c is in the set from the [ at p to the ] at end.
func (m *matcher) inSet(c byte, p, end int) bool {
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

// inClass tells whether c is in the class of a letter; upper case means all others. Other characters stand for themselves.
func inClass(c, class byte) bool {
	var in bool
	switch toLower(class) {
	case 'a':
		in = isLetter(c)
	case 'c':
		in = c < 32 || c == 127
	case 'd':
		in = isDigit(c)
	case 'l':
		in = c >= 'a' && c <= 'z'
	case 'p':
		in = c > 32 && c < 127 && !isAlnum(c)
	case 's':
		in = isBlank(c)
	case 'u':
		in = c >= 'A' && c <= 'Z'
	case 'w':
		in = isAlnum(c)
	case 'x':
		in = isHexDigit(c)
	case 'z':
		in = c == 0
	default:
		return class == c
	}
	return in == (class == toLower(class))
}

// captureValue is what the n-th capture matched, or the whole match if there are none.
func (m *matcher) captureValue(n, from, to int) Value {
	if n >= len(m.captures) {
		if n > 0 {
			m.call.Fail("invalid capture index")
		}
		return m.call.State().Text(m.text[from:to])
	}
	switch c := m.captures[n]; c.length {
	case openSpan:
		m.call.Fail("unfinished capture")
	case positionSpan:
		return float64(c.start + 1)
	default:
		return m.call.State().Text(m.text[c.start : c.start+c.length])
	}
	return nil
}

// captureValues are all captures; without any the whole match, if that is wanted.
func (m *matcher) captureValues(from, to int, whole bool) []Value {
	n := len(m.captures)
	if n == 0 && whole {
		n = 1
	}
	values := make([]Value, n)
	for i := range values {
		values[i] = m.captureValue(i, from, to)
	}
	return values
}
