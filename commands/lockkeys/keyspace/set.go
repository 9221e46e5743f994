package keyspace

import (
	"math"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/lockkeys/keyspace/contents"
)

// setCommands returns the commands on sets.
func setCommands() []tableEntry {
	return []tableEntry{
		{"sadd", call.sadd, "1.0.0", "Adds members to a set in a lock key."},
		{"srem", removeElements[*contents.Set], "1.0.0", "Removes members from a set in a lock key."},
		{"smembers", call.smembers, "1.0.0", "Returns all members of a set in a lock key."},
		{"sismember", call.sismember, "1.0.0", "Returns whether a set in a lock key has a member."},
		{"smismember", call.sismember, "6.2.0", "Returns whether a set in a lock key has each of some members."},
		{"scard", length[*contents.Set], "1.0.0", "Counts the members of a set in a lock key."},
		{"spop", call.spop, "1.0.0", "Removes random members from a set in a lock key and returns them."},
		{"sscan", call.scan, "2.8.0", "Returns all matching members of a set in a lock key."},
	}
}

// setOptions holds the options after the key and value of SET, or after the key of GETEX.
type setOptions struct {
	nx, xx, get, keepTTL, persist bool
	// compares is true if the options contain condition.
	compares  bool
	condition comparison
	// ttlOption is the option that sets the TTL, or "" without a TTL. unit and amount hold the TTL.
	ttlOption string
	unit      unit
	amount    string
}

// parseSet parses SET's options, in any order, in upper or lower case. ok is false for a syntax
// error. As in Redis, a command may repeat an option, and the last option counts.
func parseSet(words []string) (o setOptions, ok bool) {
	for len(words) > 0 {
		word, consumed := syntax.Lower(words[0]), 1
		_, isTime := units[word]
		switch {
		case word == "nx" && !o.xx && !o.compares:
			o.nx = true
		case word == "xx" && !o.nx && !o.compares:
			o.xx = true
		case word == "get":
			o.get = true
		case word == "keepttl" && o.ttlOption == "":
			o.keepTTL = true
		case isTime && !o.keepTTL && o.parseTTL(word, words):
			consumed = 2
		default:
			condition, ok := parseComparison(words)
			if !ok || o.nx || o.xx || o.compares {
				return o, false
			}
			o.compares, o.condition, consumed = true, condition, 2
		}
		words = words[consumed:]
	}
	return o, true
}

// parseGetex parses GETEX's options.
func parseGetex(words []string) (o setOptions, ok bool) {
	for len(words) > 0 {
		word, consumed := syntax.Lower(words[0]), 1
		_, isTime := units[word]
		switch {
		case word == "persist" && o.ttlOption == "":
			o.persist = true
		case isTime && !o.persist && o.parseTTL(word, words):
			consumed = 2
		default:
			return o, false
		}
		words = words[consumed:]
	}
	return o, true
}

// parseTTL parses a unit and the number after it. It returns false without a number, or after an
// option with a different unit.
func (o *setOptions) parseTTL(word string, words []string) bool {
	if len(words) < 2 || o.ttlOption != "" && o.ttlOption != word {
		return false
	}
	o.ttlOption, o.unit, o.amount = word, units[word], words[1]
	return true
}

// deadline returns the expiry that the options set, or noExpiry.
func (o setOptions) deadline(now int64, name string) int64 {
	if o.ttlOption == "" {
		return noExpiry
	}
	n := integer(o.amount)
	if n <= 0 {
		refuse(syntax.InvalidExpire(name))
	}
	return o.unit.deadline(n, now, name)
}

// allows reports whether the options allow setting a key.
func (o setOptions) allows(k *keyState) bool {
	switch {
	case o.nx:
		return !k.present
	case o.xx:
		return k.present
	case !o.compares:
		return true
	}
	return o.condition.holds(k.text(), k.present)
}

// readsKey reports whether the command depends on the value of the key.
func (o setOptions) readsKey() bool { return o.nx || o.xx || o.compares || o.get }

func (c call) set() Reply {
	o, ok := parseSet(c.words[3:])
	require(ok, syntax.ErrSyntax)
	at := o.deadline(c.now, c.name)
	o.condition.check()
	return c.setWithOptions(o, at)
}

// setWithOptions implements SET with parsed options. at is the expiry of the key, or noExpiry.
func (c call) setWithOptions(o setOptions, at int64) Reply {
	k, value := c.use(c.words[1]), contents.Text(c.words[2])
	k.replyDependsOn = k.replyDependsOn || o.readsKey()
	reply := OK()
	if o.get {
		reply = getReply(k)
	}
	switch allowed := o.allows(k); {
	case !allowed && o.get:
		return reply
	case !allowed:
		return Reply{}
	}
	c.put(k, value, at, o.keepTTL)
	return reply
}

// put sets a value. at is the expiry, or noExpiry; with keepTTL the key keeps its expiry.
func (c call) put(k *keyState, value contents.Text, at int64, keepTTL bool) {
	if keepTTL {
		k.replace(value)
		return
	}
	k.set(value)
	if at != noExpiry {
		c.expire(k, at, c.name)
	}
}

// getReply returns the reply to GET.
func getReply(k *keyState) Reply {
	if !k.present {
		return Reply{}
	}
	return BulkReply(k.text())
}

func (c call) setnx() Reply {
	k := c.observe(c.words[1])
	if k.present {
		return IntReply(0)
	}
	k.set(contents.Text(c.words[2]))
	return IntReply(1)
}

// setex implements SETEX and PSETEX key time value.
func (c call) setex() Reply {
	o := setOptions{ttlOption: "ex", unit: unit{inSeconds: c.name == "setex"}, amount: c.words[2]}
	at := o.deadline(c.now, c.name)
	c.put(c.use(c.words[1]), contents.Text(c.words[3]), at, false)
	return OK()
}

func (c call) getset() Reply {
	k := c.observe(c.words[1])
	reply := getReply(k)
	k.set(contents.Text(c.words[2]))
	return reply
}

func (c call) getex() Reply {
	o, ok := parseGetex(c.words[2:])
	require(ok, syntax.ErrSyntax)
	k := c.observe(c.words[1])
	reply := getReply(k)
	if !k.present {
		return Reply{}
	}
	at := o.deadline(c.now, c.name)
	switch {
	case o.ttlOption != "":
		c.expire(k, at, c.name)
	case o.persist && k.expiresAt != noExpiry: // also if the expiry is unknown
		k.expiresAt, k.keepsExpiry, k.expiryCommand = noExpiry, false, c.name
	}
	return reply
}

// mset implements MSET and MSETNX key value ….
func (c call) mset() Reply {
	if len(c.words)%2 == 0 {
		return wrongArity(c.name)
	}
	ifAbsent := c.name == "msetnx"
	for i := 1; i < len(c.words); i += 2 {
		if ifAbsent && c.observe(c.words[i]).present {
			return IntReply(0)
		}
	}
	for i := 1; i < len(c.words); i += 2 {
		c.use(c.words[i]).set(contents.Text(c.words[i+1]))
	}
	if ifAbsent {
		return IntReply(1)
	}
	return OK()
}

// msetex implements MSETEX count key value … [NX | XX] [EX seconds | PX milliseconds |
// EXAT time | PXAT time | KEEPTTL].
func (c call) msetex() Reply {
	n, ok := syntax.Int(c.words[1])
	require(ok && n >= 1 && n <= math.MaxInt32, "ERR invalid numkeys value or out of range")
	require(int64(len(c.words)) >= 2+2*n, syntax.ErrSyntax)
	pairs, options := c.words[2:2+2*n], c.words[2+2*n:]
	o, ok := parseSet(options)
	require(ok && !o.get && !o.compares, syntax.ErrSyntax)
	at := o.deadline(c.now, c.name)
	for i := 0; i < len(pairs) && (o.nx || o.xx); i += 2 {
		if c.observe(pairs[i]).present != o.xx {
			return IntReply(0)
		}
	}
	for i := 0; i < len(pairs); i += 2 {
		c.put(c.use(pairs[i]), contents.Text(pairs[i+1]), at, o.keepTTL)
	}
	return IntReply(1)
}
