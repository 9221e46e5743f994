package lua

import (
	"slices"
	"strings"

	"redlock-proxy/internal/lua/clib"
	"redlock-proxy/internal/lua/meter"
	"redlock-proxy/internal/lua/pattern"
)

var stringLibrary = []Entry{
	{"byte", MeteredFunc(stringByte)},
	{"char", stringChar},
	{"dump", func(c *Call) []Value { c.wantFunction(1); return c.Fail("unable to dump given function") }},
	{"find", MeteredFunc(func(c *Call) []Value { return c.search(true) })},
	{"format", stringFormat},
	{"gmatch", stringGMatch},
	{"gfind", alias("gmatch")},
	{"gsub", stringGsub},
	{"len", MeteredFunc(func(c *Call) []Value { return c.Return(float64(len(c.WantString(1)))) })},
	{"lower", func(c *Call) []Value { return c.mapBytes(clib.ToLower) }},
	{"match", MeteredFunc(func(c *Call) []Value { return c.search(false) })},
	{"rep", stringRep},
	{"reverse", stringReverse},
	{"sub", MeteredFunc(stringSub)},
	{"upper", func(c *Call) []Value { return c.mapBytes(clib.ToUpper) }},
}

// absoluteIndex returns an index that counts from the start. A negative i counts from the end.
func absoluteIndex(i, length int) int {
	if i < 0 {
		i += length + 1
	}
	return max(i, 0)
}

func stringByte(c *Call) []Value {
	s := c.WantString(1)
	from := absoluteIndex(c.OptInt(2, 1), len(s))
	to := min(absoluteIndex(c.OptInt(3, from), len(s)), len(s))
	from = max(from, 1)
	if to-from+1+c.NArgs() > maxResults {
		return c.Fail("stack overflow (string slice too long)")
	}
	c.State().Work(max(to-from, 0) * meter.Step)
	results := c.thread.results[:0]
	for i := from; i <= to; i++ {
		results = append(results, float64(s[i-1]))
	}
	c.thread.results = results
	return results
}

func stringChar(c *Call) []Value {
	text := make([]byte, c.NArgs())
	for i := range text {
		n := c.WantInt32(i + 1)
		if n < 0 || n > 255 {
			c.RaiseBadArg(i+1, "invalid value")
		}
		text[i] = byte(n)
	}
	return c.ReturnText(string(text))
}

func stringRep(c *Call) []Value {
	s := c.WantString(1)
	n := max(c.WantInt32(2), 0)
	if len(s) > 0 && n > maxLength/len(s) {
		n = maxLength / len(s) // still exceeds the limit of any run
	}
	c.State().Charge(n*len(s) + meter.StringSize)
	return c.Return(strings.Repeat(s, n))
}

// maxLength limits the length of a result of string.rep, in bytes. It exceeds the limit of any run.
const maxLength = 1 << 40

func stringReverse(c *Call) []Value {
	text := []byte(c.State().Text(c.WantString(1)))
	slices.Reverse(text)
	return c.Return(string(text))
}

func stringSub(c *Call) []Value {
	s := c.WantString(1)
	from := max(absoluteIndex(c.WantInt(2), len(s)), 1)
	to := min(absoluteIndex(c.OptInt(3, -1), len(s)), len(s))
	if from > to {
		return c.Return("")
	}
	return c.ReturnText(s[from-1 : to])
}

func (c *Call) mapBytes(f func(byte) byte) []Value {
	text := []byte(c.State().Text(c.WantString(1)))
	for i, b := range text {
		text[i] = f(b)
	}
	return c.Return(string(text))
}

// search implements find and match.
func (c *Call) search(find bool) []Value {
	s, pat := c.WantString(1), c.WantString(2)
	from := min(max(absoluteIndex(c.OptInt(3, 1), len(s))-1, 0), len(s))
	c.State().Work(len(pat))
	if find && (IsTruthy(c.Arg(4)) || !strings.ContainsAny(clib.CutAtZero(pat), "^$*+?.([%-")) {
		c.State().Work((len(s) - from + len(pat)) * clib.IndexWork)
		if i := clib.Index(s[from:], pat); i >= 0 {
			return c.Return(float64(from+i+1), float64(from+i+len(pat)))
		}
		return c.Return(nil)
	}
	m := pattern.New(&c.thread.state.meter, c, s, pat)
	anchored := m.TrimAnchor()
	for ; from <= len(s); from++ {
		to, ok := m.Match(from)
		if ok && find {
			return c.Return(append([]Value{float64(from + 1), float64(to)}, m.Captures(from, to, false)...)...)
		} else if ok {
			return c.Return(m.Captures(from, to, true)...)
		}
		if anchored {
			break
		}
	}
	return c.Return(nil)
}

func stringGMatch(c *Call) []Value {
	s, pat := c.WantString(1), c.WantString(2)
	at := 0
	return c.Return(&Builtin{address: c.State().meter.NewAddress(), run: func(c *Call) []Value {
		m := pattern.New(&c.thread.state.meter, c, s, pat)
		for ; at <= len(s); at++ {
			to, ok := m.Match(at)
			if !ok {
				continue
			}
			from := at
			if at = to; to == from {
				at++
			}
			return c.Return(m.Captures(from, to, true)...)
		}
		return nil
	}})
}

func stringGsub(c *Call) []Value {
	s, pat := c.WantString(1), c.WantString(2)
	maxCount := c.optInt32(4, len(s)+1)
	switch c.Arg(3).(type) {
	case float64, string, *Closure, *Builtin, *Table:
	default:
		c.RaiseBadArg(3, "string/function/table expected")
	}
	m := pattern.New(&c.thread.state.meter, c, s, pat)
	anchored := m.TrimAnchor()
	var b strings.Builder
	at, n := 0, 0
	for n < maxCount {
		to, ok := m.Match(at)
		if ok {
			n++
			c.replace(m, &b, at, to)
		}
		if ok && to > at {
			at = to
		} else if at < len(s) {
			b.WriteByte(s[at])
			at++
		} else {
			break
		}
		if anchored {
			break
		}
	}
	b.WriteString(s[at:])
	c.State().Charge(b.Len())
	return c.Return(b.String(), float64(n))
}

// replace appends the replacement of a match in gsub.
func (c *Call) replace(m *pattern.Matcher, b *strings.Builder, from, to int) {
	var v Value
	switch repl := c.Arg(3).(type) {
	case *Table:
		v = c.thread.index(repl, m.Capture(0, from, to), nil)
	case *Closure, *Builtin:
		v = firstValue(c.thread.callFromGo(repl, m.Captures(from, to, true)...))
	default:
		template, _ := ToString(repl)
		c.expand(m, b, template, from, to)
		return
	}
	text, ok := ToString(v)
	if !IsTruthy(v) {
		text = m.Text[from:to]
	} else if !ok {
		c.Fail("invalid replacement value (a %s)", TypeName(v))
	}
	c.State().Charge(len(text))
	b.WriteString(text)
}

// expand appends a template, and replaces its captures %0 to %9.
func (c *Call) expand(m *pattern.Matcher, b *strings.Builder, template string, from, to int) {
	c.State().Charge(len(template))
	for i := 0; i < len(template); i++ {
		if template[i] != '%' {
			b.WriteByte(template[i])
			continue
		}
		i++
		switch {
		case i == len(template):
			b.WriteByte(0) // C Lua copies the zero byte at the end of a C string
		case !clib.IsDigit(template[i]):
			b.WriteByte(template[i])
		case template[i] == '0':
			c.State().Charge(to - from)
			b.WriteString(m.Text[from:to])
		default:
			s, _ := ToString(m.Capture(int(template[i]-'1'), from, to))
			b.WriteString(s)
		}
	}
}
