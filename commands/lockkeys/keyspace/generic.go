package keyspace

import (
	"fmt"

	"redlock-proxy/commands/catalog/syntax"
)

// genericCommands returns the commands on keys of any type.
func genericCommands() []tableEntry {
	return []tableEntry{
		{"exists", call.countExisting, "1.0.0", "Counts the lock keys that are held."},
		{"touch", call.countExisting, "3.2.1", "Counts the lock keys that are held."},
		{"type", call.typeName, "1.0.0", "Returns the type of the value of a lock key."},
		{"ttl", call.ttl, "1.0.0", "Returns the remaining time that a majority grants, in seconds."},
		{"pttl", call.ttl, "2.6.0", "Returns the remaining time that a majority grants, in milliseconds."},
		{"expiretime", call.ttl, "7.0.0", "Returns the expiry of a lock key as a Unix time in seconds."},
		{"pexpiretime", call.ttl, "7.0.0", "Returns the expiry of a lock key as a Unix time in milliseconds."},
		{"del", call.del, "1.0.0", "Removes lock keys, no matter which client holds them."},
		{"unlink", call.del, "4.0.0", "Removes lock keys, no matter which client holds them."},
		{"expire", call.runExpire, "1.0.0", "Sets the remaining time of a held lock key in seconds."},
		{"pexpire", call.runExpire, "2.6.0", "Sets the remaining time of a held lock key in milliseconds."},
		{"expireat", call.runExpire, "1.2.0", "Sets the expiry of a held lock key as a Unix time in seconds."},
		{"pexpireat", call.runExpire, "2.6.0", "Sets the expiry of a held lock key as a Unix time in milliseconds."},
		{"persist", call.persist, "2.2.0", "Removes the expiry of a lock key."},
		{"object", call.object, "2.2.3", "Returns the encoding that a Redis would use for the value of a lock key."},
		{"rename", call.rename, "1.0.0", "Renames a lock key, if both names have the same hash tag."},
		{"renamenx", call.rename, "1.0.0", "Renames a lock key to a free name, if both names have the same hash tag."},
		{"copy", call.copy, "6.2.0", "Copies a lock key, if both names have the same hash tag."},
	}
}

func (c call) typeName() Reply {
	k := c.observe(c.words[1])
	if !k.present {
		return Reply{Kind: Status, Str: "none"}
	}
	return Reply{Kind: Status, Str: k.read().Kind().String()}
}

// object implements OBJECT ENCODING key. Lock keys do not support the other subcommands.
func (c call) object() Reply {
	switch sub := syntax.Lower(c.words[1]); {
	case sub == "freq", sub == "idletime", sub == "refcount", sub == "help":
		return ErrorReply(fmt.Sprintf("ERR OBJECT %s is not supported on lock keys: they support only OBJECT ENCODING",
			syntax.Excerpt(c.words[1])))
	case sub != "encoding":
		return ErrorReply(syntax.UnknownSubcommand("OBJECT", []byte(c.words[1])))
	case len(c.words) != 3:
		return wrongArity("object|encoding")
	}
	k := c.observe(c.words[2])
	if !k.present {
		return Reply{}
	}
	return BulkReply(k.read().Encoding())
}

// rename implements RENAME and RENAMENX key newkey.
func (c call) rename() Reply {
	ifAbsent := c.name == "renamenx"
	source := c.observe(c.words[1])
	if !source.present {
		return ErrorReply(errNoKey)
	}
	source.refuseHolders()
	target := c.use(c.words[2])
	switch {
	case source == target && ifAbsent:
		return IntReply(0)
	case source == target:
		return OK()
	case ifAbsent && target.present:
		target.replyDependsOn = true
		return IntReply(0)
	}
	target.copyFrom(source)
	source.remove()
	if ifAbsent {
		target.replyDependsOn = true
		return IntReply(1)
	}
	return OK()
}

// copyFrom copies the value and the expiry of another key.
func (k *keyState) copyFrom(source *keyState) {
	at, encoded := source.expiry(), source.value()
	k.remove()
	k.present, k.encoded, k.expiresAt, k.expiryCommand = true, encoded, at, ""
}

// copy implements COPY source destination [DB n] [REPLACE].
func (c call) copy() Reply {
	replace, otherDB := false, false
	for options := c.words[3:]; len(options) > 0; options = options[1:] {
		switch option := syntax.Lower(options[0]); {
		case option == "replace":
			replace = true
		case option == "db" && len(options) > 1:
			integer(options[1])
			otherDB, options = true, options[1:]
		default:
			return ErrorReply(syntax.ErrSyntax)
		}
	}
	require(!otherDB, "ERR COPY of a lock key does not support DB: a lock key can only be copied within its database")
	require(c.words[1] != c.words[2], "ERR source and destination objects are the same")
	source, target := c.observe(c.words[1]), c.observe(c.words[2])
	if !source.present || target.present && !replace {
		return IntReply(0)
	}
	source.refuseHolders()
	target.copyFrom(source)
	return IntReply(1)
}

// countExisting implements EXISTS and TOUCH key …. A key that the command names twice counts
// twice.
func (c call) countExisting() Reply {
	return IntReply(countWhere(c.words[1:], func(key string) bool { return c.observe(key).present }))
}

// del implements DEL and UNLINK key ….
func (c call) del() Reply {
	return IntReply(countWhere(c.words[1:], func(key string) bool {
		k := c.observe(key)
		existed := k.present
		k.remove()
		return existed
	}))
}
