package keyspace

import (
	"fmt"

	"redlock-proxy/commands/catalog/syntax"
)

// genericCommands are the commands on keys of any kind.
func genericCommands() []entry {
	return []entry{
		{"exists", call.count, "1.0.0", "Counts which of the lock keys are held."},
		{"touch", call.count, "3.2.1", "Counts which of the lock keys are held."},
		{"type", call.kind, "1.0.0", "Returns what kind of value a lock key holds, or none."},
		{"ttl", call.left, "1.0.0", "Returns the time that a majority still grants, in seconds."},
		{"pttl", call.left, "2.6.0", "Returns the time that a majority still grants, in milliseconds."},
		{"expiretime", call.left, "7.0.0", "Returns the end of a lock key as a Unix time in seconds."},
		{"pexpiretime", call.left, "7.0.0", "Returns the end of a lock key as a Unix time in milliseconds."},
		{"del", call.del, "1.0.0", "Removes lock keys, whoever holds them."},
		{"unlink", call.del, "4.0.0", "Removes lock keys, whoever holds them."},
		{"expire", call.expireIn, "1.0.0", "Gives a held lock key a time in seconds."},
		{"pexpire", call.expireIn, "2.6.0", "Gives a held lock key a time in milliseconds."},
		{"expireat", call.expireIn, "1.2.0", "Gives a held lock key an end as a Unix time in seconds."},
		{"pexpireat", call.expireIn, "2.6.0", "Gives a held lock key an end as a Unix time in milliseconds."},
		{"persist", call.persist, "2.2.0", "Takes the time of a lock key away."},
		{"object", call.object, "2.2.3", "Returns the form in which a Redis would keep what a lock key holds."},
		{"rename", call.rename, "1.0.0", "Gives a lock key another name; only its own can be given."},
		{"renamenx", call.rename, "1.0.0", "Gives a lock key another name if that is free."},
		{"copy", call.copy, "6.2.0", "Copies a lock key; another cannot be replaced by it."},
	}
}

func (c call) kind() Reply {
	sl := c.ask(c.words[1])
	if !sl.present {
		return Reply{Kind: Status, Str: "none"}
	}
	return Reply{Kind: Status, Str: sl.read().Kind().String()}
}

// object is OBJECT ENCODING key. What its other subcommands tell is not known of lock keys.
func (c call) object() Reply {
	switch sub := syntax.Lower(c.words[1]); {
	case sub == "freq", sub == "idletime", sub == "refcount", sub == "help":
		return Fail(fmt.Sprintf("ERR OBJECT %s is not known of lock keys; OBJECT ENCODING is", syntax.Shown(c.words[1])))
	case sub != "encoding":
		return Fail(syntax.UnknownSubcommand("OBJECT", []byte(c.words[1])))
	case len(c.words) != 3:
		return wrongArity("object|encoding")
	}
	sl := c.ask(c.words[2])
	if !sl.present {
		return Reply{}
	}
	return Text(sl.read().Encoding())
}

// rename is RENAME and RENAMENX key newkey.
func (c call) rename() Reply {
	only := c.name == "renamenx"
	source := c.ask(c.words[1])
	if !source.present {
		return Fail(errNoKey)
	}
	target := c.use(c.words[2])
	switch {
	case source == target && only:
		return Number(0)
	case source == target:
		return OK()
	case only && target.present:
		target.asked = true
		return Number(0)
	}
	target.copyOf(source)
	source.remove()
	if only {
		target.asked = true
		return Number(1)
	}
	return OK()
}

// copyOf has a key hold what another does, for as long.
func (sl *slot) copyOf(source *slot) {
	at, encoded := source.expiry(), source.value()
	sl.remove()
	sl.present, sl.encoded, sl.expires, sl.by = true, encoded, at, ""
}

// copy is COPY source destination [DB n] [REPLACE].
func (c call) copy() Reply {
	replace, elsewhere := false, false
	for options := c.words[3:]; len(options) > 0; options = options[1:] {
		switch option := syntax.Lower(options[0]); {
		case option == "replace":
			replace = true
		case option == "db" && len(options) > 1:
			integer(options[1])
			elsewhere, options = true, options[1:]
		default:
			return Fail(syntax.ErrSyntax)
		}
	}
	require(!elsewhere, "ERR COPY of a lock key with DB: only within one database")
	require(c.words[1] != c.words[2], "ERR source and destination objects are the same")
	source, target := c.ask(c.words[1]), c.ask(c.words[2])
	if !source.present || target.present && !replace {
		return Number(0)
	}
	target.copyOf(source)
	return Number(1)
}

// count is EXISTS and TOUCH key …: a key counts as often as it is named.
func (c call) count() Reply {
	return Number(tally(c.words[1:], func(key string) bool { return c.ask(key).present }))
}

// del is DEL and UNLINK key ….
func (c call) del() Reply {
	return Number(tally(c.words[1:], func(key string) bool {
		sl := c.ask(key)
		held := sl.present
		sl.remove()
		return held
	}))
}
