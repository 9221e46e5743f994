package keyspace

import (
	"math"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/lockkeys/keyspace/contents"
)

// setCommands are the commands on sets.
func setCommands() []entry {
	return []entry{
		{"sadd", call.sadd, "1.0.0", "Adds members to a set in a lock key."},
		{"srem", removes[*contents.Set], "1.0.0", "Removes members from a set in a lock key."},
		{"smembers", call.smembers, "1.0.0", "Returns all members of a set in a lock key."},
		{"sismember", call.sismember, "1.0.0", "Returns whether a set in a lock key has a member."},
		{"smismember", call.sismember, "6.2.0", "Returns which of these members a set in a lock key has."},
		{"scard", length[*contents.Set], "1.0.0", "Counts the members of a set in a lock key."},
		{"spop", call.spop, "1.0.0", "Takes members off a set in a lock key at random."},
		{"sscan", call.scan, "2.8.0", "Returns all members of a set in a lock key that match."},
	}
}

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

// deadline is when the options let the key expire, or never.
func (o setOptions) deadline(now int64, name string) int64 {
	if o.timed == "" {
		return never
	}
	n := integer(o.amount)
	if n <= 0 {
		refuse(syntax.InvalidExpire(name))
	}
	return o.unit.deadline(n, now, name)
}

// allows reports whether a key may be set.
func (o setOptions) allows(sl *slot) bool {
	switch {
	case o.nx:
		return !sl.present
	case o.xx:
		return sl.present
	case !o.compares:
		return true
	}
	return o.is.holds(sl.text(), sl.present)
}

// asks reports whether what is done depends on what the key holds.
func (o setOptions) asks() bool { return o.nx || o.xx || o.compares || o.get }

func (c call) set() Reply {
	o, ok := parseSet(c.words[3:])
	require(ok, syntax.ErrSyntax)
	at := o.deadline(c.now, c.name)
	o.is.check()
	return c.setAs(o, at)
}

// setAs is SET with these options, and a time at which the key goes, or never.
func (c call) setAs(o setOptions, at int64) Reply {
	sl, value := c.use(c.words[1]), contents.Text(c.words[2])
	sl.asked = sl.asked || o.asks()
	reply := OK()
	if o.get {
		reply = got(sl)
	}
	switch allowed := o.allows(sl); {
	case !allowed && o.get:
		return reply
	case !allowed:
		return Reply{}
	}
	c.put(sl, value, at, o.keepTTL)
	return reply
}

// put sets a value that goes at a time, or never, or when the one before was to go.
func (c call) put(sl *slot, value contents.Text, at int64, keepTTL bool) {
	if keepTTL {
		sl.replace(value)
		return
	}
	sl.set(value)
	if at != never {
		c.expire(sl, at, c.name)
	}
}

// got is what GET says of a key.
func got(sl *slot) Reply {
	if !sl.present {
		return Reply{}
	}
	return Text(sl.text())
}

func (c call) setnx() Reply {
	sl := c.ask(c.words[1])
	if sl.present {
		return Number(0)
	}
	sl.set(contents.Text(c.words[2]))
	return Number(1)
}

// setex is SETEX and PSETEX key time value.
func (c call) setex() Reply {
	o := setOptions{timed: "ex", unit: unit{seconds: c.name == "setex"}, amount: c.words[2]}
	at := o.deadline(c.now, c.name)
	c.put(c.use(c.words[1]), contents.Text(c.words[3]), at, false)
	return OK()
}

func (c call) getset() Reply {
	sl := c.ask(c.words[1])
	reply := got(sl)
	sl.set(contents.Text(c.words[2]))
	return reply
}

func (c call) getex() Reply {
	o, ok := parseGetex(c.words[2:])
	require(ok, syntax.ErrSyntax)
	sl := c.ask(c.words[1])
	reply := got(sl)
	if !sl.present {
		return Reply{}
	}
	at := o.deadline(c.now, c.name)
	switch {
	case o.timed != "":
		c.expire(sl, at, c.name)
	case o.persist && sl.expires != never: // also where it is not known
		sl.expires, sl.kept, sl.by = never, false, c.name
	}
	return reply
}

// mset is MSET and MSETNX key value ….
func (c call) mset() Reply {
	if len(c.words)%2 == 0 {
		return wrongArity(c.name)
	}
	only := c.name == "msetnx"
	for i := 1; i < len(c.words); i += 2 {
		if only && c.ask(c.words[i]).present {
			return Number(0)
		}
	}
	for i := 1; i < len(c.words); i += 2 {
		c.use(c.words[i]).set(contents.Text(c.words[i+1]))
	}
	if only {
		return Number(1)
	}
	return OK()
}

// msetex is MSETEX count key value … [NX | XX] [EX seconds | PX milliseconds | EXAT time | PXAT
// time | KEEPTTL].
func (c call) msetex() Reply {
	n, ok := syntax.Int(c.words[1])
	require(ok && n >= 1 && n <= math.MaxInt32, "ERR invalid numkeys value or out of range")
	require(int64(len(c.words)) >= 2+2*n, syntax.ErrSyntax)
	pairs, options := c.words[2:2+2*n], c.words[2+2*n:]
	o, ok := parseSet(options)
	require(ok && !o.get && !o.compares, syntax.ErrSyntax)
	at := o.deadline(c.now, c.name)
	for i := 0; i < len(pairs) && (o.nx || o.xx); i += 2 {
		if c.ask(pairs[i]).present != o.xx {
			return Number(0)
		}
	}
	for i := 0; i < len(pairs); i += 2 {
		c.put(c.use(pairs[i]), contents.Text(pairs[i+1]), at, o.keepTTL)
	}
	return Number(1)
}
