package keyspace

import (
	"slices"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/lockkeys/keyspace/contents"
)

// listCommands are the commands on lists.
func listCommands() []entry {
	return []entry{
		{"lpush", call.push, "1.0.0", "Puts elements at the beginning of a list in a lock key."},
		{"rpush", call.push, "1.0.0", "Puts elements at the end of a list in a lock key."},
		{"lpushx", call.push, "2.2.0", "Puts elements at the beginning of a list in a lock key if there is one."},
		{"rpushx", call.push, "2.2.0", "Puts elements at the end of a list in a lock key if there is one."},
		{"lpop", call.pop, "1.0.0", "Takes elements off the beginning of a list in a lock key."},
		{"rpop", call.pop, "1.0.0", "Takes elements off the end of a list in a lock key."},
		{"llen", length[*contents.List], "1.0.0", "Returns the length of a list in a lock key."},
		{"lrange", call.lrange, "1.0.0", "Returns a range of a list in a lock key."},
		{"lindex", call.lindex, "1.0.0", "Returns an element of a list in a lock key."},
		{"lset", call.lset, "1.0.0", "Replaces an element of a list in a lock key."},
		{"linsert", call.linsert, "2.2.0", "Puts an element before or after another one of a list in a lock key."},
		{"lrem", call.lrem, "1.0.0", "Removes elements that are equal to one from a list in a lock key."},
		{"ltrim", call.ltrim, "1.0.0", "Keeps only a range of a list in a lock key."},
		{"lmove", call.lmove, "6.2.0", "Moves an element to the other end of a list in a lock key."},
		{"rpoplpush", call.rpoplpush, "1.2.0", "Moves the last element to the beginning of a list in a lock key."},
		{"blpop", call.bpop, "2.0.0", "Takes an element off the first list that exists; in a transaction or script, where it does not wait."},
		{"brpop", call.bpop, "2.0.0", "Takes an element off the end of the first list that exists; in a transaction or script, where it does not wait."},
		{"blmove", call.lmove, "6.2.0", "Moves an element to the other end of a list; in a transaction or script, where it does not wait."},
		{"brpoplpush", call.rpoplpush, "2.2.0", "Moves the last element to the beginning of a list; in a transaction or script, where it does not wait."},
	}
}

const errNoKey = "ERR no such key"

// push is LPUSH, RPUSH, LPUSHX and RPUSHX key element ….
func (c call) push() Reply {
	sl := c.use(c.words[1])
	l := held[*contents.List](sl)
	switch {
	case l == nil && (c.name == "lpushx" || c.name == "rpushx"):
		sl.asked = true
		return Number(0)
	case l == nil:
		l = &contents.List{}
	}
	elems := slices.Clone(c.words[2:])
	if c.name[0] == 'l' {
		slices.Reverse(elems)
		l.Insert(0, elems...)
	} else {
		l.Insert(l.Len(), elems...)
	}
	sl.edited(l)
	return Number(int64(l.Len()))
}

// pop is LPOP and RPOP key [count].
func (c call) pop() Reply {
	if len(c.words) > 3 {
		return wrongArity(c.name)
	}
	count := c.counted(-1)
	sl, l := c.list()
	switch {
	case l == nil && count >= 0:
		return Reply{Kind: NilArray}
	case l == nil:
		return Reply{}
	case count < 0:
		return Text(sl.popped(l, c.name == "lpop", 1)[0])
	}
	return Texts(sl.popped(l, c.name == "lpop", count))
}

// popped takes up to so many elements off one end of the list.
func (sl *slot) popped(l *contents.List, left bool, count int64) []string {
	n := int(min(count, int64(l.Len())))
	from := 0
	if !left {
		from = l.Len() - n
	}
	elems := slices.Clone(l.Elems()[from : from+n])
	if !left {
		slices.Reverse(elems)
	}
	l.Delete(from, from+n)
	sl.edited(l)
	return elems
}

// atLeast is a number that is not below another; what is wrong with it is said in one way.
func atLeast(word string, least int64, wrong string) int64 {
	n, ok := syntax.Int(word)
	require(ok && n >= least, wrong)
	return n
}

// bounds are the first and last of a range of places, with no place after the end of n elements;
// the first is after the last where there are none.
func bounds(start, end string, n int) (from, to int) {
	first, last := integer(start), integer(end)
	from = int(min(fromStart(first, int64(n)), int64(n)))
	if last < 0 {
		last += int64(n)
	}
	return from, int(max(-1, min(last, int64(n)-1)))
}

func (c call) lrange() Reply {
	bounds(c.words[2], c.words[3], 0) // what is wrong with them comes first
	_, l := c.list()
	from, to := bounds(c.words[2], c.words[3], l.Len())
	if from > to {
		return List()
	}
	return Texts(l.Elems()[from : to+1])
}

func (c call) ltrim() Reply {
	bounds(c.words[2], c.words[3], 0) // what is wrong with them comes first
	sl, l := c.list()
	if l == nil {
		return OK()
	}
	if from, to := bounds(c.words[2], c.words[3], l.Len()); from > to {
		l.Delete(0, l.Len())
	} else {
		l.Delete(to+1, l.Len())
		l.Delete(0, from)
	}
	sl.edited(l)
	return OK()
}

// placeIn is a place among n elements; negative ones are counted from the end.
func placeIn(place int64, n int) (at int, ok bool) {
	if place < 0 {
		place += int64(n)
	}
	if place < 0 || place >= int64(n) {
		return 0, false
	}
	return int(place), true
}

func (c call) lindex() Reply {
	_, l := c.list()
	if l == nil {
		return Reply{}
	}
	at, ok := placeIn(integer(c.words[2]), l.Len())
	if !ok {
		return Reply{}
	}
	return Text(l.Elems()[at])
}

func (c call) lset() Reply {
	sl, l := c.list()
	if l == nil {
		return Fail(errNoKey)
	}
	at, ok := placeIn(integer(c.words[2]), l.Len())
	require(ok, "ERR index out of range")
	l.Set(at, c.words[3])
	sl.edited(l)
	return OK()
}

func (c call) linsert() Reply {
	behind := 0
	switch syntax.Lower(c.words[2]) {
	case "before":
	case "after":
		behind = 1
	default:
		return Fail(syntax.ErrSyntax)
	}
	sl, l := c.list()
	if l == nil {
		return Number(0)
	}
	at := slices.Index(l.Elems(), c.words[3])
	if at < 0 {
		return Number(-1)
	}
	l.Insert(at+behind, c.words[4])
	sl.edited(l)
	return Number(int64(l.Len()))
}

func (c call) lrem() Reply {
	n := integer(c.words[2])
	sl, l := c.list()
	if l == nil {
		return Number(0)
	}
	most := l.Len()
	if n != 0 {
		most = int(min(uint64(max(n, -n)), uint64(l.Len())))
	}
	removed := l.Remove(c.words[3], most, n < 0)
	sl.edited(l)
	return Number(int64(removed))
}
