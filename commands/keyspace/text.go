package keyspace

import (
	"math"
	"strconv"

	"redlock-proxy/commands/syntax"
)

// maxValue bounds a value that grows, in bytes. A lock's is far below; Redis' own
// limit is not for what a proxy keeps in its memory.
const maxValue = 1 << 20

func (c call) get() (Reply, error) { return held(c.ask(c.words[1])), nil }

func (c call) strlen() (Reply, error) {
	sl := c.ask(c.words[1])
	if !sl.present {
		return Number(0), nil
	}
	return Number(int64(len(sl.value))), nil
}

func (c call) mget() (Reply, error) {
	elems := make([]Reply, len(c.words)-1)
	for i, key := range c.words[1:] {
		elems[i] = held(c.ask(key))
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
	sl := c.ask(c.words[1])
	if !sl.present {
		return Text(""), nil
	}
	return Text(part(sl.value, start, end)), nil
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
	if sl.present && len(sl.value)+len(c.words[2]) > maxValue {
		return Fail(errTooLong), nil
	}
	sl.replace(sl.value + c.words[2])
	return Number(int64(len(sl.value))), nil
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
	if value == "" {
		return Number(int64(len(sl.value))), nil
	}
	if offset > maxValue-min(maxValue, int64(len(value))) {
		return Fail(errTooLong), nil
	}
	end := int(offset) + len(value)
	text := make([]byte, max(len(sl.value), end))
	copy(text, sl.value)
	copy(text[offset:], value)
	sl.replace(string(text))
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
	if sl.present {
		var ok bool
		if n, ok = syntax.Int(sl.value); !ok {
			return Fail(syntax.ErrNotInteger), nil
		}
	}
	if by < 0 && n < math.MinInt64-by || by > 0 && n > math.MaxInt64-by {
		return Fail("ERR increment or decrement would overflow"), nil
	}
	sl.replace(strconv.FormatInt(n+by, 10))
	return Number(n + by), nil
}
