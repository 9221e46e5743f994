package keyspace

import (
	"fmt"

	"redlock-proxy/commands/catalog/syntax"
)

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
