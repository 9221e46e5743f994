package keyspace

import (
	"math"
	"strconv"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/keyspace/contents"
)

// maxValue bounds a value that grows, in bytes. A lock's is far below; Redis' own
// limit is not for what a proxy keeps in its memory.
const maxValue = 1 << 20

const errTooLong = "ERR string exceeds maximum allowed size (proto-max-bulk-len)"

func (c call) get() (Reply, error) {
	reply, failed := got(c.ask(c.words[1]))
	if failed != nil {
		return *failed, nil
	}
	return reply, nil
}

func (c call) strlen() (Reply, error) {
	text, failed := c.ask(c.words[1]).text()
	if failed != nil {
		return *failed, nil
	}
	return Number(int64(len(text))), nil
}

func (c call) mget() (Reply, error) {
	elems := make([]Reply, len(c.words)-1)
	for i, key := range c.words[1:] {
		elems[i], _ = got(c.ask(key)) // nil for what is no string
	}
	return List(elems...), nil
}

// getRange is GETRANGE and SUBSTR key start end.
func (c call) getRange() (Reply, error) {
	start, ok1 := syntax.Int(c.words[2])
	end, ok2 := syntax.Int(c.words[3])
	if !ok1 || !ok2 {
		return Fail(syntax.ErrNotInteger), nil
	}
	text, failed := c.ask(c.words[1]).text()
	if failed != nil {
		return *failed, nil
	}
	return Text(part(text, start, end)), nil
}

// part is what lies between two places of a text, both included; negative ones are
// counted from its end.
func part(text string, start, end int64) string {
	n := int64(len(text))
	if start < 0 && end < 0 && start > end {
		return ""
	}
	start, end = fromStart(start, n), min(fromStart(end, n), n-1)
	if start > end {
		return ""
	}
	return text[start : end+1]
}

func fromStart(place, n int64) int64 {
	if place < 0 {
		place += n
	}
	return max(0, place)
}

func (c call) append() (Reply, error) {
	sl := c.ask(c.words[1])
	text, failed := sl.text()
	switch {
	case failed != nil:
		return *failed, nil
	case sl.present && len(text)+len(c.words[2]) > maxValue:
		return Fail(errTooLong), nil
	}
	text += c.words[2]
	sl.replace(contents.Text(text))
	return Number(int64(len(text))), nil
}

// setRange is SETRANGE key offset value.
func (c call) setRange() (Reply, error) {
	offset, ok := syntax.Int(c.words[2])
	if !ok {
		return Fail(syntax.ErrNotInteger), nil
	}
	if offset < 0 {
		return Fail("ERR offset is out of range"), nil
	}
	sl, value := c.ask(c.words[1]), c.words[3]
	before, failed := sl.text()
	switch {
	case failed != nil:
		return *failed, nil
	case value == "":
		return Number(int64(len(before))), nil
	case offset > maxValue-min(maxValue, int64(len(value))):
		return Fail(errTooLong), nil
	}
	end := int(offset) + len(value)
	text := make([]byte, max(len(before), end))
	copy(text, before)
	copy(text[offset:], value)
	sl.replace(contents.Text(text))
	return Number(int64(len(text))), nil
}

// incr is INCR and DECR key, INCRBY and DECRBY key amount.
func (c call) incr() (Reply, error) {
	by := int64(1)
	if len(c.words) == 3 {
		var ok bool
		if by, ok = syntax.Int(c.words[2]); !ok {
			return Fail(syntax.ErrNotInteger), nil
		}
	}
	if c.name == "decr" || c.name == "decrby" {
		if by == math.MinInt64 {
			return Fail("ERR decrement would overflow"), nil
		}
		by = -by
	}
	sl, n := c.ask(c.words[1]), int64(0)
	text, failed := sl.text()
	if failed != nil {
		return *failed, nil
	}
	if sl.present {
		var ok bool
		if n, ok = syntax.Int(text); !ok {
			return Fail(syntax.ErrNotInteger), nil
		}
	}
	if overflows(n, by) {
		return Fail(errOverflow), nil
	}
	sl.replace(contents.Text(strconv.FormatInt(n+by, 10)))
	return Number(n + by), nil
}

// incrByFloat is INCRBYFLOAT key amount.
func (c call) incrByFloat() (Reply, error) {
	sl, n := c.ask(c.words[1]), contents.LongOf(0)
	text, failed := sl.text()
	if failed != nil {
		return *failed, nil
	}
	ok := true
	if sl.present {
		n, ok = contents.ParseLong(text)
	}
	by, isNumber := contents.ParseLong(c.words[2])
	if !ok || !isNumber {
		return Fail(errNotFloat), nil
	}
	sum, ok := n.Add(by)
	if !ok {
		return Fail(errNotFinite), nil
	}
	sl.replace(contents.Text(sum.String()))
	return Text(sum.String()), nil
}

const errOverflow = "ERR increment or decrement would overflow"

func overflows(n, by int64) bool {
	return by < 0 && n < math.MinInt64-by || by > 0 && n > math.MaxInt64-by
}

func (c call) getdel() (Reply, error) {
	sl := c.ask(c.words[1])
	reply, failed := got(sl)
	if failed != nil {
		return *failed, nil
	}
	sl.remove()
	return reply, nil
}

// delex is DELEX key [IFEQ value | IFNE value | IFDEQ digest | IFDNE digest].
func (c call) delex() (Reply, error) {
	switch {
	case len(c.words) == 2:
		return c.del()
	case len(c.words) != 4:
		return wrongArity(c.name), nil
	}
	is, ok := parseComparison(c.words[2:])
	if !ok {
		return Fail(syntax.ErrSyntax), nil
	}
	if failed := is.refused(); failed != nil {
		return *failed, nil
	}
	return c.removeIf(is), nil
}

func (c call) delifeq() (Reply, error) { return c.removeIf(comparison{like: c.words[2]}), nil }

// removeIf removes the key if it is present, and the comparison holds.
func (c call) removeIf(is comparison) Reply {
	sl := c.ask(c.words[1])
	text, failed := sl.text()
	switch {
	case failed != nil:
		return *failed
	case !sl.present || !is.holds(text, true):
		return Number(0)
	}
	sl.remove()
	return Number(1)
}
