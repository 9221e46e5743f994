package keyspace

import (
	"math"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/keyspace/contents"
)

// setOptions are what stands after the key and value of SET, or after the key of
// GETEX.
type setOptions struct {
	nx, xx, get, keepTTL, persist bool
	// compares: the value is to be like, or unlike, what is given.
	compares bool
	is       comparison
	// unit and amount are of the TTL, where timed is the word for it.
	timed  string
	unit   unit
	amount string
}

// parseSet reads SET's options, in any order and case. ok is false for a syntax
// error. As in Redis, a word may be repeated, and the last one counts.
func parseSet(words []string) (o setOptions, ok bool) {
	for len(words) > 0 {
		word, taken := syntax.Lower(words[0]), 1
		_, isTime := units[word]
		switch {
		case word == "nx" && !o.xx && !o.compares:
			o.nx = true
		case word == "xx" && !o.nx && !o.compares:
			o.xx = true
		case word == "get":
			o.get = true
		case word == "keepttl" && o.timed == "":
			o.keepTTL = true
		case isTime && !o.keepTTL && o.takeTime(word, words):
			taken = 2
		default:
			is, ok := parseComparison(words)
			if !ok || o.nx || o.xx || o.compares {
				return o, false
			}
			o.compares, o.is, taken = true, is, 2
		}
		words = words[taken:]
	}
	return o, true
}

// parseGetex reads GETEX's options.
func parseGetex(words []string) (o setOptions, ok bool) {
	for len(words) > 0 {
		word, taken := syntax.Lower(words[0]), 1
		_, isTime := units[word]
		switch {
		case word == "persist" && o.timed == "":
			o.persist = true
		case isTime && !o.persist && o.takeTime(word, words):
			taken = 2
		default:
			return o, false
		}
		words = words[taken:]
	}
	return o, true
}

// takeTime takes a unit and the number after it, unless there is none, or there
// has been one in another unit.
func (o *setOptions) takeTime(word string, words []string) bool {
	if len(words) < 2 || o.timed != "" && o.timed != word {
		return false
	}
	o.timed, o.unit, o.amount = word, units[word], words[1]
	return true
}

// deadline is when the options let the key expire, or never. failed is the error
// reply where that is no time.
func (o setOptions) deadline(now int64, name string) (at int64, failed *Reply) {
	if o.timed == "" {
		return never, nil
	}
	n, ok := syntax.Int(o.amount)
	if !ok {
		return 0, new(Fail(syntax.ErrNotInteger))
	}
	at, ok = o.unit.deadline(n, now)
	if n <= 0 || !ok {
		return 0, new(invalidExpire(name))
	}
	return at, nil
}

// allows reports whether a key may be set. failed is the error reply where it holds no string, and that is
// to be compared.
func (o setOptions) allows(sl *slot) (allowed bool, failed *Reply) {
	switch {
	case o.nx:
		return !sl.present, nil
	case o.xx:
		return sl.present, nil
	case !o.compares:
		return true, nil
	}
	text, failed := sl.text()
	return o.is.holds(text, sl.present), failed
}

// asks reports whether what is done depends on what the key holds.
func (o setOptions) asks() bool { return o.nx || o.xx || o.compares || o.get }

func (c call) set() (Reply, error) {
	o, ok := parseSet(c.words[3:])
	if !ok {
		return Fail(syntax.ErrSyntax), nil
	}
	at, failed := o.deadline(c.now, c.name)
	if failed == nil {
		failed = o.is.refused()
	}
	if failed != nil {
		return *failed, nil
	}
	return c.setAs(o, at), nil
}

// setAs is SET with these options, and a time at which the key goes, or never.
func (c call) setAs(o setOptions, at int64) Reply {
	sl, value := c.use(c.words[1]), contents.Text(c.words[2])
	sl.asked = sl.asked || o.asks()
	reply := OK()
	if o.get {
		var failed *Reply
		if reply, failed = got(sl); failed != nil {
			return *failed
		}
	}
	allowed, failed := o.allows(sl)
	switch {
	case failed != nil:
		return *failed
	case !allowed && o.get:
		return reply
	case !allowed:
		return Reply{}
	case o.keepTTL:
		sl.replace(value)
	default:
		c.put(sl, value, at)
	}
	return reply
}

// put sets a value that goes at a time, or never.
func (c call) put(sl *slot, value contents.Text, at int64) {
	sl.set(value)
	if at != never {
		c.expire(sl, at, c.name)
	}
}

// got is what GET says of a key. failed is the error reply where it holds no string.
func got(sl *slot) (reply Reply, failed *Reply) {
	text, failed := sl.text()
	if failed != nil || !sl.present {
		return Reply{}, failed
	}
	return Text(text), nil
}

func (c call) setnx() (Reply, error) {
	sl := c.ask(c.words[1])
	if sl.present {
		return Number(0), nil
	}
	sl.set(contents.Text(c.words[2]))
	return Number(1), nil
}

// setex is SETEX and PSETEX key time value.
func (c call) setex() (Reply, error) {
	o := setOptions{timed: "ex", unit: unit{seconds: c.name == "setex"}, amount: c.words[2]}
	at, failed := o.deadline(c.now, c.name)
	if failed != nil {
		return *failed, nil
	}
	c.put(c.use(c.words[1]), contents.Text(c.words[3]), at)
	return OK(), nil
}

func (c call) getset() (Reply, error) {
	sl := c.ask(c.words[1])
	reply, failed := got(sl)
	if failed != nil {
		return *failed, nil
	}
	sl.set(contents.Text(c.words[2]))
	return reply, nil
}

func (c call) getex() (Reply, error) {
	o, ok := parseGetex(c.words[2:])
	if !ok {
		return Fail(syntax.ErrSyntax), nil
	}
	sl := c.ask(c.words[1])
	reply, failed := got(sl)
	switch {
	case failed != nil:
		return *failed, nil
	case !sl.present:
		return Reply{}, nil
	}
	at, failed := o.deadline(c.now, c.name)
	if failed != nil {
		return *failed, nil
	}
	switch {
	case o.timed != "":
		c.expire(sl, at, c.name)
	case o.persist && sl.expires != never: // also where it is not known
		sl.expires, sl.kept, sl.by = never, false, c.name
	}
	return reply, nil
}

// mset is MSET and MSETNX key value ….
func (c call) mset() (Reply, error) {
	if len(c.words)%2 == 0 {
		return wrongArity(c.name), nil
	}
	only := c.name == "msetnx"
	for i := 1; i < len(c.words); i += 2 {
		if only && c.ask(c.words[i]).present {
			return Number(0), nil
		}
	}
	for i := 1; i < len(c.words); i += 2 {
		c.use(c.words[i]).set(contents.Text(c.words[i+1]))
	}
	if only {
		return Number(1), nil
	}
	return OK(), nil
}

// msetex is MSETEX count key value … [NX | XX] [EX seconds | PX milliseconds | EXAT time | PXAT time | KEEPTTL].
func (c call) msetex() (Reply, error) {
	n, ok := syntax.Int(c.words[1])
	switch {
	case !ok || n < 1 || n > math.MaxInt32:
		return Fail("ERR invalid numkeys value or out of range"), nil
	case int64(len(c.words)) < 2+2*n:
		return Fail(syntax.ErrSyntax), nil
	}
	pairs, options := c.words[2:2+2*n], c.words[2+2*n:]
	o, ok := parseSet(options)
	if !ok || o.get || o.compares {
		return Fail(syntax.ErrSyntax), nil
	}
	at, failed := o.deadline(c.now, c.name)
	if failed != nil {
		return *failed, nil
	}
	for i := 0; i < len(pairs) && (o.nx || o.xx); i += 2 {
		if c.ask(pairs[i]).present != o.xx {
			return Number(0), nil
		}
	}
	for i := 0; i < len(pairs); i += 2 {
		sl, value := c.use(pairs[i]), contents.Text(pairs[i+1])
		if o.keepTTL {
			sl.replace(value)
		} else {
			c.put(sl, value, at)
		}
	}
	return Number(1), nil
}
