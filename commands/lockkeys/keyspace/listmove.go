package keyspace

import (
	"math"
	"time"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/lockkeys/keyspace/contents"
)

// lmove implements LMOVE source destination LEFT|RIGHT LEFT|RIGHT, and BLMOVE, which ends with a
// timeout.
func (c call) lmove() Reply {
	from, ok1 := parseSide(c.words[3])
	to, ok2 := parseSide(c.words[4])
	require(ok1 && ok2, syntax.ErrSyntax)
	if c.name == "blmove" {
		c.checkTimeout(c.words[5])
	}
	return c.move(from, to)
}

// rpoplpush implements RPOPLPUSH source destination, and BRPOPLPUSH, which ends with a timeout.
func (c call) rpoplpush() Reply {
	if c.name == "brpoplpush" {
		c.checkTimeout(c.words[3])
	}
	return c.move(false, true)
}

func parseSide(word string) (left, ok bool) {
	switch syntax.Lower(word) {
	case "left":
		return true, true
	case "right":
		return false, true
	}
	return false, false
}

// move moves an element from one end of a list to one end of another list, or of the same list.
func (c call) move(fromLeft, toLeft bool) Reply {
	source, sourceList := c.list()
	if sourceList == nil {
		return Reply{}
	}
	target := c.observe(c.words[2])
	targetList := contentOf[*contents.List](target)
	if targetList == nil {
		targetList = &contents.List{}
	}
	// A single element stays in place, because removing it would remove the key.
	if source == target && sourceList.Len() == 1 {
		return BulkReply(sourceList.Elems()[0])
	}
	elem := source.popElements(sourceList, fromLeft, 1)[0]
	at := 0
	if !toLeft {
		at = targetList.Len()
	}
	targetList.Insert(at, elem)
	target.setCollection(targetList)
	return BulkReply(elem)
}

// checkTimeout checks the timeout of a command. On a Snapshot no command waits.
func (c call) checkTimeout(word string) {
	seconds, ok := contents.ParseLongDouble(word)
	require(ok, "ERR timeout is not a float or out of range")
	ms := seconds.Thousandths()
	require(ms >= 0, "ERR timeout is negative")
	require(ms <= math.MaxInt64-c.now, "ERR timeout is out of range")
}

// Timeout returns the timeout of a valid command that may wait; zero means no timeout.
func Timeout(words []string) time.Duration {
	seconds, ok := contents.ParseLongDouble(words[len(words)-1])
	if !ok {
		return 0
	}
	return milliseconds(seconds.Thousandths())
}

// bpop implements BLPOP and BRPOP key … timeout.
func (c call) bpop() Reply {
	last := len(c.words) - 1
	c.checkTimeout(c.words[last])
	k, l := firstOf[*contents.List](c, c.words[1:last])
	if k == nil {
		return Reply{Kind: NilArray}
	}
	return ArrayReply(BulkReply(k.key), BulkReply(k.popElements(l, c.name == "blpop", 1)[0]))
}

// firstOf returns the first key that exists, or nil if no key exists. It refuses a key of another
// type.
func firstOf[T contents.Content](c call, keys []string) (k *keyState, content T) {
	for _, key := range keys {
		if k := c.observe(key); k.present {
			return k, contentOf[T](k)
		}
	}
	return nil, content
}
