package keyspace

import (
	"math"
	"strconv"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/lockkeys/keyspace/contents"
)

// stringCommands are the commands on strings.
func stringCommands() []entry {
	return []entry{
		{"get", call.get, "1.0.0", "Returns the value that a majority holds under a lock key."},
		{"strlen", call.strlen, "2.2.0", "Returns the length of the value of a lock key."},
		{"getrange", call.getRange, "2.4.0", "Returns a part of the value of a lock key."},
		{"substr", call.getRange, "1.0.0", "Returns a part of the value of a lock key."},
		{"mget", call.mget, "1.0.0", "Returns the values of lock keys."},
		{"set", call.set, "1.0.0", "Sets a lock key; with NX takes it if nobody holds it."},
		{"setnx", call.setnx, "1.0.0", "Takes a lock key if nobody holds it."},
		{"setex", call.setex, "2.0.0", "Sets a lock key for a time in seconds, whoever holds it."},
		{"psetex", call.setex, "2.6.0", "Sets a lock key for a time in milliseconds, whoever holds it."},
		{"getset", call.getset, "1.0.0", "Sets a lock key and returns the value that it had."},
		{"getdel", call.getdel, "6.2.0", "Returns the value of a lock key and removes it."},
		{"getex", call.getex, "6.2.0", "Returns the value of a lock key and sets its time."},
		{"mset", call.mset, "1.0.1", "Sets lock keys, whoever holds them."},
		{"msetnx", call.mset, "1.0.1", "Takes lock keys if none of them is held."},
		{"msetex", call.msetex, "8.4.0", "Sets lock keys for a time; with NX takes them if none of them is held."},
		{"digest", call.digest, "8.4.0", "Returns the digest of the value that a majority holds under a lock key."},
		{"append", call.append, "2.0.0", "Appends a text to the value of a lock key."},
		{"setrange", call.setRange, "2.2.0", "Overwrites a part of the value of a lock key."},
		{"incr", call.incr, "1.0.0", "Adds one to the number in a lock key."},
		{"decr", call.incr, "1.0.0", "Takes one from the number in a lock key."},
		{"incrby", call.incr, "1.0.0", "Adds a number to the one in a lock key."},
		{"decrby", call.incr, "1.0.0", "Takes a number from the one in a lock key."},
		{"incrbyfloat", call.incrByFloat, "2.6.0", "Adds a fraction to the number in a lock key."},
		{"delex", call.delex, "8.4.0", "Removes a lock key if it holds, or does not hold, a value."},
		{"delifeq", call.delifeq, "9.0.0", "Removes a lock key if it holds a value."},
	}
}

// maxValue bounds a value that grows, in bytes. A lock's is far below; Redis' own
// limit is not for what a proxy keeps in its memory.
const maxValue = 1 << 20

const errTooLong = "ERR string exceeds maximum allowed size (proto-max-bulk-len)"

func (c call) get() Reply {
	return got(c.ask(c.words[1]))
}

func (c call) strlen() Reply {
	return Number(int64(len(c.ask(c.words[1]).text())))
}

func (c call) mget() Reply {
	elems := make([]Reply, len(c.words)-1)
	for i, key := range c.words[1:] {
		if sl := c.ask(key); sl.present {
			if content, err := sl.look(); err == nil && content.Kind() == contents.TextKind {
				elems[i] = got(sl)
			}
		}
	}
	return List(elems...)
}

// getRange is GETRANGE and SUBSTR key start end.
func (c call) getRange() Reply {
	start, end := integer(c.words[2]), integer(c.words[3])
	return Text(part(c.ask(c.words[1]).text(), start, end))
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

func (c call) append() Reply {
	sl := c.ask(c.words[1])
	text := sl.text()
	require(!sl.present || len(text)+len(c.words[2]) <= maxValue, errTooLong)
	text += c.words[2]
	sl.replace(contents.Text(text))
	return Number(int64(len(text)))
}

// setRange is SETRANGE key offset value.
func (c call) setRange() Reply {
	offset := integer(c.words[2])
	require(offset >= 0, "ERR offset is out of range")
	sl, value := c.ask(c.words[1]), c.words[3]
	before := sl.text()
	if value == "" {
		return Number(int64(len(before)))
	}
	require(offset <= maxValue-min(maxValue, int64(len(value))), errTooLong)
	end := int(offset) + len(value)
	text := make([]byte, max(len(before), end))
	copy(text, before)
	copy(text[offset:], value)
	sl.replace(contents.Text(text))
	return Number(int64(len(text)))
}

// incr is INCR and DECR key, INCRBY and DECRBY key amount.
func (c call) incr() Reply {
	by := int64(1)
	if len(c.words) == 3 {
		by = integer(c.words[2])
	}
	if c.name == "decr" || c.name == "decrby" {
		require(by != math.MinInt64, "ERR decrement would overflow")
		by = -by
	}
	sl, n := c.ask(c.words[1]), int64(0)
	if sl.present {
		n = integer(sl.text())
	}
	n = plus(n, by)
	sl.replace(contents.Text(strconv.FormatInt(n, 10)))
	return Number(n)
}

// incrByFloat is INCRBYFLOAT key amount.
func (c call) incrByFloat() Reply {
	sl, n := c.ask(c.words[1]), contents.LongOf(0)
	ok := true
	if sl.present {
		n, ok = contents.ParseLong(sl.text())
	}
	by, isNumber := contents.ParseLong(c.words[2])
	require(ok && isNumber, errNotFloat)
	sum, ok := n.Add(by)
	require(ok, errNotFinite)
	sl.replace(contents.Text(sum.String()))
	return Text(sum.String())
}

// plus is a sum, unless it overflows.
func plus(n, by int64) int64 {
	require((n+by > n) == (by > 0), "ERR increment or decrement would overflow")
	return n + by
}

func (c call) getdel() Reply {
	sl := c.ask(c.words[1])
	reply := got(sl)
	sl.remove()
	return reply
}

// delex is DELEX key [IFEQ value | IFNE value | IFDEQ digest | IFDNE digest].
func (c call) delex() Reply {
	switch {
	case len(c.words) == 2:
		return c.del()
	case len(c.words) != 4:
		return wrongArity(c.name)
	}
	is, ok := parseComparison(c.words[2:])
	require(ok, syntax.ErrSyntax)
	is.check()
	return c.removeIf(is)
}

func (c call) delifeq() Reply { return c.removeIf(comparison{like: c.words[2]}) }

// removeIf removes the key if it is present, and the comparison holds.
func (c call) removeIf(is comparison) Reply {
	sl := c.ask(c.words[1])
	if !sl.present || !is.holds(sl.text(), true) {
		return Number(0)
	}
	sl.remove()
	return Number(1)
}
