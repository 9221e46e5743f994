package keyspace

import (
	"math"
	"strconv"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/lockkeys/keyspace/contents"
)

// stringCommands returns the commands on strings.
func stringCommands() []tableEntry {
	return []tableEntry{
		{"get", call.get, "1.0.0", "Returns the value that a majority holds under a lock key."},
		{"strlen", call.strlen, "2.2.0", "Returns the length of the value of a lock key."},
		{"getrange", call.getRange, "2.4.0", "Returns a part of the value of a lock key."},
		{"substr", call.getRange, "1.0.0", "Returns a part of the value of a lock key."},
		{"mget", call.mget, "1.0.0", "Returns the values of lock keys."},
		{"set", call.set, "1.0.0", "Sets a lock key; with NX takes it if it is free."},
		{"setnx", call.setnx, "1.0.0", "Takes a lock key if it is free."},
		{"setex", call.setex, "2.0.0", "Sets a lock key with a TTL in seconds, no matter which client holds it."},
		{"psetex", call.setex, "2.6.0", "Sets a lock key with a TTL in milliseconds, no matter which client holds it."},
		{"getset", call.getset, "1.0.0", "Sets a lock key and returns the value that it had."},
		{"getdel", call.getdel, "6.2.0", "Returns the value of a lock key and removes it."},
		{"getex", call.getex, "6.2.0", "Returns the value of a lock key and sets its expiry."},
		{"mset", call.mset, "1.0.1", "Sets lock keys, no matter which client holds them."},
		{"msetnx", call.mset, "1.0.1", "Takes lock keys if all of them are free."},
		{"msetex", call.msetex, "8.4.0", "Sets lock keys with a TTL; with NX takes them if all of them are free."},
		{"digest", call.digest, "8.4.0", "Returns the digest of the value that a majority holds under a lock key."},
		{"append", call.append, "2.0.0", "Appends a text to the value of a lock key."},
		{"setrange", call.setRange, "2.2.0", "Overwrites a part of the value of a lock key."},
		{"incr", call.incr, "1.0.0", "Adds one to the number in a lock key."},
		{"decr", call.incr, "1.0.0", "Subtracts one from the number in a lock key."},
		{"incrby", call.incr, "1.0.0", "Adds an amount to the number in a lock key."},
		{"decrby", call.incr, "1.0.0", "Subtracts an amount from the number in a lock key."},
		{"incrbyfloat", call.incrByFloat, "2.6.0", "Adds a fraction to the number in a lock key."},
		{"delex", call.delex, "8.4.0", "Removes a lock key if it holds, or does not hold, a value."},
		{"delifeq", call.delifeq, "9.0.0", "Removes a lock key if it holds a value."},
	}
}

// maxValue limits a value that grows, in bytes. A lock's value is much smaller. Redis' own limit is
// too large for the memory of a proxy.
const maxValue = 1 << 20

const errTooLong = "ERR string exceeds maximum allowed size (proto-max-bulk-len)"

func (c call) get() Reply {
	return getReply(c.observe(c.words[1]))
}

func (c call) strlen() Reply {
	return IntReply(int64(len(c.observe(c.words[1]).text())))
}

func (c call) mget() Reply {
	elems := make([]Reply, len(c.words)-1)
	for i, key := range c.words[1:] {
		if k := c.observe(key); k.present {
			if content, err := k.decode(); err == nil && content.Kind() == contents.TextKind {
				elems[i] = getReply(k)
			}
		}
	}
	return ArrayReply(elems...)
}

// getRange implements GETRANGE and SUBSTR key start end.
func (c call) getRange() Reply {
	start, end := integer(c.words[2]), integer(c.words[3])
	return BulkReply(substring(c.observe(c.words[1]).text(), start, end))
}

// substring returns the part of a text between two indices, both included; negative indices count
// from the end.
func substring(text string, start, end int64) string {
	n := int64(len(text))
	if start < 0 && end < 0 && start > end {
		return ""
	}
	start, end = indexFromStart(start, n), min(indexFromStart(end, n), n-1)
	if start > end {
		return ""
	}
	return text[start : end+1]
}

func indexFromStart(index, n int64) int64 {
	if index < 0 {
		index += n
	}
	return max(0, index)
}

func (c call) append() Reply {
	k := c.observe(c.words[1])
	text := k.text()
	require(!k.present || len(text)+len(c.words[2]) <= maxValue, errTooLong)
	text += c.words[2]
	k.replace(contents.Text(text))
	return IntReply(int64(len(text)))
}

// setRange implements SETRANGE key offset value.
func (c call) setRange() Reply {
	offset := integer(c.words[2])
	require(offset >= 0, "ERR offset is out of range")
	k, value := c.observe(c.words[1]), c.words[3]
	before := k.text()
	if value == "" {
		return IntReply(int64(len(before)))
	}
	require(offset <= maxValue-min(maxValue, int64(len(value))), errTooLong)
	end := int(offset) + len(value)
	text := make([]byte, max(len(before), end))
	copy(text, before)
	copy(text[offset:], value)
	k.replace(contents.Text(text))
	return IntReply(int64(len(text)))
}

// incr implements INCR and DECR key, INCRBY and DECRBY key amount.
func (c call) incr() Reply {
	by := int64(1)
	if len(c.words) == 3 {
		by = integer(c.words[2])
	}
	if c.name == "decr" || c.name == "decrby" {
		require(by != math.MinInt64, "ERR decrement would overflow")
		by = -by
	}
	k, n := c.observe(c.words[1]), int64(0)
	if k.present {
		n = integer(k.text())
	}
	n = addChecked(n, by)
	k.replace(contents.Text(strconv.FormatInt(n, 10)))
	return IntReply(n)
}

// incrByFloat implements INCRBYFLOAT key amount.
func (c call) incrByFloat() Reply {
	k, n := c.observe(c.words[1]), contents.NewLongDouble(0)
	ok := true
	if k.present {
		n, ok = contents.ParseLongDouble(k.text())
	}
	by, isNumber := contents.ParseLongDouble(c.words[2])
	require(ok && isNumber, errNotFloat)
	sum, ok := n.Add(by)
	require(ok, errNotFinite)
	k.replace(contents.Text(sum.String()))
	return BulkReply(sum.String())
}

// addChecked returns a sum. It refuses the command if the sum overflows.
func addChecked(n, by int64) int64 {
	require((n+by > n) == (by > 0), "ERR increment or decrement would overflow")
	return n + by
}

func (c call) getdel() Reply {
	k := c.observe(c.words[1])
	reply := getReply(k)
	k.remove()
	return reply
}

// delex implements DELEX key [IFEQ value | IFNE value | IFDEQ digest | IFDNE digest].
func (c call) delex() Reply {
	switch {
	case len(c.words) == 2:
		return c.del()
	case len(c.words) != 4:
		return wrongArity(c.name)
	}
	condition, ok := parseComparison(c.words[2:])
	require(ok, syntax.ErrSyntax)
	condition.check()
	return c.removeIf(condition)
}

func (c call) delifeq() Reply { return c.removeIf(comparison{text: c.words[2]}) }

// removeIf removes the key if it exists and the comparison holds.
func (c call) removeIf(condition comparison) Reply {
	k := c.observe(c.words[1])
	if !k.present || !condition.holds(k.text(), true) {
		return IntReply(0)
	}
	k.remove()
	return IntReply(1)
}
