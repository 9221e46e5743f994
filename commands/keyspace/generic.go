package keyspace

import (
	"fmt"

	"redlock-proxy/commands/catalog/syntax"
)

func (c call) kind() (Reply, error) {
	sl := c.ask(c.words[1])
	if !sl.present {
		return Reply{Kind: Status, Str: "none"}, nil
	}
	content, failed := sl.look()
	if failed != nil {
		return *failed, nil
	}
	return Reply{Kind: Status, Str: content.Kind().String()}, nil
}

// object is OBJECT ENCODING key. What its other subcommands tell is not known of lock keys.
func (c call) object() (Reply, error) {
	switch sub := syntax.Lower(c.words[1]); {
	case sub == "freq", sub == "idletime", sub == "refcount", sub == "help":
		return Fail(fmt.Sprintf("ERR OBJECT %s is not known of lock keys; OBJECT ENCODING is", syntax.Shown(c.words[1]))), nil
	case sub != "encoding":
		return Fail(syntax.UnknownSubcommand("OBJECT", []byte(c.words[1]))), nil
	case len(c.words) != 3:
		return wrongArity("object|encoding"), nil
	}
	sl := c.ask(c.words[2])
	if !sl.present {
		return Reply{}, nil
	}
	content, failed := sl.look()
	if failed != nil {
		return *failed, nil
	}
	return Text(content.Encoding()), nil
}

// rename is RENAME and RENAMENX key newkey.
func (c call) rename() (Reply, error) {
	only := c.name == "renamenx"
	source := c.ask(c.words[1])
	if !source.present {
		return Fail(errNoKey), nil
	}
	target := c.use(c.words[2])
	switch {
	case source == target && only:
		return Number(0), nil
	case source == target:
		return OK(), nil
	case only && target.present:
		target.asked = true
		return Number(0), nil
	}
	if err := target.copyOf(source); err != nil {
		return Reply{}, err
	}
	source.remove()
	if only {
		target.asked = true
		return Number(1), nil
	}
	return OK(), nil
}

// copyOf has a key hold what another does, for as long.
func (sl *slot) copyOf(source *slot) error {
	at, err := source.expiry()
	if err != nil {
		return err
	}
	encoded := source.value()
	sl.remove()
	sl.present, sl.encoded, sl.expires, sl.by = true, encoded, at, ""
	return nil
}

// copy is COPY source destination [DB n] [REPLACE].
func (c call) copy() (Reply, error) {
	replace, elsewhere := false, false
	for options := c.words[3:]; len(options) > 0; options = options[1:] {
		switch option := syntax.Lower(options[0]); {
		case option == "replace":
			replace = true
		case option == "db" && len(options) > 1:
			if _, ok := syntax.Int(options[1]); !ok {
				return Fail(syntax.ErrNotInteger), nil
			}
			elsewhere, options = true, options[1:]
		default:
			return Fail(syntax.ErrSyntax), nil
		}
	}
	switch {
	case elsewhere:
		return Fail("ERR COPY of a lock key with DB: only within one database"), nil
	case c.words[1] == c.words[2]:
		return Fail("ERR source and destination objects are the same"), nil
	}
	source, target := c.ask(c.words[1]), c.ask(c.words[2])
	if !source.present || target.present && !replace {
		return Number(0), nil
	}
	if err := target.copyOf(source); err != nil {
		return Reply{}, err
	}
	return Number(1), nil
}

// count is EXISTS and TOUCH key …: a key counts as often as it is named.
func (c call) count() (Reply, error) {
	n := int64(0)
	for _, key := range c.words[1:] {
		if c.ask(key).present {
			n++
		}
	}
	return Number(n), nil
}

// del is DEL and UNLINK key ….
func (c call) del() (Reply, error) {
	n := int64(0)
	for _, key := range c.words[1:] {
		if sl := c.ask(key); sl.present {
			sl.remove()
			n++
		}
	}
	return Number(n), nil
}
