package keyspace

import (
	"math"
	"time"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/keyspace/contents"
)

// lmove is LMOVE source destination LEFT|RIGHT LEFT|RIGHT, and BLMOVE with a time after it.
func (c call) lmove() (Reply, error) {
	from, ok1 := isLeft(c.words[3])
	to, ok2 := isLeft(c.words[4])
	if !ok1 || !ok2 {
		return Fail(syntax.ErrSyntax), nil
	}
	if c.name == "blmove" {
		if failed := c.patience(c.words[5]); failed != nil {
			return *failed, nil
		}
	}
	return c.move(from, to), nil
}

// rpoplpush is RPOPLPUSH source destination, and BRPOPLPUSH with a time after it.
func (c call) rpoplpush() (Reply, error) {
	if c.name == "brpoplpush" {
		if failed := c.patience(c.words[3]); failed != nil {
			return *failed, nil
		}
	}
	return c.move(false, true), nil
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
	source, from, failed := c.list()
	switch {
	case failed != nil:
		return *failed
	case from == nil:
		return Reply{}
	}
	target := c.ask(c.words[2])
	to, failed := held[*contents.List](target)
	switch {
	case failed != nil:
		return *failed
	case to == nil:
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
func (c call) patience(word string) *Reply {
	seconds, ok := contents.ParseLong(word)
	if !ok {
		return new(Fail("ERR timeout is not a float or out of range"))
	}
	switch ms := seconds.Thousandths(); {
	case ms < 0:
		return new(Fail("ERR timeout is negative"))
	case ms > math.MaxInt64-c.now:
		return new(Fail("ERR timeout is out of range"))
	}
	return nil
}

// Patience is how long a command may wait of which a Space that holds nothing had no error; zero: without an end.
func Patience(words []string) time.Duration {
	word := words[len(words)-1]
	switch syntax.Lower(words[0]) {
	case "blmpop", "bzmpop":
		word = words[1]
	}
	seconds, ok := contents.ParseLong(word)
	if !ok {
		return 0
	}
	return milliseconds(seconds.Thousandths())
}

// bpop is BLPOP and BRPOP key … timeout.
func (c call) bpop() (Reply, error) {
	last := len(c.words) - 1
	if failed := c.patience(c.words[last]); failed != nil {
		return *failed, nil
	}
	sl, l, failed := firstOf[*contents.List](c, c.words[1:last])
	switch {
	case failed != nil:
		return *failed, nil
	case sl == nil:
		return Reply{Kind: NilArray}, nil
	}
	return List(Text(sl.key), Text(sl.popped(l, c.name == "blpop", 1)[0])), nil
}

// firstOf finds the first of some keys that is there; none where there is none.
func firstOf[T contents.Content](c call, keys []string) (sl *slot, content T, failed *Reply) {
	for _, key := range keys {
		if sl := c.ask(key); sl.present {
			content, failed = held[T](sl)
			return sl, content, failed
		}
	}
	return nil, content, nil
}

// several are the words of LMPOP, ZMPOP and their blocking forms: numkeys key … end [COUNT n], with a time before
// them where they may block.
type several struct {
	keys  []string
	first bool // they take from the first end, else from the last
	count int64
}

// severalOf reads them; first and last are the words for the ends.
func (c call) severalOf(first, last string) (s several, failed *Reply) {
	at := 1
	if c.name[0] == 'b' {
		at = 2
	}
	n, failed := atLeast(c.words[at], 1, "ERR numkeys should be greater than 0")
	if failed != nil {
		return s, failed
	}
	if n >= int64(len(c.words)-at-1) {
		return s, new(Fail(syntax.ErrSyntax))
	}
	s.keys, s.count = c.words[at+1:at+1+int(n)], 1
	options := c.words[at+1+int(n):]
	s.first = syntax.Lower(options[0]) == first
	if !s.first && syntax.Lower(options[0]) != last {
		return s, new(Fail(syntax.ErrSyntax))
	}
	if options = options[1:]; len(options) > 0 {
		if syntax.Lower(options[0]) != "count" || len(options) == 1 {
			return s, new(Fail(syntax.ErrSyntax))
		}
		if s.count, failed = atLeast(options[1], 1, "ERR count should be greater than 0"); failed != nil {
			return s, failed
		}
		if len(options) > 2 {
			return s, new(Fail(syntax.ErrSyntax))
		}
	}
	if c.name[0] == 'b' {
		failed = c.patience(c.words[1])
	}
	return s, failed
}

// lmpop is LMPOP and BLMPOP.
func (c call) lmpop() (Reply, error) {
	s, failed := c.severalOf("left", "right")
	if failed != nil {
		return *failed, nil
	}
	sl, l, failed := firstOf[*contents.List](c, s.keys)
	switch {
	case failed != nil:
		return *failed, nil
	case sl == nil:
		return Reply{Kind: NilArray}, nil
	}
	return List(Text(sl.key), texts(Array, sl.popped(l, s.first, s.count))), nil
}
