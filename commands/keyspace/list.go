package keyspace

import (
	"slices"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/keyspace/contents"
)

const errNoKey = "ERR no such key"

// list is the list of a command's first key; nil where the key is absent.
func (c call) list() (*slot, *contents.List, *Reply) {
	sl := c.ask(c.words[1])
	l, failed := held[*contents.List](sl)
	return sl, l, failed
}

// push is LPUSH, RPUSH, LPUSHX and RPUSHX key element ….
func (c call) push() (Reply, error) {
	sl := c.use(c.words[1])
	l, failed := held[*contents.List](sl)
	switch {
	case failed != nil:
		return *failed, nil
	case l == nil && (c.name == "lpushx" || c.name == "rpushx"):
		sl.asked = true
		return Number(0), nil
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
	return Number(int64(l.Len())), nil
}

// pop is LPOP and RPOP key [count].
func (c call) pop() (Reply, error) {
	if len(c.words) > 3 {
		return wrongArity(c.name), nil
	}
	count, failed := c.counted(-1)
	if failed != nil {
		return *failed, nil
	}
	sl, l, failed := c.list()
	switch {
	case failed != nil:
		return *failed, nil
	case l == nil && count >= 0:
		return Reply{Kind: NilArray}, nil
	case l == nil:
		return Reply{}, nil
	case count < 0:
		return Text(sl.popped(l, c.name == "lpop", 1)[0]), nil
	}
	return texts(Array, sl.popped(l, c.name == "lpop", count)), nil
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

// positive is a number that is not below zero.
func positive(word string) (n int64, failed *Reply) {
	return atLeast(word, 0, "ERR value is out of range, must be positive")
}

// atLeast is a number that is not below another; what is wrong with it is told in one way.
func atLeast(word string, least int64, wrong string) (n int64, failed *Reply) {
	n, ok := syntax.Int(word)
	if !ok || n < least {
		return 0, new(Fail(wrong))
	}
	return n, nil
}

func (c call) llen() (Reply, error) {
	_, l, failed := c.list()
	if failed != nil {
		return *failed, nil
	}
	return Number(int64(l.Len())), nil
}

// bounds are the first and last of a range of places, with no place after the end of n elements; the first is
// after the last where there are none.
func bounds(start, end string, n int) (from, to int, failed *Reply) {
	first, ok1 := syntax.Int(start)
	last, ok2 := syntax.Int(end)
	if !ok1 || !ok2 {
		return 0, 0, new(Fail(syntax.ErrNotInteger))
	}
	from = int(min(fromStart(first, int64(n)), int64(n)))
	if last < 0 {
		last += int64(n)
	}
	return from, int(max(-1, min(last, int64(n)-1))), nil
}

func (c call) lrange() (Reply, error) {
	if _, _, failed := bounds(c.words[2], c.words[3], 0); failed != nil {
		return *failed, nil
	}
	_, l, failed := c.list()
	if failed != nil {
		return *failed, nil
	}
	from, to, _ := bounds(c.words[2], c.words[3], l.Len())
	if from > to {
		return List(), nil
	}
	return texts(Array, l.Elems()[from:to+1]), nil
}

func (c call) ltrim() (Reply, error) {
	if _, _, failed := bounds(c.words[2], c.words[3], 0); failed != nil {
		return *failed, nil
	}
	sl, l, failed := c.list()
	switch {
	case failed != nil:
		return *failed, nil
	case l == nil:
		return OK(), nil
	}
	if from, to, _ := bounds(c.words[2], c.words[3], l.Len()); from > to {
		l.Delete(0, l.Len())
	} else {
		l.Delete(to+1, l.Len())
		l.Delete(0, from)
	}
	sl.edited(l)
	return OK(), nil
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

func (c call) lindex() (Reply, error) {
	_, l, failed := c.list()
	switch {
	case failed != nil:
		return *failed, nil
	case l == nil:
		return Reply{}, nil
	}
	place, ok := syntax.Int(c.words[2])
	if !ok {
		return Fail(syntax.ErrNotInteger), nil
	}
	at, ok := placeIn(place, l.Len())
	if !ok {
		return Reply{}, nil
	}
	return Text(l.Elems()[at]), nil
}

func (c call) lset() (Reply, error) {
	sl, l, failed := c.list()
	switch {
	case failed != nil:
		return *failed, nil
	case l == nil:
		return Fail(errNoKey), nil
	}
	place, ok := syntax.Int(c.words[2])
	if !ok {
		return Fail(syntax.ErrNotInteger), nil
	}
	at, ok := placeIn(place, l.Len())
	if !ok {
		return Fail("ERR index out of range"), nil
	}
	l.Set(at, c.words[3])
	sl.edited(l)
	return OK(), nil
}

func (c call) linsert() (Reply, error) {
	behind := 0
	switch syntax.Lower(c.words[2]) {
	case "before":
	case "after":
		behind = 1
	default:
		return Fail(syntax.ErrSyntax), nil
	}
	sl, l, failed := c.list()
	switch {
	case failed != nil:
		return *failed, nil
	case l == nil:
		return Number(0), nil
	}
	at := slices.Index(l.Elems(), c.words[3])
	if at < 0 {
		return Number(-1), nil
	}
	l.Insert(at+behind, c.words[4])
	sl.edited(l)
	return Number(int64(l.Len())), nil
}

func (c call) lrem() (Reply, error) {
	n, ok := syntax.Int(c.words[2])
	if !ok {
		return Fail(syntax.ErrNotInteger), nil
	}
	sl, l, failed := c.list()
	switch {
	case failed != nil:
		return *failed, nil
	case l == nil:
		return Number(0), nil
	}
	most := l.Len()
	if n != 0 {
		most = int(min(uint64(max(n, -n)), uint64(l.Len())))
	}
	removed := l.Remove(c.words[3], most, n < 0)
	sl.edited(l)
	return Number(int64(removed)), nil
}
