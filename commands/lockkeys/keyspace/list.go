package keyspace

import (
	"slices"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/lockkeys/keyspace/contents"
)

// listCommands returns the commands on lists.
func listCommands() []tableEntry {
	return []tableEntry{
		{"lpush", call.push, "1.0.0", "Puts elements at the beginning of a list in a lock key."},
		{"rpush", call.push, "1.0.0", "Puts elements at the end of a list in a lock key."},
		{"lpushx", call.push, "2.2.0", "Puts elements at the beginning of a list in a lock key if there is one."},
		{"rpushx", call.push, "2.2.0", "Puts elements at the end of a list in a lock key if there is one."},
		{"lpop", call.pop, "1.0.0", "Removes elements from the beginning of a list in a lock key and returns them."},
		{"rpop", call.pop, "1.0.0", "Removes elements from the end of a list in a lock key and returns them."},
		{"llen", length[*contents.List], "1.0.0", "Returns the length of a list in a lock key."},
		{"lrange", call.lrange, "1.0.0", "Returns a range of a list in a lock key."},
		{"lindex", call.lindex, "1.0.0", "Returns an element of a list in a lock key."},
		{"lset", call.lset, "1.0.0", "Replaces an element of a list in a lock key."},
		{"linsert", call.linsert, "2.2.0", "Inserts an element before or after another in a list in a lock key."},
		{"lrem", call.lrem, "1.0.0", "Removes elements that are equal to one from a list in a lock key."},
		{"ltrim", call.ltrim, "1.0.0", "Keeps only a range of a list in a lock key."},
		{"lmove", call.lmove, "6.2.0", "Moves an element from one list to another, or within a list."},
		{"rpoplpush", call.rpoplpush, "1.2.0", "Moves the last element to the beginning of a list in a lock key."},
		{"blpop", call.bpop, "2.0.0", "Removes the first element of the first existing list, or waits for one."},
		{"brpop", call.bpop, "2.0.0", "Removes the last element of the first existing list, or waits for one."},
		{"blmove", call.lmove, "6.2.0", "Moves an element from one list to another, or waits for one."},
		{"brpoplpush", call.rpoplpush, "2.2.0", "Moves the last element to the beginning of a list, or waits for one."},
	}
}

const errNoKey = "ERR no such key"

// push implements LPUSH, RPUSH, LPUSHX and RPUSHX key element ….
func (c call) push() Reply {
	k := c.use(c.words[1])
	l := contentOf[*contents.List](k)
	switch {
	case l == nil && (c.name == "lpushx" || c.name == "rpushx"):
		k.replyDependsOn = true
		return IntReply(0)
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
	k.setCollection(l)
	return IntReply(int64(l.Len()))
}

// pop implements LPOP and RPOP key [count].
func (c call) pop() Reply {
	if len(c.words) > 3 {
		return wrongArity(c.name)
	}
	count := c.countOr(-1)
	k, l := c.list()
	switch {
	case l == nil && count >= 0:
		return Reply{Kind: NilArray}
	case l == nil:
		return Reply{}
	case count < 0:
		return BulkReply(k.popElements(l, c.name == "lpop", 1)[0])
	}
	return TextsReply(k.popElements(l, c.name == "lpop", count))
}

// popElements removes up to count elements from one end of the list, and returns them.
func (k *keyState) popElements(l *contents.List, left bool, count int64) []string {
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
	k.setCollection(l)
	return elems
}

// parseAtLeast returns a word as a number. It refuses the command with errText if the word is not a
// number, or less than minimum.
func parseAtLeast(word string, minimum int64, errText string) int64 {
	n, ok := syntax.Int(word)
	require(ok && n >= minimum, errText)
	return n
}

// bounds returns the first and last index of a range in n elements. The first is larger than the
// last if the range is empty.
func bounds(start, end string, n int) (from, to int) {
	first, last := integer(start), integer(end)
	from = int(min(indexFromStart(first, int64(n)), int64(n)))
	if last < 0 {
		last += int64(n)
	}
	return from, int(max(-1, min(last, int64(n)-1)))
}

func (c call) lrange() Reply {
	bounds(c.words[2], c.words[3], 0) // syntax errors come first
	_, l := c.list()
	from, to := bounds(c.words[2], c.words[3], l.Len())
	if from > to {
		return ArrayReply()
	}
	return TextsReply(l.Elems()[from : to+1])
}

func (c call) ltrim() Reply {
	bounds(c.words[2], c.words[3], 0) // syntax errors come first
	k, l := c.list()
	if l == nil {
		return OK()
	}
	if from, to := bounds(c.words[2], c.words[3], l.Len()); from > to {
		l.Delete(0, l.Len())
	} else {
		l.Delete(to+1, l.Len())
		l.Delete(0, from)
	}
	k.setCollection(l)
	return OK()
}

// indexIn converts an index in a list of n elements. A negative index counts from the end. ok is
// false if the list has no such element.
func indexIn(index int64, n int) (at int, ok bool) {
	if index < 0 {
		index += int64(n)
	}
	if index < 0 || index >= int64(n) {
		return 0, false
	}
	return int(index), true
}

func (c call) lindex() Reply {
	_, l := c.list()
	if l == nil {
		return Reply{}
	}
	at, ok := indexIn(integer(c.words[2]), l.Len())
	if !ok {
		return Reply{}
	}
	return BulkReply(l.Elems()[at])
}

func (c call) lset() Reply {
	k, l := c.list()
	if l == nil {
		return ErrorReply(errNoKey)
	}
	at, ok := indexIn(integer(c.words[2]), l.Len())
	require(ok, "ERR index out of range")
	l.Set(at, c.words[3])
	k.setCollection(l)
	return OK()
}

func (c call) linsert() Reply {
	offset := 0
	switch syntax.Lower(c.words[2]) {
	case "before":
	case "after":
		offset = 1
	default:
		return ErrorReply(syntax.ErrSyntax)
	}
	k, l := c.list()
	if l == nil {
		return IntReply(0)
	}
	at := slices.Index(l.Elems(), c.words[3])
	if at < 0 {
		return IntReply(-1)
	}
	l.Insert(at+offset, c.words[4])
	k.setCollection(l)
	return IntReply(int64(l.Len()))
}

func (c call) lrem() Reply {
	n := integer(c.words[2])
	k, l := c.list()
	if l == nil {
		return IntReply(0)
	}
	limit := l.Len()
	if n != 0 {
		limit = int(min(uint64(max(n, -n)), uint64(l.Len())))
	}
	removed := l.Remove(c.words[3], limit, n < 0)
	k.setCollection(l)
	return IntReply(int64(removed))
}
