package keyspace

import (
	"math"
	"time"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/lockkeys/keyspace/contents"
)

// lmove is LMOVE source destination LEFT|RIGHT LEFT|RIGHT, and BLMOVE with a time after it.
func (c call) lmove() Reply {
	from, ok1 := isLeft(c.words[3])
	to, ok2 := isLeft(c.words[4])
	require(ok1 && ok2, syntax.ErrSyntax)
	if c.name == "blmove" {
		c.patience(c.words[5])
	}
	return c.move(from, to)
}

// rpoplpush is RPOPLPUSH source destination, and BRPOPLPUSH with a time after it.
func (c call) rpoplpush() Reply {
	if c.name == "brpoplpush" {
		c.patience(c.words[3])
	}
	return c.move(false, true)
}

func isLeft(word string) (left, ok bool) {
	switch syntax.Lower(word) {
	case "left":
		return true, true
	case "right":
		return false, true
	}
	return false, false
}

// move moves an element from an end of one list to an end of another, or of the same one.
func (c call) move(fromLeft, toLeft bool) Reply {
	source, from := c.list()
	if from == nil {
		return Reply{}
	}
	target := c.ask(c.words[2])
	to := held[*contents.List](target)
	if to == nil {
		to = &contents.List{}
	}
	// An only element stays where it is: its key must not go meanwhile.
	if source == target && from.Len() == 1 {
		return Text(from.Elems()[0])
	}
	elem := source.popped(from, fromLeft, 1)[0]
	at := 0
	if !toLeft {
		at = to.Len()
	}
	to.Insert(at, elem)
	target.edited(to)
	return Text(elem)
}

// patience checks how long a command may wait. In a Space it never does.
func (c call) patience(word string) {
	seconds, ok := contents.ParseLong(word)
	require(ok, "ERR timeout is not a float or out of range")
	ms := seconds.Thousandths()
	require(ms >= 0, "ERR timeout is negative")
	require(ms <= math.MaxInt64-c.now, "ERR timeout is out of range")
}

// Patience is how long a command may wait of which a Space that holds nothing had no error; zero:
// without an end.
func Patience(words []string) time.Duration {
	seconds, ok := contents.ParseLong(words[len(words)-1])
	if !ok {
		return 0
	}
	return milliseconds(seconds.Thousandths())
}

// bpop is BLPOP and BRPOP key … timeout.
func (c call) bpop() Reply {
	last := len(c.words) - 1
	c.patience(c.words[last])
	sl, l := firstOf[*contents.List](c, c.words[1:last])
	if sl == nil {
		return Reply{Kind: NilArray}
	}
	return List(Text(sl.key), Text(sl.popped(l, c.name == "blpop", 1)[0]))
}

// firstOf is the first of some keys that is present, or nil.
func firstOf[T contents.Content](c call, keys []string) (sl *slot, content T) {
	for _, key := range keys {
		if sl := c.ask(key); sl.present {
			return sl, held[T](sl)
		}
	}
	return nil, content
}
